package blob_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// TestStalled checks that a transfer ends if no byte moves for some time, and only then.
func TestStalled(t *testing.T) {
	t.Parallel()

	const stalled = 500 * time.Millisecond

	t.Run("the store does not read the rest", func(t *testing.T) {
		t.Parallel()

		c := config(t, serve(t, func(_ http.ResponseWriter, r *http.Request) { waitFor(r) }))
		c.Stalled = stalled
		err := newStore(t, c).WriteFile(t.Context(), "key", bytes.NewReader(make([]byte, 12<<20)), 12<<20)
		requireFault(t, fault.Unavailable, err)
	})

	t.Run("the answer stops in the middle", func(t *testing.T) {
		t.Parallel()

		c := config(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()

			waitFor(r)
		}))
		c.Stalled = stalled

		object, err := newStore(t, c).Read(t.Context(), "key", 0, -1)
		require.NoError(t, err)
		content, err := io.ReadAll(object)
		require.NoError(t, object.Close())
		require.Equal(t, "begin", string(content))
		requireFault(t, fault.Unavailable, err)
	})

	t.Run("a slow store and a slow reader", func(t *testing.T) {
		t.Parallel()

		// The whole takes longer than stalled, and what the buffers between the two hold does not.
		const (
			pieces  = 16
			stalled = 3 * time.Second
		)

		c := config(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			piece := make([]byte, 1<<20)
			for range pieces {
				_, _ = io.ReadFull(r.Body, piece)

				time.Sleep(stalled / 12)
			}

			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, " and end")
		}))
		c.Stalled = stalled
		store := newStore(t, c)

		require.NoError(t, store.WriteFile(t.Context(), "key", bytes.NewReader(make([]byte, pieces<<20)), pieces<<20))

		object, err := store.Read(t.Context(), "key", 0, -1)
		require.NoError(t, err)

		time.Sleep(stalled + time.Second)

		content, err := io.ReadAll(object)
		require.NoError(t, err)
		require.NoError(t, object.Close())
		require.Equal(t, "begin and end", string(content))
	})
}

// waitFor waits until the client disconnects, at most four seconds. A server does not notice that the client disconnected while it has not read
// the whole request.
func waitFor(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(4 * time.Second):
	}
}
