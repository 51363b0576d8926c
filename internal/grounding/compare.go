package grounding

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
)

// holds returns the reason why a figure does not agree with its marker, or "".
func (c *checker) holds(f *figure, r result) string {
	if r.reason != "" {
		return r.reason
	}

	value, reason := c.compare(f, r)
	if reason != "" {
		return reason
	}

	if reason := c.wrongRow(f, r); reason != "" {
		return reason
	}

	if reason := c.wrongColumn(f, r); reason != "" {
		return reason
	}

	return c.wrongBase(f, r, value)
}

func (c *checker) equals(f *figure, r result) bool {
	_, reason := c.compare(f, r)

	return r.reason == "" && reason == ""
}

// compare compares a figure and its unit with a result. It returns the matching value, or a reason.
func (c *checker) compare(f *figure, r result) (*big.Rat, string) {
	text := c.text[f.from:f.to]

	if r.reason != "" {
		return nil, r.reason
	}

	if r.value == nil {
		if r.single != nil && saysSame(f, text, r.single) {
			return nil, ""
		}

		return nil, fmt.Sprintf("the answer says %s, but %s is %s", text, c.data.describe(r.cells[0]), short(r.single.text))
	}

	if f.form != formNumber {
		inner := scan(f.inner)
		if len(inner) != 1 || inner[0].form != formNumber {
			return nil, fmt.Sprintf("the answer says %s, but the marker behind it is the number %s", text, show(r.value))
		}

		inner[0].from, inner[0].to = f.from, f.to
		f = inner[0]
	}

	values, reason := c.inUnit(f, r)
	if reason != "" {
		return nil, reason
	}

	for _, value := range values {
		if c.matches(f, value, r) {
			return value, ""
		}
	}

	shown := show(values[0])
	if f.percent {
		shown += " %"
	}

	return nil, fmt.Sprintf("the answer says %s, but what it cites is %s: correct the figure or the marker", text, shown)
}

// saysSame reports whether a figure matches a cell whose type is not a number, such as a text or a date.
func saysSame(f *figure, text string, one *cell) bool {
	switch f.form {
	case formDay:
		if one.day.year != 0 {
			return slices.ContainsFunc(f.days, func(d day) bool { return d.matches(one.day) })
		}

		return slices.ContainsFunc(scanDays(one.text), func(in *figure) bool { return sameFigure(f, in) }) || one.key == keyOf(text)
	case formClock:
		return strings.Contains(one.text, text)
	case formNumber:
		return slices.ContainsFunc(scan(one.text), func(in *figure) bool { return sameFigure(f, in) })
	case formRelation:
		return false
	case formQuote, formName:
		key := keyOf(f.inner)

		return key == one.key || f.inner == one.text || (len(key) >= 8 && strings.Contains(" "+one.key+" ", " "+key+" ")) ||
			(one.day.year != 0 && slices.ContainsFunc(scanDays(f.inner), func(in *figure) bool { return saysSame(in, f.inner, one) }))
	}

	return false
}

// show formats a value for a reason.
func show(value *big.Rat) string {
	if value.IsInt() {
		return short(value.Num().String())
	}

	return short(strings.TrimRight(value.FloatString(6), "0"))
}

func short(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}

	return text
}

// matches reports whether a number shows a value: rounded to the digits shown, with the same sign. A missing minus sign
// is accepted if the words express a decrease, or if the calculation is a difference and no word expresses an increase.
func (c *checker) matches(f *figure, value *big.Rat, r result) bool {
	if f.sign == 0 && value.Sign() < 0 {
		says := c.saysAround(f)
		up, down := says&lexicon.Rises != 0, says&lexicon.Falls != 0

		if !down && (up || r.calculation == "" || !r.node.subtracts()) {
			return false
		}

		value = new(big.Rat).Neg(value)
	}

	for _, one := range f.values {
		shown := one.value
		if f.sign < 0 {
			shown = new(big.Rat).Neg(shown)
		}

		if one.fits(shown, value, f.near) {
			return true
		}
	}

	return false
}

func (r numberValue) fits(shown, value *big.Rat, near lexicon.Nearness) bool {
	off := new(big.Rat).Sub(value, shown)
	size := new(big.Rat).Abs(off)
	twice := new(big.Rat).Add(size, size)

	switch {
	case twice.Cmp(r.ulp) <= 0:
		return true
	case r.loose == nil:
		return false
	case near == lexicon.Over:
		return off.Sign() > 0 && size.Cmp(r.loose) < 0
	case near == lexicon.Under:
		return off.Sign() < 0 && size.Cmp(r.loose) < 0
	}

	return twice.Cmp(r.loose) <= 0
}

func (c *checker) saysAround(f *figure) lexicon.Topic {
	if len(c.sentences) == 0 {
		return 0
	}

	return c.sentences[c.sentenceAt(f.from)].says
}

// subtracts reports whether a calculation is a difference, whose sign depends on the order of its operands.
func (n *node) subtracts() bool {
	return n != nil && (n.op == "-" || ((n.op == "*" || n.op == "/") && (n.left.subtracts() || n.right.subtracts())))
}

// isPart reports whether a calculation divides by data.
func (n *node) isPart() bool {
	switch {
	case n == nil:
		return false
	case n.op == "/":
		return n.right.op != "number" || n.left.isPart()
	case n.op == "+" || n.op == "-" || n.op == "*":
		return n.left.isPart() || n.right.isPart()
	}

	return false
}

func (n *node) timesHundred() bool {
	if n == nil {
		return false
	}

	hundred := func(n *node) bool { return n != nil && n.op == "number" && n.value.Cmp(power(2)) == 0 }

	return (n.op == "*" && (hundred(n.left) || hundred(n.right))) || ((n.op == "-" || n.op == "/" || n.op == "+" || n.op == "*") && (n.left.timesHundred() || n.right.timesHundred()))
}

// first returns the first column of a calculation.
func (n *node) first() (ref, bool) {
	if n == nil {
		return ref{}, false
	}

	if n.ref.column >= 0 && (n.op == "ref" || (n.right == nil && n.op != "number" && n.op != "rows")) {
		return n.ref, true
	}

	if at, found := n.left.first(); found {
		return at, true
	}

	return n.right.first()
}

// inUnit returns the values of a result that a figure with its unit may show, or a reason why the unit is wrong.
func (c *checker) inUnit(f *figure, r result) ([]*big.Rat, string) {
	hundred := new(big.Rat).Mul(r.value, power(2))
	text := c.text[f.from:f.to]

	at, known := r.node.first()
	if !known {
		if f.unit != "" && (!f.percent || !r.node.isPart()) {
			return nil, fmt.Sprintf("%s is a number of rows and has no unit, but the answer says %s", c.data.describe(ref{at.t, -1, -1}), text)
		}

		at.column = -1
	}

	part := r.node.isPart()
	col := column{}

	if known {
		col = c.data.tables[at.t].columns[at.column]
	}

	switch {
	case f.percent && part && r.node.timesHundred():
		return []*big.Rat{r.value}, ""
	case f.percent && part:
		return []*big.Rat{hundred}, ""
	case f.percent && col.percent && !lexicon.IsMoney(col.unit):
		if col.small {
			return []*big.Rat{hundred, r.value}, ""
		}

		return []*big.Rat{r.value}, ""
	case f.percent && col.small && col.unit == "":
		return []*big.Rat{hundred}, ""
	case f.percent:
		return nil, fmt.Sprintf("the answer says %s, but %s is not a percentage", text, col.name)
	case f.unit == "":
		return []*big.Rat{r.value}, ""
	case part && c.sameWhole(r.node):
		return nil, fmt.Sprintf("the answer says %s, but what it cites is a part of a whole and can only have the unit percent", text)
	}

	return c.measured(f, r, col)
}

// sameWhole reports whether a calculation divides a column by the same column.
func (c *checker) sameWhole(n *node) bool {
	if n.op != "/" {
		return n.left != nil && c.sameWhole(n.left)
	}

	over, one := n.left.first()
	under, other := n.right.first()

	return one && other && over.t == under.t && over.column == under.column
}

// measured compares the unit of a figure with the unit of its column. It returns the value in the unit of the figure,
// or a reason.
func (c *checker) measured(f *figure, r result, col column) ([]*big.Rat, string) {
	unit := col.unit
	if lexicon.IsMoney(f.unit) && unit == "" && len(r.cells) > 0 {
		unit = c.currencyOf(r.cells[0])
	}

	kindOf, exponent := lexicon.Quantity(unit)
	shownKind, shownExponent := lexicon.Quantity(f.unit)

	switch {
	case unit != "" && kindOf == shownKind:
		return []*big.Rat{new(big.Rat).Mul(r.value, power(exponent-shownExponent))}, ""
	case unit != "":
		return nil, fmt.Sprintf("the answer says %s, but %s is in %s", c.text[f.from:f.to], col.name, unit)
	case lexicon.IsMoney(f.unit) && (col.money || strings.Contains(c.question, " "+f.unit+" ") || slices.ContainsFunc(strings.Fields(c.question), func(w string) bool { return lexicon.Unit(w) == f.unit })):
	case lexicon.IsMoney(f.unit), col.percent:
		return nil, fmt.Sprintf("nothing says that %s is in %s: leave the unit out", col.name, f.unit)
	}

	return []*big.Rat{r.value}, ""
}

// currencyOf returns the currency that another cell of the row contains, or "".
func (c *checker) currencyOf(at ref) string {
	if at.row < 0 {
		return ""
	}

	for _, one := range c.data.tables[at.t].rows[at.row] {
		if unit := lexicon.Unit(strings.ToLower(one.text)); lexicon.IsMoney(unit) {
			return unit
		}
	}

	return ""
}
