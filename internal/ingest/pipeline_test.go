package ingest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/internal/sandbox"
)

const (
	pipelineEnds = 30 * time.Second // far more than the other stages need to end
	breaksWithin = time.Minute
	pipelineHead = 1 << 20     // bytes that arrive before a fetch breaks
	uploadedKey  = "uploaded-" // and the number of the file
)

// pipelineCase is one way in which a load can break.
type pipelineCase struct {
	content  string
	second   string                                          // content of a second file, if there is one
	fetched  func(ctx context.Context) (int, error)          // what the fetch returns after pipelineHead bytes; nil: the rest
	store    func(r *http.Request) (*http.Response, error)   // what the store answers to data files, or nil
	meantime func(p *pipelineRun, cancel context.CancelFunc) // what happens when the fetch or the store stalls
	status   Status
	code     string
}

// TestPipelineEnds checks for each stage of a load that its failure ends all others: the ingestion ends soon with the reason, and leaves
// no goroutine, no sealed process and no file.
func TestPipelineEnds(t *testing.T) { //nolint:paralleltest // it looks at the goroutines of the whole process
	stalled := func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	stalledStore := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
	good := "n\n" + strings.Repeat("12345\n", 500_000)
	late := "n\n" + strings.Repeat("12345\n", 50_000) + strings.Repeat("many\n", 100_000) // its end decides that too many rows do not fit
	revoked := func(p *pipelineRun, _ context.CancelFunc) { p.end(Cancelled) }

	for name, c := range map[string]pipelineCase{
		"the inspection refuses while the fetch stalls": {
			content: "SQLite format 3\x00" + good, fetched: stalled, status: Failed, code: "VALIDATION_FAILED",
		},
		"the conversion refuses while the store stalls": {content: good, second: late, store: stalledStore, status: Failed, code: "VALIDATION_FAILED"},
		"the store refuses": {content: good, store: func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
		}, status: Failed, code: "INTERNAL"},
		"the fetch breaks": {
			content: good, fetched: func(context.Context) (int, error) { return 0, io.ErrUnexpectedEOF }, status: Failed, code: "UNAVAILABLE",
		},
		"the file is shorter than it was": {
			content: good, fetched: func(context.Context) (int, error) { return 0, io.EOF }, status: Failed, code: "INTERNAL",
		},
		"cancelled while the fetch stalls": {content: good, fetched: stalled, meantime: revoked, status: Cancelled},
		"cancelled while the store stalls": {content: good, store: stalledStore, meantime: revoked, status: Cancelled},
		"the worker stops while the fetch stalls": {
			content: good, fetched: stalled, meantime: func(_ *pipelineRun, cancel context.CancelFunc) { cancel() }, status: Running,
		},
		"the worker stops while the store stalls": {
			content: good, store: stalledStore, meantime: func(_ *pipelineRun, cancel context.CancelFunc) { cancel() }, status: Running,
		},
	} {
		t.Run(name, func(t *testing.T) { newPipelineRun(t, c).check() })
	}
}

// pipelineRun is an ingestion of one file by a worker whose store can break.
type pipelineRun struct {
	*Ingest
	pipelineCase

	t         *testing.T
	made      Ingestion
	transport http.RoundTripper
	children  *sandbox.Sandbox
	stalls    chan struct{} // closed when the fetch or the store is broken
	once      sync.Once
}

func newPipelineRun(t *testing.T, c pipelineCase) *pipelineRun {
	t.Helper()

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)

	p := &pipelineRun{pipelineCase: c, t: t, transport: transport, stalls: make(chan struct{})}
	db, log, dir := pgtest.New(t), slog.New(slog.DiscardHandler), t.TempDir()

	config := blobtest.Config(t)
	config.Client = &http.Client{Transport: p, Timeout: time.Minute}

	store, err := blob.New(config)
	require.NoError(t, err)

	jobs, err := job.New(job.Config{DB: db, Log: log})
	require.NoError(t, err)

	tables, err := lake.New(lake.Config{DB: db, Store: store, Now: time.Now, Log: log})
	require.NoError(t, err)

	p.children, err = sandbox.New(sandbox.Config{Dir: filepath.Join(dir, "jobs"), Binary: "/proc/self/exe", Idle: 1, Programs: []string{engine.DuckDB}, Log: log})
	require.NoError(t, err)
	t.Cleanup(p.children.Close)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "passing"), 0o700))

	p.Ingest = New(Config{
		DB: db, Store: store, Lake: tables, Catalog: catalog.Catalog{DB: db, Now: time.Now}, Jobs: func() *job.Client { return jobs }, Log: log, Now: time.Now,
		Engine: engine.New(engine.Config{Sandbox: p.children, Program: engine.DuckDB, Log: log, Sessions: 1, Memory: 1 << 30, Threads: 2, Disk: 2 << 30}),
		Dir:    filepath.Join(dir, "passing"), Bounds: DefaultBounds(), Timeout: time.Minute,
	})

	p.made = Ingestion{
		Account: uuid.New(), Dataset: uuid.New(), ID: uuid.Must(uuid.NewV7()), Caller: uuid.New(), Status: Queued, Mode: lake.Append, Phase: phaseQueued,
		CreatedAt: time.Now(), kind: kindFiles,
	}
	p.upload(c.content)

	if c.second != "" {
		p.upload(c.second)
	}

	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error { return insertIngestion(t.Context(), tx, p.made) }))

	return p
}

// upload adds a file to the ingestion.
func (p *pipelineRun) upload(content string) {
	p.t.Helper()

	key := uploadedKey + strconv.Itoa(len(p.made.Files))
	size, err := p.Store.Write(p.t.Context(), key, strings.NewReader(content))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, p.Store.Delete(context.Background(), key)) })

	p.made.Files = append(p.made.Files, File{ID: uuid.New(), Name: key, Size: size, Key: key})
	p.made.BytesTotal += size
}

func (p *pipelineRun) check() {
	p.t.Helper()

	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()

	ended := make(chan error, 1)
	isLast := p.status != Running

	go func() {
		ended <- p.run(ctx, RunArgs{Account: p.made.Account, Dataset: p.made.Dataset, Ingestion: p.made.ID}, isLast)
	}()

	select {
	case <-p.stalls:
	case err := <-ended: // a refused inspection can be faster than the fetch
		ended <- err

		p.t.Log("the ingestion ended before the fetch stalled")
	case <-time.After(breaksWithin):
		p.t.Fatalf("the load did not reach the point at which it breaks\n%s", stacks())
	}

	if p.meantime != nil {
		p.meantime(p, cancel)
	}

	select {
	case err := <-ended:
		if p.status == Running {
			require.ErrorIs(p.t, err, context.Canceled)
		}
	case <-time.After(pipelineEnds):
		p.t.Fatalf("the ingestion did not end\n%s", stacks())
	}

	found := p.outcome()
	require.Equal(p.t, p.status, found.status, "%s %s", found.code, found.message)
	require.Equal(p.t, p.code, found.code, found.message)

	for _, part := range []string{"ingest.(*working)", "ingest.(*storing)"} {
		require.NotContains(p.t, stacks(), part)
	}

	require.Zero(p.t, p.children.Stats().Running)

	left, err := os.ReadDir(p.Dir)
	require.NoError(p.t, err)
	require.Empty(p.t, left)
}

func (p *pipelineRun) outcome() (found outcome) {
	p.t.Helper()

	require.NoError(p.t, p.DB.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		found, err = selectOutcome(p.t.Context(), q, p.made)

		return err
	}))

	return found
}

// end ends the ingestion as another request does.
func (p *pipelineRun) end(as Status) {
	p.t.Helper()

	require.NoError(p.t, p.DB.InTx(p.t.Context(), func(tx postgres.Tx) error {
		_, err := finish(p.t.Context(), tx, p.made, as, nil, time.Now())

		return err
	}))
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	text := make([]byte, 4<<20)

	return string(text[:runtime.Stack(text, true)])
}

// RoundTrip sends a request to the store, which can be broken.
func (p *pipelineRun) RoundTrip(r *http.Request) (*http.Response, error) {
	isUploaded := strings.Contains(r.URL.Path, "/"+uploadedKey)

	if p.store != nil && !isUploaded && (r.Method == http.MethodPut || r.Method == http.MethodPost) {
		p.once.Do(func() { close(p.stalls) })

		if response, err := p.store(r); response != nil || err != nil {
			return response, err
		}
	}

	response, err := p.transport.RoundTrip(r)
	if err == nil && p.fetched != nil && isUploaded && r.Method == http.MethodGet {
		response.Body = &broken{ReadCloser: response.Body, run: p, ctx: r.Context(), left: pipelineHead}
	}

	return response, err
}

// broken is a body that breaks.
type broken struct {
	io.ReadCloser

	run  *pipelineRun
	ctx  context.Context //nolint:containedctx // of the request
	left int
}

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.run.once.Do(func() { close(b.run.stalls) })

		return b.run.fetched(b.ctx)
	}

	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n

	return n, err
}
