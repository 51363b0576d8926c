package grounding

import (
	"math/big"
	"slices"
	"strconv"
)

// whole calculates a function over a column. It fails if the writer has not seen all rows of the step.
func (p *reader) whole(name string, at ref) *big.Rat {
	t := p.data.tables[at.t]
	if !t.complete {
		p.failf("step %d has more rows than these: ask for the %s in a query", t.index, name)

		return nil
	}

	value := t.total(name, at.column)
	if value == nil {
		p.failf("%s has no numbers", p.data.describe(at))

		return nil
	}

	p.result.wholes = append(p.result.wholes, at)

	if name == "min" || name == "max" {
		for r, row := range t.rows {
			if number := row[at.column].number; number != nil && number.Cmp(value) == 0 && len(p.result.cells) < maxSources {
				p.result.cells = append(p.result.cells, ref{at.t, r, at.column})
			}
		}
	}

	return value
}

// total calculates a function over a column once and stores the result.
func (t *table) total(name string, column int) *big.Rat {
	key := name + ":" + strconv.Itoa(column)
	if value, done := t.totals[key]; done {
		return value
	}

	var numbers []*big.Rat

	full := 0

	for _, row := range t.rows {
		if !row[column].null {
			full++
		}

		if number := row[column].number; number != nil {
			numbers = append(numbers, number)
		}
	}

	if name == "count" {
		t.totals[key] = new(big.Rat).SetInt64(int64(full))
	} else {
		t.totals[key] = aggregate(name, numbers)
	}

	return t.totals[key]
}

func aggregate(name string, numbers []*big.Rat) *big.Rat {
	if len(numbers) == 0 {
		return nil
	}

	count := new(big.Rat).SetInt64(int64(len(numbers)))
	total := new(big.Rat)

	for _, number := range numbers {
		total.Add(total, number)
	}

	switch name {
	case "min":
		return slices.MinFunc(numbers, (*big.Rat).Cmp)
	case "max":
		return slices.MaxFunc(numbers, (*big.Rat).Cmp)
	case "avg":
		return total.Quo(total, count)
	case "count":
		return count
	}

	return total
}
