package sample

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Class is a kind of mistake.
type Class string

// The classes of sample answers, by the mistake that was put into them. Answers of class True have no mistake.
const (
	True         Class = "true"
	WrongNumber  Class = "wrong number"
	WrongUnit    Class = "wrong unit"
	SwappedRows  Class = "swapped rows"
	WrongRounded Class = "wrong rounding"
	WrongBase    Class = "wrong percentage base"
	Invented     Class = "invented value"
	OtherColumn  Class = "other column"
	Currency     Class = "wrong currency"
	NumberWord   Class = "wrong number word"
	Superlative  Class = "wrong superlative"
	Place        Class = "wrong place in a ranking"
	Comparison   Class = "wrong comparison"
	Multiple     Class = "wrong multiple"
	Direction    Class = "wrong direction"
	Fraction     Class = "wrong fraction"
	WrongYear    Class = "wrong year"
)

// Classes returns all classes except True.
func Classes() []Class {
	return []Class{
		WrongNumber, WrongUnit, SwappedRows, WrongRounded, WrongBase, Invented, OtherColumn, Currency, NumberWord, Superlative, Place, Comparison, Multiple, Direction,
		Fraction, WrongYear,
	}
}

// mutate makes a figure of a statement wrong, and reports whether it could. The result is never true by coincidence.
func (r *random) mutate(class Class, s *statement) bool {
	figure := s.figures[r.IntN(len(s.figures))]

	switch class {
	case WrongNumber:
		return r.wrongNumber(s, figure)
	case WrongUnit:
		return r.wrongUnit(figure)
	case SwappedRows:
		return r.swapRows(s, figure)
	case WrongRounded:
		return r.roundWrongly(figure)
	case WrongBase:
		return r.wrongBase(s)
	case Invented:
		return r.invent(figure)
	case OtherColumn:
		return r.otherColumn(s, figure)
	case Currency:
		return r.wrongCurrency(figure)
	case NumberWord:
		return r.contradict(s, "word")
	case Superlative:
		return r.contradict(s, "superlative most", "superlative least")
	case Place:
		return r.contradict(s, "place")
	case Comparison:
		return r.contradict(s, "comparison")
	case Multiple:
		return r.contradict(s, "multiple")
	case Direction:
		return r.contradict(s, "direction")
	case Fraction:
		return r.contradict(s, "fraction")
	case WrongYear:
		return r.contradict(s, "year")
	case True:
	}

	return false
}

// isWrong reports whether a value, as a style shows it, differs from the true value by more than rounding.
func isWrong(shown *big.Rat, s style, truth *big.Rat) bool {
	// "About 12,000" may be taken as rounded to thousands, even if its style rounds to hundreds.
	for s.zeros > 0 && s.rounded(shown).Sign() != 0 && s.rounded(shown).Cmp(style{zeros: s.zeros + 1}.rounded(s.rounded(shown))) == 0 {
		s.zeros++
	}

	off := new(big.Rat).Sub(s.rounded(shown), truth)

	return off.Abs(off).Cmp(new(big.Rat).Quo(s.ulp(), big.NewRat(2, 1))) > 0
}

func (r *random) wrongNumber(s *statement, f *figure) bool {
	if f.form == asDay {
		f.day, f.wrong = f.day.AddDate(0, 0, 1+r.IntN(400)), true

		return true
	}

	if f.form != asNumber {
		return false
	}

	value := new(big.Rat).Mul(f.value, big.NewRat(int64([]int{10, 103, 140, 60, 91, 250}[r.IntN(6)]), 100))

	switch sign := []string{"cell", "average", "most", "least"}; {
	case r.chance(10) && slices.Contains(sign, s.what):
		value.Neg(f.value)
	case r.chance(30):
		value = swapDigits(f.style.rounded(f.value))
	case r.chance(20):
		value.Add(f.value, new(big.Rat).Mul(f.style.ulp(), big.NewRat(int64(2+r.IntN(7)), 1)))
	}

	if !isWrong(value, f.style, f.value) || f.style.rounded(value).Sign() == 0 {
		return false
	}

	f.value, f.wrong = value, true

	return true
}

// swapDigits exchanges the first two adjacent digits that differ.
func swapDigits(value *big.Rat) *big.Rat {
	digits := []byte(value.FloatString(4))

	for i := 1; i < len(digits); i++ {
		if digits[i-1] != '-' && digits[i] != '.' && digits[i-1] != '.' && digits[i] != digits[i-1] {
			digits[i], digits[i-1] = digits[i-1], digits[i]

			break
		}
	}

	swapped, _ := new(big.Rat).SetString(string(digits))

	return swapped
}

var relative = regexp.MustCompile(`(?i)%|pct|perc|proz|pourc|rate|ratio|share|growth|change|margin|anteil|quote|taux|part|avg|average`)

func (r *random) wrongUnit(f *figure) bool {
	if f.form != asNumber {
		return false
	}

	f.wrong = true
	unit, scale := f.style.unit, f.style.scale
	others := map[string]string{"kg": "t", "km": "m", "km²": "m²", "m": "km", "mm": "cm", "°C": "°F"}

	switch percent := unit == "%" || unit == "fraction"; {
	case !percent && f.style.scale > 0 && r.chance(50):
		next := map[int]int{3: 6, 6: 3, 9: 6}[f.style.scale]
		f.value = new(big.Rat).Mul(f.value, power(next-f.style.scale))
		f.style.scale = next
	case !percent && f.style.scale == 0 && f.style.zeros == 0 && f.value.Sign() != 0 && r.chance(25):
		f.style.scale = 3 * (1 + r.IntN(2))
		f.value = new(big.Rat).Mul(f.value, power(f.style.scale))
	case others[unit] != "":
		f.style.unit = others[unit]
	case slices.Contains([]string{"€", "$", "£", "CHF"}, unit):
		f.style.unit = []string{"€", "$", "£", "€"}[r.IntN(4)]
	case percent:
		f.style.unit = []string{"€", "kg"}[r.IntN(2)]
	case f.column >= 0 && !relative.MatchString(f.v.columns[f.column]) && new(big.Rat).Abs(f.value).Cmp(big.NewRat(2, 1)) >= 0:
		f.style.unit, f.style.scale, f.style.zeros = "%", 0, 0
		f.style.decimals = min(f.style.decimals, 2)
		f.wrong = f.style.rounded(f.value).Sign() != 0
	}

	return f.wrong && (f.style.unit != unit || f.style.scale != scale)
}

// another returns a row that can be named and has another value in the column of the figure, or -1.
func (r *random) another(f *figure, also ...int) (int, *figure) {
	if f.row < 0 || f.v.key < 0 {
		return -1, nil
	}

	for _, row := range r.rowsOf(f.v, len(f.v.filled(f.column)), f.column) {
		if row == f.row || slices.Contains(also, row) {
			continue
		}

		if other := r.cell(f.v, row, f.column); differs(other, f) {
			return row, other
		}
	}

	return -1, nil
}

// differs reports whether one figure cannot be mistaken for the value of the other.
func differs(shown, truth *figure) bool {
	switch shown.form {
	case asDay:
		return !shown.day.Equal(truth.day)
	case asQuote:
		return !strings.EqualFold(shown.text, truth.text)
	case asNumber:
		return isWrong(shown.value, shown.style, truth.value) && isWrong(truth.value, truth.style, shown.value)
	case asName, asWords:
	}

	return false
}

// swapRows gives a figure the marker or the value of another row, or makes the sentence name another row.
func (r *random) swapRows(s *statement, f *figure) bool {
	if slices.Contains([]string{"rise", "fall", "rise from", "fall from", "more", "fewer", "difference", "share"}, s.what) {
		return false
	}

	row, other := r.another(f)
	if other == nil {
		return false
	}

	cited := strings.HasPrefix(f.marker, "= ")

	switch way := r.IntN(3); {
	case way == 0 && !f.bare && !cited:
		f.marker = other.marker
	case way == 1 && s.names["b"] == nil:
		s.names["a"] = r.name(f.v, row)
		for _, same := range s.figures {
			same.wrong = !same.bare || same.v.rows[row][same.column] == "" || differs(r.cell(same.v, row, same.column), same)
		}
	case cited:
		return false
	default:
		other.bare, other.wrong = f.bare, true
		*f = *other
	}

	f.wrong = true

	return true
}

// roundWrongly shows fewer digits than the value has, with the last one off by one.
func (r *random) roundWrongly(f *figure) bool {
	if f.form != asNumber {
		return false
	}

	s := f.style

	if s.rounded(f.value).Cmp(f.value) == 0 {
		switch digits := exactDecimals(f.value); {
		case digits > 0:
			s.decimals = r.IntN(min(digits, 3))
		case new(big.Rat).Abs(f.value).Cmp(power(6)) >= 0:
			s.scale, s.decimals = 6, 1
		case new(big.Rat).Abs(f.value).Cmp(power(4)) >= 0:
			s.scale, s.decimals = 3, 1
		default:
			return false
		}
	}

	off := s.ulp()
	if s.rounded(f.value).Cmp(f.value) > 0 {
		off.Neg(off) // truncated instead of rounded up
	}

	value := new(big.Rat).Add(s.rounded(f.value), off)
	if !isWrong(value, s, f.value) || value.Sign() != f.value.Sign() {
		return false
	}

	f.value, f.style, f.wrong = value, s, true

	return true
}

func (r *random) wrongBase(s *statement) bool {
	if len(s.bases) == 0 {
		return false
	}

	f, wrong := s.figures[len(s.figures)-1], s.bases[r.IntN(len(s.bases))]
	for f.style.rounded(wrong.value).Sign() == 0 && wrong.value.Sign() != 0 {
		f.style.decimals++
	}

	if !isWrong(wrong.value, f.style, f.value) {
		return false
	}

	f.value, f.wrong = wrong.value, true
	if r.chance(60) {
		f.marker = "= " + wrong.marker
	}

	return true
}

// invent replaces a figure by a value that does not occur in the data.
func (r *random) invent(f *figure) bool {
	f.wrong = true

	switch f.form {
	case asQuote:
		f.text = fmt.Sprintf("%s%s", []string{"Quorvex", "Zemblan", "Plimstock", "Yorvale"}[r.IntN(4)], []string{"", " Holding", " Nova"}[r.IntN(3)])
	case asDay:
		f.day = f.day.AddDate(0, 0, 500+r.IntN(20000))
	case asNumber:
		value := big.NewRat(int64(100_000+r.IntN(900_000_000)), int64([]int{1, 10, 1000}[r.IntN(3)]))
		f.style.zeros, f.style.scale, f.style.decimals = 0, 0, min(f.style.decimals, 2)

		if !isWrong(value, f.style, f.value) {
			return false
		}

		f.value = value
	case asName, asWords:
		return false
	}

	if !f.bare && r.chance(50) {
		f.marker = []string{
			f.v.cellRef(len(f.v.rows)+r.IntN(9), max(f.column, 0)), fmt.Sprintf("%d:0:benchmark_value", f.v.step), f.v.cellRef(0, max(f.column, 0))[1:],
			fmt.Sprintf("%d:0:%s", 7+f.v.step, "total"), "= sum(" + f.v.ref("*", max(f.column, 0)) + " / 0", "",
		}[r.IntN(6)]
		f.bare = f.marker == ""
	}

	return true
}

// otherColumn shows the value of the same row in another column.
func (r *random) otherColumn(s *statement, f *figure) bool {
	if f.row < 0 || f.column < 0 || strings.HasPrefix(f.marker, "= ") || strings.HasPrefix(s.what, "rise") || strings.HasPrefix(s.what, "fall") {
		return false
	}

	columns := f.v.sayable(f.v.kinds[f.column])
	if f.form == asNumber {
		columns = f.v.numeric()
	}

	r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })

	for _, column := range columns {
		if column == f.column || f.v.rows[f.row][column] == "" || (f.v.kinds[column] == texts && !nameable(f.v.rows[f.row][column])) {
			continue
		}

		other := r.cell(f.v, f.row, column)
		if !differs(other, f) {
			continue
		}

		if r.chance(30) {
			other.marker = f.marker
		}

		other.bare, other.wrong = f.bare, true
		*f = *other

		return true
	}

	return false
}
