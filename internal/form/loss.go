package form

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Check is a statement that counts the rows that figures leave out because they lack a row of another dataset: revenue by
// region leaves out orders without a customer.
type Check struct {
	SQL    string // a row for each loss, of the columns of Found; empty if no row can be left out
	losses []loss
}

// Found is a row of the result of a check.
type Found struct {
	Loss   int      `json:"loss"`   // index
	Lost   int64    `json:"lost"`   // rows that are left out
	Among  int64    `json:"among"`  // rows that meet the conditions on the dataset itself
	Amount *float64 `json:"amount"` // total of the figure over the rows that are left out; nil if there is none
}

// loss is a reason why rows are left out.
type loss struct {
	sql     string // of the check, without the number of the loss
	data    *Dataset
	without []string // what the rows lack
	towards []string // figures that the rows do not count towards; empty if the rows are not counted at all
	figure  string   // that Amount is the total of
	likely  bool     // nothing says that each row has a partner
}

// Sentences returns what a reader must know about the rows that a check found.
func (c Check) Sentences(found []Found) (list []string) {
	for _, f := range found {
		if f.Lost <= 0 || f.Loss < 0 || f.Loss >= len(c.losses) {
			continue
		}

		l := c.losses[f.Loss]

		have, are, their := "have", l.effect("are", "do"), "their"
		if f.Lost == 1 {
			have, are, their = "has", l.effect("is", "does"), "its"
		}

		amount := ""
		if f.Amount != nil && l.figure != "" {
			amount = "; " + their + " " + l.figure + " is " + rounded(*f.Amount)
		}

		list = append(list, fmt.Sprintf("%d of %d rows of %s %s no %s and %s%s.", f.Lost, f.Among, mark(l.data.Name), have, strings.Join(l.without, " or no "), are, amount))
	}

	return list
}

// Uncounted returns what a reader must know if the check failed.
func (c Check) Uncounted() (list []string) {
	for _, l := range c.losses {
		if l.likely {
			list = append(list, "Rows of "+mark(l.data.Name)+" that have no "+strings.Join(l.without, " or no ")+" "+l.effect("are", "do")+". How many there are could not be counted.")
		}
	}

	return list
}

// effect returns what happens to the rows.
func (l loss) effect(are, do string) string {
	if len(l.towards) == 0 {
		return are + " not counted"
	}

	return do + " not count towards " + strings.Join(l.towards, " and ")
}

// rounded returns a number with two decimals if it has any.
func rounded(n float64) string {
	if n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}

	return strconv.FormatFloat(n, 'f', 2, 64)
}

// check returns the check of all losses.
func (c *compiler) check() Check {
	parts := make([]string, len(c.losses))
	for i, l := range c.losses {
		parts[i] = "SELECT " + strconv.Itoa(i) + ` AS "loss", ` + l.sql
	}

	return Check{SQL: strings.Join(parts, " UNION ALL "), losses: c.losses}
}

// counted returns the conditions on the rows that figures are calculated from, and adds the losses of these figures.
func (s *scope) counted(g given, leaves []leaf) ([]string, error) {
	where, err := s.predicates(g, nil)
	if err != nil {
		return nil, err
	}

	for _, sql := range s.totals(&err) {
		where = append(where, predicate{sql: sql})
	}

	if err != nil {
		return nil, err
	}

	if len(leaves) > 0 { // otherwise nothing is counted
		s.loseRows(where, leaves)
	}

	for _, l := range leaves {
		if err := s.loseValues(where, l); err != nil {
			return nil, err
		}
	}

	return statements(where), nil
}

// loseRows adds the loss of rows that do not meet the conditions because they lack a row of another dataset.
func (s *scope) loseRows(where []predicate, leaves []leaf) {
	own, joined := split(where)
	if len(joined) == 0 {
		return
	}

	one, value := s.loss(nil, joined, nil), ""

	if i := slices.IndexFunc(leaves, s.isTold); i >= 0 {
		v, err := s.term(*leaves[i].measure.Of, leaves[i].data, Sum)
		if err == nil {
			value, one.figure = v.sql, s.figure(leaves[i].measure)
		}
	}

	s.lose(one, own, value, s.lost(joined, nil), needed(joined, nil))
}

// isTold reports whether the total of a figure is told for rows that are left out: one that only the rows themselves have.
func (s *scope) isTold(l leaf) bool {
	if l.measure.Function != Sum || l.measure.Of == nil || len(l.measure.Where) > 0 {
		return false
	}

	v, err := s.term(*l.measure.Of, l.data, Sum)

	return err == nil && !slices.ContainsFunc(v.cells, func(c cell) bool { return c.table != s.root })
}

// loseValues adds the loss of rows that do not count towards one figure: they lack a row whose column the figure is
// calculated from, or that has to meet one of its conditions.
func (s *scope) loseValues(where []predicate, l leaf) error {
	var (
		cells []*table
		rules []predicate
		err   error
	)

	if l.measure.Of != nil {
		if cells, err = s.sources(l); err != nil {
			return err
		}
	}

	if !l.all {
		if rules, err = s.predicates(given{list: l.measure.Where, home: l.data}, named(s.c.form.Where, s.c.home)); err != nil {
			return err
		}
	}

	own, joined := split(rules)
	if len(cells) == 0 && len(joined) == 0 {
		return nil
	}

	s.lose(s.loss(&l.measure, joined, cells), append(slices.Clone(where), own...), "", s.lost(joined, cells), needed(slices.Concat(where, joined), cells))

	return nil
}

// sources returns the joined tables that a figure is calculated from.
func (s *scope) sources(l leaf) (list []*table, err error) {
	var cells []cell

	if l.measure.Of.Op == "" {
		at, err := s.find(l.measure.Of.Column, l.data)
		if err != nil {
			return nil, err
		}

		cells = []cell{at}
	} else {
		v, err := s.term(*l.measure.Of, l.data, l.measure.Function)
		if err != nil {
			return nil, err
		}

		cells = v.cells
	}

	for _, c := range cells {
		if c.table != s.root && !slices.Contains(list, c.table) {
			list = append(list, c.table)
		}
	}

	return list, nil
}

func (s *scope) figure(m Measure) string {
	return speaker{schema: s.c.schema, home: s.root.data}.figure(m)
}

// result returns in words what a measure calculates.
func (s *scope) result(m Measure) string {
	switch {
	case m.Share && len(m.Where) > 0:
		return "percentage"
	case m.Of == nil:
		return "number of " + s.root.data.rows()
	default:
		return s.figure(m)
	}
}

// split divides conditions into those on the rows themselves and those on rows of other datasets.
func split(list []predicate) (own, joined []predicate) {
	for _, p := range list {
		if len(p.needs) == 0 {
			own = append(own, p)
		} else {
			joined = append(joined, p)
		}
	}

	return own, joined
}

// needed returns the tables of conditions and cells.
func needed(list []predicate, cells []*table) []*table {
	all := slices.Clone(cells)
	for _, p := range list {
		all = append(all, p.needs...)
	}

	return all
}

// loss returns a loss in words, without its statement.
func (s *scope) loss(m *Measure, joined []predicate, cells []*table) loss {
	one := loss{data: s.root.data}
	if m != nil {
		one.towards = []string{"the " + s.result(*m)}
	}

	for _, t := range needed(joined, cells) {
		words := mark(t.data.row())
		if len(s.c.schema.paths(s.root.data, t.data)) > 1 {
			first, _, _ := strings.Cut(strings.TrimPrefix(t.path, "/"), " > ")
			words += " (by " + mark(first) + ")"
		}

		if !slices.Contains(one.without, words) {
			one.without = append(one.without, words)
		}

		one.likely = one.likely || t.partial
	}

	return one
}

// lose adds a loss: the rows under conditions of which lost is true. The amount is the total of value, if there is one.
func (s *scope) lose(one loss, where []predicate, value, lost string, tables []*table) {
	var from strings.Builder

	from.WriteString(" FROM " + s.source(s.root))

	for i, join := range s.joins {
		t := s.tables[i+1]
		if slices.ContainsFunc(tables, func(o *table) bool { return o == t || strings.HasPrefix(o.path, t.path+"/") }) {
			from.WriteString(join)
		}
	}

	inner, amount := lost+` AS "is_lost"`, "CAST(NULL AS DOUBLE)"
	if value != "" {
		inner, amount = inner+", "+value+` AS "value"`, `CAST(sum("value") FILTER (WHERE "is_lost") AS DOUBLE)`
	}

	one.sql = `count(*) FILTER (WHERE "is_lost") AS "lost", count(*) AS "among", ` + amount + ` AS "amount" FROM (SELECT ` + inner +
		from.String() + clause(" WHERE ", statements(where)) + ") AS " + quoted(s.c.free("checked"))

	if i := slices.IndexFunc(s.c.losses, func(o loss) bool { return o.sql == one.sql }); i >= 0 {
		for _, f := range one.towards {
			if !slices.Contains(s.c.losses[i].towards, f) {
				s.c.losses[i].towards = append(s.c.losses[i].towards, f)
			}
		}

		return
	}

	s.c.losses = append(s.c.losses, one)
}

// lost returns the SQL condition under which a row is left out because it lacks a row of another dataset. Such a row does not fail
// any condition that can be checked. It lacks the row for another condition, or a row that the figure is calculated from.
func (s *scope) lost(joined []predicate, cells []*table) string {
	var meets, fails []string

	for _, p := range joined {
		meets = append(meets, "("+p.sql+" OR "+s.missing(p.needs)+")")
	}

	if len(joined) == 1 && len(cells) == 0 { // the same, but shorter
		return s.missing(joined[0].needs) + " AND NOT coalesce(" + joined[0].sql + ", false)"
	}

	if len(joined) > 0 {
		fails = append(fails, "NOT coalesce("+strings.Join(statements(joined), " AND ")+", false)")
	}

	if len(cells) > 0 {
		fails = append(fails, s.missing(cells))
	}

	return strings.Join(append(meets, "("+strings.Join(fails, " OR ")+")"), " AND ")
}

// missing returns the SQL condition under which a row has no partner in at least one of the tables.
func (s *scope) missing(tables []*table) string {
	var list []string

	for _, t := range tables {
		if sql := s.ref(t, t.key) + " IS NULL"; !slices.Contains(list, sql) {
			list = append(list, sql)
		}
	}

	if len(list) == 1 {
		return list[0]
	}

	return "(" + strings.Join(list, " OR ") + ")"
}
