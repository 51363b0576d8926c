package lexicon

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// MaxNearest is the most names that Nearest returns.
	MaxNearest = 3
	partLength = 3 // shortest name that is compared as a part of another
)

// Nearest returns up to MaxNearest names that are most similar to the wanted one, the best first; none if no name is
// similar.
func Nearest(wanted string, names []string) []string {
	type scored struct {
		name     string
		distance int
	}

	var (
		found []scored
		key   = strings.ToLower(wanted)
	)

	for _, name := range names {
		other := strings.ToLower(name)
		distance := editDistance(key, other)

		if min(len(key), len(other)) >= partLength && (strings.Contains(other, key) || strings.Contains(key, other)) {
			distance = min(distance, 1)
		}

		if distance <= max(1, len(key)/3) {
			found = append(found, scored{name, distance})
		}
	}

	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})

	list := make([]string, 0, MaxNearest)
	for _, s := range found[:min(len(found), MaxNearest)] {
		list = append(list, s.name)
	}

	return list
}

// editDistance returns how many characters must be added, removed, changed or swapped with the next to turn a into b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)

	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}

	for i := range x {
		row[0] = i + 1

		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}

			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}

		before, last, row = last, row, before
	}

	return last[len(y)]
}

const (
	shortTypo = 5 // letters from which a word may have one typing error
	longTypo  = 8 // letters from which it may have two
)

// Correct returns the only known word that a word in lower case can be with a typing error, or "". Short words are not
// corrected: they are one error away from too many others.
func Correct(word string, known []string) string {
	allowed := 0

	switch n := len([]rune(word)); {
	case n >= longTypo:
		allowed = 2
	case n >= shortTypo:
		allowed = 1
	}

	best, least := "", allowed+1

	for _, other := range known {
		switch distance := editDistance(word, other); {
		case len(other) < shortTypo-1 || distance > allowed || distance > least || other == best:
		case distance == least:
			best = ""
		default:
			best, least = other, distance
		}
	}

	return best
}
