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

	"quern.dev/quern/eval/documents"
)

// script is a model with known answers to the questions.
type script struct {
	name      string
	questions []*question
	planted   map[string]bool      // questions that get a wrong answer, by ID
	replies   map[string]*reply    // replies to questions, by ID; nil if the replies are derived from the answers
	forms     map[string]*goldForm // by ID; nil if the model writes SQL
	replays   *replays             // of the model that answers with wrong statements, else nil
	documents *documents.Model     // of the model that reads documents, else nil
}

// reply is the reply of a scripted model to a question.
type reply struct {
	ID      string          `json:"id"`
	Outcome string          `json:"outcome"`
	Form    json.RawMessage `json:"form,omitempty"` // the service uses it instead of the queries, if it can be used
	Queries []string        `json:"queries"`        // each one is used if the one before it fails
}

// plantedEvery is the number of strict questions for each one that gets a wrong answer.
const plantedEvery = 10

// scriptFor returns the scripted model that the options name, or nil if they name another model.
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
	case mutatedModel:
		s.replays = &replays{}
	case "replies":
		var err error
		if s.replies, err = readReplies(o.replies); err != nil {
			return nil, err
		}
	case formsModel:
		var err error
		if s.forms, err = readForms(o.formsFile(), questions); err != nil {
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

// answer returns the reply of the model to a question.
func (s *script) answer(q *question) (*reply, error) {
	switch {
	case s.forms != nil:
		return s.forms[q.ID].reply(), nil
	case s.replays != nil:
		return s.replays.of(q.ID), nil
	case s.replies != nil:
		if said := s.replies[q.ID]; said != nil {
			return said, nil
		}

		return nil, errors.New("no reply to " + q.ID)
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

// asScript returns the reply as a question for the scripted agent.
func (r *reply) asScript() (string, error) {
	if len(r.Form) > 0 {
		return "", errors.New("the scripted agent takes no forms: unset QUERN_URL and leave out -scripted")
	}

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

// dialect returns the questions of the public set whose gold statement is specific to PostgreSQL, with the reason why
// DuckDB rejects it.
func dialect() map[string]string {
	const (
		key    = "columns that depend on the grouped key are not in GROUP BY: DuckDB's views have no keys"
		series = "generate_series in SELECT returns rows in PostgreSQL and a list in DuckDB"
	)

	return map[string]string{
		"defog-gen-058":      "DuckDB has no to_char; strftime is the equivalent",
		"defog-advanced-018": key,
		"defog-advanced-019": key,
		"defog-advanced-021": series,
		"defog-advanced-022": series,
	}
}

// check returns an error with the questions of a scripted model that were not judged as expected: planted questions
// must be wrong, and all others must be right, except for those whose statement needs another dialect. A secret split
// is not checked, because the error would list its questions.
func (s *script) check(marks []mark, secret bool) error {
	if s != nil && s.forms != nil {
		return s.checkForms(marks, secret)
	}

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

	return errors.New("unexpected verdicts for the answers of the scripted model:\n" + strings.Join(lost, "\n"))
}

// spoilt returns a wrong result for a question: its first answer with a changed value or row, or an answer to a
// question that has none.
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

// spoiltCell returns another value of the same type.
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

// valuesQuery returns a statement that returns the rows.
func valuesQuery(set resultSet) string {
	rows := make([]string, len(set.Rows))

	for i, row := range set.Rows {
		literals := make([]string, len(row))
		for j, cell := range row {
			literals[j] = literal(cell)
		}

		rows[i] = "(" + strings.Join(literals, ", ") + ")"
	}

	names := make([]string, len(set.Columns)) // generated, because two columns of a result may have the same name
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

// withoutSchemas changes the names of tables to names of datasets. A PostgreSQL database has schemas; a namespace does
// not.
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

// now matches the expressions for the current date and time, and also texts and quoted names, in which they must not be
// replaced.
var now = regexp.MustCompile(`(?i)'(?:[^']|'')*'|"(?:[^"]|"")*"|\bCURRENT_DATE\b(?:\(\))?|\bNOW\(\)|\bCURRENT_TIMESTAMP\b(?:\(\))?|\bLOCALTIMESTAMP\b`)

// at returns a statement with the current date and time replaced by a fixed time.
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
