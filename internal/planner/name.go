package planner

import (
	"cmp"
	"slices"
)

const (
	nearlyAsGood = 0.12 // how far below the best score other meanings are kept
	surelyNamed  = 0.6
)

// columnsNamed returns the columns that words may name, most likely first.
func (l *matcher) columnsNamed(from, to int) []mention {
	words := l.runs[from][to-from-1]
	if len(words.said) == 0 || to-from == 1 && len(l.tokens[from].lower) <= 3 && l.phrases[l.tokens[from].lower] != "" { // "not" does not mean "note"
		return nil
	}

	var found []mention

	for _, i := range l.speaking(words) {
		c := &l.columns[i]
		score := nameScore(words.said, c)

		if score == 0 && len(words.short) < len(words.said) {
			score = 0.97 * nameScore(words.short, c) // "the airline code" for a column "airline"

			if c.words[0] == "num" || c.words[0] == "number" { // a column that starts with "number" is a count, not the number that identifies something
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

// speaking returns the indexes of the columns that share a word, a prefix or a hint with the words, in ascending order.
func (l *matcher) speaking(words run) []int {
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

// nameScore returns how well words name a column, from 0 to 1.
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

// derived reports whether one word is probably derived from the other: "encrypt" and "encryption".
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

// rowsNamed returns how well words name the rows of the dataset, and the column that they name the rows by, or -1.
func (l *matcher) rowsNamed(from, to int) (column int, score float64) {
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
