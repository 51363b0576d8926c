package planner

import (
	"cmp"
	"slices"
)

const (
	nearlyAsGood = 0.12 // other meanings that are kept beside the best
	surelyNamed  = 0.6
)

// columnsNamed are the columns that words may name, the likeliest first.
func (l *linker) columnsNamed(from, to int) []mention {
	words := l.runs[from][to-from-1]
	if len(words.said) == 0 || to-from == 1 && len(l.tokens[from].lower) <= 3 && l.phrases[l.tokens[from].lower] != "" { // not is no note
		return nil
	}

	var found []mention

	for _, i := range l.speaking(words) {
		c := &l.columns[i]
		score := nameScore(words.said, c)

		if score == 0 && len(words.short) < len(words.said) {
			score = 0.97 * nameScore(words.short, c) // the airline code

			if c.words[0] == "num" || c.words[0] == "number" { // but how many are no ids
				score = 0
			}
		}

		if score == 0 {
			score = hintScore(words.hinted, c)
		}

		if score == 0 && c.Description != "" {
			score = descriptionScore(words.said, c.described)
		}

		if score > 0 {
			found = append(found, mention{i, score})
		}
	}

	slices.SortStableFunc(found, func(a, b mention) int { return cmp.Compare(b.score, a.score) })

	for i := range found {
		if found[i].score < found[0].score-nearlyAsGood {
			return found[:i]
		}
	}

	return found
}

// speaking are the columns that share a word with what is said, in order.
func (l *linker) speaking(words run) []int {
	var list []int

	for _, w := range words.said {
		list = append(list, l.byWord[w]...)

		if len(w) >= prefix {
			list = append(list, l.derived[w[:prefix]]...)
		}
	}

	for _, hint := range words.hinted {
		list = append(list, l.byWord[hint]...)
	}

	slices.Sort(list)

	return slices.Compact(list)
}

// nameScore is how well words name a column.
func nameScore(said []string, c *column) float64 {
	switch {
	case slices.Equal(said, c.words):
		return 1
	case sameWords(said, c.strong):
		return 0.97
	case sameWords(said, c.words):
		return 0.95
	}

	inside := 0

	for _, w := range said {
		if slices.Contains(c.strong, w) && !isUnit(w) {
			inside++
		}
	}

	if len(c.strong) > 0 && inside == len(said) && inside > 0 {
		share := float64(inside) / float64(len(c.strong))
		if slices.Contains(said, c.strong[len(c.strong)-1]) {
			return 0.6 + 0.3*share
		}

		return 0.5 + 0.3*share
	}

	if len(said) == 1 && len(c.strong) == 1 && derived(said[0], c.strong[0]) {
		return 0.66
	}

	return 0
}

func sameWords(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}

	for _, w := range a {
		if !slices.Contains(b, w) {
			return false
		}
	}

	return true
}

// derived is true of encrypt and encryption.
func derived(a, b string) bool {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}

	return same >= 5 && 10*same >= 7*max(len(a), len(b))
}

func hintScore(hinted []string, c *column) float64 {
	for rank, hint := range hinted {
		if slices.Contains(c.strong, hint) {
			return 0.64 - 0.02*float64(rank)
		}
	}

	return 0
}

func descriptionScore(said, words []string) float64 {
	for _, w := range said {
		if len(w) < 3 || isUnit(w) || !slices.Contains(words, w) {
			return 0
		}
	}

	return 0.5 + 0.05*float64(min(len(said), 3))
}

// rowsNamed says whether words mean the rows of the dataset, and by which column if by one.
func (l *linker) rowsNamed(from, to int) (column int, score float64) {
	said := l.runs[from][to-from-1].said
	if len(said) == 0 {
		return -1, 0
	}

	switch {
	case slices.Equal(said, l.words):
		return -1, 1
	case len(said) == 1 && len(l.words) > 0 && said[0] == l.words[len(l.words)-1]:
		return -1, 0.93
	}

	for _, i := range l.byWord[said[0]] {
		if c := &l.columns[i]; c.unique && (sameWords(said, c.strong) || slices.Equal(said, c.words)) && (c.kind == text || c.isID) {
			return i, 0.96
		}
	}

	if len(said) != 1 {
		return -1, 0
	}

	if said[0] == "person" && l.label >= 0 && l.label == l.person() {
		return l.label, 0.7
	}

	for _, hint := range rowHints(said[0]) {
		if slices.Contains(l.words, hint) {
			return -1, 0.75
		}
	}

	return -1, 0
}
