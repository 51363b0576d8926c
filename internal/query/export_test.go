package query

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// exporting is a Query with its own database and its own prefix in the store, a clock that can be advanced, and a dataset.
// No worker takes its jobs.
type exporting struct {
	*Query

	t     *testing.T
	ahead atomic.Int64
	who   auth.Principal
	one   resolved
}

func newExporting(t *testing.T) *exporting {
	t.Helper()

	e := &exporting{t: t, who: auth.Principal{Account: uuid.New(), Username: "ada"}, one: resolved{
		Dataset: catalog.Dataset{Account: uuid.New(), ID: uuid.New(), Namespace: "shop", Name: "orders"}, snapshot: lake.Snapshot{ID: uuid.New()},
	}}
	now := func() time.Time { return time.Now().Add(time.Duration(e.ahead.Load())) }
	db, store := pgtest.New(t), blobtest.New(t)

	jobs, err := job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	tables, err := lake.New(lake.Config{DB: db, Store: store, Now: now, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	e.Query = New(Config{DB: db, Lake: tables, Now: now, Exports: Exports{
		Store: store, Jobs: func() *job.Client { return jobs }, Dir: t.TempDir(), Timeout: time.Hour, Retention: 24 * time.Hour,
	}})

	return e
}

func (e *exporting) pass(d time.Duration) { e.ahead.Add(int64(d)) }

// ask requests an export of the dataset as CSV.
func (e *exporting) ask() (key string, err error) {
	return e.askFor(e.t.Context(), e.who, e.one, "csv")
}

// waits requests an export and checks that the file is not finished yet.
func (e *exporting) waits() {
	e.t.Helper()

	key, err := e.ask()
	require.NoError(e.t, err)
	require.Empty(e.t, key)
}

func (e *exporting) count(statement string) (number int) {
	e.t.Helper()
	require.NoError(e.t, e.DB.Do(e.t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(e.t.Context(), statement).Scan(&number)
	}))

	return number
}

func (e *exporting) exec(statement string) {
	e.t.Helper()
	require.NoError(e.t, e.DB.Do(e.t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(e.t.Context(), statement)

		return err
	}))
}

// live returns the export that is not dropped.
func (e *exporting) live() (found export) {
	e.t.Helper()
	require.NoError(e.t, e.DB.InTx(e.t.Context(), func(tx postgres.Tx) error {
		row, err := lockLiveExport(e.t.Context(), tx, e.one.table(), e.one.snapshot.ID, "csv")
		if err == nil {
			require.NotNil(e.t, row)
			found = *row
		}

		return err
	}))

	return found
}

// work calls do as a worker that holds the lease of the live export.
func (e *exporting) work(do func(ctx context.Context, w *writing)) error {
	found := e.live()

	return e.Exports.Jobs().Hold(e.t.Context(), found.args().work(), func(ctx context.Context, lease job.Lease) error {
		do(ctx, &writing{Query: e.Query, lease: lease, export: found})

		return nil
	})
}

func (w *writing) start(ctx context.Context) error {
	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return w.startTx(ctx, tx) })
}

func (w *writing) end(ctx context.Context, size int64) error {
	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		return readyExport(ctx, tx, w.export, size, w.Now().Add(w.Exports.Retention))
	})
}

func (e *exporting) put(key, content string) {
	e.t.Helper()
	require.NoError(e.t, e.Exports.Store.WriteFile(e.t.Context(), key, bytes.NewReader([]byte(content)), int64(len(content))))
}

func (e *exporting) clears() {
	e.t.Helper()
	require.NoError(e.t, e.clean(e.t.Context(), job.Lease{}))
}

func (e *exporting) objects() (keys []string) {
	e.t.Helper()

	for object, err := range e.Exports.Store.List(e.t.Context(), exportPrefix) {
		require.NoError(e.t, err)

		keys = append(keys, object.Key)
	}

	return keys
}

const (
	countJobs   = `SELECT count(*) FROM river_job WHERE kind = 'query.export' AND queue = 'export'`
	countAudit  = `SELECT count(*) FROM audit WHERE action = 'dataset.export'`
	countRows   = `SELECT count(*) FROM exports`
	countLeases = `SELECT count(*) FROM leases`
	loseLeases  = `UPDATE leases SET until = now() - interval '1 second'`
)

func TestExportIsStartedOnce(t *testing.T) {
	t.Parallel()

	e := newExporting(t)

	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if key, err := e.ask(); key != "" || err != nil {
				t.Errorf("%s %v", key, err)
			}
		})
	}

	asking.Wait()
	require.Equal(t, []int{1, 1, 1}, []int{e.count(countRows), e.count(countJobs), e.count(countAudit)})

	_, err := e.askFor(t.Context(), e.who, e.one, "parquet")
	require.NoError(t, err)

	e.one.snapshot.ID = uuid.New()
	e.waits()
	require.Equal(t, []int{3, 3, 3}, []int{e.count(countRows), e.count(countJobs), e.count(countAudit)}, "another format and another snapshot")
}

// TestExportLives follows an export from queued to deleted.
func TestExportLives(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.waits()
	require.NoError(t, e.work(func(ctx context.Context, w *writing) {
		require.NoError(t, w.start(ctx))
		e.waits()
		e.put(w.export.key, "abc")
		e.waits()
		require.NoError(t, w.end(ctx, 3))
	}))

	key, err := e.ask()
	require.NoError(t, err)
	require.Equal(t, e.live().key, key)
	require.Equal(t, []int{1, 1, 2, 0}, []int{e.count(countRows), e.count(countJobs), e.count(countAudit), e.count(countLeases)})

	// A job that is delivered again does nothing and leaves no lease.
	require.NoError(t, e.write(t.Context(), e.live().args(), true))
	require.Equal(t, exportReady, e.live().state)
	require.Zero(t, e.count(countLeases))

	e.pass(24*time.Hour - time.Minute)
	e.clears()

	again, err := e.ask()
	require.NoError(t, err)
	require.Equal(t, key, again)

	// After the retention, the next request starts a new export. The old file remains while its address may be in use.
	e.pass(2 * time.Minute)
	e.clears()
	e.waits()
	require.Equal(t, exportQueued, e.live().state)
	require.Equal(t, []int{2, 2}, []int{e.count(countRows), e.count(countJobs)})
	require.Equal(t, []string{key}, e.objects())
	e.pass(stillUsed)
	e.clears()
	require.Empty(t, e.objects())
	require.Equal(t, 1, e.count(countRows))

	// An export that no worker takes is removed too.
	e.pass(48 * time.Hour)
	e.clears()
	require.Zero(t, e.count(countRows))
}

func TestExportFailureIsToldOnce(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.waits()
	require.NoError(t, e.write(t.Context(), e.live().args(), false), "there is no such table, and there will be none")
	require.Equal(t, exportFailed, e.live().state)
	require.Zero(t, e.count(countLeases))

	_, err := e.ask()
	require.Equal(t, fault.Absent().Error(), err.Error())
	require.Equal(t, 1, e.count(countJobs), "who is told may not want another attempt")
	e.waits()
	require.Equal(t, exportQueued, e.live().state)
	require.Equal(t, 2, e.count(countJobs))

	// A failure older than the retention is not reported.
	require.NoError(t, e.write(t.Context(), e.live().args(), false))
	e.pass(25 * time.Hour)
	e.waits()
	require.Equal(t, 3, e.count(countJobs))
	e.clears()
	require.Equal(t, 1, e.count(countRows))
}

// TestExportTakenOver checks that a worker that lost its lease cannot finish the export, and that its file is never served
// and is removed.
func TestExportTakenOver(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.waits()

	var late, heir string

	require.NoError(t, e.work(func(ctx context.Context, first *writing) {
		require.NoError(t, first.start(ctx))
		late = first.export.key

		e.exec(loseLeases)
		require.NoError(t, e.work(func(ctx context.Context, second *writing) {
			require.NoError(t, second.start(ctx))
			heir = second.export.key

			e.put(late, "of the one that was late")
			require.ErrorIs(t, first.end(t.Context(), 1), job.ErrLost)
			e.put(heir, "abc")
			require.NoError(t, second.end(ctx, 3))
		}))
	}))

	require.NotEqual(t, late, heir)

	key, err := e.ask()
	require.NoError(t, err)
	require.Equal(t, heir, key)

	found, err := e.Inspect(t.Context())
	require.NoError(t, err)
	require.Zero(t, found, "rows know both")

	e.pass(e.Exports.Timeout + stillUsed + time.Minute)
	e.clears()
	require.Equal(t, []string{heir}, e.objects())
}

// TestExportDropped checks that after an export exceeded its timeout and was requested again, the first attempt cannot
// finish it.
func TestExportDropped(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.waits()
	require.NoError(t, e.work(func(ctx context.Context, w *writing) {
		require.NoError(t, w.start(ctx))
		e.pass(e.Exports.Timeout + time.Second)
		e.waits()
		require.NotEqual(t, w.export.id, e.live().id)
		require.ErrorIs(t, w.end(ctx, 1), job.ErrStopped)
		require.ErrorIs(t, w.start(ctx), job.ErrStopped)
	}))
	require.Equal(t, exportQueued, e.live().state)
}

func TestExportRemovesParts(t *testing.T) {
	t.Parallel()

	e := newExporting(t)
	e.waits()
	require.NoError(t, e.work(func(ctx context.Context, w *writing) {
		require.NoError(t, w.start(ctx))

		_, err := e.Exports.Store.CreateUpload(ctx, w.export.key)
		require.NoError(t, err)
	}))

	found, err := e.Inspect(t.Context())
	require.NoError(t, err)
	require.Zero(t, found)
	e.pass(e.Exports.Timeout + stillUsed + time.Second)
	e.clears()

	for upload, err := range e.Exports.Store.Uploads(t.Context(), "") {
		require.NoError(t, err)
		require.Fail(t, "it is still open", upload.Key)
	}
}

func TestExportInspection(t *testing.T) {
	t.Parallel()

	e := newExporting(t)

	for _, format := range []string{"csv", "ndjson", "parquet"} {
		_, err := e.askFor(t.Context(), e.who, e.one, format)
		require.NoError(t, err)
	}

	e.exec(`UPDATE exports SET state = 'ready', size = 3, object_key = 'exports/' || format`)
	e.put("exports/csv", "abc")
	e.put("exports/ndjson", "ab")
	e.put("exports/other", "abc")

	upload, err := e.Exports.Store.CreateUpload(t.Context(), "exports/begun")
	require.NoError(t, err)

	found, err := e.Inspect(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"exports/ndjson", "exports/parquet"}, found.Lost)
	require.Equal(t, []blob.Orphan{{Key: "exports/other", Size: 3}, {Key: "exports/begun", UploadID: upload}}, found.Orphans)

	for _, orphan := range found.Orphans {
		require.NoError(t, e.Exports.Store.RemoveOrphan(t.Context(), orphan))
	}

	found, err = e.Inspect(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Orphans)
}
