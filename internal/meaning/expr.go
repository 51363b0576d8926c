package meaning

import (
	"fmt"
	"strings"
	"unicode"
)

// MaxExpression is how many characters a person may write. Parse does not check it, because stored expressions name
// datasets by ids, which are longer.
const MaxExpression = 1000

const maxNesting = 50 // open parentheses and signs at one place

// Op is what a node of an expression is.
type Op string

// The nodes.
const (
	ColumnOp Op = "column"
	NumberOp Op = "number"
	Plus     Op = "+"
	Minus    Op = "-" // of one argument it is the sign
	Times    Op = "*"
	Over     Op = "/"
)

// Expr is an expression of columns and numbers, as a tree.
type Expr struct {
	Op     Op
	Args   []Expr // two of a calculation, one of a sign
	Column Ref    // of ColumnOp
	Number string // of NumberOp, as written: digits, at most one point
}

// Ref names a column of the dataset or, with Dataset, of one that it is joined with.
type Ref struct{ Dataset, Column string }

// ExprError says what is wrong with an expression, and where.
type ExprError struct {
	At      int // character, from 1
	Message string
}

func (e *ExprError) Error() string { return fmt.Sprintf("%s, at character %d", e.Message, e.At) }

// Parse reads an expression: columns, numbers, + - * / and parentheses. A name of other characters than letters,
// digits and underscores stands in double quotes, and a quote inside of it is doubled.
func Parse(text string) (Expr, error) {
	p := &parser{text: []rune(text)}

	parsed, err := p.sum()
	if err != nil {
		return Expr{}, err
	}

	if p.skip(); p.at < len(p.text) {
		return Expr{}, p.unexpected("an operator")
	}

	return parsed, nil
}

type parser struct {
	text  []rune
	at    int
	depth int
}

func (p *parser) skip() {
	for p.at < len(p.text) && unicode.IsSpace(p.text[p.at]) {
		p.at++
	}
}

// take consumes the next character if it is one of the given ones.
func (p *parser) take(characters string) (rune, bool) {
	if p.skip(); p.at < len(p.text) && strings.ContainsRune(characters, p.text[p.at]) {
		p.at++

		return p.text[p.at-1], true
	}

	return 0, false
}

func (p *parser) fail(message string) error { return &ExprError{p.at + 1, message} }

func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.text) {
		return p.fail("the expression ends where " + wanted + " is expected")
	}

	return p.fail(fmt.Sprintf("%q stands where %s is expected", p.text[p.at], wanted))
}

func (p *parser) sum() (Expr, error) { return p.chain("+-", p.product) }

func (p *parser) product() (Expr, error) { return p.chain("*/", p.factor) }

// chain reads operands that are joined by operators of one rank, from left to right.
func (p *parser) chain(operators string, operand func() (Expr, error)) (Expr, error) {
	left, err := operand()

	for err == nil {
		op, more := p.take(operators)
		if !more {
			return left, nil
		}

		var right Expr
		if right, err = operand(); err == nil {
			left = Expr{Op: Op(op), Args: []Expr{left, right}}
		}
	}

	return Expr{}, err
}

func (p *parser) factor() (Expr, error) {
	if p.depth++; p.depth > maxNesting {
		return Expr{}, p.fail(fmt.Sprintf("the expression is nested deeper than %d levels", maxNesting))
	}
	defer func() { p.depth-- }()

	if _, sign := p.take("-"); sign {
		inner, err := p.factor()

		return Expr{Op: Minus, Args: []Expr{inner}}, err
	}

	if _, open := p.take("("); open {
		inner, err := p.sum()
		if err != nil {
			return Expr{}, err
		}

		if _, closed := p.take(")"); !closed {
			return Expr{}, p.unexpected("an operator or a closing parenthesis")
		}

		return inner, nil
	}

	if p.skip(); p.at < len(p.text) && (isDigit(p.text[p.at]) || p.text[p.at] == '.') {
		return p.number()
	}

	return p.column()
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isNamed(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

func (p *parser) number() (Expr, error) {
	from, points, digits := p.at, 0, 0

	for ; p.at < len(p.text) && (isDigit(p.text[p.at]) || p.text[p.at] == '.'); p.at++ {
		if p.text[p.at] == '.' {
			points++
		} else {
			digits++
		}
	}

	if points > 1 || digits == 0 || p.at < len(p.text) && isNamed(p.text[p.at]) {
		return Expr{}, &ExprError{from + 1, "a number has digits and at most one point; a name that begins with a digit stands in double quotes"}
	}

	return Expr{Op: NumberOp, Number: string(p.text[from:p.at])}, nil
}

// column reads a name, or two that a point separates.
func (p *parser) column() (Expr, error) {
	name, err := p.name()
	if err != nil {
		return Expr{}, err
	}

	if _, more := p.take("."); !more {
		return Expr{Op: ColumnOp, Column: Ref{Column: name}}, nil
	}

	p.skip()

	column, err := p.name()

	return Expr{Op: ColumnOp, Column: Ref{name, column}}, err
}

func (p *parser) name() (string, error) {
	if p.at < len(p.text) && p.text[p.at] == '"' {
		return p.quoted()
	}

	from := p.at
	for p.at < len(p.text) && isNamed(p.text[p.at]) {
		p.at++
	}

	if from == p.at || !isPlain(string(p.text[from:p.at])) {
		p.at = from

		return "", p.unexpected("a column, a number or a parenthesis")
	}

	return string(p.text[from:p.at]), nil
}

func (p *parser) quoted() (string, error) {
	var name strings.Builder

	from := p.at

	for p.at++; p.at < len(p.text); p.at++ {
		if p.text[p.at] != '"' {
			name.WriteRune(p.text[p.at])

			continue
		}

		if p.at++; p.at < len(p.text) && p.text[p.at] == '"' {
			name.WriteRune('"')

			continue
		}

		if name.Len() == 0 {
			return "", &ExprError{from + 1, "the name in quotes is empty"}
		}

		return name.String(), nil
	}

	return "", &ExprError{from + 1, "the closing quote is missing"}
}

// isPlain reports whether a name needs no quotes.
func isPlain(name string) bool {
	for i, r := range name {
		if !isNamed(r) || i == 0 && !unicode.IsLetter(r) && r != '_' {
			return false
		}
	}

	return name != ""
}

func quote(name string) string {
	if isPlain(name) {
		return name
	}

	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

func (r Ref) String() string {
	if r.Dataset == "" {
		return quote(r.Column)
	}

	return quote(r.Dataset) + "." + quote(r.Column)
}

// String returns the expression as text that Parse reads as the same tree.
func (e Expr) String() string {
	switch {
	case e.Op == ColumnOp:
		return e.Column.String()
	case e.Op == NumberOp:
		return e.Number
	case len(e.Args) == 1:
		return "-" + e.Args[0].within(e.rank(), true)
	case len(e.Args) == 2:
		return e.Args[0].within(e.rank(), false) + " " + string(e.Op) + " " + e.Args[1].within(e.rank(), true)
	default:
		return ""
	}
}

// within returns the expression as an operand, in parentheses if it would be read differently without them.
func (e Expr) within(rank int, right bool) string {
	if own := e.rank(); own < rank || right && own == rank && len(e.Args) == 2 {
		return "(" + e.String() + ")"
	}

	return e.String()
}

// The ranks of operators: a higher one binds tighter.
const (
	rankSum = iota + 1
	rankProduct
	rankSign
	rankLeaf
)

func (e Expr) rank() int {
	switch {
	case len(e.Args) == 0:
		return rankLeaf
	case len(e.Args) == 1:
		return rankSign
	case e.Op == Plus || e.Op == Minus:
		return rankSum
	default:
		return rankProduct
	}
}

// Refs returns the columns that the expression names, in order, each as often as it occurs.
func (e Expr) Refs() []Ref {
	if e.Op == ColumnOp {
		return []Ref{e.Column}
	}

	var found []Ref
	for _, arg := range e.Args {
		found = append(found, arg.Refs()...)
	}

	return found
}

// Replace returns the expression with other names for its columns. It returns false if replace does for one of them.
func (e Expr) Replace(replace func(Ref) (Ref, bool)) (Expr, bool) {
	if e.Op == ColumnOp {
		to, ok := replace(e.Column)
		e.Column = to

		return e, ok
	}

	args := make([]Expr, len(e.Args))

	for i, arg := range e.Args {
		replaced, ok := arg.Replace(replace)
		if !ok {
			return Expr{}, false
		}

		args[i] = replaced
	}

	if len(args) > 0 {
		e.Args = args
	}

	return e, true
}
