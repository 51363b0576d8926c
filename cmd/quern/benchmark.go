package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) benchmarkCommand() *cobra.Command {
	return group("benchmark", "Ask the verified questions of a namespace again, and tell which answers are right", p.benchmarkRun(), p.benchmarkList(), p.benchmarkShow(), p.benchmarkCancel())
}

// benchmarkWish is what the flags of a command about benchmarks say.
type benchmarkWish struct {
	mode, model, provider, compare string
	failOnWorse, ifOutdated        bool
}

func (p *program) benchmarkRun() *cobra.Command {
	wish := &benchmarkWish{}

	command := p.act("run NAMESPACE", "Ask all verified questions and compare the rows", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := namespaceName(args[0])
		if err != nil {
			return err
		}

		other, err := wish.other(ctx, client, at)
		if err != nil {
			return err
		}

		if wish.ifOutdated {
			if fresh, err := isFresh(ctx, client, at, wish.mode); err != nil || fresh {
				return orShow(err, func() error { return p.done("Nothing has changed since the last benchmark.") })
			}
		}

		made, err := api.Read[api.Benchmark](client.CreateBenchmark(ctx, at.owner, at.namespace, &api.CreateBenchmarkParams{}, api.NewBenchmark{
			Mode: given[api.NewBenchmarkMode](wish.mode), Model: given[string](wish.model), Provider: given[string](wish.provider),
		}))
		if err != nil {
			return err
		}

		if err := p.awaitBenchmark(ctx, client, at, made); err != nil {
			return err
		}

		return p.showBenchmark(ctx, client, at, made.ID, other, wish.failOnWorse)
	})
	command.Long = `Ask all verified questions of a namespace with the current data and rules, and with a model if the service has one. No verified question
answers them. The rows of each answer are compared with those of the verified statement, and with the benchmark before.

	quern benchmark run shop
	quern benchmark run shop --mode rules --fail-on-worse
	quern benchmark run shop --model small --compare BENCHMARK`
	command.Flags().StringVar(&wish.mode, "mode", "", "what answers: rules, or model (the default if the service has a model)")
	command.Flags().StringVar(&wish.model, "model", "", "model to ask; `quern models` lists them")
	command.Flags().StringVar(&wish.provider, "provider", "", "its provider, if several have a model with this name")
	command.Flags().BoolVar(&wish.failOnWorse, "fail-on-worse", false, "exit with code 11 if a question got worse")
	command.Flags().BoolVar(&wish.ifOutdated, "if-outdated", false, "only if something other than rows has changed since the last benchmark")
	compareFlag(command, wish)

	return command
}

func compareFlag(command *cobra.Command, wish *benchmarkWish) {
	command.Flags().StringVar(&wish.compare, "compare", "", "benchmark to compare with (default: the last one of the same mode before it)")
}

// other returns the benchmark to compare with, nil if the user named none.
func (w *benchmarkWish) other(ctx context.Context, client *api.Client, at name) (*uuid.UUID, error) {
	if w.compare == "" {
		return nil, nil //nolint:nilnil // the service chooses
	}

	id, err := findBenchmark(ctx, client, at, w.compare)

	return &id, err
}

func findBenchmark(ctx context.Context, client *api.Client, at name, text string) (uuid.UUID, error) {
	return findID(text, "`quern benchmark list` shows the ids", allBenchmarks(ctx, client, at), func(b api.Benchmark) listed {
		return listed{b.ID, moment(b.CreatedAt) + ", " + string(b.Status)}
	})
}

// isFresh reports whether the last completed benchmark, of the mode if it is given, is not outdated.
func isFresh(ctx context.Context, client *api.Client, at name, mode string) (bool, error) {
	for b, err := range allBenchmarks(ctx, client, at) {
		if err != nil {
			return false, err
		}

		if b.Outdated != nil && (mode == "" || mode == string(b.Mode)) {
			return len(*b.Outdated) == 0, nil
		}
	}

	return false, nil
}

// awaitBenchmark shows the progress of a benchmark until it ends.
func (p *program) awaitBenchmark(ctx context.Context, client *api.Client, at name, now api.Benchmark) (err error) {
	line := &progress{to: p.err}
	defer line.clear()

	for pause := 50 * time.Millisecond; now.Status == api.BenchmarkRunning; pause = min(pause*3/2, time.Second) {
		if now.Questions == nil {
			line.say("Listing the verified questions")
		} else {
			done := now.Right + now.Wrong + now.Refused + now.AskedBack + now.Failed
			line.say(fmt.Sprintf("Asked %d of %d: %d right, %d wrong", done, *now.Questions, now.Right, now.Wrong))
		}

		select {
		case <-ctx.Done():
			line.clear()
			p.err.tellf("Stopped waiting. The benchmark goes on; `quern benchmark show %s %s` shows it, `quern benchmark cancel %s %s` ends it.", at, now.ID, at, now.ID)
			p.stopped = true

			return ctx.Err()
		case <-time.After(pause):
		}

		if now, err = api.Read[api.Benchmark](client.GetBenchmark(ctx, at.owner, at.namespace, now.ID, &api.GetBenchmarkParams{})); err != nil && ctx.Err() == nil {
			return err
		}
	}

	return nil
}

func (p *program) benchmarkList() *cobra.Command {
	var limit int

	command := p.act("list NAMESPACE", "List the benchmarks of a namespace, newest first", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := namespaceName(args[0])
		if err != nil {
			return err
		}

		return list(p, allBenchmarks(ctx, client, at), limit, "No benchmarks. `quern benchmark run NAMESPACE` starts one.",
			column[api.Benchmark]{"id", func(b api.Benchmark) any { return b.ID }},
			column[api.Benchmark]{"at", func(b api.Benchmark) any { return b.CreatedAt }},
			column[api.Benchmark]{"status", func(b api.Benchmark) any { return string(b.Status) }},
			column[api.Benchmark]{"by", answeredBy},
			column[api.Benchmark]{"release", func(b api.Benchmark) any { return b.Release }},
			column[api.Benchmark]{"questions", func(b api.Benchmark) any { return b.Questions }},
			column[api.Benchmark]{"right", func(b api.Benchmark) any { return b.Right }},
			column[api.Benchmark]{"wrong", func(b api.Benchmark) any { return b.Wrong }},
			column[api.Benchmark]{"better", func(b api.Benchmark) any { return b.Better }},
			column[api.Benchmark]{"worse", func(b api.Benchmark) any { return b.Worse }},
			column[api.Benchmark]{"changed since", func(b api.Benchmark) any { return causes(b.Outdated) }},
		)
	})
	limitFlag(command, &limit)

	return command
}

func answeredBy(b api.Benchmark) any {
	if b.Model != nil {
		return *b.Model
	}

	return string(b.Mode)
}

func causes(list *[]api.BenchmarkCause) string {
	if list == nil {
		return ""
	}

	words := make([]string, len(*list))
	for i, one := range *list {
		words[i] = string(one)
	}

	return strings.Join(words, ", ")
}

func allBenchmarks(ctx context.Context, client *api.Client, at name) iter.Seq2[api.Benchmark, error] {
	return api.Pages(func(cursor *string) ([]api.Benchmark, *string, error) {
		page, err := api.Read[api.BenchmarkList](client.ListBenchmarks(ctx, at.owner, at.namespace, &api.ListBenchmarksParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

// onBenchmark returns a command about one benchmark.
func (p *program) onBenchmark(use, short string, run func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error) *cobra.Command {
	return p.act(use+" NAMESPACE ID", short, cobra.ExactArgs(2), func(ctx context.Context, client *api.Client, args []string) error { //nolint:mnd // NAMESPACE and ID
		at, err := namespaceName(args[0])
		if err != nil {
			return err
		}

		id, err := findBenchmark(ctx, client, at, args[1])
		if err != nil {
			return err
		}

		return run(ctx, client, at, id)
	})
}

func (p *program) benchmarkShow() *cobra.Command {
	wish := &benchmarkWish{}

	command := p.onBenchmark("show", "Show what became of each question of a benchmark", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		other, err := wish.other(ctx, client, at)
		if err != nil {
			return err
		}

		return p.showBenchmark(ctx, client, at, id, other, wish.failOnWorse)
	})
	command.Flags().BoolVar(&wish.failOnWorse, "fail-on-worse", false, "exit with code 11 if a question got worse")
	compareFlag(command, wish)

	return command
}

func (p *program) benchmarkCancel() *cobra.Command {
	return p.onBenchmark("cancel", "Cancel a benchmark", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		if _, err := api.Read[api.Benchmark](client.CancelBenchmark(ctx, at.owner, at.namespace, id)); err != nil {
			return err
		}

		return p.done("Cancelled. What was answered before stays.")
	})
}

// shownBenchmark is a benchmark with its results, as programs get it.
type shownBenchmark struct {
	api.Benchmark

	Results []api.BenchmarkResult `json:"results"`
}

// showBenchmark prints a benchmark with its results. It fails if the benchmark did, and, if the user wants so, if a question got worse.
func (p *program) showBenchmark(ctx context.Context, client *api.Client, at name, id uuid.UUID, other *uuid.UUID, failOnWorse bool) error {
	found, err := api.Read[api.Benchmark](client.GetBenchmark(ctx, at.owner, at.namespace, id, &api.GetBenchmarkParams{Compare: other}))
	if err != nil {
		return err
	}

	whole := shownBenchmark{Benchmark: found, Results: []api.BenchmarkResult{}}

	for result, err := range allResults(ctx, client, at, id, other) {
		if err != nil {
			return err
		}

		whole.Results = append(whole.Results, result)
	}

	if p.format == "csv" || p.format == "ndjson" {
		err = list(p, api.Pages(func(*string) ([]api.BenchmarkResult, *string, error) { return whole.Results, nil, nil }), 0, "", resultColumns()...)
	} else {
		err = one(p, whole, func() { p.printBenchmark(whole) })
	}

	switch {
	case err != nil:
		return err
	case found.Status == api.BenchmarkFailed && found.Error != nil:
		return exitError{exitOther, "the benchmark failed: " + found.Error.Message, ""}
	case failOnWorse && found.Worse > 0:
		return exitError{exitWorse, counted(int64(found.Worse), "question", "questions") + " got worse", ""}
	case failOnWorse && found.Status == api.BenchmarkCancelled:
		return errors.New("the benchmark was cancelled")
	default:
		return nil
	}
}

func allResults(ctx context.Context, client *api.Client, at name, id uuid.UUID, other *uuid.UUID) iter.Seq2[api.BenchmarkResult, error] {
	return api.Pages(func(cursor *string) ([]api.BenchmarkResult, *string, error) {
		page, err := api.Read[api.BenchmarkResultList](client.ListBenchmarkResults(ctx, at.owner, at.namespace, id, &api.ListBenchmarkResultsParams{
			Compare: other, Cursor: cursor, Limit: new(int32(100)),
		}))

		return page.Data, page.NextCursor, err
	})
}

func resultColumns() []column[api.BenchmarkResult] {
	return []column[api.BenchmarkResult]{
		{"question", func(r api.BenchmarkResult) any { return r.Question }},
		{"outcome", func(r api.BenchmarkResult) any { return outcomeOf(r.Outcome) }},
		{"before", func(r api.BenchmarkResult) any { return outcomeOf(r.Before) }},
		{"change", func(r api.BenchmarkResult) any { return changeOf(r.Change) }},
		{"why", func(r api.BenchmarkResult) any { return causes(&r.Why) }},
		{"detail", func(r api.BenchmarkResult) any { return valueOf(r.Detail) }},
	}
}

func outcomeOf(outcome *api.BenchmarkOutcome) string {
	if outcome == nil {
		return ""
	}

	return strings.ReplaceAll(string(*outcome), "_", " ")
}

func changeOf(change *api.BenchmarkResultChange) string {
	if change == nil {
		return ""
	}

	return string(*change)
}

func (p *program) printBenchmark(b shownBenchmark) {
	if heads, rows := cells(b.Results, resultColumns()); len(rows) > 0 {
		p.table(heads, rows)
		p.out.printf("\n")
	}

	outcomes := fmt.Sprintf("%d right, %d wrong, %d refused, %d asked back, %d failed", b.Right, b.Wrong, b.Refused, b.AskedBack, b.Failed)
	compared := ""

	if b.ComparedTo != nil {
		compared = fmt.Sprintf("%d better, %d worse than benchmark %s", b.Better, b.Worse, b.ComparedTo)
	}

	p.facts(
		fact{"benchmark", b.ID}, fact{"status", string(b.Status)}, fact{"answered by", answeredBy(b.Benchmark)}, fact{"release", b.Release}, fact{"questions", b.Questions},
		fact{"outcomes", outcomes}, fact{"compared", compared}, fact{"changed since", causes(b.Outdated)}, fact{"started", b.CreatedAt}, fact{"finished", b.FinishedAt},
	)
}
