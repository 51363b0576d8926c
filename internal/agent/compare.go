package agent

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/query"
)

// table is a small result of a statement.
type table struct {
	columns []query.Column
	rows    []json.RawMessage
}

const (
	comparedColumns = 6   // most columns of the narrower result
	comparedWays    = 24  // most assignments of columns that are tried
	percent         = 100 // factor between a fraction and a percentage
)

// sameTable reports whether two results contain the same rows: the columns of one result are columns of the other,
// regardless of column names and row order. ok is false if the comparison would take too long or the rows cannot be
// decoded. share also accepts a fraction as equal to the same percentage.
func sameTable(a, b table, share bool) (same, ok bool) {
	if len(a.columns) > len(b.columns) {
		a, b = b, a
	}

	if len(a.columns) > comparedColumns {
		return false, false
	}

	left, right := a.cells(), b.cells()
	if left == nil || right == nil {
		return false, false
	}

	if len(left) != len(right) {
		return false, true
	}

	m := matching{left: left, right: right, share: share, possible: make([][]int, len(a.columns))}

	for i := range a.columns {
		for place := range b.columns {
			if m.fits([]int{place}, i) {
				m.possible[i] = append(m.possible[i], place)
			}
		}
	}

	same = m.assign(nil)

	return same, same || m.ways <= comparedWays
}

// matching assigns the columns of one result to columns of another.
type matching struct {
	left, right [][]cell
	share       bool
	possible    [][]int // by column on the left, positions of candidate columns on the right
	ways        int     // number of assignments tried
}

// assign tries positions on the right for the columns that do not have one yet, and reports whether an assignment fits.
func (m *matching) assign(places []int) bool {
	if m.ways > comparedWays {
		return false
	}

	if len(places) == len(m.possible) {
		m.ways++

		return m.fits(places, 0)
	}

	return slices.ContainsFunc(m.possible[len(places)], func(place int) bool {
		return !slices.Contains(places, place) && m.assign(append(slices.Clip(places), place))
	})
}

// fits reports whether the left columns from index first on have the same rows, in any order, as the right columns at
// these positions.
func (m *matching) fits(places []int, first int) bool {
	taken := make([]bool, len(m.right))

	for _, row := range m.left {
		found := false

		for i, other := range m.right {
			if taken[i] {
				continue
			}

			found = true

			for at, place := range places {
				found = found && row[first+at].equals(other[place], m.share)
			}

			if found {
				taken[i] = true

				break
			}
		}

		if !found {
			return false
		}
	}

	return true
}

// cells returns the values by row and column, or nil if a row cannot be decoded.
func (t table) cells() [][]cell {
	list := make([][]cell, len(t.rows))

	for i, row := range t.rows {
		var values map[string]json.RawMessage
		if json.Unmarshal(row, &values) != nil {
			return nil
		}

		for _, c := range t.columns {
			list[i] = append(list[i], cellOf(values[c.Name]))
		}
	}

	return list
}

// cell is a value prepared for comparison: a number with the precision that it was written with, or text.
type cell struct {
	text     string
	number   float64
	decimals int
	isNumber bool
}

func cellOf(value json.RawMessage) cell {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(bytes.TrimSpace(value))
	}

	text = strings.ToLower(strings.TrimSpace(text))
	written := strings.TrimSuffix(strings.ReplaceAll(text, ",", ""), "%")

	if number, err := strconv.ParseFloat(written, 64); err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
		_, fraction, _ := strings.Cut(written, ".")

		return cell{text: text, number: number, decimals: len(fraction), isNumber: true}
	}

	return cell{text: beginning(text)}
}

// beginning shortens the first moment of a day, month or year to that day, month or year: "2026-02-01" becomes
// "2026-02".
func beginning(text string) string {
	if len(text) < len("2026-01") || text[len("2026")] != '-' {
		return text
	}

	for _, first := range []string{"z", "+00:00", "+00", ".000000", ".000", ":00", ":00", " 00", "t00", "-01", "-01"} {
		text = strings.TrimSuffix(text, first)
	}

	return text
}

func (c cell) equals(other cell, share bool) bool {
	if !c.isNumber || !other.isNumber {
		return c.text == other.text
	}

	return c.near(other) || (share && (c.times(percent).near(other) || c.near(other.times(percent))))
}

func (c cell) times(factor float64) cell {
	return cell{number: c.number * factor, decimals: max(c.decimals-2, 0), isNumber: true}
}

// near reports whether one number may be the other one rounded.
func (c cell) near(other cell) bool {
	rounded := 0.5 * math.Pow10(-min(c.decimals, other.decimals))
	difference := math.Abs(c.number - other.number)

	if c.decimals == 0 && other.decimals == 0 {
		return difference == 0
	}

	return difference <= max(rounded*(1+1e-9), 1e-6*math.Abs(c.number))
}
