package grounding

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// checker is an answer with the rows, columns and figures that it mentions.
type checker struct {
	text      string
	data      *rowData
	figures   []*figure // in order of position
	names     []mention // mentions of rows
	heads     []mention // mentions of columns
	sentences []sentence
	asked     map[string]bool // keys of the figures in the question
	question  string          // words of the question, separated by spaces
	words     map[string]lexicon.Topic
	relations []*relation
	looks     int // number of cells examined
}

// mention is a part of the text that names rows or a column.
type mention struct {
	from, to int
	places   []namePosition
}

func newChecker(text, question string, markers []*marker, data *rowData) *checker {
	var cuts []int
	for _, m := range markers {
		cuts = append(cuts, m.at)
	}

	c := &checker{text: text, data: data, figures: scan(text, cuts...), asked: map[string]bool{}, words: lexicon.Topics()}
	c.question = " " + strings.Join(wordsOf(question), " ") + " "

	for _, f := range scan(question) {
		for _, key := range f.keys() {
			c.asked[key] = true
		}
	}

	words := lexicon.LowerWords(text)
	c.names = c.mentions(words, false)
	c.heads = c.mentions(words, true)
	c.nameDays(words)
	c.segment(words)
	c.findRelations(words)
	c.readByLanguage()

	return c
}

// readByLanguage decides whether 1.234 million is more than one million or more than a thousand million. It keeps the
// values in the number style of the answer's language for figures with a scale word or a convertible unit. All other
// figures keep both values: a mistake by a factor of a thousand would be noticed, and not every writer uses the number
// style of the language.
func (c *checker) readByLanguage() {
	commas := 0 // positive for languages that group digits with commas

	for _, s := range c.sentences {
		if s.says&lexicon.English != 0 {
			commas++
		}

		if s.says&lexicon.Continental != 0 {
			commas--
		}
	}

	for _, f := range c.figures {
		if kind, _ := lexicon.Quantity(f.unit); commas == 0 || (!f.scaled && (kind == "" || kind == f.unit)) {
			continue
		}

		f.values = slices.DeleteFunc(f.values, func(r numberValue) bool {
			return (commas > 0 && r.style == lexicon.Continental) || (commas < 0 && r.style == lexicon.English)
		})
	}
}

// mentions returns the longest name at each word: names of columns if heads is true, else of rows.
func (c *checker) mentions(words []lexicon.Word, heads bool) []mention {
	var found []mention

	dictionary := c.data.names
	if heads {
		dictionary = c.data.heads
	}

	for i := 0; i < len(words); i++ {
		first := words[i].Text
		if !c.data.begins[first] && !c.data.begins[lexicon.TrimPlural(first)] {
			continue
		}

		var key strings.Builder

		best, length := []namePosition(nil), 0

		for n := 0; n < c.data.longest && i+n < len(words); n++ {
			w := words[i+n]
			if n > 0 {
				if strings.Contains(c.text[words[i+n-1].End:w.Start], "\n") {
					break
				}

				key.WriteByte(' ')
			}

			spelled := w.Text
			if heads {
				spelled = lexicon.TrimPlural(spelled)
			}

			key.WriteString(spelled)

			places := dictionary[key.String()]
			if places == nil && !heads {
				places = dictionary[strings.TrimSuffix(key.String(), "s")]
			}

			if places = c.spelledSo(places, c.text[words[i].Start:w.End], heads); places != nil {
				best, length = places, n+1
			}
		}

		if best != nil {
			found = append(found, mention{words[i].Start, words[i+length-1].End, best})
			i += length - 1
		}
	}

	return found
}

// spelledSo removes short names that the text spells differently: "no" is not the code of Norway.
func (c *checker) spelledSo(places []namePosition, text string, heads bool) []namePosition {
	if places == nil || utf8.RuneCountInString(text) > 3 {
		return places
	}

	var list []namePosition

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

// nameDays adds dates, years and months as names of rows.
func (c *checker) nameDays(words []lexicon.Word) {
	for _, w := range words {
		text := c.text[w.Start:w.End]
		if monthOf(w.Text) == 0 || !isMonth(text) || c.inside(w.Start) {
			continue
		}

		c.addMention(mention{w.Start, w.End, c.data.names[day{0, monthOf(text), 0}.key()]})
	}

	for _, f := range c.figures {
		var places []namePosition

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

// addMention adds a name of rows, unless another name overlaps it.
func (c *checker) addMention(m mention) {
	if m.places == nil || covered(c.names, m.from, m.to) {
		return
	}

	at := sort.Search(len(c.names), func(i int) bool { return c.names[i].from > m.from })
	c.names = slices.Insert(c.names, at, m)
}

// covered reports whether a mention overlaps a range.
func covered(mentions []mention, from, to int) bool {
	i := sort.Search(len(mentions), func(i int) bool { return mentions[i].to > from })

	return i < len(mentions) && mentions[i].from < to
}

// claims reports whether a figure must be checked even without a marker. Numbers of the question, years, ordinals and
// digits within a name are not claims.
func (c *checker) claims(f *figure) bool {
	if !f.known {
		f.known, f.claim = true, c.isClaim(f)
	}

	return f.claim
}

func (c *checker) isClaim(f *figure) bool {
	text := c.text[f.from:f.to]

	switch f.form {
	case formName, formRelation:
		return false
	case formQuote:
		key := keyOf(f.inner)

		return key != "" && !strings.Contains(c.question, " "+key+" ") && c.data.heads[stemKey(key)] == nil
	case formNumber:
		if f.ordinal || isYear(text) && !c.isYearOf(f) || c.seasonal(f) || c.stepNumber(f) || f.spelled && !c.counts(f) {
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

// isYearOf reports whether a year is the value of a column of years for a row that the sentence names.
func (c *checker) isYearOf(f *figure) bool {
	if len(c.sentences) == 0 {
		return false
	}

	s := c.sentences[c.sentenceAt(f.from)]
	other := func(m mention) bool { return m.to <= f.from || m.from >= f.to }
	isYears := func(p namePosition) bool { return c.data.tables[p.t].columns[p.c].years }
	heads := slices.DeleteFunc(slices.Clone(between(c.heads, s.from, s.to)), func(m mention) bool {
		// "Since 2001: the founding year of …" names another year first.
		return !other(m) || !slices.ContainsFunc(m.places, isYears) || m.from > f.to && strings.Contains(c.text[f.to:m.from], ":")
	})

	return len(heads) > 0 && slices.ContainsFunc(between(c.names, s.from, s.to), func(m mention) bool {
		return other(m) && slices.ContainsFunc(m.places, func(p namePosition) bool {
			return !isYears(p) && slices.ContainsFunc(heads, func(h mention) bool {
				return slices.ContainsFunc(h.places, func(at namePosition) bool { return at.t == p.t && isYears(at) })
			})
		})
	})
}

// counts reports whether a number in words says something about the rows. "The two cities" and "these three" only refer to
// what was named.
func (c *checker) counts(f *figure) bool {
	if len(c.sentences) == 0 {
		return false
	}

	s := c.sentences[c.sentenceAt(f.from)]

	refers := []string{"the", "these", "those", "both", "all", "other", "top", "first", "last", "die", "diese", "diesen", "den", "alle", "allen", "beiden", "ersten", "besten", "les", "ces", "des", "aux", "premiers", "autres"}
	if slices.Contains(refers, strings.ToLower(lastWord(strings.TrimRight(c.text[:f.from], " ")))) {
		return false
	}

	// "for six reasons": a small number of something that is neither a row nor a column.
	next := strings.TrimPrefix(c.text[f.to:], " ")
	word := strings.ToLower(next[:wordEnd(next, 0)])
	at := len(c.text) - len(next)

	if few := f.values[0].value.Cmp(big.NewRat(maxFew, 1)) <= 0; few && at > f.to && word != "" && c.words[word] == 0 && !covered(c.heads, at, at+1) && !covered(c.names, at, at+1) {
		return false
	}

	return len(between(c.names, s.from, s.to)) > 0 || len(between(c.heads, s.from, s.to)) > 0 || s.says&lexicon.Counts != 0
}

const maxFew = 12 // writers use words for smaller numbers of anything

// seasonal reports whether a figure is a part of something like 2025/26.
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
		words[i] = lexicon.TrimPlural(words[i])
	}

	return strings.Join(words, " ")
}

// keys returns one key for each value that a figure can mean.
func (f *figure) keys() []string {
	var keys []string

	for _, r := range f.values {
		keys = append(keys, fmt.Sprint(r.value.RatString(), f.percent))
	}

	for _, d := range f.days {
		keys = append(keys, d.key())
	}

	return keys
}

// sameFigure reports whether two figures can mean the same value.
func sameFigure(a, b *figure) bool {
	return slices.ContainsFunc(a.keys(), func(key string) bool { return slices.Contains(b.keys(), key) })
}
