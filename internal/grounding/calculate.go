package grounding

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ref is a reference to a cell. It is a whole column if row is -1, and all rows of a step if column is -1 too.
type ref struct{ t, row, column int }

// result is the result of a marker or of the search for a figure without a marker.
type result struct {
	reason      string // why the marker is not valid; empty if it is
	value       *big.Rat
	single      *cell // the cell, if the result is a single cell
	node        *node
	cells       []ref // cells that are referenced one by one, and the cells with the maximum or minimum
	wholes      []ref
	calculation string
	data        *rowData
}

// node is a node of a calculation.
type node struct {
	op    string // + - * /, sum avg min max count, "ref", "rows", "number"
	left  *node
	right *node
	ref   ref
	value *big.Rat
}

func (r result) sources() []Source {
	var list []Source

	for _, at := range slices.Concat(r.cells, r.wholes) {
		t := r.data.tables[at.t]
		source := Source{Step: t.index}

		if at.row >= 0 {
			row := int64(at.row)
			source.Row = &row
		}

		if at.column >= 0 {
			source.Column = t.columns[at.column].name
		}

		same := func(s Source) bool {
			return s.Step == source.Step && s.Column == source.Column && (s.Row == nil) == (source.Row == nil) && (s.Row == nil || *s.Row == *source.Row)
		}
		if !slices.ContainsFunc(list, same) && len(list) < maxSources {
			list = append(list, source)
		}
	}

	return list
}

const (
	maxDepth   = 30
	maxSources = 50
)

// evaluate parses the text of a marker and calculates its value.
func (d *rowData) evaluate(body string) result {
	p := &reader{data: d, rest: strings.TrimSpace(body)}

	calculation, calculated := strings.CutPrefix(p.rest, "=")
	if calculated {
		p.rest = strings.TrimSpace(calculation)
		p.result.calculation = p.rest
	}

	p.result.data = d
	n := p.sum(0)

	if p.space(); p.failed == "" && p.rest != "" {
		p.failf("the marker [[%s]] cannot be read at %q", body, p.rest)
	}

	if n != nil && n.op == "number" {
		p.failf("the marker [[%s]] does not name a cell", body)
	}

	if n != nil && n.value == nil && n.ref.row < 0 {
		p.failf("the marker [[%s]] is a whole column: name a row, or calculate with sum, avg, min, max or count", body)
	}

	if p.failed != "" {
		return result{reason: p.failed, calculation: p.result.calculation, data: d}
	}

	r := p.result
	r.node, r.value = n, n.value

	if n.op == "ref" && n.ref.row >= 0 {
		r.single = &d.tables[n.ref.t].rows[n.ref.row][n.ref.column]
	}

	return r
}

// reader parses and evaluates a calculation.
type reader struct {
	data   *rowData
	rest   string
	failed string
	result result
}

func (p *reader) failf(format string, values ...any) {
	if p.failed == "" {
		p.failed = fmt.Sprintf(format, values...)
	}
}

func (p *reader) space() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

// operator consumes one of the operators if it is next, and returns it.
func (p *reader) operator(operators map[string]string) string {
	p.space()

	for text, op := range operators {
		if after, found := strings.CutPrefix(p.rest, text); found {
			p.rest = after

			return op
		}
	}

	return ""
}

func (p *reader) sum(depth int) *node {
	left := p.product(depth)

	for p.failed == "" {
		op := p.operator(map[string]string{"+": "+", "-": "-", "−": "-", "–": "-"})
		if op == "" {
			break
		}

		left = p.combine(op, left, p.product(depth))
	}

	return left
}

func (p *reader) product(depth int) *node {
	left := p.term(depth)

	for p.failed == "" {
		op := p.operator(map[string]string{"*": "*", "×": "*", "·": "*", "/": "/", "÷": "/"})
		if op == "" {
			break
		}

		left = p.combine(op, left, p.term(depth))
	}

	return left
}

func (p *reader) combine(op string, left, right *node) *node {
	if p.failed != "" {
		return nil
	}

	for _, side := range []*node{left, right} {
		if side.value == nil {
			p.failf("%s cannot be used in a calculation", p.data.describe(side.ref))

			return nil
		}
	}

	n := &node{op: op, left: left, right: right, value: new(big.Rat)}

	switch op {
	case "+":
		n.value.Add(left.value, right.value)
	case "-":
		n.value.Sub(left.value, right.value)
	case "*":
		n.value.Mul(left.value, right.value)
	case "/":
		if right.value.Sign() == 0 {
			p.failf("the calculation divides by zero")

			return nil
		}

		n.value.Quo(left.value, right.value)
	}

	return n
}

// term parses a number, a reference, a call or an expression in parentheses.
func (p *reader) term(depth int) *node {
	p.space()

	if depth > maxDepth {
		p.failf("the calculation is too deep")

		return nil
	}

	if after, found := strings.CutPrefix(p.rest, "("); found {
		p.rest = after
		inner := p.sum(depth + 1)

		if p.operator(map[string]string{")": ")"}) == "" {
			p.failf("a parenthesis is not closed")
		}

		return inner
	}

	for _, call := range []string{"sum", "avg", "min", "max", "count"} {
		if after, found := cutFold(p.rest, call); found && strings.HasPrefix(strings.TrimSpace(after), "(") {
			p.rest = strings.TrimSpace(after)[1:]

			return p.call(call, depth+1)
		}
	}

	digits := 0
	for digits < len(p.rest) && isDigit(p.rest[digits]) {
		digits++
	}

	if digits > 0 && digits < 10 && strings.HasPrefix(p.rest[digits:], ":") {
		return p.ref()
	}

	return p.constant(digits)
}

func cutFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}

	return text[len(prefix):], true
}

// constant parses a conversion factor, such as 100 for percent or 12 for the months of a year. Other numbers are
// refused: they would permit a writer to calculate any value.
func (p *reader) constant(digits int) *node {
	text := p.rest[:digits]
	if !slices.Contains([]string{"1", "2", "4", "7", "10", "12", "24", "30", "52", "60", "100", "365", "1000", "10000", "100000", "1000000", "1000000000"}, text) {
		p.failf("the calculation has %.40q, which is neither a cell nor a number of units", p.rest)

		return nil
	}

	p.rest = p.rest[digits:]
	value, _ := new(big.Rat).SetString(text)

	return &node{op: "number", value: value}
}

// ref parses step:row:column, step:*:column or step:count.
func (p *reader) ref() *node {
	step, after, _ := strings.Cut(p.rest, ":")
	index, err := strconv.Atoi(step)

	t, known := p.data.byIndex[index]
	if err != nil || !known {
		p.failf("there is no step %s", step)

		return nil
	}

	if rest, found := cutFold(after, "count"); found && !strings.HasPrefix(rest, ":") {
		p.rest = rest
		p.result.wholes = append(p.result.wholes, ref{t, -1, -1})

		return &node{op: "rows", ref: ref{t, -1, -1}, value: new(big.Rat).SetInt64(p.data.tables[t].count)}
	}

	row, after, found := strings.Cut(after, ":")
	number, err := strconv.Atoi(strings.TrimSpace(row))

	switch rows := len(p.data.tables[t].rows); {
	case !found:
		p.failf("%.40q does not name a column: write step:row:column", p.rest)
	case strings.TrimSpace(row) == "*":
		number = -1
	case err != nil || number < 0:
		p.failf("%.20q is not a row: rows are numbered from 0", row)
	case number >= rows:
		p.failf("step %d has no row %d: it has %d rows, numbered from 0", index, number, rows)
	}

	if p.failed != "" {
		return nil
	}

	p.rest = after

	c := p.column(t)
	if p.failed != "" {
		return nil
	}

	n := &node{op: "ref", ref: ref{t, number, c}}
	if number >= 0 {
		p.result.cells = append(p.result.cells, n.ref)
		one := p.data.tables[t].rows[number][c]
		n.value = one.number

		if one.null {
			p.failf("%s is empty", p.data.describe(n.ref))
		}
	}

	return n
}

// column parses the name of a column: a quoted name, or the longest name that fits.
func (p *reader) column(t int) int {
	p.space()

	columns := p.data.tables[t].columns

	if strings.HasPrefix(p.rest, `"`) {
		quoted, err := strconv.QuotedPrefix(p.rest)
		if err == nil {
			p.rest = p.rest[len(quoted):]
			quoted, err = strconv.Unquote(quoted)
		}

		at := slices.IndexFunc(columns, func(c column) bool { return c.name == quoted })
		if err != nil || at < 0 {
			p.failf("step %d has no column %.60q", p.data.tables[t].index, quoted)
		}

		return at
	}

	best, length := -1, 0

	for i, c := range columns {
		after, fits := cutFold(p.rest, c.name)
		next, _ := utf8.DecodeRuneInString(after)

		if fits && c.name != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next) && next != '_' {
			exact := strings.HasPrefix(p.rest, c.name)
			if len(c.name) > length || (len(c.name) == length && exact) {
				best, length = i, len(c.name)
			}
		}
	}

	if best < 0 {
		p.failf("step %d has no column %.60q", p.data.tables[t].index, p.rest)

		return -1
	}

	p.rest = p.rest[length:]

	return best
}

// call parses the arguments of a function: one whole column, or cells.
func (p *reader) call(name string, depth int) *node {
	var values []*node

	for p.failed == "" {
		values = append(values, p.sum(depth))

		end := p.operator(map[string]string{",": ",", ";": ",", ")": ")"})
		if end == ")" {
			break
		}

		if end == "" {
			p.failf("a parenthesis is not closed")
		}
	}

	if p.failed != "" {
		return nil
	}

	n := &node{op: name, left: values[0]}

	if first := values[0]; len(values) == 1 && first.op == "ref" && first.ref.row < 0 {
		n.ref = first.ref
		n.value = p.whole(name, first.ref)

		return n
	}

	var numbers []*big.Rat

	for _, v := range values {
		if v.value == nil {
			p.failf("%s must be given one column or cells that are numbers", name)

			return nil
		}

		numbers = append(numbers, v.value)
	}

	n.value = aggregate(name, numbers)

	return n
}

// describe returns the position of a reference as text.
func (d *rowData) describe(at ref) string {
	switch {
	case at.column < 0:
		return fmt.Sprintf("step %d", d.tables[at.t].index)
	case at.row < 0:
		return fmt.Sprintf("column %s of step %d", d.tables[at.t].columns[at.column].name, d.tables[at.t].index)
	}

	return fmt.Sprintf("%d:%d:%s", d.tables[at.t].index, at.row, d.tables[at.t].columns[at.column].name)
}
