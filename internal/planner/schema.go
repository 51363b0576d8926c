package planner

import (
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// kind is the kind of the values of a column.
type kind int

const (
	text kind = iota
	number
	moment // date or timestamp
	year   // number that is a year
	truth
	other
)

// column is a column, prepared for matching with words of a question.
type column struct {
	Column

	kind      kind
	written   bool     // numbers are stored as text: "1,200" or "83 kg"
	words     []string // stems of the name
	described []string // stems of the description
	strong    []string // stems of the name without units and other words of little meaning
	unique    bool
	isID      bool // it identifies rows and is not a measure
	sums      bool // it can be summed
}

const prefix = 5 // length of the prefix that derived words have in common

// schema is a dataset, prepared for matching.
type schema struct {
	*Dataset

	columns []column
	words   []string
	totals  []Match
	byWord  map[string][]int // columns by stem
	derived map[string][]int // columns by prefix of a stem
	label   int              // column that names a row; -1 if there is none
}

func prepare(d *Dataset) *schema {
	s := &schema{Dataset: d, words: lexicon.NameStems(d.Name[strings.LastIndexByte(d.Name, '/')+1:]), label: -1}
	s.columns = make([]column, len(d.Columns))
	s.byWord, s.derived = make(map[string][]int, 2*len(d.Columns)), make(map[string][]int, 2*len(d.Columns))

	for i, c := range d.Columns {
		s.columns[i] = prepareColumn(d, c)

		for _, list := range [][]string{s.columns[i].words, s.columns[i].described} {
			for _, w := range list {
				s.byWord[w] = append(s.byWord[w], i)

				if len(w) >= prefix {
					s.derived[w[:prefix]] = append(s.derived[w[:prefix]], i)
				}
			}
		}
	}

	s.label = s.findLabel()

	return s
}

func prepareColumn(d *Dataset, c Column) column {
	p := column{Column: c, kind: kindOf(c.Type), words: lexicon.NameStems(c.Name), described: lexicon.NameStems(c.Description)}
	p.unique = d.Rows > 0 && c.Distinct+min(c.Nulls, 1) >= d.Rows && c.Nulls <= 1

	if slices.ContainsFunc(d.Keys, func(key []string) bool { return len(key) == 1 && key[0] == c.Name }) {
		p.unique = true
	}

	for _, w := range p.words {
		if !isUnit(w) {
			p.strong = append(p.strong, w)
		}
	}

	if len(p.strong) == 0 {
		p.strong = p.words
	}

	switch {
	case p.kind == text && writtenNumbers(c.Values):
		p.kind, p.written = number, true
	case p.kind == text && startsWithDigits(c.Values): // "2009/10", "3-1", "1:03.49"
		p.kind = other
	}

	if p.kind == number {
		p.isID = isID(d, p)

		if !p.written && isYearColumn(p) {
			p.kind = year
		}
	}

	p.sums = p.kind == number && !p.isID && (slices.Contains(p.words, "total") || !slices.ContainsFunc(p.words, isRate))

	return p
}

// isID reports whether the numbers of a column identify rows: codes, ranks, and numbers that count the rows.
func isID(d *Dataset, c column) bool {
	if strings.Contains(c.Name, "#") {
		return true
	}

	for i, w := range c.words {
		if isIDWord(w) && (i+1 == len(c.words) || c.words[i+1] != "of") {
			return true
		}
	}

	least, ok := toNumber(c.Min)
	most, also := toNumber(c.Max)

	return c.unique && ok && also && d.Rows > 2 && most-least == float64(d.Rows-1)
}

func kindOf(name string) kind {
	name, _, _ = strings.Cut(strings.ToLower(name), "(")

	switch strings.TrimSpace(name) {
	case "varchar", "text", "string", "uuid":
		return text
	case "tinyint", "smallint", "integer", "int", "bigint", "hugeint", "float", "real", "double", "decimal", "numeric", "utinyint", "usmallint", "uinteger", "ubigint":
		return number
	case "date", "timestamp", "timestamptz", "timestamp with time zone", "timestamp_s", "timestamp_ms", "timestamp_ns":
		return moment
	case "boolean", "bool":
		return truth
	default:
		return other
	}
}

// writtenNumbers reports whether texts are numbers with separators, units or signs.
func writtenNumbers(values []any) bool {
	numbers, others := 0, 0

	for _, v := range values {
		s, ok := v.(string)
		s = strings.TrimSpace(s)

		switch {
		case !ok || s == "" || strings.ContainsAny(s[:1], "-–—?") || strings.EqualFold(s, "n/a") || strings.EqualFold(s, "tba"):
		case len(s) == 4 && (s[:2] == "19" || s[:2] == "20"): // years
			others++
		case isWrittenNumber(s):
			numbers++
		default:
			others++
		}
	}

	return numbers >= 2 && others*9 <= numbers
}

// startsWithDigits reports whether more than half of the values start with a digit. Such texts are neither names nor
// numbers.
func startsWithDigits(values []any) bool {
	digits := 0

	for _, v := range values {
		if s, ok := v.(string); ok && s != "" && s[0] >= '0' && s[0] <= '9' {
			digits++
		}
	}

	return len(values) > 0 && 2*digits > len(values)
}

func isWrittenNumber(s string) bool {
	s = strings.TrimLeft(s, "$€£~+ ")
	s, unit, _ := strings.Cut(s, " ")
	s = strings.TrimSuffix(s, "%")

	if len(unit) > 12 || strings.ContainsAny(unit, "0123456789") {
		return false
	}

	if i := strings.IndexByte(s, ','); i > 0 && !grouped(s) {
		return false
	}

	_, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)

	return err == nil
}

// grouped reports whether commas separate groups of three digits.
func grouped(s string) bool {
	whole, _, _ := strings.Cut(s, ".")
	groups := strings.Split(whole, ",")

	for _, g := range groups[1:] {
		if len(g) != 3 {
			return false
		}
	}

	return len(groups[0]) <= 3
}

func isYearColumn(c column) bool {
	least, ok := toNumber(c.Min)
	most, also := toNumber(c.Max)

	if !ok || !also || least < 1600 || most > 2100 {
		return false
	}

	named := slices.ContainsFunc(c.words, func(w string) bool { return w == "year" || w == "season" || w == "yr" })

	return named || strings.EqualFold(c.Type, "bigint") && least > 1850 && c.Distinct > 2 && !slices.ContainsFunc(c.words, isRate)
}

func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(v, 64)

		return n, err == nil
	default:
		return 0, false
	}
}

// isUnit reports whether a stem is a word of names that people usually omit.
func isUnit(word string) bool {
	switch word {
	case "km", "m", "kg", "km2", "usd", "eur", "gbp", "pct", "id", "no", "at", "on", "in", "of", "the", "dat", "tim", "number", "num", "cm", "mi", "est", "nam", "cod", "to", "per", "by",
		"s", "and", "a", "or", "for", "from", "amt", "ts", "timestamp", "valu", "km²", "is", "has", "medal":
		return true
	default:
		return false
	}
}

func isIDWord(word string) bool {
	switch word {
	case "id", "no", "cod", "number", "num", "zip", "phon", "rank", "pos", "position", "key", "plac", "seed", "pick", "draft", "latitud", "longitud", "lat", "lon", "jersey", "channel", "lan":
		return true
	default:
		return false
	}
}

// isRate reports whether a stem names a figure that cannot be summed.
func isRate(word string) bool {
	switch word {
	case "pric", "rat", "ratio", "percent", "percentag", "pct", "averag", "avg", "scor", "ag", "year", "temperatur", "level", "density", "satisfaction",
		"speed", "height", "elevation", "altitud", "latitud", "longitud", "rank", "share", "margin", "scale", "index", "gpa", "high", "low", "mean", "median", "per":
		return true
	default:
		return false
	}
}

// findLabel returns the column that best names a row, or -1. It prefers columns that are unique, that are text, and
// that are called name, title or like the dataset. A column that is not text must be unique and be called like an ID.
func (s *schema) findLabel() int {
	best, most := -1, 0

	for i, c := range s.columns {
		points := 0

		if c.kind == text {
			points += 2
		}

		if c.unique {
			points += 5
		}

		for _, w := range c.words {
			if w == "nam" || w == "titl" || slices.Contains(s.words, w) {
				points += 3

				break
			}
		}

		if c.kind != text && (!c.unique || !slices.ContainsFunc(c.words, isIDWord)) {
			points = 0
		}

		if points > most {
			best, most = i, points
		}
	}

	return best
}

// person returns the column that names a person, or -1.
func (s *schema) person() int {
	found := -1

	for i, c := range s.columns {
		if c.kind != text {
			continue
		}

		for _, w := range c.words {
			switch w {
			case "nam", "person", "employe", "player", "driver", "guest", "customer", "agent", "manager", "salesperson", "winner", "author", "writer", "artist", "candidat", "member", "rider",
				"athlet", "actor", "owner", "coach", "student", "instructor", "teacher", "swimmer", "skier", "contestant", "incumbent", "user", "singer":
				if i == s.label {
					return i
				}

				if found < 0 {
					found = i
				}
			}
		}
	}

	return found
}

// ofKind returns the columns of some kinds.
func (s *schema) ofKind(kinds ...kind) (list []int) {
	for i, c := range s.columns {
		if slices.Contains(kinds, c.kind) {
			list = append(list, i)
		}
	}

	return list
}

// measures returns the columns that can be summed.
func (s *schema) measures() (list []int) {
	for i, c := range s.columns {
		if c.sums {
			list = append(list, i)
		}
	}

	return list
}
