package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

const (
	// maxListed is the largest number of files under a prefix. A run holds their paths in memory.
	maxListed = 100_000
	// maxLoading is how many ingestions of a run are in progress at once.
	maxLoading = 8
	pollEvery  = 100 * time.Millisecond
)

// working is a run whose lease this worker holds.
type working struct {
	*Sources

	lease   job.Lease
	source  Source
	run     Run
	who     auth.Principal
	dataset catalog.Dataset

	files  files
	bucket *blob.Store     // of a source of a bucket
	web    *connection.Web // of a source of addresses

	loading []file // whose ingestions are in progress, oldest first
	window  int    // how many may be

	stops []stopError // files that somebody must decide about
}

// files reads the files of a connection.
type files interface {
	// Head returns NotFound for a file that is not there.
	Head(ctx context.Context, path string) (blob.Object, error)
}

// file is a file that the source has claimed.
type file struct {
	path      string
	etag      string
	seen      string // the ETag that was told last; empty if the file is gone
	size      int64
	state     fileState
	session   uuid.UUID
	owner     uuid.UUID // account of the dataset
	dataset   uuid.UUID
	ingestion uuid.UUID            // of a file that is removed: the id of the removal
	origin    uuid.UUID            // of all ingestions of this file
	replaces  bool                 // rows of an earlier content may be in the dataset
	validator connection.Validator // of the content that was told last; for an address
}

type fileState string

const (
	fileClaimed  fileState = "claimed"
	fileLoading  fileState = "loading"
	fileLoaded   fileState = "loaded"
	fileSkipped  fileState = "skipped"
	fileFailed   fileState = "failed"
	fileStale    fileState = "stale"    // it has rows, and its content must be loaded again
	fileRemoving fileState = "removing" // it is gone, and its rows are being removed
	fileRemoved  fileState = "removed"
)

// do loads what earlier runs left unfinished, and then the new files.
func (w *working) do(ctx context.Context, lease job.Lease) error {
	w.lease = lease

	if err := w.record(ctx, func(tx postgres.Tx) error { return startRun(ctx, tx, w.run, w.now()) }); err != nil {
		return err
	}

	if err := w.allowed(ctx); err != nil {
		return err
	}

	asked := w.now()

	if w.source.Table != nil {
		if err := w.attachTable(ctx); err != nil {
			return err
		}

		return w.complete(ctx, asked)
	}

	if w.source.Rows != nil {
		if err := w.loadRows(ctx); err != nil {
			return err
		}

		return w.complete(ctx, asked)
	}

	done, err := w.open(ctx)
	if err != nil {
		return orConnectionGone(err)
	}

	defer done()

	err = w.load(ctx)
	if errors.As(err, new(stopError)) || errors.Is(err, errPaused) {
		// What has been begun is loaded nevertheless.
		err = errors.Join(err, w.settleAll(ctx))
	}

	if err != nil {
		return err
	}

	return w.complete(ctx, asked)
}

// open makes the client of the connection.
func (w *working) open(ctx context.Context) (done func(), err error) {
	if len(w.source.Paths) > 0 {
		w.web, done, err = w.Connections.OpenHTTPS(ctx, w.who, w.source.Connection)
		w.files = w.web

		return done, err
	}

	w.bucket, done, err = w.Connections.Open(ctx, w.who, w.source.Connection)
	w.files = w.bucket

	return done, err
}

// orConnectionGone returns a reason to stop for a connection that the account may not use.
func orConnectionGone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return stop(StopConnection, "The connection was deleted, or is no longer shared with you. If its owner shares it with you again (quern connection share), resume the source. A source of files can use another connection of the same kind (quern source change --connection); then resume it.")
	}

	return err
}

// stillUsable ends the run if the connection was deleted, or is no longer shared with the account, since it was opened.
func (w *working) stillUsable(ctx context.Context) error {
	_, err := w.Connections.Get(ctx, w.who, w.source.Connection)

	return orConnectionGone(err)
}

// failed returns the fault for a failure of the other side.
func (w *working) failed(err error) error {
	if w.web != nil {
		return connection.FailedHTTPS(err)
	}

	return connection.Failed(connection.Problem(err))
}

// complete records that the run has ended, and that the dataset was up to date when the other system was asked.
func (w *working) complete(ctx context.Context, asked time.Time) error {
	// Not in the transaction that ends the run: the dataset may belong to another account. Recording it twice has no further effect.
	if err := w.Catalog.Refreshed(ctx, w.dataset, asked); err != nil {
		return err
	}

	end := w.run
	end.Status, end.FinishedAt = RunCompleted, w.now()

	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return finishRun(ctx, tx, end) })
}

// record is Lease.Record for a run that may continue: its source exists and is active.
func (w *working) record(ctx context.Context, do func(tx postgres.Tx) error) error {
	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		status, err := lockOpen(ctx, tx, w.run)

		switch {
		case err != nil || status == "":
			return false, err
		case status != Active:
			return false, errPaused
		default:
			return true, do(tx)
		}
	})
}

// settled is record for what has happened already, also if the source was paused meanwhile.
func (w *working) settled(ctx context.Context, do func(tx postgres.Tx) error) error {
	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		status, err := lockOpen(ctx, tx, w.run)
		if err != nil || status == "" {
			return false, err
		}

		return true, do(tx)
	})
}

// allowed finds out for whom the source acts, and whether the dataset may be changed.
func (w *working) allowed(ctx context.Context) (err error) {
	if w.who, err = w.Credentials.Current(ctx, w.source.holder()); err != nil {
		if fault.Is(err, fault.Unauthorized) {
			err = stop(StopCredential, "The API token that made the source is no longer valid, or the account is disabled. Resume the source with another token.")
		}

		return err
	}

	err = w.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		w.dataset, err = w.Catalog.DraftTx(ctx, tx, w.who, w.source.At)

		return err
	})

	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Forbidden):
		return stop(StopDataset, "The dataset is gone, or you may no longer change it.")
	case err == nil && w.source.dataset != uuid.Nil && w.source.dataset != w.dataset.ID:
		return stop(StopDataset, "The dataset was deleted, and another one has its name. Delete the source and make another one.")
	default:
		return err
	}
}

func (w *working) load(ctx context.Context) error {
	known, err := w.known(ctx)
	if err != nil {
		return err
	}

	if known, err = w.continueAll(ctx, known); err != nil {
		return err
	}

	if w.web != nil {
		return w.loadPaths(ctx, known)
	}

	listed, err := w.list(ctx)
	if err != nil {
		return err
	}

	if known, err = w.corrected(ctx, known, listed); err != nil {
		return err
	}

	found, err := w.compare(ctx, known, listed)
	if err != nil {
		return err
	}

	// Rows of files that are gone are removed first: a new file may have the same keys.
	if err := w.removeGone(ctx, found.gone, found.isNoneLeft); err != nil {
		return err
	}

	for _, one := range found.fresh {
		if err := w.loadNew(ctx, one, known[one.Key]); err != nil {
			return err
		}
	}

	return w.settleAll(ctx)
}

// known returns the files that the source has claimed.
func (w *working) known(ctx context.Context) (known map[string]file, err error) {
	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		known, err = selectFiles(ctx, q, w.source)

		return err
	})

	return known, err
}

// continueAll finishes the files whose ingestions or removals were named by an earlier run or attempt. Somebody may have decided about them since. It returns the files after this.
// Files about which nobody has decided are in w.stops.
func (w *working) continueAll(ctx context.Context, known map[string]file) (map[string]file, error) {
	isChanged, err := w.continueRemovals(ctx, known)
	if err != nil {
		return nil, err
	}

	for _, key := range slices.Sorted(maps.Keys(known)) {
		f := known[key]
		if f.ingestion == uuid.Nil || f.state != fileLoading && f.state != fileFailed {
			continue
		}

		found, err := w.Ingest.Find(ctx, f.owner, f.dataset, f.ingestion)
		if err != nil {
			return nil, err
		}

		if f.state == fileFailed && (found == nil || found.Status == ingest.Failed || found.IsSuperseded()) {
			continue
		}

		isChanged = true

		if found == nil {
			if isForgotten, err := w.submit(ctx, f); err != nil {
				return nil, err
			} else if isForgotten {
				continue
			}
		}

		if err := w.wait(ctx, f); err != nil && !isOfFile(err) {
			return nil, err
		}
	}

	if !isChanged {
		return known, nil
	}

	return w.known(ctx)
}

// loadNew loads the content of a file that no run has loaded. known is what earlier runs or attempts left of the file.
func (w *working) loadNew(ctx context.Context, found object, known file) error {
	if err := w.room(ctx); err != nil {
		return err
	}

	if err := w.stillUsable(ctx); err != nil {
		return err
	}

	f, err := w.claimOnce(ctx, found, known)
	if err != nil {
		return err
	}

	isThere, err := w.receive(ctx, f)
	if err != nil || !isThere {
		return err
	}

	return w.begin(ctx, f)
}

// room waits until another ingestion may begin.
func (w *working) room(ctx context.Context) error {
	for len(w.loading) >= w.window {
		if err := w.settleOldest(ctx); err != nil {
			return err
		}
	}

	return nil
}

// claimOnce claims a file, unless an earlier attempt has claimed the same content.
func (w *working) claimOnce(ctx context.Context, found object, known file) (file, error) {
	if known.state == fileClaimed && known.etag == found.ETag && known.size == found.Size {
		return known, nil
	}

	isOver, err := w.giveUp(ctx, known)
	if err != nil {
		return file{}, err
	}

	return w.claim(ctx, found, known, isOver)
}

// begin begins the ingestion of a file whose content was received.
func (w *working) begin(ctx context.Context, f file) error {
	f.state, f.owner, f.dataset, f.ingestion = fileLoading, w.dataset.Account, w.dataset.ID, uuid.Must(uuid.NewV7())
	if err := w.record(ctx, func(tx postgres.Tx) error { return nameIngestion(ctx, tx, w.source, f) }); err != nil {
		return err
	}

	if isForgotten, err := w.submit(ctx, f); err != nil || isForgotten {
		return err
	}

	w.loading = append(w.loading, f)

	return nil
}

// claim records that the file is going to be loaded, together with the upload session that receives it. isOver says that the known content has never been loaded and never will be.
func (w *working) claim(ctx context.Context, found object, known file, isOver bool) (file, error) {
	f := file{
		path: found.Key, etag: found.ETag, seen: found.ETag, size: found.Size, state: fileClaimed, origin: known.origin, replaces: known.replaces, validator: found.validator,
	}
	if known.state == "" {
		f.origin = uuid.New()
	} else if known.state != fileClaimed && !isOver {
		f.replaces = true
	}

	err := w.record(ctx, func(tx postgres.Tx) error {
		session, err := w.Uploads.ExpectTx(ctx, tx, w.who, upload.NewFile{Name: w.source.nameOf(f.path), Size: f.size})
		if err != nil {
			return err
		}

		f.session = session.ID

		return claimFile(ctx, tx, w.source, f)
	})

	if fault.Is(err, fault.ValidationFailed) || fault.Is(err, fault.PayloadTooLarge) {
		f.state = fileFailed
		if err := w.record(ctx, func(tx postgres.Tx) error { return claimFile(ctx, tx, w.source, f) }); err != nil {
			return file{}, err
		}

		return file{}, stop(StopFile, fmt.Sprintf("The file %q cannot be loaded: its name is too long or has control characters, or it is larger than the service accepts. Resume the source to leave it out.", f.path))
	}

	return f, err
}

// receive copies the content of a file into its upload session. It reports whether it is there: a file that is no longer what was listed is left to the next run.
func (w *working) receive(ctx context.Context, f file) (bool, error) {
	content, err := w.bucket.ReadVersion(ctx, f.path, f.etag)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
		return false, w.forget(ctx, f)
	}

	if err != nil {
		return false, connection.Failed(connection.Problem(err))
	}

	defer func() { _ = content.Close() }()

	return w.store(ctx, f, remote{content})
}

// store puts the content of a file into its upload session, as receive does.
func (w *working) store(ctx context.Context, f file, content io.Reader) (bool, error) {
	err := w.Uploads.Receive(ctx, w.who, f.session, content)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.InvalidState) { // another size than listed; or the session has expired
		return false, w.forget(ctx, f)
	}

	return err == nil, err
}

// remote reports errors of reading as problems of the connection. Without it they would look like errors of our own store.
type remote struct{ content io.Reader }

func (r remote) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = connection.Failed(connection.Problem(err))
	}

	return n, err
}

func (w *working) forget(ctx context.Context, f file) error {
	return w.record(ctx, func(tx postgres.Tx) error { return forgetFile(ctx, tx, w.source, f) })
}
