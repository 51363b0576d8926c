package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

// Limits of what people can say about a dataset; the contract has the same ones and those of the texts.
const (
	maxJoins    = 100
	maxMeasures = 100
	maxCode     = 64 // characters of a name that a fault repeats
)

// checking turns the names of a request into what is stored, and collects what is wrong with the request.
type checking struct {
	meant
	want    Semantics
	targets map[string]catalog.Item // of the joins that the request names
	draft   meaning.Meaning
	saved   meaning.Saved
	faults  []fault.Sub
}

// findTargets looks up the datasets that the joins of a request name. What does not exist and what the caller may not see
// get the same words.
func (q *Query) findTargets(ctx context.Context, who auth.Principal, at catalog.Path, c *checking) error {
	c.targets = map[string]catalog.Item{}
	missing := map[string]string{}

	if len(c.want.Joins) > maxJoins {
		return fault.Invalid("joins", fmt.Sprintf("must have at most %d entries", maxJoins))
	}

	return q.DB.Do(ctx, func(db postgres.Querier) error {
		for i, j := range c.want.Joins {
			name := j.Value.To
			if _, known := c.targets[name]; known {
				continue
			}

			if _, known := missing[name]; !known {
				found, err := q.target(ctx, db, who, at.Named(name))

				switch {
				case err == nil:
					c.targets[name] = found

					continue
				case !fault.Is(err, fault.NotFound):
					return err
				}

				missing[name] = fault.From(err).Message
			}

			c.fault(missing[name], "joins", i, "to")
		}

		return nil
	})
}

func (q *Query) target(ctx context.Context, db postgres.Querier, who auth.Principal, at catalog.Path) (catalog.Item, error) {
	found, err := q.Catalog.Allow(ctx, db, who, auth.Viewer, at)
	if fault.Is(err, fault.NotFound) {
		return catalog.Item{}, q.Catalog.NoDataset(ctx, db, who, at)
	}

	return catalog.Item{Dataset: found, Owner: who.NameOf(at.Username)}, err
}

// check returns what is stored.
func (c *checking) check() (meaning.Saved, error) {
	c.draft = c.meant.draft()
	c.saved.Columns = map[string]meaning.Column{}

	c.row()

	for _, name := range slices.Sorted(maps.Keys(c.want.Columns)) {
		c.column(name, c.want.Columns[name])
	}

	for i, j := range c.want.Joins {
		c.join(i, j)
	}

	if len(c.want.Measures) > maxMeasures {
		c.fault(fmt.Sprintf("must have at most %d entries", maxMeasures), "measures")
	} else {
		for i, m := range c.want.Measures {
			c.measure(i, m)
		}
	}

	if len(c.faults) > 0 {
		return meaning.Saved{}, fault.InvalidFields(c.faults[:min(len(c.faults), maxFaults)]...)
	}

	return c.saved, nil
}

func (c *checking) fault(message string, path ...any) {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = cut(fmt.Sprint(part), maxCode)
	}

	c.faults = append(c.faults, fault.Sub{Code: strings.Join(parts, "."), Message: message})
}

// drafted reports whether an entry is left to the draft. An entry that says so and is not what the draft says is a fault:
// it would be lost.
func (c *checking) drafted(origin Origin, same bool, path ...any) bool {
	if origin == Drafted && !same {
		c.fault("is marked as drafted, but the draft says something else; remove the source to confirm it, or read the semantics again", path...)
	}

	return origin == Drafted
}

func (c *checking) row() {
	row := c.want.Row
	if c.drafted(row.Origin, row.Value == c.draft.Row, "row") {
		return
	}

	c.texts([]string{row.Value}, "row")
	c.saved.Row = row.Value
}

func (c *checking) column(name string, want Entry[meaning.Column]) {
	column, ok := columnNamed(c.item, name)
	if !ok {
		c.fault(unknownColumn(c.item, name), "columns", name)

		return
	}

	value := want.Value
	value.Confirmed = false

	if c.drafted(want.Origin, sameColumn(value, c.draft.Columns[column.Name]), "columns", name) {
		return
	}

	if _, twice := c.saved.Columns[column.Name]; twice {
		c.fault("names the same column as another entry", "columns", name)
	}

	if !fits(column, value.Role) {
		c.fault(fmt.Sprintf("the role %s needs a column of numbers; %s is %s", value.Role, cut(column.Name, maxCode), column.Type), "columns", name, "role")
	}

	c.texts([]string{value.Unit}, "columns", name, "unit")
	c.texts(value.Synonyms, "columns", name, "synonyms")
	c.saved.Columns[column.Name] = value
}

func sameColumn(a, b meaning.Column) bool {
	return a.Role == b.Role && a.Unit == b.Unit && a.NotForFigures == b.NotForFigures && slices.Equal(a.Synonyms, b.Synonyms)
}

// unknownColumn says that a dataset has no such column, and which one may be meant.
func unknownColumn(item catalog.Item, name string) string {
	names := make([]string, len(item.Columns))
	for i, column := range item.Columns {
		names[i] = column.Name
	}

	message := fmt.Sprintf("%s has no column %s", item.Name, cut(name, maxCode))
	if near := lexicon.Nearest(cut(name, maxCode), names); len(near) > 0 {
		message += "; did you mean " + near[0] + "?"
	}

	return message
}

func (c *checking) join(i int, want Entry[meaning.Join]) {
	value := want.Value
	value.Confirmed = false

	target, ok := c.targets[value.To]
	if !ok {
		return // reported when it was looked up
	}

	if len(value.Columns) != len(value.Keys) {
		c.fault("must have as many entries as columns", "joins", i, "keys")

		return
	}

	value.Columns = c.columns(c.item, value.Columns, "joins", i, "columns")
	value.Keys = c.columns(target, value.Keys, "joins", i, "keys")

	shown := value
	shown.To = relative(c.item, target)

	if c.drafted(want.Origin, slices.ContainsFunc(c.draft.Joins, shown.Same), "joins", i) {
		return
	}

	value.To = catalog.TargetKey(target.Dataset)
	if slices.ContainsFunc(slices.Concat(c.saved.Joins, c.saved.RejectedJoins), value.Same) {
		c.fault("is the same join as another entry", "joins", i)
	}

	if want.Origin == Rejected {
		c.saved.RejectedJoins = append(c.saved.RejectedJoins, value)
	} else {
		c.saved.Joins = append(c.saved.Joins, value)
	}
}

// columns returns names as the dataset writes them.
func (c *checking) columns(item catalog.Item, names []string, path ...any) []string {
	written := make([]string, len(names))

	for i, name := range names {
		column, ok := columnNamed(item, name)
		if !ok {
			c.fault(unknownColumn(item, name), append(slices.Clip(path), i)...)
		} else if slices.Contains(written, column.Name) {
			c.fault("names the same column as another entry", append(slices.Clip(path), i)...)
		}

		written[i] = column.Name
	}

	return written
}

func (c *checking) measure(i int, want Entry[meaning.Measure]) {
	value := want.Value
	value.Confirmed = false

	isDraft := slices.ContainsFunc(c.draft.Measures, func(m meaning.Measure) bool {
		return m.Name == value.Name && m.Function == value.Function && m.Expression == value.Expression && m.Unit == value.Unit && slices.Equal(m.Synonyms, value.Synonyms)
	})
	if c.drafted(want.Origin, isDraft, "measures", i) {
		return
	}

	c.texts([]string{value.Name}, "measures", i, "name")
	c.texts([]string{value.Unit}, "measures", i, "unit")
	c.texts(value.Synonyms, "measures", i, "synonyms")

	if slices.ContainsFunc(slices.Concat(c.saved.Measures, c.saved.RejectedMeasures), value.Same) {
		c.fault("is the name of another measure", "measures", i, "name")
	}

	if want.Origin == Rejected { // its expression is not used, and may name a join that is rejected too
		c.saved.RejectedMeasures = append(c.saved.RejectedMeasures, value)

		return
	}

	value.Expression = c.expression(value, "measures", i, "expression")
	c.saved.Measures = append(c.saved.Measures, value)
}

// expression returns the expression of a measure as it is stored.
func (c *checking) expression(m meaning.Measure, path ...any) string {
	if m.Expression == "" {
		if m.Function != "count" {
			c.fault("is required; only count works without it, and counts the rows", path...)
		}

		return ""
	}

	if len([]rune(m.Expression)) > meaning.MaxExpression {
		c.fault(fmt.Sprintf("must have at most %d characters", meaning.MaxExpression), path...)

		return ""
	}

	parsed, err := meaning.Parse(m.Expression)
	if err != nil {
		c.fault(err.Error(), path...)

		return ""
	}

	calculated := parsed.Op != meaning.ColumnOp || slices.Contains([]string{"sum", "average", "median"}, m.Function)

	if len(parsed.Refs()) == 0 {
		c.fault("must name a column", path...)
	}

	parsed, ok := parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
		stored, column, problem := c.reference(r)
		if problem == "" && calculated && !isNumber(column.Type) {
			problem = fmt.Sprintf("%s is %s; calculations, sum, average and median need numbers", cut(r.String(), maxCode), column.Type)
		}

		if problem != "" {
			c.fault(problem, path...)
		}

		return stored, problem == ""
	})
	if !ok {
		return ""
	}

	return parsed.String()
}

// reference returns a column of an expression as it is stored, or what is wrong with it.
func (c *checking) reference(r meaning.Ref) (meaning.Ref, catalog.Column, string) {
	item := c.item

	if r.Dataset != "" {
		joins := c.joinsWith(r.Dataset)

		switch {
		case len(joins) == 0:
			return r, catalog.Column{}, fmt.Sprintf("%s is not joined; add a join with it that is not drafted or rejected", cut(r.Dataset, maxCode))
		case len(joins) > 1:
			return r, catalog.Column{}, fmt.Sprintf("%s is joined more than once, so it is not clear which join is meant", cut(r.Dataset, maxCode))
		}

		item = joins[0]
		r.Dataset = catalog.TargetKey(item.Dataset)
	}

	column, ok := columnNamed(item, r.Column)
	if !ok {
		return r, column, unknownColumn(item, r.Column)
	}

	r.Column = column.Name

	return r, column, ""
}

// joinsWith returns the dataset of each join of the request that has the name: as the join writes it, otherwise without the
// parts before the last one.
func (c *checking) joinsWith(name string) []catalog.Item {
	var exact, short []catalog.Item

	for _, j := range c.want.Joins {
		target, ok := c.targets[j.Value.To]

		switch {
		case !ok || j.Origin == Drafted || j.Origin == Rejected:
		case strings.EqualFold(j.Value.To, name) || strings.EqualFold(relative(c.item, target), name):
			exact = append(exact, target)
		case strings.EqualFold(target.Name, name):
			short = append(short, target)
		}
	}

	if len(exact) > 0 {
		return exact
	}

	return short
}

// texts refuses control characters: the texts are shown on terminals and to models.
func (c *checking) texts(list []string, path ...any) {
	for i, text := range list {
		if strings.ContainsFunc(text, unicode.IsControl) {
			if len(list) > 1 {
				path = append(slices.Clip(path), i)
			}

			c.fault("contains a control character", path...)

			return
		}
	}
}
