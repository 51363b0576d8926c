package lexicon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
)

func TestSpelled(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][2]int{
		"eighteen": {18, 1}, "achtzehn": {18, 1}, "dix huit": {18, 2}, "twenty three": {23, 2}, "dreiundzwanzig": {23, 1}, "vingt et un": {21, 3}, "vingt trois": {23, 2},
		"soixante et onze": {71, 3}, "soixante dix huit": {78, 3}, "quatre vingts": {80, 2}, "quatre vingt dix neuf": {99, 4}, "quatre vingt trois": {83, 3},
		"two hundred and five": {205, 4}, "zweihundertfünf": {205, 1}, "deux cent cinq": {205, 3}, "einhundertdreiundzwanzig": {123, 1}, "two five": {2, 1},
		"five and six": {5, 1}, "cent": {0, 0}, "hundred": {0, 0}, "cities": {0, 0}, "six per cent": {6, 1}, "sept et huit": {7, 1}, "trois et un": {3, 1}, "hund": {0, 0}, "und": {0, 0},
	} {
		value, used := lexicon.Spelled(strings.Fields(text))
		require.Equal(t, want, [2]int{value, used}, text)
	}
}
