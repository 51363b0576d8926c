package sample_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/eval/sample"
)

// TestSamples checks that the same seed makes the same answer, and that exactly the answers with a mistake have wrong
// claims.
func TestSamples(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("testdata/*.csv")
	require.NoError(t, err)
	tables, err := sample.Read(files...)
	require.NoError(t, err)

	for seed := range uint64(12) {
		for _, in := range sample.Formats() {
			for _, class := range append(sample.Classes(), sample.True) {
				s, made := sample.New(seed, tables, in, class)
				require.True(t, made)
				again, _ := sample.New(seed, tables, in, class)
				require.Equal(t, s, again)

				wrong := 0
				for _, claim := range s.Claims {
					require.Less(t, claim.From, claim.To)
					require.LessOrEqual(t, claim.To, len(s.Plain))

					if claim.Wrong {
						wrong++
					}
				}

				if class == sample.True {
					require.Zero(t, wrong, s.Answer)
				} else {
					require.Positive(t, wrong, s.Answer)
				}

				require.NotContains(t, s.Plain, "[[")
			}
		}
	}
}
