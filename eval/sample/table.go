package sample

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Table is the data for answers. An empty cell is null.
type Table struct {
	Name    string
	Columns []string
	Rows    [][]string
}

// Read reads tables from CSV files with a header. It leaves out tables without rows.
func Read(files ...string) ([]Table, error) {
	var tables []Table

	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}

		lines, err := csv.NewReader(file).ReadAll()
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		if len(lines) > 1 {
			tables = append(tables, Table{Name: strings.TrimSuffix(filepath.Base(name), ".csv"), Columns: lines[0], Rows: lines[1:]})
		}
	}

	return tables, nil
}

type kind int

const (
	texts kind = iota
	numbers
	days
)

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?$`)

// kindOf returns the kind that all cells of a column have.
func kindOf(rows [][]string, column int) kind {
	number, day, some := true, true, false

	for _, row := range rows {
		cell := row[column]
		if cell == "" {
			continue
		}

		some = true
		number = number && plainNumber.MatchString(cell)
		_, err := time.Parse(time.DateOnly, cell)
		day = day && err == nil
	}

	switch {
	case some && number:
		return numbers
	case some && day:
		return days
	}

	return texts
}

// view is the result of a step: some columns and rows of a table.
type view struct {
	step    int
	columns []string
	rows    [][]string
	kinds   []kind
	key     int // column that names rows; -1 if there is none
	more    int // number of rows that the writer did not see
	asText  bool
}

const (
	maxColumns = 6
	maxRows    = 30
)

// newView selects a part of a table as the result of a step. It returns false if no sentence can be written about the part.
func newView(r *random, t Table, step int) (*view, bool) {
	from := r.IntN(max(1, len(t.Rows)-3))
	rows := t.Rows[from:min(len(t.Rows), from+4+r.IntN(maxRows-4))]
	v := &view{step: step, key: -1, asText: r.chance(25)}

	chosen := r.Perm(len(t.Columns))[:min(len(t.Columns), maxColumns)]
	slices.Sort(chosen)

	for range rows {
		v.rows = append(v.rows, nil)
	}

	met := map[string]bool{"": true}

	for _, c := range chosen {
		if met[t.Columns[c]] {
			continue // a JSON object has each name once
		}

		met[t.Columns[c]] = true

		v.columns = append(v.columns, t.Columns[c])
		for i, row := range rows {
			v.rows[i] = append(v.rows[i], row[c])
		}
	}

	for c := range v.columns {
		v.kinds = append(v.kinds, kindOf(v.rows, c))
	}

	for c := range v.columns {
		if v.key < 0 && v.names(c) {
			v.key = c
		}
	}

	if r.chance(15) {
		v.more = 1 + r.IntN(5000)
	}

	return v, len(v.rows) > 1 && len(v.numeric()) > 0
}

// names reports whether the values of a column can name the rows: they are not empty and unique, and if they are texts,
// at least three can be used in a sentence.
func (v *view) names(column int) bool {
	met := map[string]bool{}

	for _, row := range v.rows {
		name := strings.ToLower(row[column])
		if name == "" || met[name] {
			return false
		}

		met[name] = true
	}

	switch v.kinds[column] {
	case numbers:
		return regexp.MustCompile(`(?i)^(year|jahr|annee|année)$`).MatchString(v.columns[column])
	case days:
		return true
	case texts:
	}

	usable := 0

	for _, row := range v.rows {
		if nameable(row[column]) {
			usable++
		}
	}

	return usable > 2
}

// nameable reports whether a text can be used in a sentence as it is.
func nameable(text string) bool {
	letters := 0

	for _, c := range text {
		if unicode.IsLetter(c) {
			letters++
		}

		if strings.ContainsRune("\n\r\"“”„«»[]|*_`<>#:;!?", c) {
			return false
		}
	}

	return letters > 2 && len(text) <= 40 && text == strings.Join(strings.Fields(text), " ")
}

// sayable returns the columns of a kind whose names can be used in a sentence.
func (v *view) sayable(k kind) []int {
	var list []int

	for c, name := range v.columns {
		said := spoken(name)
		same := func(other string) bool { return strings.EqualFold(spoken(other), said) }

		first, last := slices.IndexFunc(v.columns, same), len(v.columns)-1
		for !same(v.columns[last]) {
			last--
		}

		if v.kinds[c] == k && c != v.key && nameable(said) && len(said) <= 30 && first == last {
			list = append(list, c)
		}
	}

	return list
}

// numeric returns the number columns that a statement may compute with. Columns of years are left out.
func (v *view) numeric() []int {
	return slices.DeleteFunc(v.sayable(numbers), func(c int) bool {
		return !slices.ContainsFunc(v.rows, func(row []string) bool { return row[c] != "" && !year.MatchString(row[c]) })
	})
}

// spoken returns the name of a column as a sentence uses it: without underscores and without its unit, which is written
// with the value.
func spoken(name string) string {
	words := strings.Fields(strings.ReplaceAll(name, "_", " "))
	if len(words) > 1 {
		if _, isUnit := unitWords()[strings.ToLower(words[len(words)-1])]; isUnit {
			words = words[:len(words)-1]
		}
	}

	return strings.Join(words, " ")
}

// number returns the number in a cell, and false if there is none.
func (v *view) number(row, column int) (*big.Rat, bool) {
	if v.kinds[column] != numbers || v.rows[row][column] == "" {
		return nil, false
	}

	return new(big.Rat).SetString(v.rows[row][column])
}

// filled returns the rows that can be named and have a value in the column.
func (v *view) filled(column int) []int {
	var list []int

	for i, row := range v.rows {
		if v.key >= 0 && row[column] != "" && (v.kinds[v.key] != texts || nameable(row[v.key])) {
			list = append(list, i)
		}
	}

	return list
}

func (v *view) all(column int) []*big.Rat {
	var list []*big.Rat

	for i := range v.rows {
		if n, has := v.number(i, column); has {
			list = append(list, n)
		}
	}

	return list
}

// Step is a result as the writer of an answer sees it.
type Step struct {
	Columns  []string
	Rows     []json.RawMessage
	RowCount int64
	Complete bool
}

func (v *view) result() (Step, error) {
	s := Step{Columns: v.columns, RowCount: int64(len(v.rows) + v.more), Complete: v.more == 0}

	for _, row := range v.rows {
		cells := map[string]any{"__metadata": map[string]any{"score": 1}}

		for c, cell := range row {
			switch {
			case cell == "":
				cells[v.columns[c]] = nil
			case v.kinds[c] == numbers && (!v.asText || !strings.Contains(cell, ".")):
				cells[v.columns[c]] = json.Number(cell)
			default:
				cells[v.columns[c]] = cell
			}
		}

		text, err := json.Marshal(cells)
		if err != nil {
			return s, err
		}

		s.Rows = append(s.Rows, text)
	}

	return s, nil
}
