package exchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
)

// merging lays what a document says over the semantics of a dataset.
type merging struct {
	said *said
	now  query.Semantics
	want query.Semantics

	columns         map[string]bool // that the document names
	joins, measures map[int]bool    // indexes in want of what the document says
	issues          []Issue
}

func merge(s *said, now query.Semantics) *merging {
	m := &merging{
		said: s, now: now, want: query.Semantics{Columns: map[string]query.Entry[meaning.Column]{}},
		columns: map[string]bool{}, joins: map[int]bool{}, measures: map[int]bool{},
	}

	if now.Row.Origin == query.Confirmed {
		m.want.Row = now.Row
	}

	for name, c := range now.Columns {
		if c.Origin == query.Confirmed {
			m.want.Columns[name] = c
		}
	}

	for _, j := range now.Joins {
		if j.Origin != query.Drafted {
			m.want.Joins = append(m.want.Joins, j)
		}
	}

	for _, one := range now.Measures {
		if one.Origin != query.Drafted {
			m.want.Measures = append(m.want.Measures, one)
		}
	}

	m.add()

	return m
}

func (m *merging) note(entry, reason string) {
	m.issues = append(m.issues, Issue{m.said.item.Name + ": " + entry, sentence(reason)})
}

func (m *merging) add() {
	if problem := tooLong("row", m.said.row, maxRow); problem != "" {
		m.note("row", problem)
	} else if m.said.row != "" {
		m.want.Row = query.Entry[string]{Value: m.said.row, Origin: query.Confirmed}
	}

	for _, c := range m.said.columns {
		m.column(c)
	}

	for _, j := range m.said.joins {
		m.join(j, query.Confirmed)
	}

	for _, j := range m.said.rejectedJoins {
		m.join(j, query.Rejected)
	}

	for _, one := range m.said.measures {
		m.measure(one, query.Confirmed)
	}

	for _, one := range m.said.rejectedMeasures {
		m.measure(one, query.Rejected)
	}
}

// The limits of texts that the contract has for bodies.
const (
	maxRow          = 200
	maxUnit         = 50
	maxName         = 100
	maxSynonyms     = 20
	maxJoinColumns  = 8
	maxEntries      = 100 // joins, and measures
	maxJoinedLength = 400
)

func tooLong(what, text string, most int) string {
	if utf8.RuneCountInString(text) > most {
		return fmt.Sprintf("the %s has more than %d characters", what, most)
	}

	return ""
}

func wordsProblem(unit string, synonyms []string) string {
	if len(synonyms) > maxSynonyms {
		return fmt.Sprintf("it has more than %d synonyms", maxSynonyms)
	}

	for _, one := range synonyms {
		if one == "" {
			return "a synonym is empty"
		}

		if problem := tooLong("synonym", one, maxName); problem != "" {
			return problem
		}
	}

	return tooLong("unit", unit, maxUnit)
}

func (m *merging) column(c saidColumn) {
	name, now, ok := c.name, query.Entry[meaning.Column]{}, false

	for written, one := range m.now.Columns {
		if written == c.name || !ok && strings.EqualFold(written, c.name) {
			name, now, ok = written, one, true
		}
	}

	if !ok {
		m.note("column "+cut(c.name), fmt.Sprintf("the dataset has no column %s", cut(c.name)))

		return
	}

	next := now.Value
	next.Confirmed = false

	switch {
	case c.whole != nil && !slices.Contains(roles(), c.whole.Role):
		m.note("column "+name, fmt.Sprintf("there is no role %s", cut(string(c.whole.Role))))

		return
	case c.whole != nil:
		next = meaning.Column{Role: c.whole.Role, Unit: c.whole.Unit, Synonyms: c.words, NotForFigures: c.whole.NotForFigures}
	default:
		next.Synonyms = union(now.Value.Synonyms, c.words)

		if c.time && next.Role != meaning.Date && next.Role != meaning.Year {
			m.note("column "+name, fmt.Sprintf("is_time is not kept, because the role of the column is %s; set the role date or year here if it is a time", next.Role))
		}

		if len(next.Synonyms) == len(now.Value.Synonyms) {
			return // nothing new
		}
	}

	if problem := wordsProblem(next.Unit, next.Synonyms); problem != "" {
		m.note("column "+name, problem)

		return
	}

	m.want.Columns[name] = query.Entry[meaning.Column]{Value: next, Origin: query.Confirmed}
	m.columns[name] = true
}

func roles() []meaning.Role {
	return []meaning.Role{
		meaning.Identifier, meaning.Code, meaning.Year, meaning.Category, meaning.Name, meaning.Date, meaning.Amount, meaning.Balance, meaning.Price,
		meaning.Count, meaning.Duration, meaning.Share, meaning.Flag, meaning.Text, meaning.Unknown,
	}
}

func union(have, more []string) []string {
	list := slices.Clone(have)

	for _, one := range more {
		if !slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(one, other) }) {
			list = append(list, one)
		}
	}

	return list
}

func (m *merging) join(j meaning.Join, origin query.Origin) {
	entry := "join " + cut(strings.Join(j.Columns, ", ")+" with "+j.To)

	switch {
	case len(j.Columns) == 0 || len(j.Columns) > maxJoinColumns || len(j.Columns) != len(j.Keys):
		m.note(entry, fmt.Sprintf("a join has 1 to %d columns, and as many keys", maxJoinColumns))

		return
	case len(j.To) > maxJoinedLength || j.To == "":
		m.note(entry, "it does not name a dataset")

		return
	}

	n := slices.IndexFunc(m.want.Joins, func(e query.Entry[meaning.Join]) bool { return e.Value.Same(j) })

	switch {
	case n >= 0 && m.want.Joins[n].Origin == origin:
	case n >= 0:
		m.want.Joins[n].Origin = origin
		m.joins[n] = true
	case len(m.want.Joins) >= maxEntries:
		m.note(entry, fmt.Sprintf("the dataset would have more than %d joins", maxEntries))
	default:
		m.joins[len(m.want.Joins)] = true
		m.want.Joins = append(m.want.Joins, query.Entry[meaning.Join]{Value: j, Origin: origin})
	}
}

func (m *merging) measure(one meaning.Measure, origin query.Origin) {
	entry := "measure " + cut(one.Name)

	problem := wordsProblem(one.Unit, one.Synonyms)
	if problem == "" {
		problem = tooLong("name", one.Name, maxName)
	}

	if _, known := functions()[one.Function]; !known || one.Name == "" {
		problem = "it has no name, or a function that is not known here"
	}

	if problem != "" {
		m.note(entry, problem)

		return
	}

	n := slices.IndexFunc(m.want.Measures, func(e query.Entry[meaning.Measure]) bool { return e.Value.Same(one) })
	added := query.Entry[meaning.Measure]{Value: one, Origin: origin}

	switch {
	case n >= 0 && m.sameMeasure(m.want.Measures[n], added):
	case n >= 0:
		m.want.Measures[n] = added
		m.measures[n] = true
	case len(m.want.Measures) >= maxEntries:
		m.note(entry, fmt.Sprintf("the dataset would have more than %d measures", maxEntries))
	default:
		m.measures[len(m.want.Measures)] = true
		m.want.Measures = append(m.want.Measures, added)
	}
}

func (m *merging) sameMeasure(a, b query.Entry[meaning.Measure]) bool {
	return a.Origin == b.Origin && a.Value.Function == b.Value.Function && a.Value.Unit == b.Value.Unit && slices.Equal(a.Value.Synonyms, b.Value.Synonyms) &&
		strings.EqualFold(m.spelled(a.Value.Expression), m.spelled(b.Value.Expression))
}

// spelled returns an expression with the names of joined datasets as the joins write them.
func (m *merging) spelled(text string) string {
	parsed, err := meaning.Parse(text)
	if err != nil {
		return text
	}

	var joins []meaning.Join
	for _, j := range m.want.Joins {
		joins = append(joins, j.Value)
	}

	parsed, _ = parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
		if r.Dataset != "" {
			r.Dataset = targetOf(joins, r.Dataset)
		}

		return r, true
	})

	return parsed.String()
}

// drop removes the entries that the checks of the service refuse, and reports them. It returns false if an entry is refused that the
// document does not have.
func (m *merging) drop(faults []fault.Sub) bool {
	joins, measures := map[int]bool{}, map[int]bool{}

	for _, f := range faults {
		parts := strings.SplitN(f.Code, ".", 3) //nolint:mnd // list, index or name, field

		switch index := indexOf(parts); {
		case parts[0] == "row" && m.said.row != "":
			m.want.Row = query.Entry[string]{}
			if m.now.Row.Origin == query.Confirmed {
				m.want.Row = m.now.Row
			}

			m.note("row", f.Message)
		case parts[0] == "columns" && m.dropColumn(f):
		case parts[0] == "joins" && m.joins[index]:
			if j := m.want.Joins[index].Value; !joins[index] {
				m.note("join "+cut(strings.Join(j.Columns, ", ")+" with "+j.To), f.Message)
			}

			joins[index] = true
		case parts[0] == "measures" && m.measures[index]:
			if !measures[index] {
				m.note("measure "+cut(m.want.Measures[index].Value.Name), f.Message)
			}

			measures[index] = true
		default:
			m.note("all", "the checks refuse an entry that is not from the document: "+f.Message)

			return false
		}
	}

	m.want.Joins, m.joins = without(m.want.Joins, m.joins, joins, m.now.Joins, func(a, b meaning.Join) bool { return a.Same(b) })
	m.want.Measures, m.measures = without(m.want.Measures, m.measures, measures, m.now.Measures, func(a, b meaning.Measure) bool { return a.Same(b) })

	return true
}

func indexOf(parts []string) int {
	if len(parts) > 1 {
		if n, err := strconv.Atoi(parts[1]); err == nil {
			return n
		}
	}

	return -1
}

func (m *merging) dropColumn(f fault.Sub) bool {
	for name := range m.columns {
		if f.Code != "columns."+cut(name) && !strings.HasPrefix(f.Code, "columns."+cut(name)+".") {
			continue
		}

		delete(m.want.Columns, name)
		delete(m.columns, name)

		if now := m.now.Columns[name]; now.Origin == query.Confirmed {
			m.want.Columns[name] = now
		}

		m.note("column "+name, f.Message)

		return true
	}

	return false
}

// without returns a list without some entries. An entry that the document changed gets its former value.
func without[T any](list []query.Entry[T], own, dropped map[int]bool, before []query.Entry[T], same func(a, b T) bool) (left []query.Entry[T], kept map[int]bool) {
	kept = map[int]bool{}

	for i, one := range list {
		if !dropped[i] {
			if own[i] {
				kept[len(left)] = true
			}

			left = append(left, one)

			continue
		}

		if n := slices.IndexFunc(before, func(e query.Entry[T]) bool { return e.Origin != query.Drafted && same(e.Value, one.Value) }); n >= 0 {
			left = append(left, before[n])
		}
	}

	return left, kept
}
