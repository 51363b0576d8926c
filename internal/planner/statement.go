package planner

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// quoted returns a name as SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal returns a text as SQL.
func literal(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// plain returns a number as SQL.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// figure returns an expression for a column as numbers. For numbers stored as text it removes separators and units.
func figure(column string, written bool) string {
	if !written {
		return quoted(column)
	}

	return "TRY_CAST(replace(regexp_extract(" + quoted(column) + `, '[-+]?[0-9][0-9,]*(\.[0-9]+)?'), ',', '') AS DOUBLE)`
}

// SQL returns the form as a statement.
func (f Form) SQL() string {
	switch f.Kind {
	case Difference:
		return f.differenceSQL()
	case Share:
		return f.shareSQL()
	case Ratio:
		return f.ratioSQL()
	case Aggregate:
		return f.aggregateSQL()
	default:
		return f.listSQL()
	}
}

func (f Form) from() string { return " FROM " + quoted(f.Dataset) }

func (f Form) where() string {
	if len(f.Where) == 0 {
		return ""
	}

	conditions := make([]string, len(f.Where))
	for i, c := range f.Where {
		conditions[i] = c.sql()
	}

	return " WHERE " + strings.Join(conditions, " AND ")
}

func (f Form) listSQL() string {
	show := make([]string, len(f.Show))
	for i, c := range f.Show {
		show[i] = quoted(c)
	}

	if len(show) == 0 {
		show = []string{"*"}
	}

	var b strings.Builder

	b.WriteString("SELECT ")

	if f.Distinct {
		b.WriteString("DISTINCT ")
	}

	b.WriteString(strings.Join(show, ", ") + f.from() + f.where())

	if f.Order != nil {
		f.limitBy(&b, figure(f.Order.Column, f.Order.written))
	}

	return b.String()
}

// limitBy writes the order and the limit. With a limit of 1 the result contains all rows that tie for first.
func (f Form) limitBy(b *strings.Builder, by string) {
	direction := " ASC"
	if f.Order.Descending {
		direction = " DESC"
	}

	by += direction + " NULLS LAST"

	if f.Limit == 1 {
		b.WriteString(" QUALIFY rank() OVER (ORDER BY " + by + ") = 1")

		return
	}

	b.WriteString(" ORDER BY " + by)

	if f.Limit > 1 {
		fmt.Fprintf(b, " LIMIT %d", f.Limit)
	}
}

func (m Measure) sql() string {
	switch m.Function {
	case Count:
		return "count(*)"
	case CountDistinct:
		return "count(DISTINCT " + quoted(m.Column) + ")"
	case Average:
		return "avg(" + figure(m.Column, m.written) + ")"
	case Sum:
		return "sum(" + figure(m.Column, m.written) + ")"
	case Min:
		return "min(" + figure(m.Column, m.written) + ")"
	default:
		return "max(" + figure(m.Column, m.written) + ")"
	}
}

func (m Measure) name() string {
	switch m.Function {
	case Count:
		return "count"
	case CountDistinct:
		return "different " + m.Column
	case Sum:
		return "total " + m.Column
	default:
		return string(m.Function) + " " + m.Column
	}
}

func (g Group) sql() string {
	switch {
	case g.Grain == "" || g.isYear:
		return quoted(g.Column)
	case g.Grain == Year:
		return "year(" + quoted(g.Column) + ")"
	default:
		return "CAST(date_trunc('" + string(g.Grain) + "', " + quoted(g.Column) + ") AS DATE)"
	}
}

func (g Group) name() string {
	if g.Grain == "" || g.isYear {
		return g.Column
	}

	return string(g.Grain)
}

func (f Form) aggregateSQL() string {
	var (
		b      strings.Builder
		list   []string
		groups []string
	)

	for _, g := range f.Groups {
		list = append(list, g.sql()+" AS "+quoted(g.name()))
		groups = append(groups, g.sql())
	}

	for _, m := range f.Measures {
		list = append(list, m.sql()+" AS "+quoted(m.name()))
	}

	b.WriteString("SELECT " + strings.Join(list, ", ") + f.from() + f.where())

	if len(groups) == 0 {
		return b.String()
	}

	b.WriteString(" GROUP BY " + strings.Join(groups, ", "))

	switch {
	case f.Order != nil && f.Order.Column != "":
		f.limitBy(&b, quoted(f.Order.Column))
	case f.Order != nil:
		f.limitBy(&b, f.Measures[f.Order.Measure].sql())
	default:
		b.WriteString(" ORDER BY " + strings.Join(groups, ", "))
	}

	return b.String()
}

func (f Form) differenceSQL() string {
	side := func(part Filter) string {
		return "coalesce(" + f.Measures[0].sql() + " FILTER (WHERE " + part.sql() + "), 0)"
	}

	first, second := side(f.Parts[0]), side(f.Parts[1])
	difference := first + " - " + second

	if f.Distinct { // the question does not say which side is greater
		difference = "abs(" + difference + ")"
	}

	return "SELECT " + difference + ` AS "difference"` + f.from() + f.where()
}

func (f Form) ratioSQL() string {
	sides := [2]string{f.Measures[0].sql(), f.Measures[len(f.Measures)-1].sql()}
	for i, p := range f.Parts {
		sides[i] += " FILTER (WHERE " + p.sql() + ")"
	}

	ratio := "1.0 * " + sides[0] + " / nullif(" + sides[1] + `, 0) AS "ratio"`

	if len(f.Groups) == 0 {
		return "SELECT " + ratio + f.from() + f.where()
	}

	g := f.Groups[0]

	return "SELECT " + g.sql() + " AS " + quoted(g.name()) + ", " + ratio + f.from() + f.where() + " GROUP BY " + g.sql() + " ORDER BY " + g.sql()
}

func (f Form) shareSQL() string {
	m := f.Measures[0]

	if len(f.Groups) == 0 {
		conditions := make([]string, len(f.Parts))
		for i, p := range f.Parts {
			conditions[i] = p.sql()
		}

		return "SELECT 100.0 * coalesce(" + m.sql() + " FILTER (WHERE " + strings.Join(conditions, " AND ") + "), 0) / nullif(" + m.sql() + `, 0) AS "percentage"` + f.from() + f.where()
	}

	g := f.Groups[0]

	return "SELECT " + g.sql() + " AS " + quoted(g.name()) + ", 100.0 * " + m.sql() + " / nullif(sum(" + m.sql() + `) OVER (), 0) AS "percentage"` + f.from() + f.where() +
		" GROUP BY " + g.sql() + ` ORDER BY "percentage" DESC`
}

func (c Filter) sql() string {
	column := quoted(c.Column)

	switch c.Comparison {
	case Is, IsNot:
		return c.equalsSQL(column)
	case IsEmpty:
		return column + " IS NULL"
	case IsFilled:
		return column + " IS NOT NULL"
	case IsIn:
		return c.periodSQL(column)
	case IsBetween:
		return figure(c.Column, c.written) + " BETWEEN " + plain(c.Number) + " AND " + plain(c.Upper)
	default:
		with := plain(c.Number)
		if c.Other != "" {
			with = quoted(c.Other)
		}

		return figure(c.Column, c.written) + " " + string(c.Comparison) + " " + with
	}
}

func (c Filter) equalsSQL(column string) string {
	if len(c.Values) == 0 {
		return figure(c.Column, c.written) + " " + string(c.Comparison) + " " + plain(c.Number)
	}

	values := make([]string, len(c.Values))
	for i, v := range c.Values {
		values[i] = literal(v)
	}

	switch {
	case c.Comparison == IsNot && len(values) > 1:
		return "(" + column + " NOT IN (" + strings.Join(values, ", ") + ") OR " + column + " IS NULL)"
	case c.Comparison == IsNot:
		return column + " IS DISTINCT FROM " + values[0]
	case len(values) > 1:
		return column + " IN (" + strings.Join(values, ", ") + ")"
	default:
		return column + " = " + values[0]
	}
}

func (c Filter) periodSQL(column string) string {
	bound := func(t time.Time) string {
		if c.isYear {
			return strconv.Itoa(t.Year())
		}

		return "DATE '" + t.Format(time.DateOnly) + "'"
	}

	var conditions []string

	if !c.Period.From.IsZero() {
		conditions = append(conditions, column+" >= "+bound(c.Period.From))
	}

	if !c.Period.To.IsZero() {
		conditions = append(conditions, column+" < "+bound(c.Period.To))
	}

	if len(conditions) == 0 {
		return "true"
	}

	return strings.Join(conditions, " AND ")
}
