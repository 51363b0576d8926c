package e2e

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// loopShare returns how much of each loop runs, and whether QUERN_TEST_LOOPS says it: "full", or a number such as 0.5 or 3. The default is a tenth.
func loopShare() (part float64, given bool) {
	switch said := os.Getenv("QUERN_TEST_LOOPS"); said {
	case "":
		return 0.1, false
	case "full":
		return 1, true
	default:
		part, err := strconv.ParseFloat(said, 64)
		if err != nil || part <= 0 {
			panic("QUERN_TEST_LOOPS must be full or a number above 0: " + said)
		}

		return part, true
	}
}

// full reports whether loops run in full, as in `make torture`.
func full() bool {
	part, _ := loopShare()

	return part >= 1
}

// loops returns the size of a loop: whole in `make torture`, else a tenth.
func loops(whole int) int {
	part, _ := loopShare()

	return max(1, int(float64(whole)*part))
}

// roundsTime is how long a loop runs at most, unless QUERN_TEST_LOOPS says how much of it runs.
const roundsTime = 6 * time.Second

// rounds returns the rounds of a loop that `make torture` runs in full. Otherwise the loop ends after a tenth of the rounds, or
// earlier when roundsTime has passed, but never before the second round. Such a loop finds errors by chance, and must not take
// longer on a busy machine.
func rounds(whole int) iter.Seq[int] {
	return func(yield func(int) bool) {
		began := time.Now()
		_, given := loopShare()

		for i := range max(2, loops(whole)) {
			if late := time.Since(began) > roundsTime; late && i >= 2 && !given || !yield(i) {
				return
			}
		}
	}
}

// await waits until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	awaitFor(t, patience, what, condition)
}

// awaitFor is await with its own limit of time.
func awaitFor(t *testing.T, longest time.Duration, what string, condition func() bool) {
	t.Helper()

	for deadline := time.Now().Add(longest); !condition(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "gave up waiting until %s", what)
	}
}

// pause sleeps for a random time, so that the next action reaches the service at a different moment each time. It does not wait
// for anything.
func pause(longest time.Duration) { time.Sleep(rand.N(longest)) }
