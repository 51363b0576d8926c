package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSays checks that an interpretation is found in the answer that begins with it, and that another one is not.
func TestSays(t *testing.T) {
	t.Parallel()

	const read = "number of *orders*, by *region*"

	for answer, want := range map[string]bool{
		"Number of orders, by region:\n\n| region | count |\n|---|---:|\n| north | 2 |": true,
		"No model could be reached, so the planner answered.\n\nNumber of orders: 3.":   false,
		"No model could be reached.\n\nNumber of orders, by region: 12 rows.":           true,
		"The north had the most orders.":                                                false,
		"":                                                                              false,
	} {
		require.Equal(t, want, says(answer, read), answer)
	}

	require.True(t, says("How many orders are there: 3.", "How many *orders* are there?"))
}
