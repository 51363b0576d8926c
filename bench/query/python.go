package query

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"quern.dev/quern/bench/rig"
)

const pythonRounds = 3

//go:embed python.py
var pythonProgram string

// Python measures a result of many rows that the Python package takes into pandas, polars and Arrow. Its twin is Python, too: DuckDB runs the
// same statement over the same data files and writes a Parquet file, which the same library reads. The rows in batches have no twin; their
// memory is told.
func Python(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	folder, err := exec.CommandContext(ctx, "clients/python/tools/environment").Output()
	if err != nil {
		return nil, fmt.Errorf("making the environment: %w", err)
	}

	q, stop, err := StartQueries(ctx, b, b.Rows/2, Ready)
	if err != nil {
		return nil, err
	}
	defer stop()

	p := python{q, filepath.Join(strings.TrimSpace(string(folder)), "bin", "python"), b.Dir, b.Rows / 2}

	var results []rig.Result

	for _, form := range []string{"pandas", "polars", "arrow"} {
		ours, bare, err := rig.Alternate(ctx, min(pythonRounds, b.Loads), p.side("ours", form), p.side("bare", form))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", form, err)
		}

		results = append(results, rig.Result{Name: "python-" + form, Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours})
	}

	_, remark, err := p.side("ours", "batches").Round(ctx)
	fmt.Fprintf(os.Stderr, "python-batches: %s\n", remark)

	return results, err
}

// python runs the program of the measure.
type python struct {
	*Queries

	interpreter, dir string
	rows             int
}

// side takes the rows in one process for each round, so that no round finds the memory of another.
func (p python) side(name, form string) rig.Side {
	return rig.Side{Name: name, Round: func(ctx context.Context) (float64, string, error) {
		if err := p.Rest(ctx); err != nil {
			return 0, "", err
		}

		want, err := json.Marshal(map[string]any{
			"bare": name == "bare", "form": form, "statement": `SELECT id, region, customer, amount, share, sold, paid, note FROM sales`,
			"files": p.views[0].files, "threads": runtime.NumCPU(), "memory": queryMemory,
		})
		if err != nil {
			return 0, "", err
		}

		source, err := filepath.Abs("clients/python/src")
		if err != nil {
			return 0, "", err
		}

		command := exec.CommandContext(ctx, p.interpreter, "-B", "-c", pythonProgram)
		command.Env = append(os.Environ(), "PYTHONPATH="+source, "QUERN_SERVER=http://"+p.API, "QUERN_TOKEN="+p.Tokens["ada"], "TMPDIR="+p.dir)
		command.Stdin, command.Stderr = bytes.NewReader(want), os.Stderr

		said, err := command.Output()
		if err != nil {
			return 0, "", err
		}

		var took struct {
			Rows         int
			Seconds      float64
			Before, Peak int64
		}

		if err := json.Unmarshal(said, &took); err != nil {
			return 0, "", err
		}

		if took.Rows != p.rows {
			return 0, "", fmt.Errorf("%d rows instead of %d", took.Rows, p.rows)
		}

		return took.Seconds * float64(time.Second), fmt.Sprintf("%s %.2f s, memory %s at most, %s of it before", form, took.Seconds, rig.Megabytes(took.Peak), rig.Megabytes(took.Before)), nil
	}}
}
