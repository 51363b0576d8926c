package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBusinessSuite checks the properties of the suite. For the held-out split it only counts.
func TestBusinessSuite(t *testing.T) {
	t.Parallel()

	questions, none := 0, 0
	splitOf := map[string]string{}

	for _, split := range []string{"dev", heldOut} {
		list, err := readQuestions("business", split, "business")
		require.NoError(t, err)

		for _, q := range list {
			questions++

			if !q.Answerable {
				none++
			}

			require.Equal(t, q.Answerable, len(q.GoldSQL) > 0 && len(q.Answers) == len(q.GoldSQL))

			for _, one := range q.tables() {
				other, known := splitOf[one.dataset]
				require.True(t, !known || other == split, "a table is in both splits")

				splitOf[one.dataset] = split
			}
		}
	}

	require.GreaterOrEqual(t, questions, 150)
	require.GreaterOrEqual(t, none, 10)
	require.GreaterOrEqual(t, len(splitOf), 8)
}
