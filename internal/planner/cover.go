package planner

import (
	"cmp"
	"slices"
)

const (
	maxCovers = 64
	exact     = 3 // tier of a name as it is written
)

// cover is a way to explain all words: items that do not overlap.
type cover struct {
	before *cover
	last   *item
	unused int // words without a meaning
	guess  int // words whose meaning is guessed
	items  int // the fewer, the longer the names
	loose  int // how far names are from what is written
}

func (c *cover) with(one *item) *cover {
	next := &cover{before: c, last: one, unused: c.unused, guess: c.guess, items: c.items, loose: c.loose}

	switch {
	case one.kind == unusedItem:
		next.unused++
	case one.guess:
		next.guess += one.to - one.from
		next.items++
	case one.kind == functionItem:
	default:
		next.items++

		switch one.kind {
		case columnItem, entityItem:
			next.loose += exact - one.tier
		case verbItem:
			if one.table >= 0 {
				next.loose += exact - one.tier
			}
		case partItem:
			next.loose += exact
		default:
		}
	}

	return next
}

func compare(a, b *cover) int {
	return cmp.Or(cmp.Compare(a.unused, b.unused), cmp.Compare(a.guess, b.guess), cmp.Compare(a.items, b.items), cmp.Compare(a.loose, b.loose))
}

// covers returns the ways to explain all words, those first that leave out and guess the fewest words and have the
// longest names.
func covers(items [][]*item) []*cover {
	at := make([][]*cover, len(items)+1)
	at[0] = []*cover{{}}

	for i, list := range items {
		slices.SortStableFunc(at[i], compare)
		here := at[i][:min(len(at[i]), maxCovers)]

		for _, one := range list {
			for _, c := range here {
				at[one.to] = append(at[one.to], c.with(one))
			}
		}
	}

	all := at[len(items)]
	slices.SortStableFunc(all, compare)

	return all[:min(len(all), maxCovers)]
}

// list returns the items in the order of the question.
func (c *cover) list() (list []*item) {
	for ; c.last != nil; c = c.before {
		list = append(list, c.last)
	}

	slices.Reverse(list)

	return list
}
