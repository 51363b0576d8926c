package form

import (
	"strings"

	"quern.dev/quern/internal/meaning"
)

// titled returns the name of a measure as a column of the result, with the unit of its figures if the name does not
// contain it. Texts and charts of the result read the unit from the name.
func (p speaker) titled(m Measure) string {
	name, unit := p.heading(m), p.unit(m)

	if unit == "" || strings.EqualFold(meaning.UnitOf(name), unit) {
		return name
	}

	return name + " (" + unit + ")"
}

// unit returns the unit of a measure, or "" if it has none or if it is not known.
func (p speaker) unit(m Measure) string {
	d := p.dataset(m.Dataset)

	switch {
	case m.Share, m.Per != nil, m.Function == Count, m.Function == CountDistinct, m.Of == nil:
		return ""
	case d.Units[m.Name] != "":
		return d.Units[m.Name]
	default:
		return p.of(d).unitOf(*m.Of)
	}
}

// unitOf returns the unit of a term. A product has the unit of the price in it and no other: kilograms times the price of
// a kilogram are not kilograms.
func (p speaker) unitOf(t Term) string {
	switch {
	case t.Op == "":
		return p.columnUnit(t.Column)
	case len(t.Args) != 2:
		return ""
	case t.Op == Plus, t.Op == Minus:
		if a := p.unitOf(t.Args[0]); a == p.unitOf(t.Args[1]) {
			return a
		}
	case t.Op == Times:
		for i, a := range t.Args {
			if p.isPrice(a) && !p.isPrice(t.Args[1-i]) {
				return p.columnUnit(a.Column)
			}
		}
	}

	return ""
}

func (p speaker) columnUnit(c Column) string {
	if info := p.dataset(c.Dataset).column(c.Name); info != nil && info.role().IsFigure() && !strings.Contains(info.Unit, "/") {
		return info.Unit
	}

	return ""
}

func (p speaker) isPrice(t Term) bool {
	info := p.dataset(t.Dataset).column(t.Name)

	return t.Op == "" && info != nil && info.role() == meaning.Price
}
