package benchmark

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/query"
)

const (
	maxRows    = 10_000
	maxColumns = 200
	maxTries   = 1000 // ways to assign columns of the answer to those of the verified statement
	tooMany    = "The answer or the verified statement has too many rows or columns to be compared."
)

var errLarge = errors.New("too many rows or columns to be compared")

// cell is a value that can be compared. A number has no text.
type cell struct {
	text     string
	number   float64
	isNumber bool
}

// table is a result.
type table struct {
	width   int
	rows    [][]cell
	ordered bool
}

// readTable reads all rows. It returns errLarge if there are too many.
func readTable(columns []query.Column, next func() (json.RawMessage, error)) (t table, err error) {
	if t.width = len(columns); t.width > maxColumns {
		return t, errLarge
	}

	for {
		line, err := next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}

		if err != nil {
			return t, err
		}

		if len(t.rows) == maxRows {
			return t, errLarge
		}

		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()

		var values map[string]any
		if err := decoder.Decode(&values); err != nil {
			return t, fmt.Errorf("reading a row: %w", err)
		}

		row := make([]cell, len(columns))
		for i, c := range columns {
			row[i] = readCell(values[c.Name], c.Type)
		}

		t.rows = append(t.rows, row)
	}
}

func readCell(value any, kind string) cell {
	switch value := value.(type) {
	case nil:
		return cell{text: "null"}
	case json.Number:
		if number, err := value.Float64(); err == nil {
			return cell{number: number, isNumber: true}
		}

		return cell{text: value.String()}
	case string:
		return readText(value, strings.ToLower(kind))
	default:
		return cell{text: fmt.Sprint(value)} // a list or an object, whose members are ordered by name
	}
}

// readText reads a cell that JSON has as a string: a text, a date, or a number with more digits than JSON's have for sure.
func readText(text, kind string) cell {
	if strings.HasPrefix(kind, "decimal") || strings.HasSuffix(kind, "int") {
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return cell{number: number, isNumber: true}
		}
	}

	if strings.HasPrefix(kind, "timestamp") || kind == "date" {
		for _, form := range []string{time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
			if at, err := time.Parse(form, text); err == nil {
				return cell{text: at.UTC().Format(time.RFC3339Nano)}
			}
		}
	}

	return cell{text: "'" + text}
}

// near is the tolerance for numbers: half a hundredth, or a millionth of the number.
func near(a, b float64) bool {
	return math.Abs(a-b) <= tolerance(max(math.Abs(a), math.Abs(b)))
}

func tolerance(of float64) float64 { return max(0.005, 1e-6*math.Abs(of)) }

func sameRow(a, b []cell) bool {
	return slices.EqualFunc(a, b, func(a, b cell) bool {
		return a.isNumber == b.isNumber && a.text == b.text && (!a.isNumber || near(a.number, b.number))
	})
}

// compare compares an answer with the rows of the verified statement, by the rule that eval has too: columns are compared by their values and
// not by their names, the answer may have further columns, repeated rows count once, and the order counts if the statement has one.
func compare(got, gold table) (outcome Outcome, why string) {
	candidates, columns := make([][]int, gold.width), make([]set, got.width)

	for j := range columns {
		columns[j] = got.columns([]int{j}).asSet()
	}

	for i := range candidates {
		want := gold.columns([]int{i}).asSet()

		for j, one := range columns {
			if one.equals(want) {
				candidates[i] = append(candidates[i], j)
			}
		}
	}

	want := gold.distinct().asSet()
	rows, sameSet := len(got.distinct().rows), false

	found := assign(candidates, func(chosen []int) bool {
		one := got.columns(chosen).asSet()
		isSame := one.equals(want)
		sameSet = sameSet || isSame

		return isSame && (!gold.ordered || slices.EqualFunc(one.rows, want.rows, sameRow))
	})

	switch {
	case found:
		return Right, ""
	case sameSet:
		return Wrong, "The rows are right, but their order is not."
	case rows != len(want.rows):
		return Wrong, fmt.Sprintf("The answer has %s, the verified statement %s.", counted(rows, "different row"), counted(len(want.rows), "different row"))
	default:
		return Wrong, "The number of rows is right, but not their values."
	}
}

func counted(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}

	return strconv.Itoa(count) + " " + what + "s"
}

// assign tries to choose a column for each list of candidates so that the choice fits.
func assign(candidates [][]int, fits func(chosen []int) bool) bool {
	chosen, tries := make([]int, 0, len(candidates)), 0

	var choose func() bool

	choose = func() bool {
		if len(chosen) == len(candidates) {
			tries++

			return fits(chosen)
		}

		for _, j := range candidates[len(chosen)] {
			if slices.Contains(chosen, j) || tries >= maxTries {
				continue
			}

			chosen = append(chosen, j)
			if choose() {
				return true
			}

			chosen = chosen[:len(chosen)-1]
		}

		return false
	}

	return choose()
}

// columns returns the distinct rows of some columns, in the order of their first occurrence.
func (t table) columns(chosen []int) table {
	part := table{width: len(chosen), rows: make([][]cell, len(t.rows))}

	for i, row := range t.rows {
		part.rows[i] = make([]cell, len(chosen))
		for k, j := range chosen {
			part.rows[i][k] = row[j]
		}
	}

	return part.distinct()
}

// keyOf returns the cells of a row that are compared exactly.
func keyOf(row []cell) string {
	var key strings.Builder

	for _, c := range row {
		if c.isNumber {
			key.WriteByte('#')
		} else {
			key.WriteString(strconv.Quote(c.text))
		}
	}

	return key.String()
}

// total returns the sum of the numbers of a row, by which rows with the same key are found, and how far the sum of an equal row can be away.
func total(row []cell) (sum, room float64) {
	for _, c := range row {
		if c.isNumber {
			sum += c.number
			room += 2 * tolerance(c.number) //nolint:mnd // more than the tolerance, which sameRow checks
		}
	}

	return sum, room
}

// distinct returns the table without repeated rows.
func (t table) distinct() table {
	once, seen := table{width: t.width, ordered: t.ordered}, map[string]bool{}

	for _, row := range t.rows {
		key := []byte(keyOf(row))
		for _, c := range row {
			key = strconv.AppendFloat(append(key, ' '), c.number, 'g', -1, 64)
		}

		if !seen[string(key)] {
			seen[string(key)] = true
			once.rows = append(once.rows, row)
		}
	}

	return once
}

// set is a table whose rows can be found.
type set struct {
	table

	keys  []string           // of the rows
	byKey map[string][]entry // rows ordered by their totals
}

type entry struct {
	sum float64
	row []cell
}

func (t table) asSet() set {
	s := set{t, make([]string, len(t.rows)), map[string][]entry{}}

	for i, row := range t.rows {
		sum, _ := total(row)
		s.keys[i] = keyOf(row)
		s.byKey[s.keys[i]] = append(s.byKey[s.keys[i]], entry{sum, row})
	}

	for _, list := range s.byKey {
		slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.sum, b.sum) })
	}

	return s
}

// equals reports whether each row has an equal one in the other set. The sets may differ in length, because numbers that are nearly equal count
// as equal.
func (s set) equals(other set) bool { return s.within(other) && other.within(s) }

func (s set) within(other set) bool {
	for i, row := range s.rows {
		list := other.byKey[s.keys[i]]
		sum, room := total(row)
		from, _ := slices.BinarySearchFunc(list, sum-room, func(e entry, least float64) int { return cmp.Compare(e.sum, least) })
		found := false

		for at := from; at < len(list) && !found && list[at].sum <= sum+room; at++ {
			found = sameRow(row, list[at].row)
		}

		if !found {
			return false
		}
	}

	return true
}
