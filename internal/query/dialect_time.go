package query

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// truncations are the units to which both engines truncate alike.
var truncations = []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"} //nolint:gochecknoglobals // read only

// timePart returns the expression of a part of a date or timestamp, with %s for it.
func timePart(name, kind string) (format string, ok bool) {
	parts := map[string]string{
		"year": "year(%s)", "quarter": "quarter(%s)", "month": "month(%s)", "week": "week(%s)", "weekofyear": "week(%s)",
		"day": "day(%s)", "dayofmonth": "day(%s)", "dayofyear": "day_of_year(%s)", "doy": "day_of_year(%s)",
		"dayofweek": "(day_of_week(%s) %% 7)", "dow": "(day_of_week(%s) %% 7)", "weekday": "(day_of_week(%s) %% 7)", "isodow": "day_of_week(%s)",
	}
	if kind == engine.Timestamp {
		parts["hour"], parts["minute"], parts["second"] = "hour(%s)", "minute(%s)", "second(%s)"
	}

	format, ok = parts[name]

	return format, ok
}

// timeFunction translates functions of dates and timestamps.
func (tr *translation) timeFunction(c call) (v typed, ok bool, err error) {
	ok = true

	switch name := c.name; {
	case (name == "date_trunc" || name == "datetrunc") && c.are("varchar", "day"):
		v, err = truncated(c)
	case (name == "date_part" || name == "datepart") && c.are("varchar", "day") && c.args[0].text != nil:
		v, err = timePartOf(c, strings.ToLower(*c.args[0].text), c.args[1])
	case (name == "date_diff" || name == "datediff") && len(c.args) == 3:
		v, err = difference(c)
	case name == "strftime" && c.are("day", "varchar"):
		v, err = formatted(c)
	case name == "last_day" && c.are("day"):
		v = c.made(engine.Date, "last_day_of_month(%s)")
	case (name == "monthname" || name == "dayname") && c.are("day"):
		format := map[string]string{"monthname": "'%M'", "dayname": "'%W'"}[name]
		v = made(engine.Varchar, "date_format(date_trunc('second', "+timestampOf(c.args[0])+"), "+format+")", c.args...)
	case c.are("day"):
		v, err = timePartOf(c, name, c.args[0])
	default:
		ok = false
	}

	return v, ok, err
}

func timestampOf(v typed) string { return cast(v, engine.Timestamp) }

func timePartOf(c call, name string, of typed) (typed, error) {
	format, ok := timePart(name, of.kind)
	if !ok {
		return c.fails("The parts year, quarter, month, week, day, dow, isodow, doy, hour, minute and second are supported.")
	}

	return made(engine.Bigint, fmt.Sprintf(format, of.sql), c.args...), nil
}

func truncated(c call) (typed, error) {
	if unit := c.args[0].text; unit == nil || !slices.Contains(truncations, strings.ToLower(*unit)) {
		return c.fails("The unit is one of: " + strings.Join(truncations, ", ") + ".")
	}

	return made(engine.Timestamp, "date_trunc("+literal(strings.ToLower(*c.args[0].text))+", "+timestampOf(c.args[1])+")", c.args...), nil
}

// difference translates date_diff, which counts the boundaries between two moments in DuckDB, and whole units in Trino.
func difference(c call) (typed, error) {
	from, to := asLiteral(c.args[1], c.args[2].kind), asLiteral(c.args[2], c.args[1].kind)
	unit := c.args[0].text

	if unit == nil || !slices.Contains([]string{"year", "quarter", "month", "day", "hour", "minute", "second"}, strings.ToLower(*unit)) ||
		!(call{args: []typed{from, to}}).are("day", "day") {
		return c.fails("The unit is one of: year, quarter, month, day, hour, minute, second.")
	}

	name := literal(strings.ToLower(*unit))
	part := func(v typed) string { return "date_trunc(" + name + ", " + timestampOf(v) + ")" }

	return made(engine.Bigint, "date_diff("+name+", "+part(from)+", "+part(to)+")", c.args...), nil
}

// formatted translates strftime with those parts that both engines write alike. Trino would round to the next second.
func formatted(c call) (typed, error) {
	parts := map[byte]string{'Y': "%Y", 'm': "%m", 'd': "%d", 'H': "%H", 'M': "%i", 'S': "%s", 'j': "%j", 'B': "%M", 'b': "%b", 'A': "%W", 'a': "%a", '%': "%%"}
	format := c.args[1].text

	if format == nil {
		return c.fails("The format must be a constant.")
	}

	var written strings.Builder

	for i := 0; i < len(*format); i++ {
		if (*format)[i] != '%' {
			_ = written.WriteByte((*format)[i])

			continue
		}

		part, ok := "", false
		if i++; i < len(*format) {
			part, ok = parts[(*format)[i]]
		}

		if !ok {
			return c.fails("The parts %Y %m %d %H %M %S %j %B %b %A %a of a format are supported.")
		}

		_, _ = written.WriteString(part)
	}

	return made(engine.Varchar, "date_format(date_trunc('second', "+timestampOf(c.args[0])+"), "+literal(written.String())+")", c.args...), nil
}
