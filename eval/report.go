package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of an evaluation. For the held-out split it contains no questions.
type report struct {
	Suite     string            `json:"suite"`
	Split     string            `json:"split"`
	Model     string            `json:"model"`
	At        time.Time         `json:"at"`
	Total     *tally            `json:"total"`
	Classes   map[string]*tally `json:"classes"`
	Risks     []risk            `json:"risks"`
	LeftOut   *tally            `json:"leftOut"` // disputed, one of many, or ties; not in any other figure
	Forms     *expressed        `json:"forms,omitempty"`
	Questions []line            `json:"questions,omitempty"`
}

// line is a question in the report.
type line struct {
	ID             string      `json:"id"`
	Suite          string      `json:"suite"`
	Category       string      `json:"category"`
	Strict         bool        `json:"strict"`
	Verdict        verdict     `json:"verdict"`
	Question       string      `json:"question"`
	Interpretation string      `json:"interpretation,omitempty"`
	Query          string      `json:"query,omitempty"`
	Outcome        string      `json:"outcome,omitempty"`
	Failure        string      `json:"failure,omitempty"`
	Rows           *resultSet  `json:"rows,omitempty"`     // if the answer is not right
	Expected       []resultSet `json:"expected,omitempty"` // if the answer is not right
	Repairs        int         `json:"repairs"`
	Seconds        float64     `json:"seconds"`
}

func newReport(o options, marks []mark) *report {
	r := &report{Suite: o.suite, Split: o.split, Model: o.model, At: time.Now().UTC().Truncate(time.Second), Total: &tally{}, Classes: map[string]*tally{}, LeftOut: &tally{}, Risks: risks(marks)}

	for _, m := range marks {
		r.Model = cmp.Or(r.Model, m.Model)

		if o.split != heldOut {
			r.Questions = append(r.Questions, newLine(m))
		}

		if !m.question.strict() {
			r.LeftOut.add(m)

			continue
		}

		r.Total.add(m)

		for _, class := range classesOf(m.question) {
			if r.Classes[class] == nil {
				r.Classes[class] = &tally{}
			}

			r.Classes[class].add(m)
		}
	}

	r.Model = cmp.Or(r.Model, "none")

	for _, t := range append(slices.Collect(maps.Values(r.Classes)), r.Total, r.LeftOut) {
		t.close()
	}

	return r
}

// classesOf returns the classes in which a question counts.
func classesOf(q *question) []string {
	classes := []string{q.Suite, q.Suite + "/" + q.Category}

	switch {
	case !q.Answerable:
		return append(classes, "unanswerable")
	case q.MultiTable:
		return append(classes, "several tables")
	}

	return append(classes, "one table")
}

func newLine(m mark) line {
	l := line{
		ID: m.question.ID, Suite: m.question.Suite, Category: m.question.Category, Strict: m.question.strict(), Verdict: m.Verdict,
		Question: m.question.Text, Interpretation: m.Interpretation, Query: m.Query, Outcome: m.Outcome, Failure: m.Failure, Repairs: m.Repairs, Seconds: m.Seconds,
	}

	if !m.right() {
		l.Expected = m.question.Answers

		if len(m.Rows.Columns) > 0 {
			l.Rows = &m.Rows
		}
	}

	return l
}

// publish writes the files and prints the figures.
func (r *report) publish(o options, earlier *report) error {
	name := filepath.Join(o.out, strings.Join([]string{"eval", file(r.Suite), file(r.Split), file(r.Model)}, "-"))

	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}

	if err := errors.Join(os.MkdirAll(o.out, 0o755), os.WriteFile(name+".json", append(text, '\n'), 0o600), r.writePage(name+".html")); err != nil {
		return err
	}

	fmt.Fprintf(os.Stderr, "eval: %s.json, %s.html\n", name, name)

	if err := r.print(os.Stdout); err != nil {
		return err
	}

	if err := r.printRisks(os.Stdout); err != nil {
		return err
	}

	if err := r.Forms.write(os.Stdout); err != nil {
		return err
	}

	if earlier != nil {
		if err := r.printChanges(os.Stdout, earlier); err != nil {
			return err
		}
	}

	_, err = fmt.Fprintf(os.Stdout, "eval %s %s %s n=%d answered=%d precision=%s accuracy=%s refused-right=%s\n",
		r.Suite, r.Split, r.Model, r.Total.N, r.Total.Answered, r.Total.precision(), r.Total.accuracy(), r.Total.refused())

	return err
}

// file returns a name with the characters replaced that file names cannot contain.
func file(name string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\: `, c) {
			return '_'
		}

		return c
	}, name)
}

// rows returns the classes in the order of the table, the total first.
func (r *report) rows() []row {
	rows := []row{{"all", r.Total}}
	for _, class := range slices.Sorted(maps.Keys(r.Classes)) {
		rows = append(rows, row{class, r.Classes[class]})
	}

	if r.LeftOut.N > 0 {
		rows = append(rows, row{"left out", r.LeftOut})
	}

	return rows
}

type row struct {
	Name  string
	Tally *tally
}

func (row) Heads() []string {
	return []string{
		"class", "n", "answered", "accuracy", "precision", "coverage", "refused-right", "refused-wrong", "asked", "failed", "repaired", "repairs", "tokens", "p50", "p95",
	}
}

func (r row) Figures() []string {
	t := r.Tally

	return []string{
		r.Name, strconv.Itoa(t.N), strconv.Itoa(t.Answered), t.accuracy(), t.precision(), t.coverage(), t.refused(), strconv.Itoa(t.RefusedWrong),
		strconv.Itoa(t.Asked), strconv.Itoa(t.Failed), strconv.Itoa(t.Repaired), strconv.Itoa(t.Repairs), fmt.Sprintf("%d+%d", t.InputTokens, t.OutputTokens),
		fmt.Sprintf("%.2fs", t.P50), fmt.Sprintf("%.2fs", t.P95),
	}
}

func (r *report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)

	fmt.Fprintln(table, strings.Join(row{}.Heads(), "\t"))

	for _, one := range r.rows() {
		fmt.Fprintln(table, strings.Join(one.Figures(), "\t"))
	}

	return table.Flush()
}
