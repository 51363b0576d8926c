package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// call is a call of a function that is being translated.
type call struct {
	o    object
	name string
	args []typed
}

// fails returns the fault for a call whose arguments the translation does not contain.
func (c call) fails(instead string) (typed, error) {
	var kinds []string
	for _, a := range c.args {
		kinds = append(kinds, a.kind)
	}

	return typed{}, unlike(c.o, fmt.Sprintf("%s(%s)", c.name, strings.Join(kinds, ", ")), instead)
}

// made returns an expression of the arguments. Each %s in the format stands for the next argument.
func (c call) made(kind, format string) typed {
	texts := make([]any, len(c.args))
	for i, a := range c.args {
		texts[i] = a.sql
	}

	return made(kind, fmt.Sprintf(format, texts...), c.args...)
}

// are reports whether the arguments have these types. The type day stands for dates and timestamps.
func (c call) are(kinds ...string) bool {
	if len(kinds) != len(c.args) {
		return false
	}

	for i, kind := range kinds {
		found := c.args[i].kind
		isDay := kind == "day" && (found == engine.Date || found == engine.Timestamp)

		if found != kind && !isDay {
			return false
		}
	}

	return true
}

// number returns the value of a whole number that the statement gives as a constant or as a parameter.
func (tr *translation) number(o object) (int64, bool) {
	if o["function_name"] == "-" && len(items(o["children"])) == 1 {
		n, ok := wholeNumber(tr.s.valued(items(o["children"])[0]))

		return -n, ok
	}

	return wholeNumber(tr.s.valued(o))
}

// function translates a call of a function or an operator.
func (tr *translation) function(o object, in *scope) (typed, error) {
	name, _ := o["function_name"].(string)
	name = strings.ToLower(name)

	if found, ok, err := tr.interval(o, name); ok || err != nil {
		return found, err
	}

	if translate := aggregateOf(name); translate != nil {
		return tr.aggregate(o, name, in)
	}

	if o["distinct"] == true || o["filter"] != nil || len(items(child(o, "order_bys")["orders"])) > 0 {
		return typed{}, unlike(o, "The aggregate "+name, "Use count, sum, avg, min, max or median.")
	}

	args, err := tr.expressions(items(o["children"]), in)
	if err != nil {
		return typed{}, err
	}

	c := call{o: o, name: name, args: args}

	if o["is_operator"] == true {
		return tr.arithmetic(c)
	}

	for _, group := range []func(call) (typed, bool, error){tr.textFunction, tr.numberFunction, tr.timeFunction, tr.generalFunction} {
		if found, ok, err := group(c); ok {
			return found, err
		}
	}

	return typed{}, unlike(o, fmt.Sprintf("The function %s", name), "See docs/trino.md for the functions that are supported.")
}

// interval translates a constant interval. DuckDB writes INTERVAL 1 DAY as to_days(CAST(trunc(CAST(1 AS DOUBLE)) AS INTEGER)).
func (tr *translation) interval(o object, name string) (typed, bool, error) {
	unit, isUnit := strings.CutPrefix(name, "to_")
	if !isUnit || len(items(o["children"])) != 1 {
		return typed{}, false, nil
	}

	given := items(o["children"])[0]
	for given["class"] == "CAST" || given["function_name"] == "trunc" {
		if given["class"] == "CAST" {
			given = child(given, "child")
		} else if inner := items(given["children"]); len(inner) == 1 {
			given = inner[0]
		} else {
			break
		}
	}

	number, ok := tr.number(given)
	if text, isText := child(given, "value")["value"].(string); isText && !ok {
		parsed, err := strconv.ParseInt(text, 10, 64)
		number, ok = parsed, err == nil
	}

	found, isKnown := intervalIn(number, strings.TrimSuffix(unit, "s"))
	if !isKnown {
		return typed{}, false, nil
	}

	if !ok {
		return typed{}, false, unlike(o, "An interval that is not a constant", "Use date + number to add days.")
	}

	return typed{kind: intervalKind, interval: found, literal: true, constant: true}, true, nil
}

// arithmetic translates an operator.
func (tr *translation) arithmetic(c call) (typed, error) {
	switch c.name {
	case "||":
		return concatenated(c)
	case "~~", "!~~", "~~*", "!~~*":
		return like(c)
	}

	if len(c.args) == 1 && (c.name == "-" || c.name == "+") && isNumeric(c.args[0].kind) {
		v := made(c.args[0].kind, "("+c.name+" "+c.args[0].sql+")", c.args...)
		v.literal = c.args[0].literal

		return v, nil
	}

	if len(c.args) != 2 {
		return c.fails("")
	}

	a, b := c.args[0], c.args[1]

	switch {
	case isNumeric(a.kind) && isNumeric(b.kind):
		return c.numbers(a, b)
	case a.kind == engine.Date || a.kind == engine.Timestamp || b.kind == engine.Date || b.kind == engine.Timestamp:
		return c.moments(a, b)
	default:
		return c.fails("Cast the values to numbers.")
	}
}

// numbers translates arithmetic with numbers. The types of results are those of DuckDB.
func (c call) numbers(a, b typed) (typed, error) {
	switch {
	case c.name == "/":
		return made(engine.Double, "("+cast(a, engine.Double)+" / "+cast(b, engine.Double)+")", a, b), nil
	case !slices.Contains([]string{"+", "-", "*", "//", "%"}, c.name):
		return c.fails("")
	case a.kind == engine.Double || b.kind == engine.Double:
		if c.name == "//" || c.name == "%" {
			return c.fails("")
		}

		return made(engine.Double, "("+cast(a, engine.Double)+" "+c.name+" "+cast(b, engine.Double)+")", a, b), nil
	case isInteger(a.kind) && isInteger(b.kind):
		kind, _ := unified(a.kind, b.kind)
		left, right, operator := cast(a, kind), cast(b, kind), c.name

		if c.name == "//" || c.name == "%" { // by zero: NULL
			right, operator = "nullif("+right+", "+cast(typed{sql: "0", kind: engine.Integer}, kind)+")", strings.Replace(c.name, "//", "/", 1)
			if kind == hugeKind {
				return c.fails("Cast the values to BIGINT.")
			}
		}

		sql := "(" + left + " " + operator + " " + right + ")"
		if kind == hugeKind {
			sql = "CAST" + strings.TrimSuffix(sql, ")") + " AS " + trinoType(kind) + ")"
		}

		return made(kind, sql, a, b), nil
	case c.name == "//" || c.name == "%":
		return c.fails("Cast the values to BIGINT.")
	default:
		kind, ok := c.decimal(a.kind, b.kind)
		if !ok {
			return c.fails("Cast the values to decimals with fewer digits.")
		}

		return made(kind, "CAST("+a.sql+" "+c.name+" "+b.sql+" AS "+kind+")", a, b), nil
	}
}

// maxFast is the precision up to which DuckDB computes with 64 bits. It does not exceed it unless an operand does.
const maxFast = 18

// decimal returns the type of a sum, a difference or a product of decimals.
func (c call) decimal(a, b string) (kind string, ok bool) {
	firstPrecision, firstScale, _ := digitsOf(a)
	secondPrecision, secondScale, _ := digitsOf(b)
	precision, scale := max(firstPrecision-firstScale, secondPrecision-secondScale)+max(firstScale, secondScale)+1, max(firstScale, secondScale)

	if c.name == "*" {
		precision, scale = firstPrecision+secondPrecision, firstScale+secondScale
	}

	if scale > maxDigits {
		return "", false
	}

	if precision > maxFast && max(firstPrecision, secondPrecision) <= maxFast && scale < maxFast {
		precision = maxFast
	}

	return decimalKind(precision, scale), true
}

// moments translates arithmetic with dates and timestamps.
func (c call) moments(a, b typed) (typed, error) {
	if c.name == "+" && (b.kind == engine.Date || b.kind == engine.Timestamp) {
		a, b = b, a
	}

	sign := ""
	if c.name == "-" {
		sign = "-"
	}

	switch {
	case c.name != "+" && c.name != "-":
		return c.fails("")
	case b.kind == intervalKind && (a.kind == engine.Date || a.kind == engine.Timestamp):
		sql := cast(a, engine.Timestamp)

		for _, part := range []struct {
			unit   string
			number int64
		}{{"month", b.interval.months}, {"day", b.interval.days}, {"second", b.interval.microseconds / 1_000_000}} {
			if part.number != 0 {
				sql = fmt.Sprintf("date_add('%s', %s(%d), %s)", part.unit, sign, part.number, sql)
			}
		}

		return made(engine.Timestamp, sql, a, b), nil
	case a.kind == engine.Date && (b.kind == engine.Bigint || b.kind == engine.Integer):
		if b.kind == engine.Bigint {
			return c.fails("Cast the number to INTEGER.")
		}

		return made(engine.Date, fmt.Sprintf("date_add('day', %s(%s), %s)", sign, b.sql, a.sql), a, b), nil
	case c.name == "-" && a.kind == engine.Date && b.kind == engine.Date:
		return made(engine.Bigint, "date_diff('day', "+b.sql+", "+a.sql+")", a, b), nil
	default:
		return c.fails("Use date_diff('day', from, to).")
	}
}

// castOf translates a cast.
func (tr *translation) castOf(o object, in *scope) (typed, error) {
	to, err := castType(o)
	if err != nil {
		return typed{}, err
	}

	v, err := tr.expression(child(o, "child"), in)
	if err != nil {
		return typed{}, err
	}

	if v.text != nil {
		if found, ok := literalOf(*v.text, to); ok && v.literal {
			return found, nil
		}

		v = asLiteral(v, to)
	}

	if v.kind == to {
		v.text = nil

		return v, nil
	}

	name := "CAST"
	if o["try_cast"] == true {
		name = "TRY_CAST"
	}

	sql := name + "(" + v.sql + " AS " + trinoType(to) + ")"

	switch from := v.kind; {
	case from == nullKind:
	case to == engine.Varchar && from == engine.Timestamp: // without zeros at the end
		sql = "regexp_replace(CAST(" + v.sql + " AS varchar), '\\.?0+$', '')"
		sql = "CASE WHEN CAST(" + v.sql + " AS varchar) LIKE '%.%' THEN " + sql + " ELSE CAST(" + v.sql + " AS varchar) END"
	case to == engine.Varchar && (isExact(from) || slices.Contains([]string{engine.Boolean, engine.Date, engine.JSON}, from)):
	case isInteger(to) && (isExact(from) || from == engine.Boolean && to != hugeKind || from == engine.Double && v.whole):
	case isExact(to) && isExact(from), to == engine.Double && isExact(from):
	case to == engine.Date && from == engine.Timestamp, to == engine.Timestamp && from == engine.Date:
	case to == engine.Time && from == engine.Timestamp:
	default:
		instead := ""
		if from == engine.Double {
			instead = "Round the number first: CAST(round(x) AS BIGINT)."
		}

		return typed{}, unlike(o, fmt.Sprintf("A cast from %s to %s", from, to), instead)
	}

	return made(to, sql, v), nil
}

// castType returns the type of a cast.
func castType(o object) (string, error) {
	given := child(o, "cast_type")
	name, _ := given["id"].(string)
	info := child(given, "type_info")

	switch kind := strings.ToLower(name); {
	case kind == engine.Decimal && info != nil:
		return fmt.Sprintf("decimal(%v,%v)", info["width"], info["scale"]), nil
	case info == nil && slices.Contains([]string{engine.Boolean, engine.Integer, engine.Bigint, hugeKind, engine.Double, engine.Varchar, engine.Date, engine.Timestamp, engine.Time, intervalKind}, kind):
		return kind, nil
	default:
		return "", unlike(o, "A cast to "+name, "")
	}
}
