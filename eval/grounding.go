package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"quern.dev/quern/eval/sample"
	"quern.dev/quern/internal/grounding"
)

// groundingSuite asks no questions. It measures the check of the assistant's answers, with answers made from the tables
// of the set.
const groundingSuite = "grounding"

// Seeds that were not used while the check was developed.
const (
	firstSeed = 1_000_000
	lastSeed  = firstSeed + 200
)

func measureGrounding(o options) error {
	var files []string

	err := filepath.WalkDir(filepath.Join(o.dir, o.split), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".csv") && entry.Name() != "ATTRIBUTION.csv" {
			files = append(files, path)
		}

		return err
	})
	if err != nil {
		return err
	}

	tables, err := sample.Read(files...)
	if err != nil {
		return discreet(err, o.split)
	}

	if len(tables) == 0 {
		return fmt.Errorf("%s has no tables", filepath.Join(o.dir, o.split))
	}

	figures := sample.Measure(tables, firstSeed, lastSeed, checkSample, func(sample.Class, sample.Sample, sample.Claim) {})
	if err := figures.Print(os.Stdout); err != nil {
		return err
	}

	found, n := figures.Found()
	claims, answers := figures.FalseAlarms()

	if _, err := fmt.Fprintf(os.Stdout, "eval %s %s tables=%d n=%d found=%.1f%% false-alarms=%.1f%% answers-with-false-alarms=%.1f%%\n",
		o.suite, o.split, len(tables), n, 100*found, 100*claims, 100*answers); err != nil {
		return err
	}

	if found < 0.97 || claims > 0.03 {
		return errors.New("the check must find at least 97% of the wrong figures and report at most 3% of the right ones")
	}

	return nil
}

func checkSample(s sample.Sample) []sample.Verdict {
	var steps []grounding.Step
	for i, step := range s.Steps {
		steps = append(steps, grounding.Step{Index: i, Columns: step.Columns, Rows: step.Rows, RowCount: step.RowCount, Complete: step.Complete})
	}

	var verdicts []sample.Verdict
	for _, claim := range grounding.Check(s.Answer, s.Question, steps).Claims {
		verdicts = append(verdicts, sample.Verdict{From: claim.At, To: claim.At + len(claim.Text), Verified: claim.Verified})
	}

	return verdicts
}
