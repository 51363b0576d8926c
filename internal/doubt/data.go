package doubt

import (
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
)

type (
	formDataset = form.Dataset
	formColumn  = form.ColumnInfo
)

func (a *audit) dataset(name string) *formDataset {
	for i, d := range a.schema.Datasets {
		if strings.EqualFold(d.Name, name) {
			return &a.schema.Datasets[i]
		}
	}

	return nil
}

func (a *audit) roleOf(dataset, column string) meaning.Role {
	if d := a.dataset(dataset); d != nil {
		for _, c := range d.Columns {
			if strings.EqualFold(c.Name, column) {
				return c.Role
			}
		}
	}

	return ""
}

// isOf reports whether a dataset has a column, or another one has a column that leads to it.
func (a *audit) isOf(dataset, column string) bool {
	return a.roleOf(dataset, column) != "" || a.isKey(dataset, column)
}

// isKey reports whether a column identifies the rows of a dataset, there or elsewhere.
func (a *audit) isKey(dataset, column string) bool {
	if d := a.dataset(dataset); d != nil && (strings.EqualFold(d.Label, column) || slices.ContainsFunc(d.Keys, func(key []string) bool { return len(key) == 1 && strings.EqualFold(key[0], column) })) {
		return true
	}

	return slices.ContainsFunc(a.schema.Datasets, func(d formDataset) bool {
		return slices.ContainsFunc(d.Joins, func(j form.Join) bool {
			return strings.EqualFold(j.To, dataset) && len(j.Columns) == 1 && strings.EqualFold(j.Columns[0], column)
		})
	})
}

// columns checks that the statement uses the columns and datasets that the question names.
func (a *audit) columns() {
	for _, s := range a.senses {
		if !a.isDemand(s) {
			continue
		}

		isUsed := slices.ContainsFunc(a.senses, func(o planner.Sense) bool {
			return o.At < s.End && s.At < o.End && a.isMeant(o)
		})
		if !isUsed {
			a.add(Column, s.Words, fmt.Sprintf("The question says %q. The statement does not use it.", s.Words))
		}
	}
}

// isDemand reports whether a statement must use the column or dataset that a sense names. It need not use the dataset of a word
// that only accompanies another one: "Outdoor products" are the rows of a category.
func (a *audit) isDemand(s planner.Sense) bool {
	if s.Kind == planner.MeasureSense {
		isPart := slices.ContainsFunc(a.senses, func(o planner.Sense) bool { return o.Kind == planner.ColumnSense && o.At == s.End+1 })

		return !a.calls("*") && !isPart && (len(s.Columns) > 1 || a.follows(s, "count", "sum", "average", "median", "how much"))
	}

	if s.Kind != planner.ColumnSense || !s.Exact || s.Verb {
		return false
	}

	switch role := a.roleOf(s.Dataset, s.Column); {
	case role == meaning.Count:
		return a.follows(s, "count", "sum", "average", "median", "highest", "lowest", "most", "least")
	case role == meaning.Date:
		return slices.ContainsFunc(a.used, func(r ref) bool { return a.roleOf(s.Dataset, r.column) == meaning.Date })
	case isThing(role), role == meaning.Flag:
		return a.follows(s, "group", "by", "which", "list", "top", "distinct")
	default:
		return true
	}
}

// follows reports whether a sense is the first name after one of the operators.
func (a *audit) follows(s planner.Sense, words ...string) bool {
	for i, o := range a.senses {
		if o.Kind == planner.WordSense && slices.Contains(words, o.Word) && !a.isDone(o) && slices.ContainsFunc(a.after(&a.senses[i]), func(n planner.Sense) bool { return n.At == s.At }) {
			return true
		}
	}

	return false
}

// isDone reports whether "by" follows a verb, and so says who did it.
func (a *audit) isDone(s planner.Sense) bool {
	before := strings.Fields(a.Question[:s.At])

	return s.Word == "by" && len(before) > 0 && lexicon.IsVerb(strings.ToLower(before[len(before)-1]))
}

// shown checks that a list of rows shows something that tells them apart or that the question names.
func (a *audit) shown() {
	c := a.outline.outer
	if len(c.aggregates) > 0 && !c.grouped || len(c.outputs) == 0 || c.figures {
		return
	}

	for _, r := range c.outputs {
		role := a.roleIn(c, r)
		isLabel := slices.ContainsFunc(c.sources, func(s source) bool { return s.table != "" && a.isKey(s.table, r.column) })

		if role == "" || role == meaning.Name || role == meaning.Identifier || isLabel || a.names([]ref{r}) || role.IsFigure() || role == meaning.Date || role == meaning.Year {
			return
		}
	}

	a.add(Column, c.outputs[0].column, fmt.Sprintf("The statement shows %s. The question does not ask for it.", c.outputs[0].column))
}

// foreignColumns checks that a subquery selects columns of its own datasets: a name that it does not have is that of the
// query around it, so that the condition says nothing.
func (a *audit) foreignColumns() {
	for _, c := range a.outline.choices {
		if c == a.outline.outer || len(c.sources) != 1 || a.dataset(c.sources[0].table) == nil {
			continue
		}

		for _, r := range c.outputs {
			if r.alias == "" && a.roleOf(c.sources[0].table, r.column) == "" && a.isColumn(r.column) {
				a.add(Column, r.column, fmt.Sprintf("The subquery selects %s, which is not a column of %s.", r.column, c.sources[0].table))
			}
		}
	}
}

// isMeant reports whether the statement uses what a sense means.
func (a *audit) isMeant(s planner.Sense) bool {
	switch s.Kind {
	case planner.ColumnSense:
		return a.usesColumn(s.Column)
	case planner.MeasureSense:
		return !slices.ContainsFunc(s.Columns, func(name string) bool { return !a.usesColumn(name) })
	case planner.RowsSense:
		return a.usesTable(s.Dataset)
	case planner.ValueSense:
		return slices.ContainsFunc(a.constants(), func(c constant) bool { return strings.EqualFold(c.text, s.Value) }) || a.usesColumn(s.Column)
	default:
		return true
	}
}

// roles checks that only figures are aggregated, and that what is added up adds up.
func (a *audit) roles() {
	for _, c := range a.outline.choices {
		for _, one := range c.aggregates {
			isCalculated := !one.direct && len(one.refs) > 1 && slices.Contains([]string{"sum", "avg", "median"}, one.function)
			if isCalculated && slices.ContainsFunc(one.refs, func(r ref) bool { return a.roleIn(c, r) == meaning.Identifier }) {
				a.add(Role, one.function, fmt.Sprintf("The statement calculates with %s, which only identifies.", one.refs[slices.IndexFunc(one.refs, func(r ref) bool { return a.roleIn(c, r) == meaning.Identifier })].column))
			}

			if !one.direct || len(one.refs) != 1 {
				continue
			}

			role := a.roleIn(c, one.refs[0])
			isThing := isThing(role) || role == meaning.Year

			switch {
			case one.function == "sum" && (isThing || role == meaning.Price && a.hasCounts(c) || role == meaning.Share):
				a.add(Role, one.refs[0].column, fmt.Sprintf("The statement adds up %s, which does not add up.", one.refs[0].column))
			case (one.function == "max" || one.function == "min") && role == meaning.Identifier && !a.names(one.refs):
				a.add(Role, one.refs[0].column, fmt.Sprintf("The statement takes the %s of %s, which only identifies.", one.function, one.refs[0].column))
			case (one.function == "avg" || one.function == "median") && isThing:
				a.add(Role, one.refs[0].column, fmt.Sprintf("The statement averages %s, which is not a figure.", one.refs[0].column))
			}
		}
	}
}

// hasCounts reports whether a dataset of a SELECT has a quantity. Where there is none, a price is that of the whole row.
func (a *audit) hasCounts(c *choice) bool {
	return slices.ContainsFunc(c.sources, func(s source) bool {
		d := a.dataset(s.table)

		return d != nil && slices.ContainsFunc(d.Columns, func(c formColumn) bool { return c.Role == meaning.Count })
	})
}

// roleIn returns the role of a column of a SELECT, "" if it is not a column of a dataset.
func (a *audit) roleIn(c *choice, r ref) meaning.Role {
	for _, s := range c.sources {
		if s.table != "" && (r.alias == "" || strings.EqualFold(r.alias, s.alias)) {
			if role := a.roleOf(s.table, r.column); role != "" {
				return role
			}
		}
	}

	return ""
}

// repetition checks that no join repeats rows that are counted, added up or averaged.
func (a *audit) repetition() {
	for _, c := range a.outline.choices {
		if len(c.sources) < 2 {
			continue
		}

		for _, one := range c.aggregates {
			if one.distinct || !slices.Contains([]string{"count", "count_star", "sum", "avg", "median"}, one.function) {
				continue
			}

			if text := a.repeats(c, one); text != "" {
				a.add(Repeated, one.function, text)
			}
		}
	}
}

// idle checks that the statement uses something of every dataset that it joins, or that the question names its rows.
func (a *audit) idle() {
	for _, c := range a.outline.choices {
		if len(c.sources) < 2 || len(c.pairs) == 0 {
			continue
		}

		used := c.used()

		for at, s := range c.sources {
			links := len(slices.DeleteFunc(slices.Clone(c.pairs), func(pair [2]ref) bool {
				return a.sourceOf(c, pair[0]) != at && a.sourceOf(c, pair[1]) != at
			}))

			name := s.table
			if s.inner != nil && len(s.inner.sources) == 1 {
				name = s.inner.sources[0].table
			}

			isUsed := links != 1 || name == "" || slices.ContainsFunc(used, func(r ref) bool { return a.sourceOf(c, r) == at })
			isSaid := slices.ContainsFunc(a.senses, func(o planner.Sense) bool { return strings.EqualFold(o.Dataset, name) && o.Kind == planner.RowsSense })

			// The dataset may be used elsewhere in the same SELECT.
			isAgain := slices.ContainsFunc(c.sources[:at], func(o source) bool { return strings.EqualFold(o.table, name) })

			if !isUsed && (!isSaid || isAgain) {
				a.add(Repeated, name, fmt.Sprintf("The statement joins %s and uses nothing of it. The join may repeat or lose rows.", name))
			}
		}
	}
}

// used returns the columns that a SELECT shows, groups by, compares, aggregates or orders by.
func (c *choice) used() []ref {
	used := slices.Concat(c.outputs, c.groups)

	for _, f := range c.filters {
		used = append(used, f.refs...)
	}

	for _, one := range c.aggregates {
		used = append(used, one.refs...)
	}

	for _, one := range c.orders {
		used = append(used, one.refs...)
	}

	return used
}

// repeats says how a join repeats the rows of an aggregate, "" if it does not.
func (a *audit) repeats(c *choice, one aggregate) string {
	roots := a.roots(c)
	if len(roots) == 0 {
		return "A join repeats rows: no dataset of the statement has each of its rows once. Figures may be too large."
	}

	if one.function == "count_star" {
		return ""
	}

	for _, r := range one.refs {
		at := a.sourceOf(c, r)
		if at < 0 || slices.Contains(roots, at) {
			return ""
		}
	}

	if len(one.refs) == 0 {
		return ""
	}

	return fmt.Sprintf("A join repeats the rows of %s, so that %s is counted several times.", firstOf(c.sources[a.sourceOf(c, one.refs[0])].table, c.sources[a.sourceOf(c, one.refs[0])].alias), one.refs[0].column)
}

// rootOf returns the dataset whose rows a SELECT has, "" if that is not known.
func (a *audit) rootOf(c *choice) string {
	roots := a.roots(c)
	if len(roots) != 1 {
		return ""
	}

	return c.sources[roots[0]].table
}

// roots returns the sources from which every join leads to at most one row of the others.
func (a *audit) roots(c *choice) (list []int) {
	for start := range c.sources {
		reached := []int{start}

		for changed := true; changed; {
			changed = false

			for to := range c.sources {
				if !slices.Contains(reached, to) && a.leads(c, reached, to) {
					reached, changed = append(reached, to), true
				}
			}
		}

		if len(reached) == len(c.sources) {
			list = append(list, start)
		}
	}

	return list
}

// leads reports whether a join reaches at most one row of a source, because the joined columns identify its rows.
func (a *audit) leads(c *choice, from []int, to int) bool {
	var joined []string

	for _, name := range c.using {
		isShared := slices.ContainsFunc(from, func(at int) bool { return a.hasColumn(c.sources[at], name) })
		if isShared && a.hasColumn(c.sources[to], name) {
			joined = append(joined, strings.ToLower(name))
		}
	}

	for _, pair := range c.pairs {
		for i, r := range pair {
			other := a.sourceOf(c, pair[1-i])
			if a.sourceOf(c, r) == to && (slices.Contains(from, other) || other < 0) {
				joined = append(joined, strings.ToLower(r.column))
			}
		}
	}

	// All rows of a group have the same value in a column of GROUP BY.
	for _, r := range c.groups {
		if a.sourceOf(c, r) == to {
			joined = append(joined, strings.ToLower(r.column))
		}
	}

	// A condition on one value fixes the column, as a join does.
	for _, f := range c.filters {
		if f.is == "=" && len(f.values) == 1 && len(f.refs) == 1 && !f.negated && f.part == "" && a.sourceOf(c, f.refs[0]) == to {
			joined = append(joined, strings.ToLower(f.refs[0].column))
		}
	}

	return a.isUnique(c.sources[to], joined)
}

// isUnique reports whether columns identify the rows of a source. An unknown source is trusted.
func (a *audit) isUnique(s source, columns []string) bool {
	has := func(name string) bool { return slices.Contains(columns, strings.ToLower(name)) }

	if s.inner != nil {
		c := s.inner
		if len(c.aggregates) > 0 && !c.grouped || c.limit == 1 {
			return true
		}

		if c.grouped || c.distinct {
			by := c.groups
			if !c.grouped {
				by = c.outputs
			}

			return !slices.ContainsFunc(by, func(r ref) bool { return !has(r.column) }) || len(columns) > 0 && len(c.shown) > 0 && slices.ContainsFunc(columns, func(name string) bool { return c.shown[name] != nil })
		}

		if len(c.sources) == 1 {
			renamed := make([]string, len(columns))
			for i, name := range columns {
				renamed[i] = name
				if shown := c.shown[name]; shown != nil {
					renamed[i] = strings.ToLower(refOf(shown).column)
				}
			}

			return a.isUnique(c.sources[0], renamed)
		}

		return true
	}

	d := a.dataset(s.table)
	if d == nil || len(d.Keys) == 0 {
		return d == nil
	}

	return slices.ContainsFunc(d.Keys, func(key []string) bool {
		return !slices.ContainsFunc(key, func(name string) bool { return !has(name) })
	})
}

// hasColumn reports whether a source has a column of this name.
func (a *audit) hasColumn(s source, name string) bool {
	if s.inner != nil {
		return s.inner.shown[strings.ToLower(name)] != nil || slices.ContainsFunc(s.inner.outputs, func(r ref) bool { return strings.EqualFold(r.column, name) })
	}

	return a.roleOf(s.table, name) != ""
}

// sourceOf returns the index of the source that a column belongs to, or -1.
func (a *audit) sourceOf(c *choice, r ref) int {
	for i, s := range c.sources {
		if r.alias != "" && strings.EqualFold(r.alias, s.alias) || r.alias == "" && a.hasColumn(s, r.column) {
			return i
		}
	}

	return -1
}
