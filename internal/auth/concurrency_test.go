package auth

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func TestConcurrency(t *testing.T) {
	t.Parallel()

	var (
		bound    = NewConcurrency(2, "streams open")
		ann, bob = Principal{Account: uuid.New()}, Principal{Account: uuid.New()}
		ends     []func()
	)

	for _, who := range []Principal{ann, ann, bob} {
		end, err := bound.Begin(who)
		require.NoError(t, err)

		ends = append(ends, end)
	}

	_, err := bound.Begin(ann)
	require.True(t, fault.Is(err, fault.RateLimited))
	require.Positive(t, fault.From(err).RetryAfter)
	require.ErrorContains(t, err, "You already have 2 streams open, which is the maximum.")

	ends[0]()
	ends[0]() // counts only once

	end, err := bound.Begin(ann)
	require.NoError(t, err)

	_, err = bound.Begin(ann)
	require.True(t, fault.Is(err, fault.RateLimited))

	for _, end := range append(ends[1:], end) {
		end()
	}

	require.Empty(t, bound.inProgress, "nobody is remembered")

	var none *Concurrency

	end, err = none.Begin(ann)
	require.NoError(t, err)
	end()
}
