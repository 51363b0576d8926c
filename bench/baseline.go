package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
)

const (
	baselineFile = "bench/baseline.json"
	tolerated    = 0.8 // share of the ratio in the baseline, which is from full runs on a quiet machine
)

// reachedBefore returns the ratio in the baseline, or 0 for a measure that is not in it.
func reachedBefore(name string) (float64, error) {
	baseline, err := readBaseline()

	return baseline[name], err
}

func remember(name string, ratio float64) error {
	baseline, err := readBaseline()
	if err != nil {
		return err
	}

	baseline[name] = math.Round(ratio*100) / 100

	text, err := json.MarshalIndent(baseline, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(baselineFile, append(text, '\n'), 0o644)
}

func readBaseline() (map[string]float64, error) {
	baseline := map[string]float64{}

	text, err := os.ReadFile(baselineFile)
	if errors.Is(err, fs.ErrNotExist) {
		return baseline, nil
	}

	if err != nil {
		return nil, err
	}

	if err := json.Unmarshal(text, &baseline); err != nil {
		return nil, fmt.Errorf("%s: %w", baselineFile, err)
	}

	return baseline, nil
}
