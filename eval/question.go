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
	AsOf         string      `json:"as_of"` // current date for the question, if the answer depends on it
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

// resultSet is rows with the names of their columns.
type resultSet struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// strict reports whether the question has exactly one right answer that is not disputed.
func (q *question) strict() bool { return q.Disputed == "" && !q.TieSensitive && !q.OneOfMany }

// accepted returns all right results. A single column of values is also right in its original and in its normal form.
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

// today returns the time at which the question is asked; zero if it does not matter.
func (q *question) today() (time.Time, error) {
	if q.AsOf == "" {
		return time.Time{}, nil
	}

	day, err := time.Parse(time.DateOnly, q.AsOf)

	return day.Add(12 * time.Hour), err
}

// table is a file to load, with its target dataset.
type table struct {
	file, namespace, dataset string
}

// namespace returns the namespace that contains only the tables of the question's database.
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

// tablesOf returns the tables of all questions, each once.
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

// readQuestions reads the questions of a suite, of all suites whose names begin with suite and a hyphen, or of all
// suites. Suites named …-train are in a separate file and are read only if they are named.
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
