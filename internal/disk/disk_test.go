package disk

import (
	"bytes"
	"io"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// watching returns a Watch of a temporary folder without a reserve, and its log.
func watching(t *testing.T, evict func() bool) (*Watch, *bytes.Buffer) {
	t.Helper()

	log := &bytes.Buffer{}
	w, err := New(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	w.Evict(func() bool { return false }) // returns false, so the next function is called
	w.Evict(evict)
	require.Positive(t, w.State().FreeBytes)

	return w, log
}

func TestMissing(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		seen  usage
		more  int64
		eased bool
		want  string
	}{
		"room":                        {seen: usage{freeBytes: 100, bytes: 10_000, freeInodes: 10, inodes: 1000}},
		"no space":                    {seen: usage{freeBytes: 99, bytes: 10_000, freeInodes: 10, inodes: 1000}, want: space},
		"not for so much":             {seen: usage{freeBytes: 100, bytes: 10_000, freeInodes: 10, inodes: 1000}, more: 1, want: space},
		"no inodes":                   {seen: usage{freeBytes: 100, bytes: 10_000, freeInodes: 9, inodes: 1000}, want: inodes},
		"no limit of inodes":          {seen: usage{freeBytes: 100, bytes: 10_000}},
		"a tenth of a small one":      {seen: usage{freeBytes: 50, bytes: 500, freeInodes: 5, inodes: 50}},
		"less than a tenth":           {seen: usage{freeBytes: 49, bytes: 500, freeInodes: 5, inodes: 50}, want: space},
		"a little more after a while": {seen: usage{freeBytes: 111, bytes: 10_000, freeInodes: 11, inodes: 1000}, eased: true, want: space},
		"and not more than that":      {seen: usage{freeBytes: 112, bytes: 10_000, freeInodes: 11, inodes: 1000}, eased: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := &Watch{config: Config{ReserveBytes: 100, ReserveInodes: 10}, seen: test.seen}
			require.Equal(t, test.want, w.missing(test.more, test.eased))
		})
	}

	none := &Watch{seen: usage{freeBytes: 0, bytes: 500, freeInodes: 1, inodes: 50}}
	require.Equal(t, space, none.missing(0, false), "a folder without a reserve can be full")

	none.seen = usage{freeBytes: 1, bytes: 500, freeInodes: 0, inodes: 50}
	require.Equal(t, inodes, none.missing(0, false))
}

// TestRoom checks that nothing is removed while there is room, and that the log has one line for each change.
func TestRoom(t *testing.T) {
	t.Parallel()

	left := 3
	w, log := watching(t, func() bool {
		left--

		return left >= 0
	})

	require.NoError(t, w.Room(0))
	require.Equal(t, 3, left, "there is room")

	require.True(t, fault.Is(w.Room(math.MaxInt64), fault.LimitExceeded))
	require.Equal(t, 3, left, "for what can never fit nothing is removed")
	require.Empty(t, log.String())

	w.tell(space)
	w.tell(space)
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"))
	require.True(t, w.State().Full)
	require.Contains(t, w.State().Problem, w.config.Dir)
	require.Contains(t, w.State().Problem, "too little space")

	w.tell("")
	w.tell("")
	require.Equal(t, 1, strings.Count(log.String(), "has free space again"))
	require.False(t, w.State().Full)
}

// TestRefused checks that Room removes everything that is cached before it returns Unavailable.
func TestRefused(t *testing.T) {
	t.Parallel()

	left := 3
	w, log := watching(t, func() bool {
		left--

		return left >= 0
	})

	want := w.seen.bytes - 1 // more than is free, because something is in use

	err := w.Room(want)
	require.True(t, fault.Is(err, fault.Unavailable), "%v", err)
	require.True(t, fault.IsNoRoom(err))
	require.Positive(t, fault.From(err).RetryAfter)
	require.Negative(t, left)
	require.Empty(t, log.String(), "a wish for too much does not make the folder full")
	require.NoError(t, (*Watch)(nil).Room(want))
}

// fullFile has room for a limited number of bytes. The test raises the limit each time something is removed.
type fullFile struct {
	bytes.Buffer

	room int
}

func (f *fullFile) Write(p []byte) (int, error) {
	if len(p) <= f.room-f.Len() {
		return f.Buffer.Write(p)
	}

	n, _ := f.Buffer.Write(p[:f.room-f.Len()])

	return n, syscall.ENOSPC
}

func TestWriter(t *testing.T) {
	t.Parallel()

	file := &fullFile{room: 10}
	left := 3
	w, _ := watching(t, func() bool {
		if left--; left < 0 {
			return false
		}

		file.room += 10

		return true
	})

	written, err := io.Copy(w.Writer(file), strings.NewReader(strings.Repeat("x", 40)))
	require.NoError(t, err)
	require.EqualValues(t, 40, written)
	require.Equal(t, strings.Repeat("x", 40), file.String())

	_, err = w.Writer(file).Write([]byte("y"))
	require.ErrorIs(t, err, syscall.ENOSPC)

	_, err = (*Watch)(nil).Writer(file).Write([]byte("y"))
	require.ErrorIs(t, err, syscall.ENOSPC)
}
