package sample

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// form is the form in which a part of a statement is written.
type form int

const (
	asNumber form = iota
	asDay
	asQuote
	asName // a claim only with a marker
)

// figure is a part of a statement that must be true.
type figure struct {
	v           *view
	row, column int // of its cell; -1 if the figure is calculated
	form        form
	value       *big.Rat // in the unit that is shown
	day         time.Time
	text        string
	style       style
	marker      string
	bare        bool // without a marker, so the check must locate it
	wrong       bool
	contrary    string // of a figure in words: what a writer who is wrong would say
}

func (f *figure) write(in Format) string {
	switch f.form {
	case asDay:
		return writeDay(in, f.day, f.style.variant)
	case asQuote:
		quotes := [...][2]string{{`"`, `"`}, {"„", "“"}, {"« ", " »"}}[in]
		if f.style.variant%3 == 0 {
			quotes = [2]string{"“", "”"}
		}

		return quotes[0] + f.text + quotes[1]
	case asName, asWords:
		return f.text
	case asNumber:
	}

	return f.style.write(in, f.value)
}

// statement is a sentence, a list or a table with figures about named rows and columns.
type statement struct {
	what    string
	phrase  string             // with {a} {b} for names, {c} {d} for columns, {0} {1} for figures
	names   map[string]*figure // rows by slot
	columns map[string]string
	figures []*figure
	instead *figure // row that a wrong superlative names
	// Wrong bases of a percentage.
	bases []base
}

// base is a wrong base: the resulting percentage and its marker.
type base struct {
	value  *big.Rat
	marker string
}

var plainColumn = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*$`)

func (v *view) ref(row string, column int) string {
	name := v.columns[column]
	if !plainColumn.MatchString(name) {
		name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}

	return fmt.Sprintf("%d:%s:%s", v.step, row, name)
}

func (v *view) cellRef(row, column int) string { return v.ref(strconv.Itoa(row), column) }

func decimalsOf(text string) int {
	_, rest, _ := strings.Cut(text, ".")

	return len(rest)
}

// cell returns the figure of a cell.
func (r *random) cell(v *view, row, column int) *figure {
	f := &figure{v: v, row: row, column: column, marker: v.cellRef(row, column)}
	f.style.variant = r.IntN(1000)

	switch v.kinds[column] {
	case days:
		f.form = asDay
		f.day, _ = time.Parse(time.DateOnly, v.rows[row][column])
	case texts:
		f.form, f.text = asQuote, v.rows[row][column]
	case numbers:
		f.value, _ = v.number(row, column)
		digits := decimalsOf(v.rows[row][column])

		f.style.unit = unitOf(v.columns[column])
		if f.style.unit == "fraction" {
			f.value.Mul(f.value, power(2))
			digits -= 2
		}

		r.dress(f, max(0, digits))
	}

	return f
}

// calculated returns the figure of a calculation.
func (r *random) calculated(v *view, column int, value *big.Rat, marker string) *figure {
	f := &figure{v: v, row: -1, column: column, value: value, marker: "= " + marker}
	f.style.variant, f.style.unit = r.IntN(1000), unitOf(v.columns[column])

	if f.style.unit == "fraction" {
		value.Mul(value, power(2))
	}

	r.dress(f, exactDecimals(value))

	return f
}

// percent returns a figure in percent.
func (r *random) percent(v *view, column int, value *big.Rat, marker string) *figure {
	f := &figure{v: v, row: -1, column: column, value: value, marker: "= " + marker}
	f.style = style{variant: r.IntN(1000), unit: "%"}
	r.dress(f, exactDecimals(value))

	return f
}

const manyDecimals = 9

// exactDecimals returns the number of decimals that a number needs, at most manyDecimals.
func exactDecimals(value *big.Rat) int {
	for d := range manyDecimals {
		if shown, _ := new(big.Rat).SetString(value.FloatString(d)); shown.Cmp(value) == 0 {
			return d
		}
	}

	return manyDecimals
}

// dress chooses the rounding of a number: exact, with fewer decimals, with a scale word, or approximate.
func (r *random) dress(f *figure, digits int) {
	s, size := &f.style, new(big.Rat).Abs(f.value)
	s.decimals = min(digits, 2+r.IntN(3))

	switch {
	case digits > 0 && r.chance(45):
		s.decimals = r.IntN(min(digits, 3))
	case s.unit != "%" && s.unit != "fraction" && size.Cmp(power(9)) >= 0 && r.chance(50):
		s.scale, s.decimals = 9, 1+r.IntN(2)
	case s.unit != "%" && s.unit != "fraction" && size.Cmp(power(6)) >= 0 && r.chance(40):
		s.scale, s.decimals = 6, 1+r.IntN(2)
	case s.unit != "%" && s.unit != "fraction" && size.Cmp(power(4)) >= 0 && r.chance(15):
		s.scale, s.decimals = 3, r.IntN(2)
	case size.Cmp(power(4)) >= 0 && r.chance(10):
		s.decimals, s.zeros = 0, len(f.value.Num().String())-len(f.value.Denom().String())-2
		s.zeros = min(s.zeros, 4)
	}

	for f.value.Sign() != 0 && s.rounded(f.value).Sign() == 0 {
		s.decimals, s.scale, s.zeros = s.decimals+1, 0, 0
	}
}

// name returns the name of a row as a figure.
func (r *random) name(v *view, row int) *figure {
	f := &figure{v: v, row: row, column: v.key, form: asName, text: v.rows[row][v.key]}
	if v.kinds[v.key] == days {
		f.form = asDay
		f.day, _ = time.Parse(time.DateOnly, f.text)
	}

	f.style.variant = r.IntN(1000)

	return f
}

func sum(values []*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, value := range values {
		total.Add(total, value)
	}

	return total
}

func quotient(part, whole *big.Rat) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).Quo(part, whole), power(2))
}
