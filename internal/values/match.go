package values

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// How says how a value was found.
type How string

// The ways to find a value, from the most to the least certain.
const (
	Exact  How = "exact"  // the same text
	Folded How = "folded" // differs only in case, accents and signs
	Plural How = "plural" // differs only in its ending
	Typo   How = "typo"   // differs in one letter
	Part   How = "part"   // the word is one of the words of the value
)

// whole reports whether the match is nearly certain.
func (h How) whole() bool { return h != Typo && h != Part }

// Match is a value of the table that words of the question may mean.
type Match struct {
	Column     string
	Value      string // as in the data
	Count      int64  // number of rows with the value
	Start, End int    // position of the words in the question, in bytes
	How        How
	Score      float64 // 0 to 1
}

// Guess reports whether the match is approximate: the words differ by a letter, or are only a part of the value.
func (m Match) Guess() bool { return !m.How.whole() }

const (
	maxMatches = 20
	maxOfWords = 6 // maximum matches for the same words

	insideOthers = 0.7 // factor for words that are also part of a longer match, such as York in New York
)

// Match returns the values that words of the question may mean, best first. Parts of the file that cannot be read have
// no matches.
func (x *Index) Match(q *Question) []Match {
	var (
		found []Match
		m     = matching{Index: x, question: q}
	)

	for i := range q.grams {
		found = append(found, m.gram(&q.grams[i])...)
	}

	return best(found)
}

// matching is the state of matching a question with a table.
type matching struct {
	*Index

	question *Question
	scratch  scratch
}

// gram returns the matches of one run of words. If the words or their plural match a value, typos are not tried.
func (m *matching) gram(g *gram) (found []Match) {
	if m.filter.has(g.hash) {
		if entry, ok := m.look(&m.scratch, g.key); ok {
			found = append(found, m.same(g, entry)...)
			found = append(found, m.parts(g, entry)...)
		}
	}

	whole := slices.ContainsFunc(found, func(m Match) bool { return m.How.whole() })
	if !whole {
		more := m.any(g, g.plurals, Plural)
		found, whole = append(found, more...), len(more) > 0
	}

	if whole {
		return found
	}

	found = append(found, m.any(g, g.joined, Typo)...)

	for i := range g.typos {
		if g.typos[i].possible(m.filter) {
			found = append(found, m.any(g, g.typos[i].candidates(), Typo)...)
		}
	}

	return found
}

// same returns matches for the values that fold to the same key as the words.
func (m *matching) same(g *gram, entry entry) (found []Match) {
	written := m.question.text[g.start:g.end]

	for _, v := range entry.values {
		how := Folded
		if v.text == written {
			how = Exact
		}

		if g.stop && (how != Exact || written == g.key) {
			continue
		}

		found = append(found, m.scored(g, v, how))
	}

	return found
}

// parts returns matches for the values that contain the word.
func (m *matching) parts(g *gram, entry entry) (found []Match) {
	if g.words > 1 || g.stop {
		return nil
	}

	for _, number := range entry.partOf {
		whole, ok := m.numbered(&m.scratch, number)
		if !ok {
			continue
		}

		for _, v := range whole.values {
			one := m.scored(g, v, Part)
			one.Score /= math.Sqrt(float64(len(entry.partOf)))
			found = append(found, one)
		}
	}

	return found
}

// any returns matches for the candidates that exist in the index.
func (m *matching) any(g *gram, list candidates, how How) (found []Match) {
	for i, hash := range list.hashes {
		if !m.filter.has(hash) {
			continue
		}

		entry, ok := m.look(&m.scratch, list.edits[i].apply(g.key))
		if !ok {
			continue
		}

		for _, v := range entry.values {
			found = append(found, m.scored(g, v, how))
		}
	}

	return found
}

// scored returns a match with its score. The score depends on how the value was found. It is lower for very short words, which
// may match by chance, and higher for each additional word.
func (m *matching) scored(g *gram, v value, how How) Match {
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

	return Match{Column: m.columns[v.column], Value: v.text, Count: v.count, Start: g.start, End: g.end, How: how, Score: score}
}

// best sorts the matches and drops those that better matches make unlikely.
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

// Overshadowed reports whether m is an approximate match for words that are, or are part of, the words of a match in
// better that is not approximate.
func Overshadowed(m Match, better []Match) bool {
	return !m.How.whole() && slices.ContainsFunc(better, func(other Match) bool {
		return other.How.whole() && other.Start <= m.Start && other.End >= m.End
	})
}

// Compare orders matches, best first.
func Compare(a, b Match) int {
	return cmp.Or(
		cmp.Compare(b.Score, a.Score), cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(b.Count, a.Count),
		cmp.Compare(a.Start, b.Start), strings.Compare(a.Column, b.Column), strings.Compare(a.Value, b.Value),
	)
}
