package exchange

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/meaning"
)

// functions are the functions of measures in SQL.
func functions() map[string]string {
	return map[string]string{"sum": "SUM", "average": "AVG", "median": "MEDIAN", "min": "MIN", "max": "MAX", "count": "COUNT", "countDistinct": "COUNT"}
}

// sql returns a measure as an aggregate in SQL. name returns the name of a joined dataset in the document.
func sql(m meaning.Measure, of string, name func(joined string) string) (string, error) {
	inner := "*"

	if m.Expression != "" {
		parsed, err := meaning.Parse(m.Expression)
		if err != nil {
			return "", err
		}

		parsed, _ = parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
			if r.Dataset == "" {
				return meaning.Ref{Dataset: of, Column: r.Column}, true
			}

			return meaning.Ref{Dataset: name(r.Dataset), Column: r.Column}, true
		})
		inner = parsed.String()
	}

	if m.Function == "countDistinct" {
		inner = "DISTINCT " + inner
	}

	return functions()[m.Function] + "(" + inner + ")", nil
}

var aggregate = regexp.MustCompile(`(?is)^\s*([a-z_]+)\s*\(\s*(distinct\s)?(.*)\)\s*$`)

// errAggregate is for what measures cannot say: ratios, conditions, other functions.
var errAggregate = errors.New("only one SUM, AVG, MEDIAN, MIN, MAX, COUNT or COUNT(DISTINCT) over columns, numbers and + - * / is understood")

// readAggregate returns the function of a metric and what it is applied to, nil for COUNT(*).
func readAggregate(text string) (function string, of *meaning.Expr, err error) {
	found := aggregate.FindStringSubmatch(text)
	if found == nil {
		return "", nil, errAggregate
	}

	name, isDistinct, inner := strings.ToUpper(found[1]), found[2] != "", strings.TrimSpace(found[3])

	for ours, theirs := range functions() {
		if theirs == name && (ours == "countDistinct") == isDistinct {
			function = ours
		}
	}

	switch {
	case function == "":
		return "", nil, errAggregate
	case function == "count" && inner == "*":
		return function, nil, nil
	case len([]rune(inner)) > meaning.MaxExpression:
		return "", nil, fmt.Errorf("the expression has more than %d characters", meaning.MaxExpression)
	}

	parsed, err := meaning.Parse(inner)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s", errAggregate, err.Error())
	}

	return function, &parsed, nil
}

// scope is the names of one model.
type scope struct {
	datasets      map[string]*dataset // by name in lower case
	relationships []relationship
}

func scopeOf(m model) scope {
	s := scope{datasets: map[string]*dataset{}, relationships: m.Relationships}
	for i := range m.Datasets {
		s.datasets[strings.ToLower(m.Datasets[i].Name)] = &m.Datasets[i]
	}

	return s
}

// measure returns the dataset and the measure that a metric says. Joined datasets have the names of the document.
func (s scope) measure(m metric, ext metricExtension) (of string, found meaning.Measure, err error) {
	text := m.Expression.ansi()
	if text == "" {
		return "", found, errors.New("it has no expression in ANSI_SQL")
	}

	function, inner, err := readAggregate(text)
	if err != nil {
		return "", found, err
	}

	found = meaning.Measure{Name: m.Name, Synonyms: m.Context.Synonyms, Function: function, Unit: ext.Unit}
	if ext.Name != "" {
		found.Name = ext.Name
	}

	if inner == nil {
		of, err = s.counted(ext)

		return of, found, err
	}

	columns, err := s.substitute(*inner, ext.Dataset, maxSubstituted)
	if err != nil {
		return "", found, err
	}

	if of, err = s.base(columns, ext.Dataset); err != nil {
		return "", found, err
	}

	columns, _ = columns.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
		if strings.EqualFold(r.Dataset, of) {
			r.Dataset = ""
		}

		return r, true
	})
	found.Expression = columns.String()

	return of, found, nil
}

// counted returns the dataset whose rows COUNT(*) counts.
func (s scope) counted(ext metricExtension) (string, error) {
	if ext.Dataset != "" {
		return ext.Dataset, nil
	}

	if only, ok := s.single(); ok {
		return only, nil
	}

	return "", errors.New("COUNT(*) does not say which of the datasets is counted")
}

func (s scope) single() (string, bool) {
	for _, one := range s.datasets {
		return one.Name, len(s.datasets) == 1
	}

	return "", false
}

// maxSubstituted is how many columns an expression may have after fields are replaced by what they are computed from.
const maxSubstituted = 200

// substitute returns the expression with columns of datasets in place of fields.
func (s scope) substitute(e meaning.Expr, home string, left int) (meaning.Expr, error) {
	if e.Op == meaning.ColumnOp {
		return s.column(e.Column, home)
	}

	args := make([]meaning.Expr, len(e.Args))

	for i, arg := range e.Args {
		replaced, err := s.substitute(arg, home, left)
		if err != nil {
			return e, err
		}

		if left -= len(replaced.Refs()); left < 0 {
			return e, fmt.Errorf("it names more than %d columns", maxSubstituted)
		}

		args[i] = replaced
	}

	if len(args) > 0 {
		e.Args = args
	}

	return e, nil
}

// column returns what a name in a metric stands for: a field of a dataset or, if there is no such field, a column.
func (s scope) column(r meaning.Ref, home string) (meaning.Expr, error) {
	if r.Dataset == "" {
		r.Dataset = home
	}

	if only, ok := s.single(); ok && r.Dataset == "" {
		r.Dataset = only
	}

	of := s.datasets[strings.ToLower(r.Dataset)]
	if of == nil {
		return meaning.Expr{}, fmt.Errorf("%s names no dataset of the model", cut(r.String()))
	}

	r.Dataset = of.Name

	n := slices.IndexFunc(of.Fields, func(f field) bool { return strings.EqualFold(f.Name, r.Column) })
	if n < 0 {
		return meaning.Expr{Op: meaning.ColumnOp, Column: r}, nil
	}

	parsed, err := of.Fields[n].parsed()
	if err != nil {
		return meaning.Expr{}, fmt.Errorf("the field %s is computed, and only columns, numbers and + - * / are understood", cut(r.String()))
	}

	parsed, _ = parsed.Replace(func(inner meaning.Ref) (meaning.Ref, bool) {
		return meaning.Ref{Dataset: of.Name, Column: inner.Column}, true
	})

	return parsed, nil
}

// parsed returns the expression of a field. A field without an expression is the column of its name.
func (f field) parsed() (meaning.Expr, error) {
	text := f.Expression.ansi()
	if text == "" && len(f.Expression.Dialects) == 0 {
		return meaning.Expr{Op: meaning.ColumnOp, Column: meaning.Ref{Column: f.Name}}, nil
	}

	if len([]rune(text)) > meaning.MaxExpression {
		return meaning.Expr{}, errAggregate
	}

	return meaning.Parse(text)
}

// base returns the dataset of a measure: the one from which the others are reached, each by one relationship.
func (s scope) base(e meaning.Expr, home string) (string, error) {
	var names []string

	for _, r := range e.Refs() {
		if !slices.Contains(names, r.Dataset) {
			names = append(names, r.Dataset)
		}
	}

	switch {
	case len(names) == 0:
		return "", errors.New("it names no column")
	case home != "":
		return home, nil
	}

	var found []string

	for _, from := range names {
		if !slices.ContainsFunc(names, func(to string) bool { return to != from && s.related(from, to) != 1 }) {
			found = append(found, from)
		}
	}

	if len(found) != 1 {
		return "", fmt.Errorf("it names %s, and no dataset of them has exactly one relationship with each other one", cut(strings.Join(names, ", ")))
	}

	return found[0], nil
}

// related returns the number of relationships between two datasets.
func (s scope) related(from, to string) (count int) {
	for _, r := range s.relationships {
		if strings.EqualFold(r.From, from) && strings.EqualFold(r.To, to) {
			count++
		}
	}

	return count
}
