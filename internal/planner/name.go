package planner

import (
	"slices"

	"quern.dev/quern/internal/meaning"
)

// sameName reports whether words are the words of a name, in any order, or the same letters.
func sameName(said, name []string) bool {
	if len(said) == 0 || len(name) == 0 {
		return false
	}

	if sameLetters(said, name) {
		return true
	}

	if len(said) != len(name) {
		return false
	}

	for _, w := range name {
		if !slices.ContainsFunc(said, func(s string) bool { return s == w }) {
			return false
		}
	}

	return true
}

// sameLetters reports whether two lists of words are the same when written as one word. It allocates nothing, because it
// is called for every column of every dataset.
func sameLetters(a, b []string) bool {
	var restA, restB string

	for {
		for restA == "" && len(a) > 0 {
			restA, a = a[0], a[1:]
		}

		for restB == "" && len(b) > 0 {
			restB, b = b[0], b[1:]
		}

		n := min(len(restA), len(restB))
		if n == 0 {
			return restA == restB
		}

		if restA[:n] != restB[:n] {
			return false
		}

		restA, restB = restA[n:], restB[n:]
	}
}

// tier returns how well words name a column: 3 exactly; 2 without the name of its dataset, with it, or by the unit; 1 in part;
// 0 not at all.
func (m *matcher) tier(said []string, t *table, c *column) (tier int, byUnit bool) {
	switch {
	case sameName(said, c.stems), sameName(said, c.strong), slices.ContainsFunc(c.others, func(o []string) bool { return sameName(said, o) }):
		return 3, false
	case len(c.own) > 0 && sameName(said, c.own):
		return 2, false
	}

	for _, noun := range t.nouns {
		if rest := without(said, noun); len(rest) > 0 && (sameName(rest, c.own) || sameName(rest, c.strong) || sameName(rest, c.stems)) {
			return 2, false
		}
	}

	if n := len(said); n > 1 && isWeakNoun(said[n-1]) && isWeakOf(said[n-1], c.Role) && (sameName(said[:n-1], c.stems) || sameName(said[:n-1], c.strong) || sameName(said[:n-1], c.own)) {
		return 2, false
	}

	if n := len(said); n > 1 && said[n-1] == "dat" && c.Role == meaning.Date && !slices.ContainsFunc(said[:n-1], func(w string) bool { return !slices.Contains(c.strong, w) }) {
		return 1, false
	}

	if c.Role.IsFigure() && len(said) == 1 && isUnitWord(said[0], c.Unit) {
		return 2, true
	}

	if len(said) < len(c.strong) && !c.negative && (said[len(said)-1] == c.strong[len(c.strong)-1] || c.isHead(said[len(said)-1])) {
		for _, s := range said {
			if !slices.ContainsFunc(c.strong, func(w string) bool { return s == w }) {
				return 0, false
			}
		}

		return 1, false
	}

	if slices.ContainsFunc(said, func(s string) bool { return len(s) > 2 }) && !slices.ContainsFunc(said, func(s string) bool { return !slices.Contains(c.described, s) }) && !m.namesRows(said) {
		return 1, false
	}

	return 0, false
}

// without returns the words without those of a noun, nil if they do not contain it.
func without(said, noun []string) []string {
	if len(said) <= len(noun) || slices.ContainsFunc(noun, func(n string) bool { return !slices.Contains(said, n) }) {
		return nil
	}

	rest := slices.Clone(said)

	for _, n := range noun {
		i := slices.Index(rest, n)
		if i < 0 {
			return nil
		}

		rest = slices.Delete(rest, i, i+1)
	}

	return rest
}

// namesRows reports whether one of the words names the rows of a table.
func (m *matcher) namesRows(said []string) bool {
	return slices.ContainsFunc(m.tables, func(t *table) bool {
		return slices.ContainsFunc(t.nouns, func(n []string) bool { return len(n) == 1 && slices.Contains(said, n[0]) })
	})
}
