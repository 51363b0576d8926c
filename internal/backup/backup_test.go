package backup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/fault"
)

// TestFolder fetches objects of which one was removed and one is lost, with a line of an earlier process that is not complete, and reads them
// again. A file that was changed afterwards is found.
func TestFolder(t *testing.T) {
	t.Parallel()

	const objects = 1200

	path := filepath.Join(t.TempDir(), "backup")
	store := blobtest.New(t)

	f, err := Open(path, true)
	require.NoError(t, err)

	_, err = Open(path, true)
	require.ErrorContains(t, err, "Another process uses")

	require.NoError(t, f.Record(About{ID: "one"}, func(add func(key string, size int64) error) error {
		for n := range objects {
			if err := add(fmt.Sprintf("uploads/%04d", n), 4); err != nil {
				return err
			}
		}

		return nil
	}, func(to io.Writer) error {
		_, err := io.WriteString(to, "dump")

		return err
	}))
	require.NoError(t, f.CheckDump())
	require.False(t, f.Complete())

	for n := range 20 {
		_, err := store.Write(t.Context(), fmt.Sprintf("uploads/%04d", n), strings.NewReader(fmt.Sprintf("%04d", n)))
		require.NoError(t, err)
	}

	require.NoError(t, f.Close())
	require.NoError(t, os.WriteFile(f.join(copiedFile), []byte(`{"key":"uploads/0000","si`), fileMode))

	f, err = Open(path, true)
	require.NoError(t, err)

	defer func() { require.NoError(t, f.Close()) }()

	require.NoError(t, f.Fetch(t.Context(), Source{Store: store, Now: time.Now, Listed: func(_ context.Context, key string) (bool, error) {
		return key == "uploads/0020", nil
	}}, &Progress{Out: io.Discard, All: f.About(), Verb: "copied"}))
	require.True(t, f.Complete())
	require.EqualValues(t, 1, f.About().Lost)
	require.EqualValues(t, objects-21, f.About().Removed)

	read := func() error {
		return f.Each(t.Context(), func(_ context.Context, o Object) error {
			content, err := f.Open(o)
			if err != nil {
				return err
			}
			defer func() { _ = content.Close() }()

			text, err := io.ReadAll(content)
			if err == nil && "uploads/"+string(text) != o.Key {
				return fault.Absent()
			}

			return err
		})
	}

	require.NoError(t, read())
	require.NoError(t, os.WriteFile(f.object("uploads/0007"), []byte("0008"), fileMode))
	require.ErrorContains(t, read(), "differs from what the backup wrote")
	require.NoError(t, os.WriteFile(f.Dump(), []byte("damp"), fileMode))
	require.ErrorContains(t, f.CheckDump(), "differs from what the backup wrote")
}

func TestFolderOfAnother(t *testing.T) {
	t.Parallel()

	path := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "mine"), nil, fileMode))

	_, err := Open(path, true)
	require.ErrorContains(t, err, "is not empty and has no backup")
}
