package rig

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// Side is one of the two sides of a comparison. Its round returns a figure, and a remark for people.
type Side struct {
	Name  string
	Round func(ctx context.Context) (figure float64, remark string, err error)
}

// WithProcessorTime adds the processor time of a round to its remark; other load on the machine affects it less.
func WithProcessorTime(pid int, s Side) Side {
	return Side{s.Name, func(ctx context.Context) (float64, string, error) {
		before, err := processorTime(pid)
		if err != nil {
			return 0, "", err
		}

		figure, remark, err := s.Round(ctx)
		if err != nil {
			return 0, "", err
		}

		after, err := processorTime(pid)

		return figure, fmt.Sprintf("%s; processors %v", remark, after-before), err
	}}
}

// Alternate runs the rounds of both sides in turn, so that other load on the machine affects both, and returns the
// median of each. The first round of each is a warm-up and does not count.
func Alternate(ctx context.Context, rounds int, ours, bare Side) (oursMedian, bareMedian float64, err error) {
	figures := map[string][]float64{}
	order := []Side{ours, bare}

	for i := range rounds + 1 {
		for _, s := range order {
			figure, remark, err := s.Round(ctx)
			if err != nil {
				return 0, 0, fmt.Errorf("round %d of %s: %w", i, s.Name, err)
			}

			fmt.Fprintf(os.Stderr, "round %d of %d: %s %s\n", i, rounds, s.Name, remark)

			if i > 0 {
				figures[s.Name] = append(figures[s.Name], figure)
			}
		}

		slices.Reverse(order) // neither side always follows the other
	}

	return Median(figures[ours.Name]), Median(figures[bare.Name]), nil
}

// Median returns the median of figures, and sorts them.
func Median(figures []float64) float64 {
	slices.Sort(figures)

	return (figures[(len(figures)-1)/2] + figures[len(figures)/2]) / 2
}
