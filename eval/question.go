package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// question is a line of a question set.
type question struct {
	ID           string      `json:"id"`
	Suite        string      `json:"suite"`
	DB           string      `json:"db"`
	Category     string      `json:"category"`
	Tables       []string    `json:"tables"`
	Text         string      `json:"question"`
	Instructions string      `json:"instructions"`
	AsOf         string      `json:"as_of"` // today, if the answer depends on it
	Answerable   bool        `json:"answerable"`
	Disputed     string      `json:"disputed"`
	Answers      []resultSet `json:"answers"`
	Ordered      bool        `json:"ordered"`
	MultiTable   bool        `json:"multi_table"`
	TieSensitive bool        `json:"tie_sensitive"`
	OneOfMany    bool        `json:"one_of_many"`
	RawValues    []string    `json:"raw_values"`
	Canon        []string    `json:"canon"`
	GoldSQL      []string    `json:"gold_sql"`
}

// resultSet is rows with what their columns are called.
type resultSet struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// strict says whether the question has one right answer that nobody argues about.
func (q *question) strict() bool { return q.Disputed == "" && !q.TieSensitive && !q.OneOfMany }

// accepted is every right result. A single column of values is also right as it was written and in its normal form.
func (q *question) accepted() []resultSet {
	sets := slices.Clone(q.Answers)

	for _, values := range [][]string{q.RawValues, q.Canon} {
		if len(values) == 0 {
			continue
		}

		set := resultSet{Columns: []string{"answer"}}
		for _, value := range values {
			set.Rows = append(set.Rows, []any{value})
		}

		sets = append(sets, set)
	}

	return sets
}

// today is the moment that the question is asked at; zero if it does not matter.
func (q *question) today() (time.Time, error) {
	if q.AsOf == "" {
		return time.Time{}, nil
	}

	day, err := time.Parse(time.DateOnly, q.AsOf)

	return day.Add(12 * time.Hour), err
}

// table is a file to load, and where to.
type table struct {
	file, namespace, dataset string
}

// namespace holds the tables of the question's database and nothing else.
func (q *question) namespace() string {
	return q.Suite[:strings.IndexByte(q.Suite+"-", '-')] + "-" + q.DB
}

func (q *question) tables() []table {
	var list []table
	for _, file := range q.Tables {
		list = append(list, table{file, q.namespace(), strings.TrimSuffix(path.Base(file), path.Ext(file))})
	}

	return list
}

// tablesOf are the tables of all questions, each once.
func tablesOf(questions []*question) []table {
	var (
		list []table
		seen = map[table]bool{}
	)

	for _, q := range questions {
		for _, t := range q.tables() {
			if !seen[t] {
				seen[t] = true

				list = append(list, t)
			}
		}
	}

	return list
}

// readQuestions reads those of a suite, of suites that begin so, or all. Suites named …-train lie in a file of their
// own and count only when they are named.
func readQuestions(dir, split, suite string) ([]*question, error) {
	name := "questions.ndjson"
	if strings.HasSuffix(suite, "-train") {
		name = "train.ndjson"
	}

	file, err := os.Open(filepath.Join(dir, split, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var questions []*question

	lines := json.NewDecoder(bufio.NewReader(file))
	lines.UseNumber()

	for {
		q := &question{}
		if err := lines.Decode(q); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", len(questions)+1, file.Name(), err)
		}

		if suite == "all" || q.Suite == suite || strings.HasPrefix(q.Suite, suite+"-") {
			questions = append(questions, q)
		}
	}

	if len(questions) == 0 {
		return nil, fmt.Errorf("%s has no question of the suite %s", file.Name(), suite)
	}

	return questions, nil
}
