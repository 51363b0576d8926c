package planner

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cells lowers the trust if rows are selected by a value that other cells may contain as one part of several, or if
// shown names have remarks in brackets.
func (r *reader) cells() {
	if len(r.form.Show) > 0 && r.named(r.form.Show[0]).hasRemarks() {
		r.doubt(0.7)
	}

	for _, f := range slices.Concat(r.form.Where, r.form.Parts) {
		c := r.named(f.Column)

		if isUnnamed(f.Column) {
			r.doubt(0.6)
		}

		for _, v := range f.Values {
			switch sure := c.holdsAlone(v); {
			case c.unique:
			case r.form.Kind == List:
				r.doubt((1 + sure) / 2)
			default:
				r.doubt(sure)
			}
		}
	}

	for _, g := range r.form.Groups {
		c := r.named(g.Column)

		if slices.ContainsFunc(c.Values, func(v any) bool {
			cell, ok := v.(string)

			return ok && c.holdsAlone(cell) < 0.7
		}) {
			r.doubt(0.6)
		}
	}
}

// named returns the column with a name that the form contains.
func (s *schema) named(name string) *column {
	return &s.columns[slices.IndexFunc(s.columns, func(c column) bool { return c.Name == name })]
}

// hasRemarks reports whether some values, but not all, end with a remark in brackets: "Ada (2)".
func (c *column) hasRemarks() bool {
	remarks := 0

	for _, v := range c.Values {
		if cell, ok := v.(string); ok && strings.HasSuffix(cell, ")") && strings.Contains(cell, " (") {
			remarks++
		}
	}

	return c.kind == text && remarks > 0 && remarks < len(c.Values)
}

// isUnnamed reports whether a column has a generated name because its file has no name for it.
func isUnnamed(column string) bool {
	digits, ok := strings.CutPrefix(column, "column_")

	return ok && strings.Trim(digits, "0123456789") == ""
}

// holdsAlone returns how certain it is, from 0 to 1, that no other cell contains the value as one part of several, as
// "Nassau, Suffolk" contains "Suffolk". If not all values are known, it judges by the form of the known values.
func (c *column) holdsAlone(value string) float64 {
	if c.kind != text {
		return 1
	}

	lists := 0

	for _, v := range c.Values {
		cell, ok := v.(string)
		if !ok || strings.EqualFold(cell, value) || !isList(cell) {
			continue
		}

		if lists++; hasPart(cell, value) {
			return 0.6
		}
	}

	switch {
	case c.Distinct <= int64(len(c.Values)) || isList(value) || lists == 0:
		return 1
	case 4*lists > len(c.Values):
		return 0.6
	default:
		return 0.7
	}
}

// isList reports whether a cell may contain several values.
func isList(cell string) bool {
	return strings.ContainsAny(cell, ",;/&\n") || strings.Contains(cell, " and ")
}

// hasPart reports whether a cell contains the value as whole words.
func hasPart(cell, value string) bool {
	cell, value = strings.ToLower(cell), strings.ToLower(value)

	before, behind, found := strings.Cut(cell, value)
	if !found {
		return false
	}

	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(behind)

	return !isWordRune(last) && !isWordRune(next)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
