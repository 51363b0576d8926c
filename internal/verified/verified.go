package verified

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Verified keeps the verified questions of namespaces.
type Verified struct {
	DB      *postgres.DB
	Catalog catalog.Catalog
	Query   *query.Query
	Now     func() time.Time
}

// Status is the status of a verified question.
type Status string

// The statuses.
const (
	Active    Status = "verified"
	Suspended Status = "suspended" // something that it needs has changed
	Retired   Status = "retired"
)

// Question is a question with the statement that answers it.
type Question struct {
	Content

	Account    uuid.UUID // of the owner of the namespace
	Namespace  uuid.UUID
	ID         uuid.UUID
	Revision   int64
	Needs      []query.Need // datasets and columns
	Status     Status
	Reason     string // why it is suspended
	Author     string // who verified it last
	VerifiedAt time.Time
	CreatedAt  time.Time
}

// Content is what people write.
type Content struct {
	Question       string     `json:"question"`
	Wordings       []string   `json:"wordings,omitempty"` // other ways to ask it
	Query          string     `json:"query"`
	Parameters     Parameters `json:"parameters,omitempty"`
	Interpretation string     `json:"interpretation,omitempty"`
	Imported       bool       `json:"imported,omitempty"` // it came in a document; nobody has verified it again since
}

// Period is a period of time that a parameter stands for.
type Period string

// The periods.
const (
	Year  Period = "year"
	Month Period = "month"
	Day   Period = "day"
)

// Parameter is a place in the statement and the wordings, written $name. Its value is a value of a column, a period, or a
// number if it has neither.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Column  string `json:"column,omitempty"` // dataset.column
	Period  Period `json:"period,omitempty"`
	Default string `json:"default"` // as a question would write it
}

// Parameters are the parameters of a statement.
type Parameters []Parameter

func (p Parameters) index(name string) int {
	return slices.IndexFunc(p, func(one Parameter) bool { return one.Name == name })
}

// kind is a letter for the kind of values of the parameter.
func (p Parameter) kind() byte {
	switch {
	case p.Column != "":
		return 'v'
	case p.Period == Year:
		return 'y'
	case p.Period == Month:
		return 'm'
	case p.Period == Day:
		return 'd'
	default:
		return 'n'
	}
}

// Given is a parameter with its value.
type Given struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Bound returns the values for the statement.
func Bound(list []Given) query.Parameters {
	found := query.Parameters{Named: true}

	for _, g := range list {
		one := query.Value{Name: g.Name, Type: g.Type, Value: g.Value}
		if g.Type != varchar && g.Type != date {
			one.Value = json.Number(g.Value)
		}

		found.Values = append(found.Values, one)
	}

	if len(list) == 0 {
		return query.Parameters{}
	}

	return found
}

const (
	varchar = "varchar"
	date    = "date"
)

// Limits of a verified question.
const (
	MaxWordings   = 20
	MaxWording    = 500 // characters
	MaxParameters = 4
	maxValues     = 2      // parameters with values of columns
	maxKept       = 20_000 // verified questions of a namespace
)

// all returns all wordings.
func (c Content) all() []string { return append([]string{c.Question}, c.Wordings...) }

// prepared returns the wordings for comparisons.
func (q Question) prepared() (list []wording) {
	var columns []string

	for _, need := range q.Needs {
		for _, c := range need.Columns {
			columns = append(columns, c.Name)
		}
	}

	for _, text := range q.all() {
		list = append(list, read(text, q.Parameters, q.Query, columns))
	}

	return list
}

// Interpreted returns the interpretation with the values of the parameters.
func (q Question) Interpreted(given []Given) string {
	text := q.Interpretation
	if text == "" {
		text = q.Question
	}

	for _, g := range given {
		text = strings.ReplaceAll(text, "$"+g.Name, g.Value)
	}

	return text
}

// Defaults returns the parameters with their defaults.
func (c Content) Defaults() (list []Given) {
	for _, p := range c.Parameters {
		value, _ := p.parse(p.Default)
		list = append(list, Given{p.Name, p.Type, value})
	}

	return list
}

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// check returns what is wrong with the content, apart from the statement.
//
// Faults: ValidationFailed.
func (c Content) check() error {
	var subs []fault.Sub

	add := func(field, format string, values ...any) {
		subs = append(subs, fault.Sub{Code: field, Message: fmt.Sprintf(format, values...)})
	}

	for i, p := range c.Parameters {
		field := "parameters." + strconv.Itoa(i)

		switch problem := p.problem(); {
		case c.Parameters.index(p.Name) != i:
			add(field+".name", "is given twice")
		case problem != "":
			add(field, "%s", problem)
		}
	}

	values := 0

	for _, p := range c.Parameters {
		if p.kind() == 'v' {
			values++
		}
	}

	if values > maxValues {
		add("parameters", "has more than %d parameters with values of columns", maxValues)
	}

	for i, text := range c.all() {
		field := "question"
		if i > 0 {
			field = "wordings." + strconv.Itoa(i-1)
		}

		if problem := c.wordingProblem(text); problem != "" {
			add(field, "%s", problem)
		}
	}

	if len(subs) > 0 {
		return fault.InvalidFields(subs...)
	}

	return nil
}

// problem says what is wrong with a parameter.
func (p Parameter) problem() string {
	_, fits := p.parse(p.Default)

	switch kind := p.kind(); {
	case !parameterName.MatchString(p.Name):
		return "has a name that is not ASCII letters, digits and underscores, or that begins with a digit"
	case p.Column != "" && p.Period != "":
		return "has a column and a period; it can have only one of them"
	case kind == 'v' && p.Type != varchar:
		return "has the values of a column, so its type must be varchar"
	case kind == 'v' && !strings.Contains(p.Column, "."):
		return "has a column that is not written dataset.column"
	case kind == 'y' && !slices.Contains([]string{"integer", "bigint", date}, p.Type):
		return "is a year, so its type must be integer, bigint or date"
	case (kind == 'm' || kind == 'd') && p.Type != date:
		return "is a month or a day, so its type must be date"
	case kind == 'n' && (p.Type == varchar || p.Type == date):
		return "has neither a column nor a period, so it must be a number"
	case !fits:
		return "has a default that does not fit: a year is written 2026, a month 2026-03 or March 2026, a day 2026-03-31, a number 12 or 12.5"
	default:
		return ""
	}
}

func (c Content) wordingProblem(text string) string {
	w := read(text, c.Parameters, c.Query, nil)
	seen := map[int]bool{}

	for _, t := range w.all {
		switch {
		case text[t.start] == '$' && t.end > t.start+1 && t.slot < 0:
			return fmt.Sprintf("names the parameter %s, which is not in parameters", text[t.start:t.end])
		case t.slot >= 0 && seen[t.slot]:
			return "has a parameter twice"
		case t.slot >= 0:
			seen[t.slot] = true
		}
	}

	switch {
	case w.words() < 2:
		return "has fewer than two words that say what is asked for, besides parameters"
	case len(seen) > 0 && len(w.tokens) > maxTokens:
		return fmt.Sprintf("has parameters and more than %d words", maxTokens)
	default:
		return ""
	}
}
