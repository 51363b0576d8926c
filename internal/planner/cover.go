package planner

import (
	"cmp"
	"slices"
)

const (
	maxCovers = 12
	perItem   = 0.2 // cost of each further item, so that items that explain more words are preferred
)

// cover is a way to explain the words up to a token: the last item and the cover before it.
type cover struct {
	before *cover
	last   *item
	score  float64
}

// covers returns the best ways to explain all words by items that do not overlap, best first.
func covers(items [][]*item) [][]*item {
	at := make([][]*cover, len(items)+1)
	at[0] = []*cover{{}}

	for i, list := range items {
		here := best(at[i])

		for _, one := range list {
			for _, c := range here {
				at[one.to] = append(at[one.to], &cover{c, one, c.score + gain(one)})
			}
		}
	}

	var all [][]*item

	for _, c := range best(at[len(items)]) {
		var whole []*item
		for ; c.last != nil; c = c.before {
			whole = append(whole, c.last)
		}

		slices.Reverse(whole)
		all = append(all, whole)
	}

	return all
}

func best(list []*cover) []*cover {
	slices.SortStableFunc(list, func(a, b *cover) int { return cmp.Compare(b.score, a.score) })

	return list[:min(len(list), maxCovers)]
}

// gain returns the score that an item adds to a cover.
func gain(one *item) float64 {
	if one.kind == unknown || one.kind == noise || one.kind == weak {
		return one.score
	}

	return one.score*float64(one.to-one.from) - perItem
}
