package grounding

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// checker is an answer with what it speaks of.
type checker struct {
	text      string
	data      *rowData
	figures   []*figure // in order
	names     []mention // of rows
	heads     []mention // of columns
	sentences []sentence
	asked     map[string]bool // figures of the question
	question  string          // its words
	words     map[string]topic
	looks     int // cells that were looked at
}

// mention is a place of the text where a row or a column is named.
type mention struct {
	from, to int
	places   []place
}

func newChecker(text, question string, markers []*marker, data *rowData) *checker {
	var cuts []int
	for _, m := range markers {
		cuts = append(cuts, m.at)
	}

	c := &checker{text: text, data: data, figures: scan(text, cuts...), asked: map[string]bool{}, words: vocabulary()}
	c.question = " " + strings.Join(wordsOf(question), " ") + " "

	for _, f := range scan(question) {
		for _, key := range f.keys() {
			c.asked[key] = true
		}
	}

	words := split(text)
	c.names = c.mentions(words, false)
	c.heads = c.mentions(words, true)
	c.nameDays(words)
	c.segment(words)
	c.readByLanguage()

	return c
}

// readByLanguage decides what 1.234 million means. Without a word for the scale or a unit both readings stay, because nobody is wrong by a factor
// of a thousand unnoticed, and not every writer uses the numbers of its language.
func (c *checker) readByLanguage() {
	commas := 0 // more for languages that group with commas

	for _, s := range c.sentences {
		if s.says&english != 0 {
			commas++
		}

		if s.says&continental != 0 {
			commas--
		}
	}

	for _, f := range c.figures {
		if kind, _ := sizes(f.unit); commas == 0 || (!f.scaled && (kind == "" || kind == f.unit)) {
			continue
		}

		f.readings = slices.DeleteFunc(f.readings, func(r reading) bool {
			return (commas > 0 && r.style == continental) || (commas < 0 && r.style == english)
		})
	}
}

// mentions finds the longest names at each word.
func (c *checker) mentions(words []word, heads bool) []mention {
	var found []mention

	dictionary := c.data.names
	if heads {
		dictionary = c.data.heads
	}

	for i := 0; i < len(words); i++ {
		first := words[i].folded
		if !c.data.begins[first] && !c.data.begins[stem(first)] {
			continue
		}

		var key strings.Builder

		best, length := []place(nil), 0

		for n := 0; n < c.data.longest && i+n < len(words); n++ {
			w := words[i+n]
			if n > 0 {
				if strings.Contains(c.text[words[i+n-1].to:w.from], "\n") {
					break
				}

				key.WriteByte(' ')
			}

			spelled := w.folded
			if heads {
				spelled = stem(spelled)
			}

			key.WriteString(spelled)

			places := dictionary[key.String()]
			if places == nil && !heads {
				places = dictionary[strings.TrimSuffix(key.String(), "s")]
			}

			if places = c.spelledSo(places, c.text[words[i].from:w.to], heads); places != nil {
				best, length = places, n+1
			}
		}

		if best != nil {
			found = append(found, mention{words[i].from, words[i+length-1].to, best})
			i += length - 1
		}
	}

	return found
}

// spelledSo leaves out short names that the text spells otherwise: "no" is not Norway's code.
func (c *checker) spelledSo(places []place, text string, heads bool) []place {
	if places == nil || utf8.RuneCountInString(text) > 3 {
		return places
	}

	var list []place

	for _, p := range places {
		name := c.data.tables[p.t].columns[p.c].name
		if !heads {
			name = c.data.tables[p.t].rows[p.rows[0]][p.c].text
		}

		if strings.Trim(name, ".#() ") == text || (heads && len(text) > 1 && (strings.EqualFold(strings.Trim(name, ".#()"), text) || strings.HasPrefix(name, text+"_"))) {
			list = append(list, p)
		}
	}

	return list
}

// nameDays takes dates, years and months for names of rows.
func (c *checker) nameDays(words []word) {
	for _, w := range words {
		text := c.text[w.from:w.to]
		if monthOf(w.folded) == 0 || !isMonth(text) || c.inside(w.from) {
			continue
		}

		c.addMention(mention{w.from, w.to, c.data.names[day{0, monthOf(text), 0}.key()]})
	}

	for _, f := range c.figures {
		var places []place

		switch {
		case f.form == formDay:
			for _, d := range f.days {
				places = append(places, c.data.names[d.key()]...)
			}
		case f.form == formNumber && isYear(c.text[f.from:f.to]):
			places = c.data.names[c.text[f.from:f.to]]
		}

		c.addMention(mention{f.from, f.to, places})
	}
}

// addMention adds a name of rows where there is none yet.
func (c *checker) addMention(m mention) {
	if m.places == nil || covered(c.names, m.from, m.to) {
		return
	}

	at := sort.Search(len(c.names), func(i int) bool { return c.names[i].from > m.from })
	c.names = slices.Insert(c.names, at, m)
}

// covered says whether a mention reaches into a span.
func covered(mentions []mention, from, to int) bool {
	i := sort.Search(len(mentions), func(i int) bool { return mentions[i].to > from })

	return i < len(mentions) && mentions[i].from < to
}

// claims says whether a figure must be checked if it has no marker. Numbers of the question, bare years, ordinals and digits within a name
// are no claims.
func (c *checker) claims(f *figure) bool {
	if !f.known {
		f.known, f.claim = true, c.isClaim(f)
	}

	return f.claim
}

func (c *checker) isClaim(f *figure) bool {
	text := c.text[f.from:f.to]

	switch f.form {
	case formName:
		return false
	case formQuote:
		key := keyOf(f.inner)

		return key != "" && !strings.Contains(c.question, " "+key+" ") && c.data.heads[stemKey(key)] == nil
	case formNumber:
		if f.ordinal || isYear(text) || c.seasonal(f) || c.stepNumber(f) {
			return false
		}
	case formDay, formClock:
	}

	within := func(list []mention) bool {
		i := sort.Search(len(list), func(i int) bool { return list[i].to >= f.to })

		return i < len(list) && list[i].from <= max(f.from, f.digits) && (list[i].from < f.from || list[i].to > f.to)
	}
	if within(c.names) || within(c.heads) {
		return false
	}

	return !slices.ContainsFunc(f.keys(), func(key string) bool { return c.asked[key] })
}

// seasonal is a part of something like 2025/26.
func (c *checker) seasonal(f *figure) bool {
	return f.to-f.from <= 4 && (strings.HasSuffix(c.text[:f.from], "/") || strings.HasPrefix(c.text[f.to:], "/")) && f.unit == ""
}

func (c *checker) stepNumber(f *figure) bool {
	word := lastWord(strings.TrimRight(c.text[:f.from], " "))

	return slices.Contains([]string{"step", "schritt", "étape"}, strings.ToLower(word))
}

func stemKey(key string) string {
	words := strings.Fields(key)
	for i := range words {
		words[i] = stem(words[i])
	}

	return strings.Join(words, " ")
}

// keys are one for each value that a figure can mean.
func (f *figure) keys() []string {
	var keys []string

	for _, r := range f.readings {
		keys = append(keys, fmt.Sprint(r.value.RatString(), f.percent))
	}

	for _, d := range f.days {
		keys = append(keys, d.key())
	}

	return keys
}

// sameFigure says whether two figures can mean the same value.
func sameFigure(a, b *figure) bool {
	return slices.ContainsFunc(a.keys(), func(key string) bool { return slices.Contains(b.keys(), key) })
}
