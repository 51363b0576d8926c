package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// script is a model that knows the questions.
type script struct {
	name      string
	questions []*question
	planted   map[string]bool   // questions that get a wrong answer, by id
	replies   map[string]*reply // what is said to a question, by its id; nil if that follows from its answers
}

// reply is what a scripted model says to a question.
type reply struct {
	ID      string   `json:"id"`
	Outcome string   `json:"outcome"`
	Queries []string `json:"queries"` // the next one if one is refused
}

// plantedEvery is how many strict questions there are for each that gets a wrong answer.
const plantedEvery = 10

// scriptFor is the scripted model of that name; nil if it is the name of another.
func scriptFor(o options, questions []*question) (*script, error) {
	s := &script{name: o.model, questions: questions, planted: map[string]bool{}}

	switch o.model {
	case "gold":
	case "planted":
		strict := 0

		for _, q := range questions {
			if q.strict() {
				s.planted[q.ID] = strict%plantedEvery == 0
				strict++
			}
		}
	case "replies":
		var err error
		if s.replies, err = readReplies(o.replies); err != nil {
			return nil, err
		}
	default:
		return nil, nil //nolint:nilnil // no script is not an error
	}

	return s, nil
}

func readReplies(name string) (map[string]*reply, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	replies := map[string]*reply{}

	for lines := json.NewDecoder(file); ; {
		one := &reply{}
		if err := lines.Decode(one); errors.Is(err, io.EOF) {
			return replies, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		replies[one.ID] = one
	}
}

// answer is what the model says to a question.
func (s *script) answer(q *question) (*reply, error) {
	switch {
	case s.replies != nil:
		if said := s.replies[q.ID]; said != nil {
			return said, nil
		}

		return nil, errors.New("there is no reply to " + q.ID)
	case s.planted[q.ID]:
		return &reply{Outcome: "answer", Queries: []string{valuesQuery(spoilt(q))}}, nil
	case !q.Answerable:
		return &reply{Outcome: "refused"}, nil
	case len(q.GoldSQL) == 0:
		return &reply{Outcome: "answer", Queries: []string{valuesQuery(q.Answers[0])}}, nil
	}

	today, err := q.today()
	said := &reply{Outcome: "answer"}

	for _, statement := range q.GoldSQL {
		said.Queries = append(said.Queries, at(q.withoutSchemas(statement), today))
	}

	return said, err
}

// asScript is the same for an agent that does what the question says.
func (r *reply) asScript() (string, error) {
	type step struct {
		Instruction string   `json:"instruction"`
		Queries     []string `json:"queries"`
	}

	do := struct {
		Steps   []step `json:"steps,omitempty"`
		Outcome string `json:"outcome"`
	}{Outcome: r.Outcome}

	if len(r.Queries) > 0 {
		do.Steps = []step{{"answer", r.Queries}}
	}

	text, err := json.Marshal(do)

	return string(text), err
}

// dialect are questions of the public set whose gold statement is PostgreSQL's own, and why DuckDB refuses it.
func dialect() map[string]string {
	const (
		key    = "columns that depend on the grouped key stand outside GROUP BY: DuckDB's views have no keys"
		series = "generate_series in SELECT gives rows in PostgreSQL and a list in DuckDB"
	)

	return map[string]string{
		"defog-gen-058":      "DuckDB has no to_char; strftime is its like",
		"defog-advanced-018": key,
		"defog-advanced-019": key,
		"defog-advanced-021": series,
		"defog-advanced-022": series,
	}
}

// check says what a scripted model did not get as it should: every question right but the planted ones, which are
// wrong, and those whose statement another dialect is needed for. Of a split that nobody reads there is no list.
func (s *script) check(marks []mark, secret bool) error {
	if s == nil || s.replies != nil || secret {
		return nil
	}

	var lost []string

	for _, m := range marks {
		asGiven := m.right()
		if s.planted[m.question.ID] {
			asGiven = m.Verdict == wrong
		}

		if asGiven || !m.question.strict() {
			continue
		}

		if why, known := dialect()[m.question.ID]; known {
			fmt.Fprintf(os.Stderr, "eval: %s: %s\n", m.question.ID, why)

			continue
		}

		lost = append(lost, m.question.ID+": "+string(m.Verdict)+" "+m.Failure)
	}

	if len(lost) == 0 {
		return nil
	}

	return errors.New("these were not judged as the scripted model answered them:\n" + strings.Join(lost, "\n"))
}

// spoilt is a wrong result for a question: of its first answer another value or row, or an answer where there is none.
func spoilt(q *question) resultSet {
	if !q.Answerable {
		return resultSet{[]string{"answer"}, [][]any{{"planted"}}}
	}

	gold := q.Answers[0]
	if len(gold.Rows) == 0 {
		return resultSet{gold.Columns, [][]any{slices.Repeat([]any{"planted"}, len(gold.Columns))}}
	}

	wrong := resultSet{gold.Columns, slices.Clone(gold.Rows)}
	last := len(wrong.Rows) - 1

	var other []any
	for _, cell := range gold.Rows[last] {
		other = append(other, spoiltCell(cell))
	}

	switch {
	case q.Ordered && last > 0:
		wrong.Rows[0], wrong.Rows[last] = wrong.Rows[last], wrong.Rows[0]
	case last > 2:
		wrong.Rows = wrong.Rows[:last]
	case last > 0:
		wrong.Rows = append(wrong.Rows, other)
	default:
		wrong.Rows[last] = other
	}

	return wrong
}

// spoiltCell is another value of the same type.
func spoiltCell(cell any) any {
	switch cell := cell.(type) {
	case string, nil:
		return "planted"
	case bool:
		return !cell
	case json.Number:
		return json.Number("987654321")
	case map[string]any:
		return map[string]any{"interval_seconds": json.Number("987654321")}
	}

	return cell
}

// valuesQuery is a query that gives the rows.
func valuesQuery(set resultSet) string {
	rows := make([]string, len(set.Rows))

	for i, row := range set.Rows {
		literals := make([]string, len(row))
		for j, cell := range row {
			literals[j] = literal(cell)
		}

		rows[i] = "(" + strings.Join(literals, ", ") + ")"
	}

	names := make([]string, len(set.Columns)) // of their own: in a result two may have the same
	for i := range names {
		names[i] = fmt.Sprintf("value%d", i+1)
	}

	columns := strings.Join(names, ", ")

	return fmt.Sprintf("SELECT %s FROM (VALUES %s) AS answer(%s)", columns, strings.Join(rows, ", "), columns)
}

func literal(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(cell, "'", "''") + "'"
	case map[string]any:
		return fmt.Sprintf("to_seconds(%v)", cell["interval_seconds"])
	}

	return fmt.Sprint(cell)
}

// withoutSchemas names tables as datasets are named: PostgreSQL has schemas within a database, and a namespace has none.
func (q *question) withoutSchemas(statement string) string {
	for _, t := range q.tables() {
		name := regexp.QuoteMeta(t.dataset)

		if strings.Contains(t.dataset, ".") {
			statement = regexp.MustCompile(`(?i)\b`+name+`\b`).ReplaceAllString(statement, `"`+t.dataset+`"`)
		} else {
			statement = regexp.MustCompile(`(?i)\b(FROM|JOIN)\s+\w+\.(`+name+`)\b`).ReplaceAllString(statement, "$1 $2")
		}
	}

	return statement
}

// now finds what a statement calls today and now, and the texts and names in which the words mean nothing.
var now = regexp.MustCompile(`(?i)'(?:[^']|'')*'|"(?:[^"]|"")*"|\bCURRENT_DATE\b(?:\(\))?|\bNOW\(\)|\bCURRENT_TIMESTAMP\b(?:\(\))?|\bLOCALTIMESTAMP\b`)

// at is a statement as if it were run at a moment.
func at(statement string, today time.Time) string {
	if today.IsZero() {
		return statement
	}

	return now.ReplaceAllStringFunc(statement, func(found string) string {
		switch {
		case strings.ContainsAny(found[:1], `'"`):
			return found
		case strings.HasPrefix(strings.ToUpper(found), "CURRENT_DATE"):
			return "DATE '" + today.Format(time.DateOnly) + "'"
		}

		return "TIMESTAMP '" + today.Format(time.DateTime) + "'"
	})
}
