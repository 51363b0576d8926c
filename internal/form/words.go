package form

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"quern.dev/quern/internal/meaning"
)

// escape keeps what comes from the data from being markup.
func escape(text string) string {
	var b strings.Builder

	for _, r := range text {
		switch {
		case strings.ContainsRune("\\`*<>[]", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsControl(r) || unicode.IsSpace(r) || !unicode.IsPrint(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}

	return strings.TrimSpace(b.String())
}

// mark returns a name as the interpretation shows it, so that it cannot be taken for a word of the sentence.
func mark(name string) string { return "*" + escape(name) + "*" }

// quote returns a value as the interpretation shows it.
func quote(v any) string {
	value, isText, err := scalar(v)

	switch {
	case err != nil:
		return "?"
	case isText:
		return "'" + strings.ReplaceAll(escape(value), "'", "’") + "'"
	default:
		return value
	}
}

// article returns a name for one thing.
func article(name string) string {
	if name != "" && strings.ContainsRune("aeiouAEIOU", rune(name[0])) {
		return "an " + mark(name)
	}

	return "a " + mark(name)
}

// row returns what one row is.
func (d *Dataset) row() string { return cmp.Or(d.Row, d.Name[strings.LastIndexByte(d.Name, '/')+1:]) }

// rows returns the rows of a dataset in words.
func (d *Dataset) rows() string {
	if d.Row == "" {
		return "rows of " + mark(d.Name)
	}

	return mark(d.plural())
}

// plural returns the word for several rows. It leaves the name of a dataset unchanged, because the name need not be English. It makes
// an English plural of the word that a person gave for one row.
func (d *Dataset) plural() string {
	if d.Row == meaning.Row(d.Name) {
		return meaning.Rows(d.Name)
	}

	return plural(d.Row)
}

// plural returns the plural of a noun.
func plural(noun string) string {
	ends := func(list ...string) bool {
		for _, e := range list {
			if strings.HasSuffix(strings.ToLower(noun), e) {
				return true
			}
		}

		return false
	}

	switch {
	case ends("ay", "ey", "oy", "uy"):
		return noun + "s"
	case ends("y"):
		return noun[:len(noun)-1] + "ies"
	case ends("person"):
		return noun[:len(noun)-len("person")] + "people"
	case ends("ss", "x", "ch", "sh", "z", "us"):
		return noun + "es"
	case ends("s"):
		return noun
	default:
		return noun + "s"
	}
}

// speaker puts the parts of a form into words. The names of the datasets are those that the compiler found.
type speaker struct {
	schema *Schema
	home   *Dataset
	given  []Condition // of the form, if each figure is to repeat them
}

// of returns the speaker for the rows of a dataset.
func (p speaker) of(d *Dataset) speaker { return speaker{schema: p.schema, home: d} }

func (p speaker) dataset(name string) *Dataset {
	if d := p.schema.dataset(name); d != nil {
		return d
	}

	return p.home
}

// column returns a column in words.
func (p speaker) column(c Column) string { return mark(c.Name) + p.owner(c) }

// owner returns in words whose column it is, if it is not that of the rows themselves.
func (p speaker) owner(c Column) string {
	d := p.dataset(c.Dataset)
	if d == p.home && len(c.Via) == 0 {
		return ""
	}

	words := " of the " + mark(d.row())
	if len(c.Via) > 0 {
		words += " (by " + mark(strings.Join(c.Via, ", ")) + ")"
	}

	return words
}

// isDate reports whether a term is a date, so that it is early or late instead of low or high.
func (p speaker) isDate(t Term) bool {
	info := p.dataset(t.Dataset).column(t.Name)

	return t.Op == "" && info != nil && info.role() == meaning.Date
}

// extreme returns the lowest or the highest of a term.
func (p speaker) extreme(t Term, highest bool) string {
	switch {
	case p.isDate(t) && highest:
		return "latest " + p.term(t)
	case p.isDate(t):
		return "earliest " + p.term(t)
	case highest:
		return "highest " + p.term(t)
	default:
		return "lowest " + p.term(t)
	}
}

func (p speaker) term(t Term) string { return p.calculation(t, p.column) }

// calculation returns a term in words. The function name returns its columns.
func (p speaker) calculation(t Term, name func(Column) string) string {
	switch {
	case t.Op == "":
		return name(t.Column)
	case t.Op == Number:
		return plain(t.Number)
	case t.Op == Days && len(t.Args) == 2:
		return "days from " + name(t.Args[0].Column) + " to " + name(t.Args[1].Column)
	}

	args := make([]string, len(t.Args))

	for i, a := range t.Args {
		args[i] = p.calculation(a, name)
		if len(a.Args) > 0 && a.Op != Days {
			args[i] = "(" + args[i] + ")"
		}
	}

	sign := map[Op]string{Plus: " + ", Minus: " − ", Times: " × ", Over: " ÷ "}[t.Op]

	return strings.Join(args, sign)
}

// calculation returns the name of a column of the result.
func (s *Schema) calculation(t Term, home *Dataset) string {
	return speaker{schema: s, home: home}.calculation(t, func(c Column) string { return c.Name })
}

// functions returns the functions in words.
func functions() map[Function]string {
	return map[Function]string{Sum: "total", Average: "average", Median: "median", Min: "lowest", Max: "highest"}
}

// heading returns the name of a measure as a column of the result.
func (p speaker) heading(m Measure) string {
	of := ""
	if m.Of != nil {
		of = " " + p.schema.calculation(*m.Of, p.home)
	}

	switch {
	case m.Share:
		return cmp.Or(m.Name, "percentage")
	case m.Less != nil:
		return cmp.Or(m.Name, "difference")
	case m.Per != nil:
		by := *m.Per
		m.Per = nil

		if row := p.dataset(by.Dataset).Row; by.Function == Count && by.Of == nil && len(by.Where) == 0 && by.Per == nil && by.Less == nil && row != "" {
			return p.heading(m) + " per " + row
		}

		return p.heading(m) + " per " + p.heading(by)
	case m.Name != "":
		return m.Name
	case m.Function == CountDistinct:
		return "different" + of
	case m.Function == Count:
		return "count" + of
	default:
		return functions()[m.Function] + of
	}
}

// figure returns a measure in words, without its rows, its conditions and what it is compared with.
func (p speaker) figure(m Measure) string {
	if d := p.dataset(m.Dataset); d != p.home {
		return p.of(d).figure(m)
	}

	var words string

	switch {
	case m.Of == nil:
		words = "number"
	case m.Function == Count:
		words = "number of values of " + p.term(*m.Of)
	case m.Function == CountDistinct && m.Of.Op == "":
		words = "number of different " + mark(m.Of.Name) + " values" + p.owner(m.Of.Column)
	case m.Function == CountDistinct:
		words = "number of different values of " + p.term(*m.Of)
	case m.Function == Min || m.Function == Max:
		words = p.extreme(*m.Of, m.Function == Max)
	default:
		words = functions()[m.Function] + " " + p.term(*m.Of)
	}

	if m.Name != "" {
		words += " (" + mark(m.Name) + ")"
	}

	return words
}

// measure returns a measure in words.
func (p speaker) measure(m Measure) string {
	d := p.dataset(m.Dataset)
	rows, given := p.of(d), p.about(m, d)

	words := p.figure(m) + " of " + d.rows()

	switch {
	case m.Share && m.Per == nil && len(m.Where) > 0 && m.Of == nil:
		words = "percentage of those" + rows.where(m.Where) + " among " + d.rows() + rows.where(given)
	case m.Share && m.Per == nil && len(m.Where) > 0:
		words = "percentage of those" + rows.where(m.Where) + " in the " + words + rows.where(given)
	case m.Share && m.Per == nil:
		words += rows.where(given) + " in percent of the whole"
	default:
		words += rows.where(append(given, m.Where...))
	}

	if m.Less != nil {
		words += " minus the " + p.measure(*m.Less)
	}

	switch {
	case m.Per != nil && m.Share:
		words += " in percent of the " + p.measure(*m.Per)
	case m.Per != nil:
		words += " divided by the " + p.measure(*m.Per)
	}

	return words
}

// about returns the conditions of the form that a measure repeats: not a period that it replaces by its own.
func (p speaker) about(m Measure, d *Dataset) (list []Condition) {
	for _, c := range named(p.given, p.home) {
		of := p.dataset(c.Dataset)
		if of == d || !isPeriod(c) || !slices.ContainsFunc(m.Where, isPeriod) || len(p.schema.paths(d, of)) > 0 {
			list = append(list, c)
		}
	}

	return list
}

// compared returns a comparison with a number in words.
func compared(is Comparison, n, upper string) string {
	switch is {
	case MoreThan:
		return "more than " + n
	case AtLeast:
		return "at least " + n
	case LessThan:
		return "less than " + n
	case AtMost:
		return "at most " + n
	case Between:
		return "between " + n + " and " + upper
	case IsNot:
		return "not " + n
	default:
		return n
	}
}

// month returns the name of a month.
func month(n float64) string {
	names := []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	if i := int(n); i >= 1 && i <= len(names) {
		return names[i-1]
	}

	return "month " + strconv.Itoa(int(n))
}
