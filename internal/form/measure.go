package form

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/meaning"
)

// leaf is an aggregate of the rows of one dataset. Measures are calculated from leaves.
type leaf struct {
	measure Measure
	data    *Dataset
	all     bool // without the conditions of the measure
	whole   bool // of all groups together
}

// of returns the dataset whose rows a measure aggregates.
func (c *compiler) of(m Measure) (*Dataset, error) {
	if m.Dataset == "" {
		return c.home, nil
	}

	d := c.schema.dataset(m.Dataset)
	if d == nil {
		return nil, &NameError{Dataset: m.Dataset}
	}

	return d, nil
}

// adds reports whether the results of a function for parts add up to that for the whole.
func (f Function) adds() bool { return f == Count || f == Sum }

// measure returns a measure as SQL. The function aggregate returns its leaves.
func (c *compiler) measure(m Measure, aggregate func(leaf) (string, error)) (string, error) {
	d, err := c.of(m)
	if err != nil {
		return "", err
	}

	own, err := aggregate(leaf{measure: m, data: d})
	if err != nil {
		return "", err
	}

	if m.Share && m.Per == nil {
		if own, err = c.share(m, d, own, aggregate); err != nil {
			return "", err
		}
	}

	for _, with := range []*Measure{m.Less, m.Per} {
		if with == nil {
			continue
		}

		for _, side := range []Measure{m, *with} {
			if err := c.calculable(side); err != nil {
				return "", err
			}
		}
	}

	if m.Less != nil {
		less, err := c.measure(*m.Less, aggregate)
		if err != nil {
			return "", err
		}

		first := m
		first.Less, first.Per = nil, nil
		own = "(" + orZero(first, own) + " - " + orZero(*m.Less, less) + ")"
	}

	if m.Per == nil {
		return own, nil
	}

	per, err := c.measure(*m.Per, aggregate)
	if err != nil {
		return "", err
	}

	factor := "1.0"
	if m.Share {
		factor = "100.0"
	}

	return factor + " * " + own + " / nullif(" + per + ", 0)", nil
}

// calculable returns an error if a measure is a date, which can only be shown.
func (c *compiler) calculable(m Measure) error {
	if m.Of == nil || m.Of.Op != "" || (m.Function != Min && m.Function != Max) {
		return nil
	}

	d, err := c.of(m)
	if err != nil {
		return err
	}

	if m.Of.Dataset != "" {
		d = c.schema.dataset(m.Of.Dataset)
	}

	if d != nil && d.column(m.Of.Name) != nil && d.column(m.Of.Name).role() == meaning.Date {
		return &FigureError{Function: m.Function, Dataset: d.Name, Column: m.Of.Name, Reason: NotAFigure}
	}

	return nil
}

// orZero returns a figure that is 0 if there are no rows.
func orZero(m Measure, sql string) string {
	if m.Function != Sum || m.Per != nil || m.Less != nil || m.Share {
		return sql
	}

	return "coalesce(" + sql + ", 0)"
}

// share returns a figure in percent of the figure for all rows, or for all groups.
func (c *compiler) share(m Measure, d *Dataset, own string, aggregate func(leaf) (string, error)) (string, error) {
	if len(m.Where) == 0 {
		if !m.Function.adds() || len(c.form.Groups) == 0 {
			return "", &FigureError{Function: m.Function, Dataset: d.Name, Reason: Incomplete}
		}

		whole, err := aggregate(leaf{measure: m, data: d, whole: true})

		return "100.0 * " + own + " / nullif(" + whole + ", 0)", err
	}

	if !m.Function.adds() && m.Function != CountDistinct {
		return "", &FigureError{Function: m.Function, Dataset: d.Name, Reason: Incomplete}
	}

	all, err := aggregate(leaf{measure: m, data: d, all: true})
	if err != nil {
		return "", err
	}

	if m.Function == Sum {
		own = "coalesce(" + own + ", 0)"
	}

	return "100.0 * " + own + " / nullif(" + all + ", 0)", nil
}

// isPart reports whether a measure is a share of all groups.
func (m Measure) isPart() bool {
	return (m.Share && len(m.Where) == 0 && m.Per == nil) || (m.Per != nil && m.Per.isPart()) || (m.Less != nil && m.Less.isPart())
}

// leaves returns the datasets of the leaves of a measure.
func (c *compiler) leaves(m Measure) (list []*Dataset, err error) {
	d, err := c.of(m)
	list = append(list, d)

	for _, inner := range []*Measure{m.Less, m.Per} {
		if err != nil || inner == nil {
			continue
		}

		var more []*Dataset

		more, err = c.leaves(*inner)
		list = append(list, more...)
	}

	return list, err
}

// aggregate returns a leaf as SQL, in the scope of its dataset.
func (s *scope) aggregate(l leaf) (string, error) {
	m := l.measure

	of, err := s.argument(l)
	if err != nil {
		return "", err
	}

	var sql string

	switch m.Function {
	case Count, CountDistinct:
		sql = "count(" + of + ")"
	case Average:
		sql = "avg(" + of + ")"
	case Sum, Median, Min, Max:
		sql = string(m.Function) + "(" + of + ")"
	default:
		return "", &FigureError{Function: m.Function, Dataset: l.data.Name, Reason: Incomplete}
	}

	if l.all || len(m.Where) == 0 {
		return sql, nil
	}

	where, err := s.conditions(given{list: m.Where, home: l.data}, named(s.c.form.Where, s.c.home))
	if err != nil {
		return "", err
	}

	return sql + clause(" FILTER (WHERE ", where) + ")", nil
}

// argument returns what a leaf aggregates.
func (s *scope) argument(l leaf) (string, error) {
	m := l.measure

	switch {
	case m.Function == Count && m.Of == nil:
		return "*", nil
	case m.Of == nil:
		return "", &FigureError{Function: m.Function, Dataset: l.data.Name, Reason: Incomplete}
	case m.Of.Op == "" && (m.Function == Count || m.Function == CountDistinct || m.Function == Min || m.Function == Max):
		return s.single(l)
	}

	v, err := s.term(*m.Of, l.data, m.Function)
	if err != nil {
		return "", err
	}

	if err := s.check(l, v); err != nil {
		return "", err
	}

	s.notePartial(m, v.cells)

	if m.Function == CountDistinct {
		return "DISTINCT " + v.sql, nil
	}

	if strings.HasPrefix(v.sql, "(") { // around the whole of a calculation
		v.sql = v.sql[1 : len(v.sql)-1]
	}

	return v.sql, nil
}

// single returns a column of which the values are counted, or the first or last one is looked for.
func (s *scope) single(l leaf) (string, error) {
	f, of := l.measure.Function, l.measure.Of.Column

	at, err := s.find(of, l.data)
	if err != nil {
		return "", err
	}

	role := at.info.role()

	switch {
	case f == Count && at.table != s.root:
		return "", &FigureError{Function: f, Dataset: at.table.data.Name, Column: of.Name, Reason: Coarser}
	case f == Count:
		return at.sql, nil
	case f == CountDistinct:
		return "DISTINCT " + at.sql, nil
	case role == meaning.Date && at.info.kind() == text:
		return day(at.sql, at.info), nil
	case role == meaning.Date:
		return at.sql, nil
	case (role == meaning.Year || role.IsFigure()) && at.info.isNumeric():
		return at.sql, nil
	default:
		return "", &FigureError{Function: f, Dataset: at.table.data.Name, Column: of.Name, Reason: NotAFigure}
	}
}

// check returns an error if the figures of a leaf would mean nothing, or would be counted several times.
func (s *scope) check(l leaf, v value) error {
	f := l.measure.Function
	wrong := func(reason Reason) error {
		e := &FigureError{Function: f, Dataset: l.data.Name, Reason: reason}
		if len(v.cells) > 0 {
			e.Dataset, e.Column = v.cells[0].table.data.Name, v.cells[0].info.Name
		}

		return e
	}

	if f == Min || f == Max || f == CountDistinct {
		return nil
	}

	// A figure of a joined dataset stands in several rows here. A price may be multiplied with what is here.
	if !slices.ContainsFunc(v.cells, func(c cell) bool { return c.table == s.root }) {
		return wrong(Coarser)
	}

	for _, c := range v.cells {
		if f == Sum && c.table != s.root && c.info.role().Adds() {
			return &FigureError{Function: f, Dataset: c.table.data.Name, Column: c.info.Name, Reason: Coarser}
		}
	}

	switch {
	case f != Sum:
		return nil
	case v.role == meaning.Price || v.role == meaning.Share:
		return wrong(NotAdditive)
	case v.role == meaning.Balance && !s.isMoment(l):
		return wrong(OverTime)
	default:
		return nil
	}
}

// isMoment reports whether the rows that a leaf adds up are those of one date.
func (s *scope) isMoment(l leaf) bool {
	isTime := func(c Column, home *Dataset) *ColumnInfo {
		if (c.Dataset != "" && c.Dataset != l.data.Name) || (c.Dataset == "" && home != l.data) || len(c.Via) > 0 {
			return nil
		}

		info := l.data.column(c.Name)
		if info == nil || !slices.Contains(l.data.times(), info) {
			return nil
		}

		return info
	}

	if len(l.data.times()) == 0 {
		return true
	}

	fixes := func(list []Condition, home *Dataset) bool {
		return slices.ContainsFunc(list, func(c Condition) bool {
			return (c.Is == Latest || (c.Is == Is && len(c.Values) == 1 && c.Other == nil)) && isTime(c.Column, home) != nil
		})
	}

	if fixes(s.c.form.Where, s.c.home) || (!l.all && fixes(l.measure.Where, l.data)) {
		return true
	}

	return slices.ContainsFunc(s.c.form.Groups, func(g Group) bool {
		info := isTime(g.Column, s.c.home)

		return info != nil && (g.Grain == "" || info.role() == meaning.Year || (g.Grain == Day && strings.EqualFold(info.Type, "date")))
	})
}

// times returns the columns that date a row: dates, or else years.
func (d *Dataset) times() (list []*ColumnInfo) {
	for _, role := range []meaning.Role{meaning.Date, meaning.Year} {
		for i := range d.Columns {
			if d.Columns[i].role() == role {
				list = append(list, &d.Columns[i])
			}
		}

		if len(list) > 0 {
			return list
		}
	}

	return nil
}

func (s *scope) notePartial(m Measure, cells []cell) {
	for _, c := range cells {
		if c.table.partial {
			s.c.note("Rows of " + mark(s.root.data.Name) + " without " + article(c.table.data.row()) + " do not count towards " + speaker{schema: s.c.schema, home: s.root.data}.figure(m) + ".")
		}
	}
}
