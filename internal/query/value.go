package query

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/engine"
)

// parse returns the value in the form that the engine binds: as text, with its type. problem says why the value does not
// fit its type. It is empty if the value fits, and never contains the value.
func (v Value) parse() (parsed engine.Parameter, problem string) {
	kind := strings.ToLower(v.Type)

	if v.Problem != "" {
		return parsed, v.Problem
	}

	if v.Type != "" {
		if problem := unknownType(kind); problem != "" {
			return parsed, problem
		}
	}

	if v.Value == nil {
		return parsed, ""
	}

	if v.Type == "" {
		if kind, problem = typeOf(v.Value); problem != "" {
			return parsed, problem
		}
	}

	text, problem := textOf(v.Value, kind)
	if problem == "" {
		text, problem = fit(text, kind)
	}

	return engine.Parameter{Type: kind, Value: &text}, problem
}

const parameterTypes = "boolean, integer, bigint, double, decimal(p,s), varchar, date, time and timestamp"

func unknownType(kind string) string {
	switch kind {
	case engine.Boolean, engine.Integer, engine.Bigint, engine.Double, engine.Varchar, engine.Date, engine.Time, engine.Timestamp:
		return ""
	case engine.JSON:
		return "has the type json. Give the JSON as a text, and write CAST($1 AS JSON) in the statement."
	}

	if _, _, isDecimal := decimalOf(kind); isDecimal {
		return ""
	}

	return "has a type that does not exist. The types are " + parameterTypes + ", with at most 38 digits."
}

// number is a number as JSON writes it.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// typeOf returns the type of a value without one: the type that the value has as a constant in SQL, so that no digit is
// lost.
func typeOf(value any) (kind, problem string) {
	var text string

	switch value := value.(type) {
	case string:
		return engine.Varchar, ""
	case bool:
		return engine.Boolean, ""
	case json.Number:
		text = value.String()
	default:
		return "", notScalar
	}

	if strings.ContainsAny(text, "eE") {
		return engine.Double, ""
	}

	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")

	digits := strings.TrimPrefix(whole, "0") + fraction // JSON has no other leading zeros
	if len(digits) > maxDigits {
		return "", `has more than 38 digits. For a rounded value, give it as {"type": "double", "value": …}; to keep the digits, give it as a text.`
	}

	if fraction != "" {
		return fmt.Sprintf("decimal(%d,%d)", max(len(digits), 1), len(fraction)), ""
	}

	number, err := strconv.ParseInt(text, 10, 64)

	switch {
	case err != nil:
		return fmt.Sprintf("decimal(%d,0)", len(digits)), ""
	case number < math.MinInt32 || number > math.MaxInt32:
		return engine.Bigint, ""
	default:
		return engine.Integer, ""
	}
}

const notScalar = "is a list or an object. Give a text, a number, a boolean or null."

// textOf returns a value of a kind of JSON that the type accepts as text.
func textOf(value any, kind string) (text, problem string) {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			return "", "contains the character U+0000."
		}

		return value, ""
	case json.Number:
		if _, _, isDecimal := decimalOf(kind); isDecimal || kind == engine.Integer || kind == engine.Bigint || kind == engine.Double {
			return value.String(), ""
		}
	case bool:
		if kind == engine.Boolean {
			return strconv.FormatBool(value), ""
		}
	default:
		return "", notScalar
	}

	return "", "is not of the type " + kind + ". Give it as a text, in double quotes."
}

// fit checks the text of a value and returns it in the form of its type.
func fit(text, kind string) (fitted, problem string) {
	switch kind {
	case engine.Boolean:
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return lower, ""
		}

		return "", "is not a boolean. Give true or false."
	case engine.Integer:
		return fitInteger(text, kind, 32)
	case engine.Bigint:
		return fitInteger(text, kind, 64)
	case engine.Double:
		return fitDouble(text)
	case engine.Date:
		return fitMoment(text, "is not a date. Give it as 2026-11-30, from the year 0001 to 9999.", time.DateOnly, time.DateOnly)
	case engine.Time:
		return fitTime(text)
	case engine.Timestamp:
		return fitMoment(text, "is not a timestamp. Give it as 2026-11-30T12:00:00, with Z or an offset such as +02:00 if it is not in UTC, and at most 6 digits after the seconds.",
			"2006-01-02T15:04:05.999999", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly)
	case engine.Varchar:
		return text, ""
	default:
		return fitDecimal(text, kind)
	}
}

func fitInteger(text, kind string, bits int) (fitted, problem string) {
	whole, err := strconv.ParseInt(text, 10, bits)
	if err != nil || !number.MatchString(text) {
		return "", fmt.Sprintf("is not %s: give a whole number without an exponent, from -2^%d to 2^%d-1.", map[string]string{engine.Integer: "an integer", engine.Bigint: "a bigint"}[kind], bits-1, bits-1)
	}

	return strconv.FormatInt(whole, 10), ""
}

func fitDouble(text string) (fitted, problem string) {
	switch text {
	case "NaN", "Infinity", "-Infinity":
		return text, ""
	}

	value, err := strconv.ParseFloat(text, 64)
	if !number.MatchString(text) {
		return "", `is not a double: give a number, "NaN", "Infinity" or "-Infinity".`
	}

	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	if err != nil || value == 0 && strings.ContainsAny(mantissa, "123456789") {
		return "", "is out of the range of a double."
	}

	return strconv.FormatFloat(value, 'g', -1, 64), ""
}

// fitDecimal returns the number with exactly as many digits after the point as the type has.
func fitDecimal(text, kind string) (fitted, problem string) {
	precision, scale, _ := decimalOf(kind)
	problem = fmt.Sprintf("is not a %s: give a number without an exponent, with at most %d digits before and %d after the point.", kind, precision-scale, scale)

	if !number.MatchString(text) || strings.ContainsAny(text, "eE") {
		return "", problem
	}

	digits, isNegative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")

	whole = strings.TrimPrefix(whole, "0")
	if len(whole) > precision-scale || len(strings.TrimRight(fraction, "0")) > scale {
		return "", problem
	}

	if len(fraction) > scale {
		fraction = fraction[:scale]
	}

	fraction += strings.Repeat("0", scale-len(fraction))

	all, _ := new(big.Int).SetString("0"+whole+fraction, 10)
	if isNegative {
		all.Neg(all)
	}

	return pointed(all, scale), ""
}

// pointed writes a whole number with its last scale digits after a point.
func pointed(digits *big.Int, scale int) string {
	whole, rest := new(big.Int).QuoRem(digits, pow10(scale), new(big.Int))
	if scale == 0 {
		return whole.String()
	}

	sign := ""
	if digits.Sign() < 0 {
		sign = "-"
	}

	return fmt.Sprintf("%s%d.%0*d", sign, whole.Abs(whole), scale, rest.Abs(rest))
}

const microsecond = 6 // digits after the seconds

// fitMoment reads a time in one of the layouts and writes it in the layout as, in UTC.
func fitMoment(text, otherwise, as string, layouts ...string) (fitted, problem string) {
	_, fraction, _ := strings.Cut(text, ".")
	if digits := strings.IndexFunc(fraction+"Z", func(r rune) bool { return r < '0' || r > '9' }); digits > microsecond || strings.Contains(text, ",") {
		return "", otherwise
	}

	for _, layout := range layouts {
		moment, err := time.Parse(layout, text)
		if moment = moment.UTC(); err == nil && moment.Year() >= 1 && moment.Year() <= 9999 {
			return moment.Format(as), ""
		}
	}

	return "", otherwise
}

func fitTime(text string) (fitted, problem string) {
	const day = "1970-01-01T"

	moment, problem := fitMoment(day+text, "is not a time. Give it as 12:00:00, with at most 6 digits after the seconds.", "2006-01-02T15:04:05.999999", "2006-01-02T15:04:05")

	return strings.TrimPrefix(moment, day), problem
}
