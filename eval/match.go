package main

import "slices"

// matchesAny reports whether a result matches one of the accepted results.
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

// matches reports whether columns of a result have the same rows as gold. It compares columns by their values and not
// by their names, and rows as a list if ordered, else as a set. Repeated rows count once.
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

// columns returns the distinct rows of some columns, in the order of their first occurrence.
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

// sameRows compares distinct rows. As sets, each row must have an equal one on the other side. The sides may differ in
// length, because numbers that are nearly equal count as equal.
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
