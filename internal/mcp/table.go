package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"quern.dev/quern/internal/query"
)

// table collects rows within a budget. Rows are arrays in the order of the columns, which cost fewer tokens than objects.
type table struct {
	Columns []column          `json:"columns"`
	Rows    []json.RawMessage `json:"rows"`

	budget *budget
	all    int            // number of columns before they were cut
	places map[string]int // of the columns, by name
	cells  int            // cells that were cut
	full   bool           // a row did not fit
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func newTable(columns []query.Column, b *budget) *table {
	t := &table{Columns: []column{}, Rows: []json.RawMessage{}, budget: b, all: len(columns), places: map[string]int{}}
	most := b.left / 2 //nolint:mnd // the other half is for rows

	for _, c := range columns {
		one := column{c.Name, c.Type}
		if most -= size(one) + 1; len(t.Columns) == maxColumns || most < 0 || !b.take(one) {
			break
		}

		t.places[c.Name] = len(t.Columns)
		t.Columns = append(t.Columns, one)
	}

	return t
}

// add adds a row, which is a JSON object. It returns false if the row does not fit. The first row always fits: its cells are cut
// until it does.
func (t *table) add(row json.RawMessage) (bool, error) {
	cells, err := t.cellsOf(row)
	if err != nil {
		return false, err
	}

	line, cut, err := rowOf(cells, maxResult)
	if err != nil {
		return false, err
	}

	if len(t.Rows) == 0 && len(line)+1 > t.budget.left && len(cells) > 0 {
		const separator = 2

		if line, cut, err = rowOf(cells, t.budget.left/len(cells)-separator); err != nil {
			return false, err
		}
	}

	if !t.budget.take(json.RawMessage(line)) {
		t.full = true

		return false, nil
	}

	t.Rows = append(t.Rows, line)
	t.cells += cut

	return true, nil
}

// cellsOf returns the cells of the shown columns.
func (t *table) cellsOf(row json.RawMessage) ([]json.RawMessage, error) {
	cells := make([]json.RawMessage, len(t.Columns))
	decoder := json.NewDecoder(bytes.NewReader(row))

	if _, err := decoder.Token(); err != nil {
		return nil, err
	}

	for missing := len(cells); missing > 0 && decoder.More(); {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}

		var cell json.RawMessage
		if err := decoder.Decode(&cell); err != nil {
			return nil, err
		}

		if name, isName := key.(string); isName {
			if i, shown := t.places[name]; shown {
				cells[i] = cell
				missing--
			}
		}
	}

	return cells, nil
}

func rowOf(cells []json.RawMessage, most int) (line []byte, cut int, err error) {
	line = append(line, '[')

	for i, cell := range cells {
		if i > 0 {
			line = append(line, ',')
		}

		short, isCut, err := cutCell(cell, most)
		if err != nil {
			return nil, 0, err
		}

		if line = append(line, short...); isCut {
			cut++
		}
	}

	return append(line, ']'), cut, nil
}

// cutCell returns a cell with at most maxCell characters and the given number of bytes. Of a list or object that is longer, it
// returns the beginning of its JSON as a text. Escapes that a text does not need are removed.
func cutCell(cell json.RawMessage, most int) (short []byte, cut bool, err error) {
	const quotes = 2

	if len(cell) == 0 {
		return []byte("null"), false, nil
	}

	if len(cell) <= min(maxCell, most) && !bytes.Contains(cell, []byte(`\u`)) {
		return cell, false, nil
	}

	text := string(cell)
	if cell[0] == '"' {
		if err := json.Unmarshal(cell, &text); err != nil {
			return nil, false, err
		}
	}

	text, cut = shorten(text, maxCell)
	if clipped := clip(text, max(0, most-quotes)); clipped != text {
		text, cut = clipped, true
	}

	if !cut && (len(cell) <= most && !bytes.Contains(cell, []byte(`\u`)) || cell[0] != '"') {
		return cell, false, nil
	}

	short, err = encode(text)

	return short, cut, err
}

// hint says what was cut, and how to get it.
func (t *table) hint() string {
	var hints []string

	if t.cells > 0 {
		hints = append(hints, fmt.Sprintf("%d cells were cut and end with %s; select a part of the text, for example substr(column, 1001, 1000).", t.cells, ellipsis))
	}

	if left := t.all - len(t.Columns); left > 0 {
		hints = append(hints, fmt.Sprintf("%d of %d columns are not shown; select the columns that you need.", left, t.all))
	}

	return strings.Join(hints, " ")
}
