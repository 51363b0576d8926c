package values

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// How is how a value was found.
type How string

// The ways, from the surest to the least sure.
const (
	Exact  How = "exact"  // as it is written
	Folded How = "folded" // but for case, accents and signs
	Plural How = "plural" // but for its ending
	Typo   How = "typo"   // but for one letter
	Part   How = "part"   // the words are one of its words
)

// whole is true of the ways that leave little doubt.
func (h How) whole() bool { return h != Typo && h != Part }

// Match is a value of the table that words of the question may mean.
type Match struct {
	Column     string
	Value      string // as it is in the data
	Count      int64  // rows that have it
	Start, End int    // of the words in the question, in bytes
	How        How
	Score      float64 // 0 to 1
}

// Guess is true of a value that is not written as the words are.
func (m Match) Guess() bool { return !m.How.whole() }

const (
	maxMatches = 20
	maxOfWords = 6 // matches of the same words

	insideOthers = 0.7 // of the score of words that are also part of a longer value: York in New York
)

// Link finds the values that words of the question may mean, the best first. What cannot be read is not found.
func (x *Index) Link(q *Question) []Match {
	var (
		found []Match
		l     = linking{Index: x, question: q}
	)

	for i := range q.grams {
		found = append(found, l.gram(&q.grams[i])...)
	}

	return best(found)
}

// linking is a question at a table.
type linking struct {
	*Index

	question *Question
	scratch  scratch
}

// gram finds what one run of words may mean. Words that are there as they are were not mistyped.
func (l *linking) gram(g *gram) (found []Match) {
	if l.filter.has(g.hash) {
		if entry, ok := l.look(&l.scratch, g.key); ok {
			found = append(found, l.same(g, entry)...)
			found = append(found, l.parts(g, entry)...)
		}
	}

	whole := slices.ContainsFunc(found, func(m Match) bool { return m.How.whole() })
	if !whole {
		more := l.any(g, g.plurals, Plural)
		found, whole = append(found, more...), len(more) > 0
	}

	if whole {
		return found
	}

	found = append(found, l.any(g, g.joined, Typo)...)

	for i := range g.typos {
		if g.typos[i].possible(l.filter) {
			found = append(found, l.any(g, g.typos[i].candidates(), Typo)...)
		}
	}

	return found
}

// same are the values that fold to the words themselves.
func (l *linking) same(g *gram, entry entry) (found []Match) {
	written := l.question.text[g.start:g.end]

	for _, v := range entry.values {
		how := Folded
		if v.text == written {
			how = Exact
		}

		if g.stop && (how != Exact || written == g.key) {
			continue
		}

		found = append(found, l.match(g, v, how))
	}

	return found
}

// parts are the values that the word is one of the words of.
func (l *linking) parts(g *gram, entry entry) (found []Match) {
	if g.words > 1 || g.stop {
		return nil
	}

	for _, number := range entry.partOf {
		whole, ok := l.numbered(&l.scratch, number)
		if !ok {
			continue
		}

		for _, v := range whole.values {
			one := l.match(g, v, Part)
			one.Score /= math.Sqrt(float64(len(entry.partOf)))
			found = append(found, one)
		}
	}

	return found
}

// any are the values of the candidates that there are.
func (l *linking) any(g *gram, list candidates, how How) (found []Match) {
	for i, hash := range list.hashes {
		if !l.filter.has(hash) {
			continue
		}

		entry, ok := l.look(&l.scratch, list.edits[i].apply(g.key))
		if !ok {
			continue
		}

		for _, v := range entry.values {
			found = append(found, l.match(g, v, how))
		}
	}

	return found
}

// match scores a value: by how it was found, less if it is so short that it may be chance, more for each word.
func (l *linking) match(g *gram, v value, how How) Match {
	letters, score := len(g.key), 0.0

	switch how {
	case Exact:
		score = 0.95
	case Folded:
		score = 0.92
	case Plural:
		score = 0.82
	case Typo:
		score = 0.6
	case Part:
		score = 0.5
	}

	switch {
	case letters <= 2:
		score *= 0.6
	case how == Typo:
		score += 0.015 * float64(min(letters, 14)-typoLetters)
	}

	score += 0.01 * float64(min(g.words, maxGram)-1)

	return Match{Column: l.columns[v.column], Value: v.text, Count: v.count, Start: g.start, End: g.end, How: how, Score: score}
}

// best puts matches in order and leaves out those that better ones make unlikely.
func best(found []Match) []Match {
	type words struct{ start, end int }

	wholes := map[words]bool{}

	for _, m := range found {
		if m.How.whole() {
			wholes[words{m.Start, m.End}] = true
		}
	}

	for i, m := range found {
		for w := range wholes {
			if w.start <= m.Start && w.end >= m.End && w.end-w.start > m.End-m.Start {
				found[i].Score = m.Score * insideOthers
			}
		}
	}

	slices.SortFunc(found, Compare)

	var (
		kept []Match
		seen = map[Match]bool{}
		many = map[words]int{}
	)

	for _, m := range found {
		same := Match{Column: m.Column, Value: m.Value, Start: m.Start, End: m.End}

		switch at := (words{m.Start, m.End}); {
		case seen[same], many[at] == maxOfWords, Overshadowed(m, kept):
		default:
			seen[same] = true
			many[at]++

			kept = append(kept, m)
		}
	}

	return kept[:min(len(kept), maxMatches)]
}

// Overshadowed is true of a guess about words that are also, or are part of, words that need no guess.
func Overshadowed(m Match, better []Match) bool {
	return !m.How.whole() && slices.ContainsFunc(better, func(other Match) bool {
		return other.How.whole() && other.Start <= m.Start && other.End >= m.End
	})
}

// Compare orders matches, the best first.
func Compare(a, b Match) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score), cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Start, b.Start), strings.Compare(a.Column, b.Column), strings.Compare(a.Value, b.Value),
	)
}
