package main

import (
	"fmt"
	"math"
	"slices"
)

// tally counts how a class of questions came out. Only strict questions are counted, but for those that are left out,
// which have a tally of their own.
type tally struct {
	N            int     `json:"n"`
	Answerable   int     `json:"answerable"`
	Answered     int     `json:"answered"`
	Covered      int     `json:"covered"` // of those that can be answered
	Right        int     `json:"right"`
	RefusedRight int     `json:"refusedRight"`
	RefusedWrong int     `json:"refusedWrong"`
	Asked        int     `json:"asked"`
	Failed       int     `json:"failed"`
	Repaired     int     `json:"repaired"` // questions that took more than one query
	Repairs      int     `json:"repairs"`  // queries beyond the first
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

// percentile is the least value that so large a part does not exceed.
func percentile(sorted []float64, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}

	return math.Round(1000*sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]) / 1000
}

// precision is how much of what was answered is right.
func (t *tally) precision() string { return share(t.Right, t.Answered) }

// accuracy is how much of what can be answered was answered right.
func (t *tally) accuracy() string { return share(t.Right, t.Answerable) }

// coverage is how much of what can be answered was answered.
func (t *tally) coverage() string { return share(t.Covered, t.Answerable) }

func (t *tally) refused() string { return fmt.Sprintf("%d/%d", t.RefusedRight, t.N-t.Answerable) }

func share(part, of int) string {
	if of == 0 {
		return "-"
	}

	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(of))
}
