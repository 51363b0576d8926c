package form

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"quern.dev/quern/internal/meaning"
)

// quoted returns a name as SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Quoted returns a name as the statements of this package write it.
func Quoted(name string) string { return quoted(name) }

// literal returns a text as SQL.
func literal(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// plain returns a number as SQL.
func plain(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "NULL"
	}

	return strconv.FormatFloat(n, 'f', -1, 64)
}

// date returns a day as SQL.
func date(t time.Time) string { return "DATE '" + t.Format(time.DateOnly) + "'" }

// kind is how the values of a column compare.
type kind string

const (
	number  kind = "number"
	text    kind = "text"
	moment  kind = "moment"
	boolean kind = "boolean"
	other   kind = "other"
)

func (c *ColumnInfo) kind() kind {
	name, _, _ := strings.Cut(strings.ToLower(c.Type), "(")

	switch strings.TrimSpace(name) {
	case "tinyint", "smallint", "integer", "int", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "float", "real", "double", "decimal", "numeric",
		"long", "int1", "int2", "int4", "int8", "float4", "float8":
		return number
	case "date", "timestamp", "timestamptz", "timestamp with time zone", "timestamp_s", "timestamp_ms", "timestamp_ns", "datetime":
		return moment
	case "varchar", "text", "string", "char":
		return text
	case "boolean", "bool":
		return boolean
	default:
		return other
	}
}

// role returns the meaning of the values. A column without one is a number of which nothing is known, or a text.
func (c *ColumnInfo) role() meaning.Role {
	switch {
	case c.Role != "":
		return c.Role
	case c.kind() == number:
		return meaning.Unknown
	case c.kind() == moment:
		return meaning.Date
	default:
		return meaning.Text
	}
}

func (c *ColumnInfo) isNumeric() bool { return c.kind() == number }

// day returns an expression for a column as dates.
func day(expression string, c *ColumnInfo) string {
	if c.kind() == text {
		return "TRY_CAST(" + expression + " AS DATE)"
	}

	return expression
}

// values returns an expression for a column and the values that it is compared with, so that no value of the column has
// to be converted: a value that cannot be would end the statement.
func values(expression string, c *ColumnInfo, list []any) (by string, written []string, err error) {
	numbers := c.isNumeric()
	written = make([]string, len(list))

	for i, v := range list {
		value, isText, err := scalar(v)

		switch {
		case err != nil:
			return "", nil, err
		case numbers && isText && isNumber(value):
			written[i] = value
		case fits(value, isText, c.kind(), numbers):
			written[i] = value
			if isText {
				written[i] = literal(value)
			}
		default:
			return textual(expression, c, list)
		}
	}

	return expression, written, nil
}

// fits reports whether a value can be compared with the values of a column without converting these.
func fits(value string, isText bool, k kind, numbers bool) bool {
	switch {
	case numbers:
		return !isText
	case k == moment:
		_, noDay := time.Parse(time.DateOnly, value)
		_, noTime := time.Parse(time.DateTime, value)

		return isText && (noDay == nil || noTime == nil)
	case k == boolean:
		return value == "true" || value == "false"
	default:
		return k == text && isText
	}
}

func textual(expression string, c *ColumnInfo, list []any) (by string, written []string, err error) {
	if by = expression; c.kind() != text {
		by = "CAST(" + expression + " AS VARCHAR)"
	}

	for _, v := range list {
		value, _, err := scalar(v)
		if err != nil {
			return "", nil, err
		}

		written = append(written, literal(value))
	}

	return by, written, nil
}

// isNumber reports whether a text is a number as SQL writes it.
func isNumber(value string) bool {
	_, err := strconv.ParseFloat(value, 64)

	return err == nil && strings.Trim(value, "+-.eE0123456789") == ""
}

var errValue = errors.New("a value of a condition is neither a text, a number nor a boolean")

// scalar returns a value of a condition as it is written, and whether it is a text.
func scalar(v any) (value string, isText bool, err error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return "", false, errValue
		}

		return v, true, nil
	case bool:
		return strconv.FormatBool(v), false, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", false, errValue
		}

		return plain(v), false, nil
	case int:
		return strconv.Itoa(v), false, nil
	case int64:
		return strconv.FormatInt(v, 10), false, nil
	case json.Number:
		if !isNumber(v.String()) {
			return "", false, errValue
		}

		return v.String(), false, nil
	case time.Time:
		return v.Format(time.DateOnly), true, nil
	default:
		return "", false, errValue
	}
}
