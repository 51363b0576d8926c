package ingest

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFollow checks that a file counts as stored only if exactly its bytes were read while it was written.
func TestFollow(t *testing.T) {
	t.Parallel()

	appended := func(t *testing.T, path, more string) {
		t.Helper()

		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = file.WriteString(more)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}

	for name, c := range map[string]struct {
		last func(t *testing.T, path string) // what the sealed process does when the first bytes were read
		late func(t *testing.T, path string) // what it does after it said that the file is written
		same bool
	}{
		"written in two steps": {last: func(t *testing.T, path string) { t.Helper(); appended(t, path, "two") }, same: true},
		"written again": {last: func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Remove(path))
			appended(t, path, "one two")
		}},
		"changed after it was read": {last: func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.WriteFile(path, []byte("ONE "), 0o600))
		}},
		"longer in the end": {late: func(t *testing.T, path string) { t.Helper(); appended(t, path, "more") }},
		"shorter in the end": {late: func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Truncate(path, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "file")
			s := &storing{open: func() (*os.File, error) { return os.Open(path) }, ctx: t.Context(), written: make(chan struct{}), ended: make(chan struct{})}
			w := &working{storings: []*storing{s}}

			go func() {
				defer close(s.ended)

				_, s.err = io.ReadAll(s)
			}()

			appended(t, path, "one ")
			require.Eventually(t, func() bool { return s.read.Load() == 4 }, 10*time.Second, time.Millisecond)

			if c.last != nil {
				c.last(t, path)
			}

			w.followed(0)
			<-s.ended

			if c.late != nil {
				c.late(t, path)
			}

			same, err := w.finishStoring(t.Context(), 0, path)
			require.NoError(t, err)
			require.Equal(t, c.same, same)
		})
	}
}
