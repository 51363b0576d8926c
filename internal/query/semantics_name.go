package query

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/meaning"
)

// Stored semantics name other datasets by keys, so that a rename changes nothing. These functions translate between keys
// and names.

// relative returns the name of a dataset as seen from another one: without the parts that both have.
func relative(from, to catalog.Item) string {
	switch {
	case from.NamespaceID == to.NamespaceID:
		return to.Name
	case from.Account == to.Account:
		return to.Namespace + "/" + to.Name
	default:
		return to.Owner + "/" + to.Namespace + "/" + to.Name
	}
}

// columnNamed returns a column of a dataset by its name: as written, otherwise without case.
func columnNamed(item catalog.Item, name string) (catalog.Column, bool) {
	n := slices.IndexFunc(item.Columns, func(c catalog.Column) bool { return c.Name == name })
	if n < 0 {
		n = slices.IndexFunc(item.Columns, func(c catalog.Column) bool { return strings.EqualFold(c.Name, name) })
	}

	if n < 0 {
		return catalog.Column{}, false
	}

	return item.Columns[n], true
}

func hasColumn(item catalog.Item, name string) bool {
	_, ok := columnNamed(item, name)

	return ok
}

func hasColumns(item catalog.Item, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !hasColumn(item, name) })
}

// fits reports whether a column can have a role: figures are numbers.
func fits(c catalog.Column, role meaning.Role) bool { return !role.IsFigure() || isNumber(c.Type) }

func isNumber(kind string) bool {
	return kind == engine.Bigint || kind == engine.Double || strings.HasPrefix(kind, engine.Decimal)
}

// named returns what was saved with the current names of datasets. It leaves out what no longer fits the columns of the
// dataset, joins with datasets that the caller may not see or that have lost the key, and measures that need such a join.
func (m meant) named() meaning.Saved {
	from := m.saved.Saved
	to := meaning.Saved{Meaning: meaning.Meaning{Row: from.Row, Columns: map[string]meaning.Column{}}, RejectedMeasures: from.RejectedMeasures}

	for name, c := range from.Columns {
		if column, ok := columnNamed(m.item, name); ok && fits(column, c.Role) {
			to.Columns[column.Name] = c
		}
	}

	seen := map[string]catalog.Item{} // targets of the joins that are left, by key

	join := func(j meaning.Join) (meaning.Join, bool) {
		target, ok := m.targets[j.To]
		if !ok || !hasColumns(m.item, j.Columns) || !hasColumns(target, j.Keys) {
			return j, false
		}

		j.To = relative(m.item, target)

		return j, true
	}

	for _, j := range from.Joins {
		if shown, ok := join(j); ok {
			to.Joins = append(to.Joins, shown)
			seen[j.To] = m.targets[j.To]
		}
	}

	for _, j := range from.RejectedJoins {
		if shown, ok := join(j); ok {
			to.RejectedJoins = append(to.RejectedJoins, shown)
		}
	}

	for _, one := range from.Measures {
		if shown, ok := m.nameMeasure(one, seen); ok {
			to.Measures = append(to.Measures, shown)
		}
	}

	return to
}

// nameMeasure returns a stored measure with the names of joined datasets; false if it needs a column that is not there.
func (m meant) nameMeasure(one meaning.Measure, joined map[string]catalog.Item) (meaning.Measure, bool) {
	if one.Expression == "" {
		return one, true
	}

	parsed, err := meaning.Parse(one.Expression)
	if err != nil {
		return one, false
	}

	parsed, ok := parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
		if r.Dataset == "" {
			return r, hasColumn(m.item, r.Column)
		}

		target, ok := joined[r.Dataset]
		if !ok {
			return r, false
		}

		r.Dataset = target.Name

		for _, other := range joined {
			if other.ID != target.ID && strings.EqualFold(other.Name, target.Name) {
				r.Dataset = relative(m.item, target)
			}
		}

		return r, hasColumn(target, r.Column)
	})
	one.Expression = parsed.String()

	return one, ok
}

// withUnseen adds to new content the joins of the current one that the caller cannot see, because the caller cannot have
// meant to remove them, and the measures that need them.
func withUnseen(saved, current meaning.Saved, seen map[string]catalog.Item) meaning.Saved {
	unseen := func(j meaning.Join) bool {
		_, ok := seen[j.To]

		return !ok
	}

	hidden := map[string]bool{}

	for _, j := range current.Joins {
		if unseen(j) && len(hidden) < maxJoins && !slices.ContainsFunc(saved.Joins, j.Same) {
			saved.Joins = append(saved.Joins, j)
			hidden[j.To] = true
		}
	}

	for _, j := range current.RejectedJoins {
		if unseen(j) && len(saved.RejectedJoins) < 2*maxJoins && !slices.ContainsFunc(saved.RejectedJoins, j.Same) {
			saved.RejectedJoins = append(saved.RejectedJoins, j)
		}
	}

	for _, one := range current.Measures {
		parsed, err := meaning.Parse(one.Expression)
		needs := err == nil && slices.ContainsFunc(parsed.Refs(), func(r meaning.Ref) bool { return hidden[r.Dataset] })

		if needs && len(saved.Measures) < 2*maxMeasures && !slices.ContainsFunc(saved.Measures, one.Same) {
			saved.Measures = append(saved.Measures, one)
		}
	}

	return saved
}
