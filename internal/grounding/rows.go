package grounding

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// cell is a value, prepared for comparison.
type cell struct {
	text   string
	key    string // words of the text in lower case
	number *big.Rat
	near   float64
	day    day
	unit   string // unit written with the number
	null   bool
}

// column is the information about a column.
type column struct {
	name    string
	unit    string // from its name or its cells
	percent bool   // the name indicates percentages
	money   bool   // the name indicates amounts of money
	small   bool   // all numbers are between -1 and 1 and some are fractions: parts of one
	kind    kind
	years   bool
}

type kind int

const (
	ofTexts kind = iota
	ofNumbers
	ofDays
)

// table is the rows of a step.
type table struct {
	index    int
	columns  []column
	at       map[string]int
	rows     [][]cell
	count    int64
	complete bool
	totals   map[string]*big.Rat
	order    map[int][]valued // rows ordered by value, by column
}

// namePosition is a position at which a name occurs: table, column and rows.
type namePosition struct {
	t, c int
	rows []int
}

// rowData is the rows of all steps.
type rowData struct {
	tables   []*table
	byIndex  map[int]int
	names    map[string][]namePosition
	heads    map[string][]namePosition // columns by name; rows is nil
	longest  int                       // most words of a name
	begins   map[string]bool           // first words of names of rows and columns
	brackets map[string][]string
}

const (
	maxNameWords = 12
	maxNameBytes = 120
	maxDigits    = 60
)

func read(steps []Step) *rowData {
	d := &rowData{byIndex: map[int]int{}, names: map[string][]namePosition{}, heads: map[string][]namePosition{}, begins: map[string]bool{}, brackets: map[string][]string{}}

	for _, step := range steps {
		t := &table{index: step.Index, at: map[string]int{}, count: step.RowCount, complete: step.Complete, totals: map[string]*big.Rat{}, order: map[int][]valued{}}
		for _, name := range step.Columns {
			t.at[name] = len(t.columns)
			t.columns = append(t.columns, column{name: name})
		}

		for _, row := range step.Rows {
			t.rows = append(t.rows, d.readRow(t, row))
		}

		for i := range t.columns {
			t.describe(i)
		}

		d.byIndex[step.Index] = len(d.tables)
		d.tables = append(d.tables, t)
	}

	for i, t := range d.tables {
		d.learn(i, t)
	}

	return d
}

func (d *rowData) readRow(t *table, row json.RawMessage) []cell {
	cells := make([]cell, len(t.columns))
	for i := range cells {
		cells[i].null = true
	}

	values := map[string]json.RawMessage{}
	if json.Unmarshal(row, &values) != nil {
		return cells
	}

	for name, value := range values {
		if c, is := t.at[name]; is {
			cells[c] = readCell(value)
			d.bracket(cells[c].text)
		}
	}

	return cells
}

// bracket records texts that contain something like a marker.
func (d *rowData) bracket(text string) {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "[[")
		if !found {
			return
		}

		body, _, _ := strings.Cut(after, "]]")
		d.brackets[body] = append(d.brackets[body], text)
		rest = after
	}
}

func readCell(value json.RawMessage) cell {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || bytes.Equal(value, []byte("null")) {
		return cell{null: true}
	}

	c := cell{text: string(value)}
	if value[0] == '"' && json.Unmarshal(value, &c.text) != nil {
		return cell{null: true}
	}

	c.key = keyOf(c.text)

	if number, is := plainNumber(c.text); is {
		c.number = number
		c.near, _ = number.Float64()

		return c
	}

	if len(c.text) > 2*maxDigits || !strings.ContainsAny(c.text, "0123456789") || !looksMeasured(c.text) {
		return c
	}

	if found := scan(c.text); len(found) == 1 && len(strings.TrimSpace(c.text[:found[0].from]+c.text[found[0].to:])) == 0 {
		switch f := found[0]; {
		case f.form == formDay:
			c.day = f.days[0]
		case f.form == formNumber && len(f.values) > 0:
			c.number = new(big.Rat).Set(f.values[0].value)
			if f.sign < 0 {
				c.number.Neg(c.number)
			}

			c.near, _ = c.number.Float64()
			c.unit = f.unit
		}
	}

	return c
}

// looksMeasured reports whether a text may be a number with a unit or a date: it does not begin with a letter, or
// begins with a month or a unit.
func looksMeasured(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)

	return !unicode.IsLetter(first) || monthOf(text) != 0 || lexicon.Unit(strings.ToLower(text[:min(len(text), 3)])) != ""
}

// plainNumber parses a number as programs write it. It refuses sizes that occur only by error or in an attack.
func plainNumber(text string) (*big.Rat, bool) {
	if len(text) == 0 || len(text) > maxDigits || !strings.ContainsAny(text[len(text)-1:], "0123456789") || strings.ContainsAny(text, "/_xXoObBpP") {
		return nil, false
	}

	if e := strings.IndexAny(text, "eE"); e >= 0 && len(strings.TrimLeft(text[e+1:], "+-0")) > 2 {
		return nil, false
	}

	return new(big.Rat).SetString(text)
}

// describe derives the properties of a column from its name and cells.
func (t *table) describe(i int) {
	c := &t.columns[i]
	words := wordsOf(c.name)
	c.unit, c.percent, c.money = unitOfName(c.name, words), slices.ContainsFunc(words, lexicon.IsPercentName), slices.ContainsFunc(words, lexicon.IsMoneyName)
	c.percent = c.percent || c.unit == "%"

	var full, numbers, days, years int

	small, broken, units := true, false, map[string]bool{}

	for _, row := range t.rows {
		one := row[i]
		if one.null {
			continue
		}

		full++

		switch {
		case one.number != nil:
			numbers++
			small = small && one.near >= -1 && one.near <= 1
			broken = broken || !one.number.IsInt()
			units[one.unit] = true

			if isYear(one.text) {
				years++
			}
		case one.day.year != 0:
			days++
		}
	}

	switch {
	case full > 0 && numbers*2 > full:
		c.kind, c.years, c.small = ofNumbers, years == full, small && broken
	case full > 0 && days*2 > full:
		c.kind = ofDays
	}

	if len(units) == 1 && c.unit == "" {
		for unit := range units {
			c.unit = unit
		}
	}
}

// learn adds the names of rows and columns to the dictionary.
func (d *rowData) learn(at int, t *table) {
	for c, col := range t.columns {
		for _, key := range headKeys(col) {
			d.heads[key] = append(d.heads[key], namePosition{t: at, c: c})
			d.begin(key)
		}

		for r, row := range t.rows {
			one := row[c]

			switch {
			case one.null:
			case one.day.year != 0:
				for _, key := range one.day.keys() {
					d.name(key, at, c, r)
				}
			case col.years || isYear(one.text):
				d.name(one.text, at, c, r)
			case one.number == nil && len(one.text) <= maxNameBytes && strings.ContainsFunc(one.text, unicode.IsLetter):
				if one.key != "" && strings.Count(one.key, " ") < maxNameWords && utf8.RuneCountInString(one.text) > 1 {
					d.name(one.key, at, c, r)
					d.begin(one.key)
				}
			}
		}
	}
}

func (d *rowData) begin(key string) {
	first, _, _ := strings.Cut(key, " ")
	d.begins[first] = true
	d.longest = max(d.longest, strings.Count(key, " ")+1)
}

func (d *rowData) name(key string, t, c, r int) {
	places := d.names[key]
	if last := len(places) - 1; last >= 0 && places[last].t == t && places[last].c == c {
		places[last].rows = append(places[last].rows, r)

		return
	}

	d.names[key] = append(places, namePosition{t, c, []int{r}})
}

// wordsOf returns the words of a text in lower case.
func wordsOf(text string) []string {
	var list []string
	for _, w := range lexicon.LowerWords(text) {
		list = append(list, w.Text)
	}

	return list
}

func keyOf(text string) string {
	if len(text) > 20*maxNameBytes {
		return ""
	}

	return strings.Join(wordsOf(text), " ")
}

// headKeys returns the keys of a column: its words, and its words without a unit at the end.
func headKeys(c column) []string {
	words := lexicon.NameSingulars(c.name)
	if len(words) == 0 || len(words) > maxNameWords {
		return nil
	}

	keys := []string{strings.Join(words, " ")}
	if last := len(words) - 1; last > 0 && (lexicon.Unit(words[last]) != "" || lexicon.IsPercentName(words[last])) {
		keys = append(keys, strings.Join(words[:last], " "))
	}

	return keys
}

// unitOfName returns the unit in the name of a column, or "". Currencies and percent can be anywhere in the name, short
// units only at its end.
func unitOfName(name string, words []string) string {
	for _, sign := range []string{"€", "$", "£", "¥", "%", "km²", "m²", "°C", "°F"} {
		if strings.Contains(name, sign) {
			return sign
		}
	}

	for _, word := range words {
		if unit := lexicon.Unit(word); lexicon.IsMoney(unit) || unit == "%" {
			return unit
		}
	}

	if len(words) > 1 {
		return lexicon.Unit(words[len(words)-1])
	}

	return ""
}
