package grounding

import (
	"slices"
	"sort"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// between returns the mentions that begin within a range.
func between(list []mention, from, to int) []mention {
	begin := sort.Search(len(list), func(i int) bool { return list[i].from >= from })
	end := sort.Search(len(list), func(i int) bool { return list[i].from >= to })

	return list[begin:max(begin, end)]
}

// governing returns the mentions that a figure belongs to: those in its part of the sentence, or, with less certainty,
// in the parts around it.
func (c *checker) governing(f *figure, all []mention) (found []mention, sure bool) {
	if len(c.sentences) == 0 {
		return nil, false
	}

	s := &c.sentences[c.sentenceAt(f.from)]

	of := slices.DeleteFunc(slices.Clone(all), func(m mention) bool { return m.from < f.to && m.to > f.from })
	if len(of) == 0 {
		return nil, false
	}

	if s.cells != nil {
		return of, true
	}

	begin, end := c.partOf(s, f.from, of)
	if here := between(of, begin, end); len(here) > 0 {
		here, _ = c.paired(f, here, s)

		return here, true
	}

	for _, part := range slices.Backward(s.parts) {
		if part >= begin {
			continue
		}

		from, to := c.partOf(s, part, of)
		if before := between(of, from, to); len(before) > 0 {
			return c.paired(f, before, s)
		}
	}

	if next, after := c.partOf(s, end, of); end < s.to {
		if following := between(of, next, after); len(following) > 0 && !c.hasFigures(next, after) {
			return following, false
		}
	}

	if last := c.lastFigure(s); of[0].from > last {
		return of, false
	}

	return nil, false
}

// partOf returns the part of the sentence that contains a position. A part that has a mention and no figures belongs to
// the next part that has a mention.
func (c *checker) partOf(s *sentence, at int, of []mention) (from, to int) {
	bounds := append(slices.Clone(s.parts), s.to)
	i := max(0, sort.Search(len(s.parts), func(i int) bool { return s.parts[i] > at })-1)
	from, to = bounds[i], bounds[i+1]

	for i > 0 && len(between(of, from, to)) > 0 && len(between(of, bounds[i-1], bounds[i])) > 0 && !c.hasFigures(bounds[i-1], bounds[i]) {
		i--
		from = bounds[i]
	}

	return from, to
}

func (c *checker) hasFigures(from, to int) bool {
	i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].from >= from })
	for ; i < len(c.figures) && c.figures[i].from < to; i++ {
		if c.isValue(c.figures[i]) {
			return true
		}
	}

	i = sort.Search(len(c.relations), func(i int) bool { return c.relations[i].from >= from })

	return i < len(c.relations) && c.relations[i].from < to
}

// isValue reports whether a figure is a value of something and not a name.
func (c *checker) isValue(f *figure) bool {
	if f.form == formName || (covered(c.names, f.from, f.to) && (f.form == formDay || isYear(c.text[f.from:f.to]))) {
		return false
	}

	return len(f.markers) > 0 || c.claims(f)
}

func (c *checker) lastFigure(s *sentence) int {
	i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].from >= s.to })
	for i--; i >= 0 && c.figures[i].from >= s.from; i-- {
		if c.isValue(c.figures[i]) {
			return c.figures[i].from
		}
	}

	return s.to
}

// paired returns the name that belongs to a figure if the sentence lists several names and then as many figures in the
// same order. Otherwise it returns all names.
func (c *checker) paired(f *figure, names []mention, s *sentence) (list []mention, sure bool) {
	if len(names) < 2 {
		return names, false
	}

	var figures []*figure

	for i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].from >= names[0].from }); i < len(c.figures) && c.figures[i].from < s.to; i++ {
		one := c.figures[i]
		if one.form == formNumber && c.isValue(one) {
			figures = append(figures, one)
		}
	}

	if len(figures) != len(names) || figures[0].from < names[len(names)-1].to || !c.listed(names) || slices.ContainsFunc(figures, func(f *figure) bool { return f.calculated() }) {
		return names, false
	}

	if i := slices.Index(figures, f); i >= 0 {
		return names[i : i+1], true
	}

	return names, false
}

// listed reports whether only commas and conjunctions separate the names.
func (c *checker) listed(names []mention) bool {
	for i := 1; i < len(names); i++ {
		between := c.text[names[i-1].to:names[i].from]
		if strings.Contains(between, ":") || slices.ContainsFunc(wordsOf(between), func(word string) bool { return c.words[word]&lexicon.Clauses == 0 }) {
			return false
		}
	}

	return true
}

func (f *figure) calculated() bool {
	return slices.ContainsFunc(f.markers, func(m *marker) bool { return m.result.calculation != "" })
}
