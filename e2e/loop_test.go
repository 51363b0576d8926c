package e2e

import (
	"iter"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full says that loops run in full, as `make torture` runs them.
func full() bool { return os.Getenv("QUERN_TEST_LOOPS") == "full" }

// loops is the size of a test that `make torture` runs in full, and everything else at a tenth.
func loops(whole int) int {
	if full() {
		return whole
	}

	return max(1, whole/10)
}

// roundsTime is how long a loop goes on, unless it runs in full.
const roundsTime = 6 * time.Second

// rounds counts the rounds of a loop that `make torture` runs in full. Elsewhere it ends after a tenth of them, or earlier when roundsTime has
// passed, but never before the second round: what a loop finds, it finds by chance, and a busy machine must not make it longer.
func rounds(whole int) iter.Seq[int] {
	return func(yield func(int) bool) {
		began := time.Now()

		for i := range max(2, loops(whole)) {
			if late := time.Since(began) > roundsTime; late && i >= 2 && !full() || !yield(i) {
				return
			}
		}
	}
}

// await asks until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	awaitFor(t, patience, what, condition)
}

// awaitFor is await for what may take longer than everything else.
func awaitFor(t *testing.T, longest time.Duration, what string, condition func() bool) {
	t.Helper()

	for deadline := time.Now().Add(longest); !condition(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "gave up waiting until %s", what)
	}
}

// pause lets a random moment pass, so that what is done next meets the service at another moment each time. It does not wait for anything.
func pause(longest time.Duration) { time.Sleep(rand.N(longest)) }
