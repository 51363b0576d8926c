package sample

import (
	"math/big"
	"slices"
	"strings"
)

// asWords is the form of figures that are written in words. They are claims without a marker.
const asWords form = asName + 1

// relation is a figure in words, with what a writer who is wrong would say.
func relation(v *view, column int, right, wrong string) *figure {
	return &figure{v: v, row: -1, column: column, form: asWords, text: right, contrary: wrong, bare: true}
}

func one(r *random, lists [3][]string, in Format) string {
	text, _ := pick(r, lists[in])

	return text
}

// relations returns the facts that are stated in words, by the class of mistakes that they can have.
func relations() map[Class]func(*random, *view, Format) *statement {
	return map[Class]func(*random, *view, Format) *statement{
		NumberWord: wordFact, Superlative: superlativeFact, Place: placeFact, Comparison: comparisonFact, Multiple: multipleFact, Direction: directionFact,
		Fraction: fractionFact, WrongYear: yearFact,
	}
}

// related returns a fact in words: one that can have a mistake of the class, or any.
func (r *random) related(v *view, in Format, class Class) *statement {
	fact, isRelation := relations()[class]
	if !isRelation {
		classes := Classes()[len(Classes())-len(relations()):]
		fact = relations()[classes[r.IntN(len(classes))]]
	}

	return fact(r, v, in)
}

// wordFact writes a small whole number in words.
func wordFact(r *random, v *view, in Format) *statement {
	column, some := pick(r, v.numeric())
	if !some || unitOf(v.columns[column]) != "" {
		return nil
	}

	for _, row := range r.rowsOf(v, len(v.filled(column)), column) {
		n, _ := v.number(row, column)
		if !n.IsInt() || n.Sign() <= 0 || n.Cmp(big.NewRat(maxSpelled, 1)) > 0 || n.Cmp(big.NewRat(1, 1)) == 0 {
			continue
		}

		value := int(n.Num().Int64())
		other := value + []int{-3, -2, -1, 1, 2, 3, 10, 20}[r.IntN(8)]

		if other < 2 || other > maxSpelled {
			other = maxSpelled + 2 - value
		}

		if other == value {
			continue
		}

		s := r.about("word", v, []int{row}, []int{column})
		s.figures = []*figure{relation(v, column, spell(value, in), spell(other, in))}

		return s
	}

	return nil
}

// order returns the rows that can be named, from the highest to the lowest value of a column, if no two values are equal
// and every row has one.
func (r *random) order(v *view, column int) []int {
	rows := v.filled(column)
	if v.key < 0 || v.more > 0 || len(rows) != len(v.rows) || len(rows) < 3 {
		return nil
	}

	value := func(row int) *big.Rat {
		n, _ := v.number(row, column)

		return n
	}

	slices.SortFunc(rows, func(a, b int) int { return value(b).Cmp(value(a)) })

	for i := range rows[1:] {
		if value(rows[i]).Cmp(value(rows[i+1])) == 0 {
			return nil
		}
	}

	return rows
}

func superlativeFact(r *random, v *view, in Format) *statement {
	column, some := pick(r, v.numeric())
	if !some {
		return nil
	}

	rows := r.order(v, column)
	if rows == nil {
		return nil
	}

	what, row, right, wrong := "superlative most", rows[0], highest(), lowest()
	if r.chance(50) {
		what, row, right, wrong = "superlative least", rows[len(rows)-1], lowest(), highest()
	}

	s := r.about(what, v, []int{row}, []int{column})
	s.figures = []*figure{relation(v, column, one(r, right, in), one(r, wrong, in))}
	s.instead = r.name(v, rows[1+r.IntN(len(rows)-2)])

	return s
}

func placeFact(r *random, v *view, in Format) *statement {
	column, some := pick(r, v.numeric())
	if !some {
		return nil
	}

	rows := r.order(v, column)
	if rows == nil {
		return nil
	}

	names := places()[in]
	at := r.IntN(min(len(rows), len(names)))
	other := (at + 1 + r.IntN(len(names)-1)) % len(names)

	s := r.about("place", v, rows[at:at+1], []int{column})
	s.figures = []*figure{relation(v, column, names[at], names[other])}

	return s
}

// compared returns a column and two rows with different values.
func (r *random) compared(v *view) (column int, rows []int, ratio *big.Rat) {
	column, some := pick(r, v.numeric())

	rows = r.rowsOf(v, 2, column)
	if !some || rows == nil {
		return 0, nil, nil
	}

	x, _ := v.number(rows[0], column)
	y, _ := v.number(rows[1], column)

	if x.Cmp(y) == 0 || x.Sign() <= 0 || y.Sign() <= 0 {
		return 0, nil, nil
	}

	return column, rows, new(big.Rat).Quo(x, y)
}

func comparisonFact(r *random, v *view, in Format) *statement {
	column, rows, ratio := r.compared(v)
	if rows == nil {
		return nil
	}

	right, wrong := higher(), lower()
	if ratio.Cmp(big.NewRat(1, 1)) < 0 {
		right, wrong = wrong, right
	}

	s := r.about("comparison", v, rows, []int{column})
	s.figures = []*figure{relation(v, column, one(r, right, in), one(r, wrong, in))}

	return s
}

// multipleFact says that a value is a multiple of another one, or more than that.
func multipleFact(r *random, v *view, in Format) *statement {
	column, rows, ratio := r.compared(v)
	if rows == nil {
		return nil
	}

	factor := 2 + r.IntN(3)
	word := one(r, times(factor), in)
	more := [3]string{"more than ", "mehr als ", "plus de "}[in] + word
	nearly := [3]string{"nearly ", "fast ", "presque "}[in] + word
	part := new(big.Rat).Quo(ratio, big.NewRat(int64(factor), 1))

	var right, wrong string

	switch {
	case part.Cmp(big.NewRat(98, 100)) >= 0 && part.Cmp(big.NewRat(102, 100)) <= 0:
		right, wrong = word, one(r, times(2+(factor-1)%3), in)
	case part.Cmp(big.NewRat(105, 100)) > 0 && part.Cmp(big.NewRat(2, 1)) < 0:
		right, wrong = more, nearly
	case part.Cmp(big.NewRat(90, 100)) > 0 && part.Cmp(big.NewRat(98, 100)) < 0:
		right, wrong = nearly, more
	default:
		return nil
	}

	s := r.about("multiple", v, rows, []int{column})
	s.figures = []*figure{relation(v, column, right, wrong)}

	return s
}

func directionFact(r *random, v *view, in Format) *statement {
	column, rows, ratio := r.compared(v)
	if rows == nil {
		return nil
	}

	right, wrong := rose(), fell()
	if ratio.Cmp(big.NewRat(1, 1)) > 0 {
		right, wrong = wrong, right
	}

	s := r.about("direction", v, rows, []int{column})
	s.figures = []*figure{relation(v, column, one(r, right, in), one(r, wrong, in))}

	return s
}

// fractionFact says which part of the whole a row has, if it is about one that has a name.
func fractionFact(r *random, v *view, in Format) *statement {
	column, some := pick(r, v.numeric())
	if !some || v.more > 0 || unitOf(v.columns[column]) == "fraction" {
		return nil
	}

	all := v.all(column)
	if total := sum(all); total.Sign() > 0 && !slices.ContainsFunc(all, func(n *big.Rat) bool { return n.Sign() < 0 }) {
		for _, row := range r.rowsOf(v, len(v.filled(column)), column) {
			n, _ := v.number(row, column)
			part := new(big.Rat).Quo(n, total)

			for i, named := range []*big.Rat{big.NewRat(1, 4), big.NewRat(1, 3), big.NewRat(1, 2), big.NewRat(2, 3), big.NewRat(3, 4)} {
				off := new(big.Rat).Sub(part, named)
				if off.Abs(off).Cmp(big.NewRat(2, 100)) > 0 {
					continue
				}

				about := [3]string{"about ", "etwa ", "environ "}[in]
				s := r.about("fraction", v, []int{row}, []int{column})
				s.figures = []*figure{relation(v, column, about+parts()[in][i], about+parts()[in][(i+1+r.IntN(4))%5])}

				return s
			}
		}
	}

	return nil
}

// yearFact states a year that is the value of a column.
func yearFact(r *random, v *view, _ Format) *statement {
	for _, column := range v.sayable(numbers) {
		filled := v.filled(column)
		if len(filled) == 0 || slices.ContainsFunc(v.rows, func(row []string) bool { return row[column] != "" && !year.MatchString(row[column]) }) {
			continue
		}

		row := filled[r.IntN(len(filled))]
		right := v.rows[row][column]
		wrong := new(big.Rat)
		wrong.SetString(right)
		wrong.Sub(wrong, big.NewRat(int64(1+r.IntN(30)), 1))

		s := r.about("year", v, []int{row}, []int{column})
		s.figures = []*figure{relation(v, column, right, wrong.Num().String())}

		return s
	}

	return nil
}

// contradict makes a statement in words say the contrary, or of a superlative, names another row.
func (r *random) contradict(s *statement, whats ...string) bool {
	if !slices.Contains(whats, s.what) || s.figures[0].contrary == "" || strings.EqualFold(s.figures[0].contrary, s.figures[0].text) {
		return false
	}

	if s.figures[0].wrong = true; s.instead != nil && r.chance(50) {
		s.names["a"] = s.instead

		return true
	}

	s.figures[0].text = s.figures[0].contrary

	return true
}

// wrongCurrency shows an amount in another currency than that of its column.
func (r *random) wrongCurrency(f *figure) bool {
	money := []string{"€", "$", "£"}
	if f.form != asNumber || !slices.Contains(money, f.style.unit) {
		return false
	}

	f.style.unit, f.wrong = money[(slices.Index(money, f.style.unit)+1+r.IntN(2))%3], true

	return true
}
