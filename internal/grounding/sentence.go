package grounding

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// sentence is a part of the text about one subject: a sentence, an item of a list, a row of a table.
type sentence struct {
	from, to int
	parts    []int // start of each part
	says     lexicon.Topic
	intro    int   // for an item: index of the sentence before the list; else -1
	heads    []int // for a row of a table: positions of the bars of the header
	cells    []int // for a row of a table: positions of its bars
}

// segment divides the text into sentences, and sentences into parts.
func (c *checker) segment(words []lexicon.Word) {
	intro, head := -1, []int(nil)
	offset := 0

	for line := range strings.SplitAfterSeq(c.text, "\n") {
		from, to := offset, offset+len(line)
		offset = to
		trimmed := strings.TrimSpace(line)

		switch {
		case trimmed == "":
			head = nil
		case strings.HasPrefix(trimmed, "|") && len(line) <= maxSentence:
			cells := bars(c.text, from, to)
			if head == nil {
				head = cells
			}

			c.sentences = append(c.sentences, sentence{from: from, to: to, parts: []int{from}, intro: -1, heads: head, cells: cells})

			continue
		case isItem(trimmed):
			begin := from + strings.Index(line, trimmed)
			if blank := strings.IndexFunc(trimmed, unicode.IsSpace); blank >= 0 {
				begin += blank // after its numeral
			}

			for _, end := range c.ends(begin, to) {
				c.sentences = append(c.sentences, sentence{from: from, to: end, intro: intro})
				from = end
			}
		default:
			for _, end := range c.ends(from, to) {
				c.sentences = append(c.sentences, sentence{from: from, to: end, intro: -1})
				from = end
			}

			intro = len(c.sentences) - 1
		}

		if trimmed != "" {
			head = nil
		}
	}

	c.listen(words)
}

// listen sets the topics of each sentence, and divides the sentence where a conjunction begins a new part.
func (c *checker) listen(words []lexicon.Word) {
	w := 0

	for i := range c.sentences {
		s := &c.sentences[i]
		if s.parts == nil {
			s.parts = c.parts(s.from, s.to)
		}

		for w < len(words) && words[w].Start < s.from {
			w++
		}

		for ; w < len(words) && words[w].Start < s.to; w++ {
			is := c.words[words[w].Text]
			if covered(c.names, words[w].Start, words[w].End) {
				is &= lexicon.Sums | lexicon.Averages | lexicon.Shares // "Lower Austria" does not express a decrease
			}

			s.says |= is

			if is&lexicon.Clauses != 0 && s.cells == nil && !c.inside(words[w].Start) {
				s.parts = append(s.parts, words[w].Start)
			}
		}

		slices.Sort(s.parts)
	}
}

func isItem(line string) bool {
	if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "• ") {
		return true
	}

	return numeral.MatchString(line + " ")
}

// bars returns the positions of the bars in a line of a table.
func bars(text string, from, to int) []int {
	var list []int

	for i := from; i < to; i++ {
		if text[i] == '|' && (i == 0 || text[i-1] != '\\') {
			list = append(list, i)
		}
	}

	return list
}

// inside reports whether a position lies within a figure or a name.
func (c *checker) inside(at int) bool {
	i := sort.Search(len(c.figures), func(i int) bool { return c.figures[i].to > at })

	return (i < len(c.figures) && c.figures[i].from <= at) || covered(c.names, at, at+1) || covered(c.heads, at, at+1)
}

// maxSentence limits the length of a sentence in bytes, and so the work for each figure. Sentences about one row are
// shorter.
const maxSentence = 2000

func last(list []int, otherwise int) int {
	if len(list) == 0 {
		return otherwise
	}

	return list[len(list)-1]
}

// ends returns the ends of the sentences of a line.
func (c *checker) ends(from, to int) []int {
	var list []int

	for i := from; i < to-1; i++ {
		if i-last(list, from) > maxSentence && c.text[i] == ' ' && !c.inside(i) {
			list = append(list, i+1)

			continue
		}

		if !strings.ContainsRune(".!?", rune(c.text[i])) || !unicode.IsSpace(rune(c.text[i+1])) || c.inside(i) {
			continue
		}

		before := lastWord(c.text[:i])
		if c.inside(i - 1) {
			before = "" // a unit or a name
		}

		if c.text[i] == '.' && c.endsName(i) {
			continue
		}

		if n := utf8.RuneCountInString(before); c.text[i] == '.' && (n == 1 || (n > 1 && n < 4 && strings.ToLower(before) != before && lexicon.Unit(strings.ToLower(before)) == "") ||
			slices.Contains([]string{"ca", "approx", "resp", "bzw", "vs", "no", "nr"}, strings.ToLower(before))) {
			continue // an initial or an abbreviation
		}

		list = append(list, i+1)
	}

	return append(list, to)
}

// endsName reports whether a point is the end of a name, as in "Sammy Davis Jr.".
func (c *checker) endsName(at int) bool {
	for _, list := range [][]mention{c.names, c.heads} {
		i := sort.Search(len(list), func(i int) bool { return list[i].to >= at })
		if i == len(list) || list[i].to != at {
			continue
		}

		for _, p := range list[i].places {
			name := c.data.tables[p.t].columns[p.c].name
			if p.rows != nil {
				name = c.data.tables[p.t].rows[p.rows[0]][p.c].text
			}

			if strings.HasSuffix(name, ".") {
				return true
			}
		}
	}

	return false
}

// parts returns the starts of the parts of a sentence that follow a comma or semicolon.
func (c *checker) parts(from, to int) []int {
	list := []int{from}

	for i := from; i < to-1; i++ {
		if (c.text[i] == ',' || c.text[i] == ';') && unicode.IsSpace(rune(c.text[i+1])) && !c.inside(i) {
			list = append(list, i+1)
		}
	}

	return list
}

func (c *checker) sentenceAt(at int) int {
	i := sort.Search(len(c.sentences), func(i int) bool { return c.sentences[i].to > at })

	return min(i, len(c.sentences)-1)
}
