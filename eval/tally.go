package main

import (
	"fmt"
	"math"
	"slices"
)

// tally counts the verdicts for a class of questions. Only strict questions count; all others have a separate tally.
type tally struct {
	N            int     `json:"n"`
	Answerable   int     `json:"answerable"`
	Answered     int     `json:"answered"`
	Covered      int     `json:"covered"` // answerable questions that were answered
	Right        int     `json:"right"`
	RefusedRight int     `json:"refusedRight"`
	RefusedWrong int     `json:"refusedWrong"`
	Asked        int     `json:"asked"`
	Failed       int     `json:"failed"`
	Repaired     int     `json:"repaired"` // questions that took more than one statement
	Repairs      int     `json:"repairs"`  // statements after the first
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	P50          float64 `json:"p50Seconds"`
	P95          float64 `json:"p95Seconds"`

	seconds []float64
}

func (t *tally) add(m mark) {
	t.N++

	if m.question.Answerable {
		t.Answerable++
	}

	switch m.Verdict {
	case right, wrong:
		t.Answered++

		if m.question.Answerable {
			t.Covered++
		}

		if m.Verdict == right {
			t.Right++
		}
	case refusedRight:
		t.RefusedRight++
	case refusedWrong:
		t.RefusedWrong++
	case asked:
		t.Asked++
	case failed:
		t.Failed++
	}

	if m.Repairs > 0 {
		t.Repaired++
		t.Repairs += m.Repairs
	}

	t.InputTokens += m.Input
	t.OutputTokens += m.Output
	t.seconds = append(t.seconds, m.Seconds)
}

func (t *tally) close() {
	slices.Sort(t.seconds)
	t.P50, t.P95 = percentile(t.seconds, 0.5), percentile(t.seconds, 0.95)
}

// percentile returns the smallest value that at least the given part of the values does not exceed.
func percentile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}

	return math.Round(1000*sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]) / 1000
}

// precision returns the share of right answers among all answers.
func (t *tally) precision() string { return share(t.Right, t.Answered) }

// accuracy returns the share of answerable questions that were answered right.
func (t *tally) accuracy() string { return share(t.Right, t.Answerable) }

// coverage returns the share of answerable questions that were answered.
func (t *tally) coverage() string { return share(t.Covered, t.Answerable) }

func (t *tally) refused() string { return fmt.Sprintf("%d/%d", t.RefusedRight, t.N-t.Answerable) }

func share(part, of int) string {
	if of == 0 {
		return "-"
	}

	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(of))
}
