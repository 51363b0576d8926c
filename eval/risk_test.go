package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRisks checks what counts as answered at each level of certainty.
func TestRisks(t *testing.T) {
	t.Parallel()

	answerable := &question{Answerable: true}
	marks := []mark{
		{question: answerable, Verdict: right},
		{question: answerable, Verdict: wrong},
		{question: answerable, Verdict: refusedWrong},
		{question: answerable, Verdict: asked, Options: []bool{true}},
		{question: answerable, Verdict: asked, Options: []bool{false, true}},
		{question: answerable, Verdict: asked, Options: []bool{false, false, false}},
		{question: answerable, Verdict: asked}, // a model asked, and its options have no statement
		{question: &question{}, Verdict: asked, Options: []bool{false}},
		{question: &question{Answerable: true, TieSensitive: true}, Verdict: right}, // it does not count
	}

	list := risks(marks)
	require.Equal(t, []risk{
		{list[0].Name, 2, 1}, {list[1].Name, 4, 2}, {list[2].Name, 6, 2}, {list[3].Name, 4, 3},
	}, list)

	var printed strings.Builder

	made := &report{Total: &tally{Answerable: 7}, Risks: list}
	require.NoError(t, made.printRisks(&printed))
	require.Contains(t, printed.String(), "28.6%")
	require.Contains(t, printed.String(), "50.0%")
}
