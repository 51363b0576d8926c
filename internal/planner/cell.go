package planner

import (
	"slices"
	"strings"
)

// cells doubts what is counted or looked up by a value that may be only a part of other cells.
func (r *reader) cells() {
	for _, f := range slices.Concat(r.form.Where, r.form.Parts) {
		c := r.named(f.Column)

		if isUnnamed(f.Column) {
			r.doubt(0.6)
		}

		for _, v := range f.Values {
			switch {
			case !c.holdsMore(v):
			case r.form.Kind != List:
				r.doubt(0.6)
			case !c.unique:
				r.doubt(0.8)
			}
		}
	}

	for _, g := range r.form.Groups {
		c := r.named(g.Column)

		if slices.ContainsFunc(c.Values, func(v any) bool {
			cell, ok := v.(string)

			return ok && c.holdsMore(cell)
		}) {
			r.doubt(0.6)
		}
	}
}

// named is the column of a name that the form has.
func (s *schema) named(name string) *column {
	return &s.columns[slices.IndexFunc(s.columns, func(c column) bool { return c.Name == name })]
}

// isUnnamed is true of a name that a column got because its file has none for it.
func isUnnamed(column string) bool {
	digits, ok := strings.CutPrefix(column, "column_")

	return ok && strings.Trim(digits, "0123456789") == ""
}

// holdsMore is true if cells have a value among others: "Suffolk" and "Nassau, Suffolk". If not all values are known
// it goes by what those look like that are.
func (c *column) holdsMore(value string) bool {
	if c.kind != text {
		return false
	}

	lists := 0

	for _, v := range c.Values {
		cell, ok := v.(string)
		if !ok || strings.EqualFold(cell, value) {
			continue
		}

		if isList(cell) {
			if lists++; hasPart(cell, value) {
				return true
			}
		}
	}

	return c.Distinct > int64(len(c.Values)) && !isList(value) && 4*lists > len(c.Values)
}

// isList is true of a cell that may hold several values.
func isList(cell string) bool {
	return strings.ContainsAny(cell, ",;/&\n") || strings.Contains(cell, " and ")
}

func hasPart(cell, value string) bool {
	i := strings.Index(strings.ToLower(cell), strings.ToLower(value))
	if i < 0 {
		return false
	}

	end := i + len(value)
	isWordAt := func(at int) bool {
		return at >= 0 && at < len(cell) && (cell[at] >= '0' && cell[at] <= '9' || cell[at]|0x20 >= 'a' && cell[at]|0x20 <= 'z')
	}

	return !isWordAt(i-1) && !isWordAt(end)
}
