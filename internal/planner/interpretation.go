package planner

import (
	"fmt"
	"strings"
)

// Interpretation returns the form in words.
func (f Form) Interpretation() string {
	var b strings.Builder

	switch f.Kind {
	case Aggregate:
		words := make([]string, len(f.Measures))
		for i, m := range f.Measures {
			words[i] = m.words()
		}

		b.WriteString(strings.Join(words, " and ") + " of *" + f.Dataset + "*")
	case Difference:
		fmt.Fprintf(&b, "difference in the %s of *%s* between %s and %s", f.Measures[0].words(), f.Dataset, f.Parts[0].words(), f.Parts[1].words())
	case Share:
		fmt.Fprintf(&b, "percentage of the %s of *%s*", f.Measures[0].words(), f.Dataset)

		if len(f.Groups) == 0 {
			b.WriteString(" for which " + joined(f.Parts))
		}
	case Ratio:
		b.WriteString("ratio of the " + f.ratioWords())
	default:
		b.WriteString("rows of *" + f.Dataset + "*")

		if f.Distinct {
			b.WriteString(", without duplicates")
		}
	}

	if len(f.Where) > 0 {
		b.WriteString(" where " + joined(f.Where))
	}

	for i, g := range f.Groups {
		b.WriteString([]string{", by ", " and "}[min(i, 1)] + g.words())
	}

	f.orderWords(&b)

	if len(f.Show) > 0 {
		b.WriteString("; columns: *" + strings.Join(f.Show, "*, *") + "*")
	}

	return b.String()
}

func (f Form) ratioWords() string {
	of := " of *" + f.Dataset + "*"

	switch len(f.Parts) {
	case 0:
		return f.Measures[0].words() + " to the " + f.Measures[1].words() + of
	case 1:
		return f.Measures[0].words() + " where " + f.Parts[0].words() + " to the " + f.Measures[0].words() + " of all *" + f.Dataset + "*"
	default:
		return f.Measures[0].words() + of + " where " + f.Parts[0].words() + " to the " + f.Measures[0].words() + " where " + f.Parts[1].words()
	}
}

func (f Form) orderWords(b *strings.Builder) {
	if f.Order == nil {
		return
	}

	by := "*" + f.Order.Column + "*"
	if f.Kind != List && f.Order.Column == "" {
		by = f.Measures[f.Order.Measure].words()
	}

	direction := "lowest"
	if f.Order.Descending {
		direction = "highest"
	}

	switch {
	case f.Limit == 1:
		fmt.Fprintf(b, ", %s %s only", direction, by)
	case f.Limit > 1:
		fmt.Fprintf(b, ", the %d with the %s %s", f.Limit, direction, by)
	default:
		fmt.Fprintf(b, ", %s %s first", direction, by)
	}
}

func (m Measure) words() string {
	switch m.Function {
	case Count:
		return "number"
	case CountDistinct:
		return "number of distinct *" + m.Column + "* values"
	case Sum:
		return "total *" + m.Column + "*"
	case Average:
		return "average *" + m.Column + "*"
	case Min:
		return "lowest *" + m.Column + "*"
	default:
		return "highest *" + m.Column + "*"
	}
}

func (g Group) words() string {
	if g.Grain == "" || g.isYear {
		return "*" + g.Column + "*"
	}

	return string(g.Grain) + " of *" + g.Column + "*"
}

func joined(filters []Filter) string {
	words := make([]string, len(filters))
	for i, f := range filters {
		words[i] = f.words()
	}

	return strings.Join(words, " and ")
}

func (c Filter) words() string {
	column := "*" + c.Column + "*"

	switch c.Comparison {
	case Is, IsNot:
		if len(c.Values) == 0 {
			return column + " " + string(c.Comparison) + " " + plain(c.Number)
		}

		return column + " " + string(c.Comparison) + " '" + strings.Join(c.Values, "' or '") + "'"
	case IsEmpty:
		return column + " is empty"
	case IsFilled:
		return column + " is not empty"
	case IsIn:
		return column + " is " + c.Period.Text
	case IsBetween:
		return column + " is between " + plain(c.Number) + " and " + plain(c.Upper)
	default:
		if c.Other != "" {
			return column + " " + string(c.Comparison) + " *" + c.Other + "*"
		}

		return column + " " + string(c.Comparison) + " " + plain(c.Number)
	}
}
