package sample

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// facts returns the functions that make a statement about a step. Each returns nil if the step does not have what it
// needs.
func facts() []func(*random, *view) *statement {
	return []func(*random, *view) *statement{
		cellFact, cellFact, dayFact, quoteFact, countFact, sumFact, averageFact, extremeFact, differenceFact, shareFact, changeFact,
		pairFact, twoFact, rankingFact, listFact, tableFact,
	}
}

// rowsOf returns n random rows that can be named and have a value in the columns, or nil if there are fewer.
func (r *random) rowsOf(v *view, n int, columns ...int) []int {
	rows := []int{}
	for i := range v.rows {
		rows = append(rows, i)
	}

	for _, column := range columns {
		filled := v.filled(column)
		rows = slices.DeleteFunc(rows, func(row int) bool { return !slices.Contains(filled, row) })
	}

	if v.key < 0 || len(rows) < n {
		return nil
	}

	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })

	return rows[:n]
}

// The slots for rows and columns in phrases.
const (
	rowSlots    = "abx"
	columnSlots = "cd"
)

// about returns a statement about rows and columns.
func (r *random) about(what string, v *view, rows, columns []int) *statement {
	s := &statement{what: what, names: map[string]*figure{}, columns: map[string]string{}}
	for i, row := range rows {
		s.names[rowSlots[i:i+1]] = r.name(v, row)
	}

	for i, column := range columns {
		s.columns[columnSlots[i:i+1]] = spoken(v.columns[column])
	}

	return s
}

func (r *random) cellOf(what string, v *view, columns []int) *statement {
	column, some := pick(r, columns)
	if rows := r.rowsOf(v, 1, column); some && rows != nil {
		s := r.about(what, v, rows, []int{column})
		s.figures = []*figure{r.cell(v, rows[0], column)}

		return s
	}

	return nil
}

func cellFact(r *random, v *view) *statement { return r.cellOf("cell", v, v.numeric()) }
func dayFact(r *random, v *view) *statement  { return r.cellOf("day", v, v.sayable(days)) }

func quoteFact(r *random, v *view) *statement {
	s := r.cellOf("quote", v, v.sayable(texts))
	if s != nil && !nameable(s.figures[0].text) {
		return nil
	}

	return s
}

func countFact(r *random, v *view) *statement {
	s := r.about("count", v, nil, nil)
	f := &figure{v: v, row: -1, column: -1, value: big.NewRat(int64(len(v.rows)+v.more), 1), marker: fmt.Sprintf("%d:count", v.step)}
	f.style.variant = r.IntN(1000)
	s.figures = []*figure{f}

	return s
}

func (r *random) aggregate(what, call string, v *view, value func([]*big.Rat) *big.Rat) *statement {
	column, some := pick(r, v.numeric())
	if !some || v.more > 0 {
		return nil
	}

	s := r.about(what, v, nil, []int{column})
	s.figures = []*figure{r.calculated(v, column, value(v.all(column)), call+"("+v.ref("*", column)+")")}

	return s
}

func sumFact(r *random, v *view) *statement { return r.aggregate("sum", "sum", v, sum) }

func averageFact(r *random, v *view) *statement {
	return r.aggregate("average", "avg", v, func(values []*big.Rat) *big.Rat {
		return new(big.Rat).Quo(sum(values), big.NewRat(int64(len(values)), 1))
	})
}

// extremeFact names the row with the maximum or minimum.
func extremeFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())
	if !some || v.key < 0 || v.more > 0 {
		return nil
	}

	what, call, sign := "most", "max", 1
	if r.chance(50) {
		what, call, sign = "least", "min", -1
	}

	best := -1

	for i := range v.rows {
		n, has := v.number(i, column)
		if !has {
			continue
		}

		if best >= 0 {
			if least, _ := v.number(best, column); n.Cmp(least)*sign <= 0 {
				continue
			}
		}

		best = i
	}

	if best < 0 || !slices.Contains(v.filled(column), best) {
		return nil
	}

	s := r.about(what, v, []int{best}, []int{column})
	s.figures = []*figure{r.cell(v, best, column)}

	if r.chance(30) {
		s.figures[0].marker = "= " + call + "(" + v.ref("*", column) + ")"
	}

	return s
}

// differenceFact compares two rows.
func differenceFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 2, column)
	if !some || rows == nil {
		return nil
	}

	x, _ := v.number(rows[0], column)
	y, _ := v.number(rows[1], column)

	less := x.Cmp(y)
	if less == 0 {
		return nil
	}

	what := map[int]string{1: "more", -1: "fewer"}[less]
	if r.chance(40) {
		what = "difference"
	}

	s := r.about(what, v, rows, []int{column})
	from, to := v.cellRef(rows[0], column), v.cellRef(rows[1], column)

	if less < 0 && r.chance(70) {
		from, to = to, from // a good writer usually subtracts the smaller value
	}

	difference := new(big.Rat).Sub(x, y)
	s.figures = []*figure{r.calculated(v, column, difference.Abs(difference), from+" - "+to)}

	return s
}

// shareFact states the share of a row in the whole column.
func shareFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 2, column)
	if !some || rows == nil || v.more > 0 {
		return nil
	}

	all := v.all(column)
	total := sum(all)
	part, _ := v.number(rows[0], column)
	other, _ := v.number(rows[1], column)

	if slices.ContainsFunc(all, func(n *big.Rat) bool { return n.Sign() < 0 }) || part.Sign() == 0 || unitOf(v.columns[column]) == "fraction" {
		return nil
	}

	s := r.about("share", v, rows[:1], []int{column})
	ref := v.cellRef(rows[0], column)
	whole := "sum(" + v.ref("*", column) + ")"
	s.figures = []*figure{r.percent(v, column, quotient(part, total), ref+" / "+whole)}
	s.bases = append(s.bases, base{quotient(part, slices.MaxFunc(all, (*big.Rat).Cmp)), ref + " / max(" + v.ref("*", column) + ")"})

	if other.Sign() > 0 && !strings.Contains(strings.ToLower(v.rows[rows[1]][v.key]), "total") {
		s.bases = append(s.bases, base{quotient(part, other), ref + " / " + v.cellRef(rows[1], column)})
	}

	for _, another := range v.numeric() {
		if whole := sum(v.all(another)); another != column && whole.Sign() > 0 {
			s.bases = append(s.bases, base{quotient(part, whole), ref + " / sum(" + v.ref("*", another) + ")"})
		}
	}

	return s
}

// changeFact states by how many percent one row is above or below another.
func changeFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 2, column)
	if !some || rows == nil {
		return nil
	}

	before, _ := v.number(rows[0], column)
	after, _ := v.number(rows[1], column)

	if before.Sign() <= 0 || after.Sign() <= 0 || before.Cmp(after) == 0 || unitOf(v.columns[column]) == "fraction" {
		return nil
	}

	s := r.about("rise", v, rows, []int{column})
	if after.Cmp(before) < 0 {
		s.what = "fall"
	}

	change := new(big.Rat).Sub(after, before)
	change.Abs(change)

	x, y := v.cellRef(rows[0], column), v.cellRef(rows[1], column)
	by := r.percent(v, column, quotient(change, before), "("+y+" - "+x+") / "+x)
	s.figures = []*figure{by}
	s.bases = []base{{quotient(change, after), "(" + y + " - " + x + ") / " + y}, {quotient(change, after), "(" + x + " - " + y + ") / " + y}}

	if r.chance(50) {
		s.what += " from"
		s.figures = []*figure{r.cell(v, rows[0], column), r.cell(v, rows[1], column), by}
	}

	return s
}

func pairFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 2, column)
	if !some || rows == nil {
		return nil
	}

	s := r.about("pair", v, rows, []int{column})
	s.figures = []*figure{r.cell(v, rows[0], column), r.cell(v, rows[1], column)}

	return s
}

func twoFact(r *random, v *view) *statement {
	columns := v.numeric()
	if len(columns) < 2 {
		return nil
	}

	r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })

	rows := r.rowsOf(v, 1, columns[:2]...)
	if rows == nil {
		return nil
	}

	s := r.about("two", v, rows, columns[:2])
	s.figures = []*figure{r.cell(v, rows[0], columns[0]), r.cell(v, rows[0], columns[1])}

	return s
}

func rankingFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 3, column)
	if !some || rows == nil {
		return nil
	}

	s := r.about("ranking", v, rows, []int{column})
	for _, row := range rows {
		s.figures = append(s.figures, r.cell(v, row, column))
	}

	return s
}

func listFact(r *random, v *view) *statement {
	column, some := pick(r, v.numeric())

	rows := r.rowsOf(v, 3, column)
	if !some || rows == nil {
		return nil
	}

	s := r.about("list", v, rows, []int{column})

	for i, row := range rows {
		s.phrase += "\n" + [...]string{"- ", "* ", strconv.Itoa(i+1) + ". "}[len(v.rows)%3] + "{" + rowSlots[i:i+1] + "}: {" + strconv.Itoa(i) + "}"
		s.figures = append(s.figures, r.cell(v, row, column))
	}

	s.phrase += "\n"

	return s
}

func tableFact(r *random, v *view) *statement {
	columns := v.numeric()[:min(2, len(v.numeric()))]

	rows := r.rowsOf(v, 3, columns...)
	if len(columns) == 0 || rows == nil || !nameable(v.columns[v.key]) {
		return nil
	}

	s := r.about("table", v, rows, columns)
	s.phrase = "\n\n| " + spoken(v.columns[v.key])

	for i := range columns {
		s.phrase += " | {" + columnSlots[i:i+1] + "}"
	}

	s.phrase += " |\n|" + strings.Repeat("---|", len(columns)+1) + "\n"

	for i, row := range rows {
		s.phrase += "| {" + rowSlots[i:i+1] + "}"

		for _, column := range columns {
			s.phrase += " | {" + strconv.Itoa(len(s.figures)) + "}"
			s.figures = append(s.figures, r.cell(v, row, column))
		}

		s.phrase += " |\n"
	}

	return s
}
