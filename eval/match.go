package main

import "slices"

// matchesAny says whether a result is one of those that are right.
func matchesAny(result resultSet, accepted []resultSet, ordered bool) bool {
	got := readCells(result)

	for _, set := range accepted {
		if matches(got, readCells(set), ordered) {
			return true
		}
	}

	return false
}

// cells are the values of a result by row.
type cells struct {
	width int
	rows  [][]value
}

func readCells(set resultSet) cells {
	read := cells{width: len(set.Columns)}

	for _, row := range set.Rows {
		values := make([]value, len(row))
		for i, cell := range row {
			values[i] = readValue(cell)
		}

		read.rows = append(read.rows, values)
	}

	return read
}

// matches looks for the columns of gold among those of a result, by their values and not by their names, so that the
// rows are the same: as a list if they are ordered, else as a set. Repeated rows count once.
func matches(got, gold cells, ordered bool) bool {
	gold = gold.distinct()

	candidates := make([][]int, gold.width)
	for i := range candidates {
		for j := range got.width {
			if sameRows(got.columns([]int{j}), gold.columns([]int{i}), false) {
				candidates[i] = append(candidates[i], j)
			}
		}
	}

	chosen := make([]int, 0, gold.width)

	var choose func() bool

	choose = func() bool {
		if len(chosen) == gold.width {
			return sameRows(got.columns(chosen), gold, ordered)
		}

		for _, j := range candidates[len(chosen)] {
			if slices.Contains(chosen, j) {
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

// columns are the different rows that some columns have, in the order of their first appearance.
func (c cells) columns(chosen []int) cells {
	part := cells{width: len(chosen)}

	for _, row := range c.rows {
		values := make([]value, len(chosen))
		for i, j := range chosen {
			values[i] = row[j]
		}

		part.rows = append(part.rows, values)
	}

	return part.distinct()
}

func (c cells) distinct() cells {
	once := cells{width: c.width}

	for _, row := range c.rows {
		if !once.has(row) {
			once.rows = append(once.rows, row)
		}
	}

	return once
}

func (c cells) has(row []value) bool {
	for _, other := range c.rows {
		if sameRow(row, other) {
			return true
		}
	}

	return false
}

// sameRows compares different rows. As a set, each must be on the other side too: numbers that are near each other
// make it possible that the sides have not as many.
func sameRows(a, b cells, ordered bool) bool {
	if ordered {
		if len(a.rows) != len(b.rows) {
			return false
		}

		for i := range a.rows {
			if !sameRow(a.rows[i], b.rows[i]) {
				return false
			}
		}

		return true
	}

	return a.within(b) && b.within(a)
}

func (c cells) within(other cells) bool {
	for _, row := range c.rows {
		if !other.has(row) {
			return false
		}
	}

	return true
}

func sameRow(a, b []value) bool {
	for i := range a {
		if !a[i].same(b[i]) {
			return false
		}
	}

	return true
}
