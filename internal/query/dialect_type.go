package query

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/engine"
)

// The types that only results and parts of expressions have.
const (
	nullKind     = "null"
	hugeKind     = "hugeint"
	intervalKind = "interval"
)

// typed is a translated expression.
type typed struct {
	sql  string
	kind string // its type in DuckDB

	text      *string // of a VARCHAR constant or parameter
	literal   bool    // a constant that is written as one
	constant  bool    // contains no column
	aggregate bool    // contains an aggregate
	whole     bool    // a double without a fraction
	interval  interval
}

// interval is a constant length of time.
type interval struct {
	months, days, microseconds int64
}

// made returns an expression that is made of others.
func made(kind, sql string, of ...typed) typed {
	v := typed{sql: sql, kind: kind, constant: true}

	for _, one := range of {
		v.constant = v.constant && one.constant
		v.aggregate = v.aggregate || one.aggregate
	}

	return v
}

func isInteger(kind string) bool {
	return kind == engine.Integer || kind == engine.Bigint || kind == hugeKind
}

// digitsOf returns precision and scale of a whole or decimal number.
func digitsOf(kind string) (precision, scale int, ok bool) {
	switch kind {
	case engine.Integer:
		return 10, 0, true
	case engine.Bigint:
		return 19, 0, true
	case hugeKind:
		return maxDigits, 0, true
	default:
		return decimalOf(kind)
	}
}

func isExact(kind string) bool {
	_, _, ok := digitsOf(kind)

	return ok
}

func isNumeric(kind string) bool { return kind == engine.Double || isExact(kind) }

// compares reports whether values of a type are compared in the same way by both engines.
func compares(kind string) bool {
	return isNumeric(kind) || slices.Contains([]string{engine.Boolean, engine.Varchar, engine.Date, engine.Timestamp, engine.Time}, kind)
}

func decimalKind(precision, scale int) string {
	return fmt.Sprintf("decimal(%d,%d)", min(precision, maxDigits), scale)
}

// trinoType returns the name of a type in Trino.
func trinoType(kind string) string {
	switch kind {
	case hugeKind:
		return decimalKind(maxDigits, 0)
	case engine.Timestamp, engine.Time:
		return kind + "(6)"
	case engine.JSON, nullKind:
		return "varchar"
	default:
		return kind
	}
}

// cast returns an expression of another type.
func cast(v typed, kind string) string {
	if v.kind == kind {
		return v.sql
	}

	return "CAST(" + v.sql + " AS " + trinoType(kind) + ")"
}

// unified returns the type that contains the values of two types.
func unified(a, b string) (kind string, ok bool) {
	switch {
	case a == b || b == nullKind:
		return a, true
	case a == nullKind:
		return b, true
	case isInteger(a) && isInteger(b):
		order := []string{engine.Integer, engine.Bigint, hugeKind}

		return order[max(slices.Index(order, a), slices.Index(order, b))], true
	case isExact(a) && isExact(b):
		firstPrecision, firstScale, _ := digitsOf(a)
		secondPrecision, secondScale, _ := digitsOf(b)
		scale := max(firstScale, secondScale)

		return decimalKind(max(firstPrecision-firstScale, secondPrecision-secondScale)+scale, scale), true
	case isNumeric(a) && isNumeric(b):
		return engine.Double, true
	case a == engine.Date && b == engine.Timestamp || a == engine.Timestamp && b == engine.Date:
		return engine.Timestamp, true
	default:
		return "", false
	}
}

// unify returns the type of several expressions, and their texts cast to it.
func unify(o object, what string, values []typed) (kind string, texts []string, err error) {
	kind = nullKind

	for i := range values {
		for _, other := range values {
			values[i] = asLiteral(values[i], other.kind)
		}

		next, ok := unified(kind, values[i].kind)
		if !ok {
			return "", nil, unlike(o, fmt.Sprintf("%s with the types %s and %s", what, kind, values[i].kind), "Cast the values to one type.")
		}

		kind = next
	}

	for _, v := range values {
		texts = append(texts, cast(v, kind))
	}

	return kind, texts, nil
}

var (
	dateText      = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	timestampText = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$`)
	integerText   = regexp.MustCompile(`^-?[0-9]{1,18}$`)
)

// asLiteral returns a text constant as a value of the type with which it is compared. Other values, and texts whose form is not the usual
// one, are returned unchanged.
func asLiteral(v typed, kind string) typed {
	if v.text == nil || v.kind != engine.Varchar {
		return v
	}

	changed, ok := literalOf(*v.text, kind)
	if !ok {
		return v
	}

	if !v.literal { // a parameter stays one
		changed.sql, changed.literal = "CAST("+v.sql+" AS "+trinoType(kind)+")", false
	}

	return changed
}

// literalOf returns the value of a text that is cast to a type.
func literalOf(text, kind string) (v typed, ok bool) {
	v = typed{kind: kind, literal: true, constant: true}

	switch kind {
	case engine.Date:
		_, err := time.Parse(time.DateOnly, text)
		v.sql, ok = "DATE "+literal(text), err == nil && dateText.MatchString(text)
	case engine.Timestamp:
		text = strings.Replace(text, "T", " ", 1)
		if dateText.MatchString(text) {
			text += " 00:00:00"
		} else if strings.Count(text, ":") == 1 {
			text += ":00"
		}

		_, err := time.Parse("2006-01-02 15:04:05.999999", text)
		v.sql, ok = "CAST(TIMESTAMP "+literal(text)+" AS timestamp(6))", err == nil && timestampText.MatchString(text)
	case engine.Time:
		_, err := time.Parse("15:04:05", text)
		v.sql, ok = "CAST(TIME "+literal(text)+" AS time(6))", err == nil
	case engine.Bigint:
		v.sql, ok = "BIGINT "+literal(text), integerText.MatchString(text)
	case engine.Boolean:
		folded := strings.ToLower(text)
		v.sql, ok = "true", folded == "t" || folded == "true"

		if folded == "f" || folded == "false" {
			v.sql, ok = "false", true
		}
	case intervalKind:
		v.interval, ok = intervalOf(text)
	}

	return v, ok
}

// literal returns a text as a constant. In Trino only a quote ends it: a backslash has no meaning.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

var intervalText = regexp.MustCompile(`^\s*(-?[0-9]{1,6})\s+([a-zA-Z]+)\s*$`)

// intervalOf returns an interval of one unit.
func intervalOf(text string) (of interval, ok bool) {
	found := intervalText.FindStringSubmatch(text)
	if found == nil {
		return of, false
	}

	number, _ := strconv.ParseInt(found[1], 10, 64)

	return intervalIn(number, strings.TrimSuffix(strings.ToLower(found[2]), "s"))
}

// intervalIn returns an interval of a number of units.
func intervalIn(number int64, unit string) (of interval, ok bool) {
	const second = 1_000_000

	switch unit {
	case "year":
		of.months = 12 * number
	case "quarter":
		of.months = 3 * number
	case "month":
		of.months = number
	case "week":
		of.days = 7 * number
	case "day":
		of.days = number
	case "hour":
		of.microseconds = number * 3600 * second
	case "minute":
		of.microseconds = number * 60 * second
	case "second":
		of.microseconds = number * second
	default:
		return of, false
	}

	return of, true
}
