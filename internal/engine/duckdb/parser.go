package duckdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// parser turns a text into a typed value. It says which texts it accepts and which value they have. DuckDB's own casts
// accept too much: 1.5 as a bigint is 2, a date may contain a time, an offset is ignored. So only texts that match the
// pattern are cast.
type parser struct {
	kind    string
	pattern string                   // of the whole text, without surrounding blanks
	value   func(text string) string // returns SQL for the value of a SQL text; the value is NULL if the text has none

	// usual returns a SQL condition that most texts meet, and SQL for their value, which is NULL if a text has none.
	// The condition is cheaper than the pattern. Texts that meet it also match the pattern.
	usual func(text string) (when, value string)

	decimal, thousands string // of numbers, if different from SQL
	sign               string // sign at the start or end of all texts
}

const (
	whole    = `-?(?:0|[1-9][0-9]{0,17})`
	fraction = `-?(?:0|[1-9][0-9]{0,17})?\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?`
	day      = `[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`
	clock    = `(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?`
	offset   = ` ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)`

	months = `(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`

	scientific = `-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{1,2}`

	// A comma can be a decimal comma (1,5) or a thousands separator (1,500). The patterns provesComma and provesPoint
	// decide.
	groupedComma = `-?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?|-?(?:0|[1-9][0-9]*),[0-9]+|` + whole
	groupedPoint = `-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|` + fraction + `|` + whole
	provesComma  = `.*[0-9],(?:[0-9]{1,2}|[0-9]{4,})|.*\..*,.*|-?[0-9]{1,3}(?:\.[0-9]{3}){2,}`
	provesPoint  = `.*,.*\..*|-?[0-9]{1,3}(?:,[0-9]{3}){2,}`
	onlyGroups   = `-?[0-9]{1,3}(?:\.[0-9]{3})+`
)

func read(kind, pattern string, value func(string) string) parser {
	return parser{kind: kind, pattern: pattern, value: value}
}

func (r parser) usually(usual func(string) (when, value string)) parser {
	r.usual = usual

	return r
}

func (r parser) written(decimal, thousands string) parser {
	r.decimal, r.thousands = decimal, thousands

	return r
}

// The following parsers need no option.
func booleans() parser {
	return read(engine.Boolean, `(?i)true|false`, as("BOOLEAN")).usually(func(t string) (when, value string) {
		return t + ` IN ('true', 'false')`, t + ` = 'true'`
	})
}
func integers() parser { return read(engine.Bigint, whole, as("BIGINT")).usually(givenBack) }
func doubles() parser  { return read(engine.Double, fraction+`|`+whole, finite).usually(plainNumber) }

func isoDates() parser {
	return read(engine.Date, day, as("DATE")).usually(shaped("DATE", "____-__-__"))
}

func slashDates() parser {
	return read(engine.Date, `[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}`, parsed("%Y/%m/%d", "DATE"))
}

func dotDates() parser {
	return read(engine.Date, `[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}`, parsed("%d.%m.%Y", "DATE"))
}

func dayFirst() parser {
	return read(engine.Date, `[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}`, parsed("%d/%m/%Y", "DATE"))
}

func monthFirst() parser {
	return read(engine.Date, `[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}`, parsed("%m/%d/%Y", "DATE"))
}

// namedMonth parses dates such as Nov 08, 2025 or November 8 2025. dayOfMonth parses dates such as 8 Nov 2025 or
// 08-Nov-2025.
func namedMonth() parser {
	return read(engine.Date, months+`\.? [0-9]{1,2},? [0-9]{4}`, monthNamed(`^([A-Za-z]{3})[A-Za-z]*\.? ([0-9]{1,2}),? ([0-9]{4})$`, `\2 \1 \3`))
}

func dayOfMonth() parser {
	return read(engine.Date, `[0-9]{1,2}(?: `+months+`\.? |-`+months+`-)[0-9]{4}`, monthNamed(`^([0-9]{1,2})[ -]([A-Za-z]{3})[A-Za-z]*\.?[ -]([0-9]{4})$`, `\1 \2 \3`))
}

func monthNamed(form, parts string) func(string) string {
	return func(t string) string {
		return parsed("%d %b %Y", "DATE")(`regexp_replace(` + t + `, ` + text(form) + `, ` + text(parts) + `)`)
	}
}

func timestamps() parser {
	return read(engine.Timestamp, day+`(?:[T ]`+clock+`(?:`+offset+`)?)?`, instant).usually(shaped("TIMESTAMP", "____-__-__ __:__:__"))
}
func times() parser { return read(engine.Time, clock, as("TIME")) }
func commaDoubles() parser {
	return read(engine.Double, groupedComma, func(t string) string { return finite(`replace(replace(` + t + `, '.', ''), ',', '.')`) }).written(",", ".")
}

func pointDoubles() parser {
	return read(engine.Double, groupedPoint, func(t string) string { return finite(`replace(` + t + `, ',', '')`) }).written(".", ",")
}

// exactly converts a number to a decimal type. The value is NULL if a number with an exponent has more decimals than
// scale, because a cast would round it. JSON writes small numbers with an exponent.
func exactly(kind string, scale int) func(string) string {
	return func(t string) string {
		value := as(sqlType(kind))(t)

		return fmt.Sprintf(`CASE WHEN NOT regexp_matches(%[1]s, '[eE]') THEN %[2]s
			WHEN length(regexp_extract(%[1]s, '\.([0-9]*?)0*[eE]', 1)) - CAST(regexp_extract(%[1]s, '[eE]\+?(-?[0-9]+)$', 1) AS INTEGER) <= %[3]d THEN %[2]s END`, t, value, scale)
	}
}

// givenBack is usual for integers: if casting to BIGINT and back returns the same text, the cast did not change the
// value.
func givenBack(t string) (when, value string) {
	value = `TRY_CAST(` + t + ` AS BIGINT)`

	return `CAST(` + value + ` AS VARCHAR) = ` + t, value
}

// shaped is usual for dates and timestamps. DuckDB accepts only valid values among the texts that have this shape and
// start with a digit.
func shaped(kind, shape string) func(string) (when, value string) {
	return func(t string) (when, value string) {
		return fmt.Sprintf(`(%[1]s LIKE '%[2]s' AND %[1]s >= '0' AND %[1]s < ':')`, t, shape), `TRY_CAST(` + t + ` AS ` + kind + `)`
	}
}

func plainNumber(t string) (when, value string) {
	return `regexp_full_match(` + t + `, '-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,20})?')`, `TRY_CAST(` + t + ` AS DOUBLE)`
}

func as(kind string) func(string) string {
	return func(t string) string { return `TRY_CAST(` + t + ` AS ` + kind + `)` }
}

func parsed(format, kind string) func(string) string {
	return func(t string) string { return `CAST(try_strptime(` + t + `, ` + text(format) + `) AS ` + kind + `)` }
}

func finite(t string) string {
	return `CASE WHEN isfinite(TRY_CAST(` + t + ` AS DOUBLE)) THEN TRY_CAST(` + t + ` AS DOUBLE) END`
}

// instant parses a timestamp. DuckDB's conversion with offsets takes ten times as long as the plain one, so it is used
// only for texts with an offset.
func instant(t string) string {
	return `CASE WHEN regexp_matches(` + t + `[11:], '[Z+-]') THEN timezone('UTC', TRY_CAST(regexp_replace(` + t + `, ' ([Z+-])', '\1') AS TIMESTAMPTZ))
		ELSE TRY_CAST(` + t + ` AS TIMESTAMP) END`
}

// numbers returns the parser for numbers of a type with the given decimal and thousands signs.
func numbers(kind, decimal, thousands string) parser {
	digits, fractions := `(?:0|[1-9][0-9]*)`, `[0-9]+`

	if thousands != "" {
		digits = `(?:[0-9]{1,3}(?:` + regexp.QuoteMeta(thousands) + `[0-9]{3})+|0|[1-9][0-9]*)`
	}

	if _, scale, ok := engine.DecimalOf(kind); ok {
		fractions = `[0-9]{1,` + strconv.Itoa(max(scale, 1)) + `}0*`
	}

	pattern := `-?` + digits
	if kind != engine.Bigint {
		pattern += `(?:` + regexp.QuoteMeta(decimal) + fractions + `)?`
	}

	return read(kind, pattern, func(t string) string {
		if thousands != "" {
			t = `replace(` + t + `, ` + text(thousands) + `, '')`
		}

		if decimal != "." {
			t = `replace(` + t + `, ` + text(decimal) + `, '.')`
		}

		return as(sqlType(kind))(t)
	}).written(decimal, thousands)
}

// dated returns the parser for the option dateFormat.
func dated(format string) (parser, error) {
	type form struct{ parse, pattern string }

	var (
		pattern, parse strings.Builder
		kind           = engine.Date
		forms          = map[string]form{
			"yyyy": {"%Y", `[0-9]{4}`}, "yy": {"%y", `[0-9]{2}`}, "mm": {"%m", `[0-9]{2}`}, "m": {"%m", `[0-9]{1,2}`}, "dd": {"%d", `[0-9]{2}`}, "d": {"%d", `[0-9]{1,2}`},
			"HH": {"%H", `[0-9]{2}`}, "MM": {"%M", `[0-9]{2}`}, "SS": {"%S", `[0-9]{2}`},
		}
	)

	tokens, problem := engine.DateTokens(format)
	if problem != "" {
		return parser{}, &failure{code: engine.InvalidOptions, message: "dateFormat: " + problem + "."}
	}

	for _, token := range tokens {
		is, isToken := forms[token]
		if !isToken {
			is = form{token, regexp.QuoteMeta(token)}
		}

		if token == "HH" {
			kind = engine.Timestamp
		}

		parse.WriteString(is.parse)
		pattern.WriteString(is.pattern)
	}

	return read(kind, pattern.String(), parsed(parse.String(), sqlType(kind))), nil
}

// withoutSign returns SQL for a text without a sign such as % or €.
func withoutSign(t, sign string) string { return `trim(replace(` + t + `, ` + text(sign) + `, ''))` }

// stripped returns a parser for texts that have a sign at the start or end, such as 5 % or $ 5.
func (r parser) stripped(sign string) parser {
	quoted := regexp.QuoteMeta(sign)

	bare := read(
		r.kind,
		`-? ?`+quoted+` ?(?:`+r.pattern+`)|(?:`+r.pattern+`) ?`+quoted,
		func(t string) string { return r.value(withoutSign(t, sign)) },
	).written(r.decimal, r.thousands)
	bare.sign = sign

	return bare
}

// as returns a parser for the same texts with a value of another type: dates as timestamps, or timestamps as dates.
func (r parser) as(kind string) parser {
	return read(kind, r.pattern, func(t string) string { return `CAST(` + r.value(t) + ` AS ` + sqlType(kind) + `)` })
}

// fits returns SQL that is true if a SQL text matches the pattern.
func (r parser) fits(t string) string {
	return `regexp_full_match(` + t + `, ` + text(r.pattern) + `)`
}

// matches returns a SQL condition that is true if the text, given as a SQL expression, is a valid value. For example,
// 2026-02-30 has the form of a date but is not a valid date.
func (r parser) matches(t string) string {
	return `(` + r.fits(t) + ` AND ` + r.value(t) + ` IS NOT NULL)`
}

// plain returns the default parser of a type. It is used for a column that already has the type, or whose type an
// option sets.
func plain(kind string) parser {
	switch kind {
	case engine.Boolean:
		return booleans()
	case engine.Bigint:
		return read(engine.Bigint, `-?(?:0|[1-9][0-9]{0,18})`, as("BIGINT")).usually(givenBack)
	case engine.Double:
		return read(engine.Double, `-?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?|NaN|-?Infinity`, func(t string) string {
			return `CASE WHEN ` + t + ` IN ('NaN', 'Infinity', '-Infinity') THEN TRY_CAST(` + t + ` AS DOUBLE) ELSE ` + finite(t) + ` END`
		}).usually(plainNumber)
	case engine.Date:
		return isoDates()
	case engine.Timestamp:
		return timestamps()
	case engine.Time:
		return times()
	case engine.JSON:
		return read(engine.JSON, `(?s).*`, func(t string) string { return `CAST(TRY_CAST(` + t + ` AS JSON) AS VARCHAR)` })
	}

	if _, scale, ok := engine.DecimalOf(kind); ok {
		return read(kind, `-?[0-9]*(?:\.[0-9]{0,`+strconv.Itoa(scale)+`}0*)?|`+scientific, exactly(kind, scale))
	}

	return parser{}
}
