package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// side is one of the two that are compared. Its round gives a figure, and a remark for people.
type side struct {
	name  string
	round func(ctx context.Context) (figure float64, remark string, err error)
}

// alternate runs the rounds of both sides in turn, so that whatever else the machine does meets both,
// and returns the median of each. The first round of each warms up and does not count.
func alternate(ctx context.Context, rounds int, ours, bare side) (oursMedian, bareMedian float64, err error) {
	figures := map[string][]float64{}
	order := []side{ours, bare}

	for i := range rounds + 1 {
		for _, s := range order {
			figure, remark, err := s.round(ctx)
			if err != nil {
				return 0, 0, fmt.Errorf("round %d of %s: %w", i, s.name, err)
			}

			fmt.Fprintf(os.Stderr, "round %d of %d: %s %s\n", i, rounds, s.name, remark)

			if i > 0 {
				figures[s.name] = append(figures[s.name], figure)
			}
		}

		slices.Reverse(order) // neither always follows the other
	}

	return median(figures[ours.name]), median(figures[bare.name]), nil
}

// median sorts its argument.
func median(figures []float64) float64 {
	slices.Sort(figures)

	return (figures[(len(figures)-1)/2] + figures[len(figures)/2]) / 2
}
