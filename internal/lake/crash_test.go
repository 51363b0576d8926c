package lake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// line is a connection to the database that a test can cut, either at once or when COMMIT is sent.
type line struct {
	listener net.Listener
	server   string

	mu       sync.Mutex
	isCut    bool
	atCommit func(forward func()) // called instead of forwarding COMMIT
	open     map[net.Conn]bool
	running  sync.WaitGroup
}

func newLine(t *testing.T, address string) (*line, string) {
	t.Helper()

	target, err := url.Parse(address)
	require.NoError(t, err)

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)

	l := &line{listener: listener, server: target.Host, open: map[net.Conn]bool{}}
	target.Host = listener.Addr().String()

	l.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			l.running.Go(func() { l.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()

		l.cut()
		l.running.Wait()
	})

	return l, target.String()
}

func (l *line) serve(client net.Conn) {
	defer func() { _ = client.Close() }()

	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.server)
	if err != nil {
		return
	}

	defer func() { _ = server.Close() }()

	l.mu.Lock()
	l.open[client], l.open[server] = true, true
	cut := l.isCut
	l.mu.Unlock()

	if cut {
		return
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()

	buffer := make([]byte, 64<<10)

	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}

		l.mu.Lock()
		atCommit := l.atCommit
		l.mu.Unlock()

		if atCommit != nil && bytes.HasSuffix(buffer[:n], []byte("commit\x00")) {
			atCommit(func() { _, _ = server.Write(buffer[:n]) })

			break
		}

		if _, err := server.Write(buffer[:n]); err != nil {
			break
		}
	}

	_ = server.Close()
	<-done
}

// cut closes all connections and refuses new ones until mend is called.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.isCut = true

	for conn := range l.open {
		_ = conn.Close()
	}

	clear(l.open)
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.isCut = false
}

func (l *line) onCommit(do func(forward func())) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.atCommit = do
}

// TestCrash interrupts a commit at every step. The table is either unchanged or completely changed. A repeated commit
// adds every file exactly once, and Clean leaves nothing behind.
func TestCrash(t *testing.T) {
	t.Parallel()

	type victim struct {
		*Lake

		wire *wire
		line *line
	}

	endsWith := func(suffix string, do func()) func(*http.Request) {
		return func(r *http.Request) {
			if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, suffix) {
				do()
			}
		}
	}
	die := errors.New("died")
	never := func(*testing.T, Snapshot, error) {}

	for name, test := range map[string]struct {
		arm      func(v victim)
		also     func(v victim) error
		check    func(t *testing.T, made Snapshot, err error)
		happened bool
	}{
		// The process dies: nothing that it does afterwards reaches the database.
		"before its rows":    {arm: func(v victim) { v.line.cut() }, check: never},
		"after the manifest": {arm: func(v victim) { v.wire.intercept(nil, endsWith("-m0.avro", v.line.cut)) }, check: never},
		"after the metadata": {arm: func(v victim) { v.wire.intercept(nil, endsWith(".metadata.json", v.line.cut)) }, check: never},
		"in the transaction": {also: func(v victim) error { v.line.cut(); return nil }, check: never}, //nolint:nlreturn // one thought
		// The process continues and sees the failure.
		"refused": {also: func(victim) error { return die }, check: func(t *testing.T, _ Snapshot, err error) {
			t.Helper()
			require.ErrorIs(t, err, die)
		}},
		"the store refuses the metadata": {
			arm: func(v victim) {
				v.wire.intercept(func(r *http.Request) error {
					if strings.HasSuffix(r.URL.Path, ".metadata.json") {
						return die
					}

					return nil
				}, nil)
			},
			check: func(t *testing.T, _ Snapshot, err error) {
				t.Helper()
				require.Equal(t, fault.Unavailable, fault.From(err).Code, err)
			},
		},
		// COMMIT was sent, and the answer is lost.
		"commit lost on its way": {
			arm: func(v victim) { v.line.onCommit(func(func()) { v.line.onCommit(nil) }) },
			check: func(t *testing.T, _ Snapshot, err error) {
				t.Helper()
				require.Equal(t, fault.Unavailable, fault.From(err).Code, err)
			},
		},
		"answer to commit lost": {
			arm: func(v victim) {
				v.line.onCommit(func(forward func()) {
					v.line.onCommit(nil)
					forward()
				})
			},
			check: func(t *testing.T, made Snapshot, err error) {
				t.Helper()
				require.NoError(t, err, "it looks, and finds that it happened")
				require.Equal(t, int64(2), made.Sequence)
			},
			happened: true,
		},
	} {
		for _, first := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", new table", false: ""}[first], func(t *testing.T) {
				t.Parallel()

				p, at := newPlace(t), newTable()
				line, address := newLine(t, p.url)
				v := victim{line: line}
				v.Lake, v.wire = p.replica(address, func(*Config) {})
				v.patience = time.Second

				if !first {
					p.add(at, Append, 0, 5, wanted()...)
				}

				columns, err := p.Plan(t.Context(), at, wanted(), Append)
				require.NoError(t, err)

				ingestion := p.stage(p.Lake, at, columns, 0, 10)
				before, _ := p.current(at)

				if test.arm != nil {
					test.arm(v)
				}

				// A commit with unknown outcome keeps checking for a while; a dead process does not.
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()

				change := Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}
				made, err := v.Commit(ctx, change, func(postgres.Tx, Snapshot) error {
					if test.also != nil {
						return test.also(v)
					}

					return nil
				})

				if !first || !test.happened {
					test.check(t, made, err)
				}

				after, _ := p.current(at)
				if test.happened {
					require.Equal(t, made, *after)
				} else {
					require.Error(t, err)
					require.Equal(t, before, after)
				}

				v.wire.intercept(nil, nil)
				line.mend()

				// The pool may still hold closed connections. A call that uses one fails with Unavailable and must be
				// repeated.
				for tries := 1; ; tries++ {
					if _, err = v.Commit(t.Context(), change, noMore); !fault.Is(err, fault.Unavailable) || tries == 5 {
						break
					}
				}

				require.NoError(t, err)

				after, files := p.current(at)
				want := map[bool]int{true: 1, false: 2}[first]
				require.Len(t, files, want)
				require.Equal(t, map[bool]int64{true: 10, false: 15}[first], after.Rows)

				rows, _ := p.scan(at)
				require.Equal(t, after.Rows, rows)

				p.clock.advance(2 * time.Hour)
				require.NoError(t, p.Clean(t.Context(), ahead, nothing))
				p.requireSound()
				require.Len(t, p.keys(), 3*want+1, "data files, manifests, lists, and the metadata in force")
			})
		}
	}
}

// TestCleanTakesNothingInUse checks that a commit that takes longer than commitTime loses its objects but does no
// harm to the table.
func TestCleanTakesNothingInUse(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	p.add(at, Append, 0, 5, wanted()...)

	columns, err := p.Plan(t.Context(), at, wanted(), Append)
	require.NoError(t, err)

	ingestion := p.stage(p.Lake, at, columns, 0, 10)
	tries := 0
	made, err := p.Commit(t.Context(), Change{Table: at, Mode: Append, Ingestions: []uuid.UUID{ingestion}}, func(postgres.Tx, Snapshot) error {
		if tries++; tries == 1 {
			p.clock.advance(time.Hour)

			return p.Clean(t.Context(), ahead, nothing)
		}

		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, tries, "the first one found its objects gone")
	require.Equal(t, int64(15), made.Rows)

	rows, _ := p.scan(at)
	require.Equal(t, int64(15), rows)

	p.clock.advance(2 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	p.requireSound()
}

// TestInspect finds objects without a row, lost objects, and open uploads.
func TestInspect(t *testing.T) {
	t.Parallel()

	p, at := newPlace(t), newTable()
	p.add(at, Append, 0, 5, wanted()...)
	p.requireSound()

	_, err := p.store.Write(t.Context(), "lake/data/00/stray.parquet", strings.NewReader("stray"))
	require.NoError(t, err)
	upload, err := p.store.CreateUpload(t.Context(), "lake/data/00/begun.parquet")
	require.NoError(t, err)

	_, files := p.current(at)
	require.NoError(t, p.store.Delete(t.Context(), files[0].Key))

	found, err := p.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{files[0].Key}, found.Lost)
	require.Equal(t, []blob.Orphan{{Key: "lake/data/00/stray.parquet", Size: 5}, {Key: "lake/data/00/begun.parquet", UploadID: upload}}, found.Orphans)

	for _, orphan := range found.Orphans {
		require.NoError(t, p.store.RemoveOrphan(t.Context(), orphan))
	}

	found, err = p.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Orphans)

	// A writer died during its upload. Clean finds the upload by the row of the file in lake_files, and aborts it.
	require.NoError(t, p.db.InTx(t.Context(), func(tx postgres.Tx) error {
		staged, err := p.StageTx(t.Context(), tx, at, uuid.New(), Source{})
		require.NoError(t, err)
		_, err = p.store.CreateUpload(t.Context(), staged.Key)

		return err
	}))
	p.clock.advance(24 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))

	open := func() (n int) {
		for _, err := range p.store.Uploads(t.Context(), "") {
			require.NoError(t, err)

			n++
		}

		return n
	}
	require.Equal(t, 1, open(), "somebody may still be at it")
	p.clock.advance(2 * time.Hour)
	require.NoError(t, p.Clean(t.Context(), ahead, nothing))
	require.Zero(t, open())
}
