package query

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// pieceSize is where pieces end. A piece of this size is read from the store in about a second, and a result of 50,000,000
// rows has about 50 pieces.
func pieceSize() *engine.PieceSize { return &engine.PieceSize{Rows: 1_000_000, Bytes: 64 << 20} }

const (
	piecePrefix = "statements/"
	// uploadsAtOnce is how many pieces of a result are written to the store at once.
	uploadsAtOnce = 4
	// noteEvery is how often the progress is recorded, and how often a worker checks whether the statement is still wanted.
	noteEvery = time.Second
)

func pieceKey() string { return piecePrefix + uuid.NewString() }

// process does the remaining work of a long statement. If last is true, no attempt follows a failure.
func (q *Query) process(ctx context.Context, args LongArgs, last bool) error {
	var found *Long

	err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		found, err = selectLong(ctx, db, args.Account, args.Statement, q.Now())

		return err
	})
	if err != nil {
		return err
	}

	if found == nil || found.Status.Ended() {
		return q.Exports.Jobs().GiveBack(ctx, args.work())
	}

	w := &longWork{Query: q, long: *found, tooLong: fault.New(
		fault.Timeout, fmt.Sprintf("The statement took longer than %s, which is the maximum. Read fewer rows or columns.", q.Exports.Timeout))}

	return q.Exports.Jobs().Attempt(ctx, job.Attempt{
		Work: args.work(), Last: last, Do: w.doInTime, Passing: w.passing,
		Room: func() error { return q.Folder.Room(0) },
		Fail: func(ctx context.Context, lease job.Lease, reason error) error {
			return errors.Join(w.fail(ctx, lease, reason), unlessFault(reason))
		},
	})
}

// longWork is a long statement whose lease this worker holds.
type longWork struct {
	*Query

	lease   job.Lease
	tooLong error // the failure of a statement that exceeds the timeout

	mu    sync.Mutex
	long  Long
	noted time.Time
}

// passing reports whether a later attempt may succeed.
func (w *longWork) passing(err error) bool {
	code := fault.From(err).Code

	return code == fault.Unavailable || code == fault.Internal
}

func (w *longWork) fail(ctx context.Context, lease job.Lease, reason error) error {
	return lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
		return endLong(ctx, tx, w.long, longEnd{status: Failed, reason: reason, at: w.Now(), until: w.Now().Add(w.Longs.Retention)})
	})
}

// doInTime is do until the timeout, until the statement is cancelled or deleted, or until the credential that started it is
// no longer valid.
func (w *longWork) doInTime(ctx context.Context, lease job.Lease) error {
	w.lease, w.long.attempt = lease, uuid.Must(uuid.NewV7())

	ctx, cancel := context.WithTimeoutCause(ctx, w.Exports.Timeout, w.tooLong)
	defer cancel()

	ctx, unwatch := w.watch(ctx, w.long.caller)
	defer unwatch()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		return beginLong(ctx, tx, w.long, w.Now(), w.Now().Add(w.Exports.Timeout+w.Longs.Retention))
	})
	if err != nil {
		return err
	}

	go func(l Long) {
		if err := fault.Try(func() error { w.watchStatus(ctx, l, stop); return nil }); err != nil {
			stop(err)
		}
	}(w.long)

	err = w.do(ctx)
	if cause := context.Cause(ctx); err != nil && !job.Over(err) && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause // the reason why the statement was stopped, and not that it was
	}

	return err
}

// watchStatus ends the work when the statement is no longer wanted.
func (w *longWork) watchStatus(ctx context.Context, l Long, stop context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(noteEvery):
		}

		isWanted := true

		err := w.DB.Do(ctx, func(db postgres.Querier) (err error) {
			isWanted, err = isRunning(ctx, db, l)

			return err
		})
		if err == nil && !isWanted {
			stop(job.ErrStopped)
		}
	}
}

// do runs the statement and writes its result to the store.
func (w *longWork) do(ctx context.Context) error {
	if err := w.Credentials.Check(ctx, w.long.caller); err != nil {
		return err
	}

	file := &pieceFile{path: filepath.Join(w.Exports.Dir, "statement-"+uuid.NewString())}
	defer file.remove()

	ran, err := w.compute(ctx, file)
	if err != nil {
		return err
	}

	pieces := piecesOf(ran)

	if err := w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return w.planTx(ctx, tx, pieces) }); err != nil {
		return err
	}

	if err := file.open(ran.Ends != ""); err != nil {
		return err
	}

	if err := w.upload(ctx, file, ran, pieces); err != nil {
		return err
	}

	w.long.Rows, w.long.Bytes = ran.Rows, sizeOf(pieces)

	return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		return completeLong(ctx, tx, w.long, w.Now(), w.Now().Add(w.Longs.Retention))
	})
}

// compute runs the statement in a sealed process of the engine for exports, as the caller who started it.
func (w *longWork) compute(ctx context.Context, to *pieceFile) (ran engine.Ran, err error) {
	want := w.long.Want
	want.pieces = pieceSize()
	want.recorder = func(ctx context.Context, reads []Read, tables []readTable) error {
		return w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return setReads(ctx, tx, w.long, reads, tables) })
	}

	values, err := want.Parameters.parse()
	if err != nil {
		return ran, err
	}

	session, err := w.Exports.Engine.Open(ctx, w.Exports.Timeout+spare)
	if err != nil {
		return ran, err
	}

	progress := func(p engine.Progress) { w.note(ctx, func(l *Long) { l.Part = p.Part }) }
	session.Progress = progress

	r := &running{Query: w.Query, session: session, progress: progress, leave: func() {}, began: w.Now()}
	r.meter(w.long.account)

	defer r.close()

	result, before, err := r.start(ctx, w.long.caller, want, values)
	if err == nil {
		w.long.Columns = result.Columns
		ran, err = result.cut(to.path, to.ends())
	}

	return ran, locate(err, want.Text, before)
}

// note changes the progress, and records it if it was not recorded recently. Progress that cannot be recorded is not an error:
// if the worker has lost its lease, its context ends.
func (w *longWork) note(ctx context.Context, change func(l *Long)) {
	w.mu.Lock()
	defer w.mu.Unlock()

	change(&w.long)

	if now := w.Now(); now.Sub(w.noted) >= noteEvery {
		w.noted = now
		_ = w.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return setProgress(ctx, tx, w.long) })
	}
}

// planTx records the pieces before their objects are written.
func (w *longWork) planTx(ctx context.Context, tx postgres.Tx, pieces []Piece) (wanted bool, err error) {
	_, kept, err := lockOpen(ctx, tx, w.long.account)
	if err != nil {
		return false, err
	}

	if total := kept + sizeOf(pieces); total > w.Longs.MaxBytes {
		return false, w.tooLarge(total)
	}

	w.long.Part, w.long.Rows, w.long.Bytes = 1, 0, 0

	// No other worker begins an attempt before this transaction ends, because it holds the lease.
	if wanted, err = setProgress(ctx, tx, w.long); err != nil || !wanted {
		return wanted, err
	}

	return true, insertPieces(ctx, tx, w.long, pieces)
}

// upload writes the pieces to the store.
func (w *longWork) upload(ctx context.Context, from *pieceFile, ran engine.Ran, pieces []Piece) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploadsAtOnce)

	l := w.long // note changes the other one

	for i := range pieces {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			content := joined{{from.body, ran.End}}
			if i < len(ran.Pieces) {
				p := ran.Pieces[i]
				content = joined{{from.tails, p.Head}, {from.body, p.Body}, {from.tails, p.Tail}}
			}

			hash := sha256.New()
			if _, err := io.Copy(hash, io.NewSectionReader(content, 0, pieces[i].Bytes)); err != nil {
				return err
			}

			pieces[i].SHA256 = hash.Sum(nil)

			if err := w.Exports.Store.WriteFile(ctx, pieces[i].key, content, pieces[i].Bytes); err != nil {
				return err
			}

			if err := w.lease.InTx(ctx, func(tx postgres.Tx) error { return setSum(ctx, tx, l, pieces[i]) }); err != nil {
				return err
			}

			w.note(ctx, func(l *Long) { l.Rows, l.Bytes = l.Rows+pieces[i].Rows, l.Bytes+pieces[i].Bytes })

			return nil
		})
	}

	return group.Wait()
}

// piecesOf returns the pieces of a result with new keys, and its end.
func piecesOf(ran engine.Ran) (pieces []Piece) {
	for i, p := range ran.Pieces {
		pieces = append(pieces, Piece{Number: i + 1, Rows: p.Rows, Bytes: p.Bytes(), Head: p.Head.Size(), Tail: p.Tail.Size(), key: pieceKey()})
	}

	if size := ran.End.Size(); size > 0 {
		pieces = append(pieces, Piece{Number: len(pieces) + 1, Bytes: size, IsEnd: true, key: pieceKey()})
	}

	return pieces
}

func sizeOf(pieces []Piece) (bytes int64) {
	for _, p := range pieces {
		bytes += p.Bytes
	}

	return bytes
}

// pieceFile is the local file of a result, beside a file with the heads and tails of its pieces.
type pieceFile struct {
	path        string
	body, tails *os.File
}

func (f *pieceFile) ends() string { return f.path + "-ends" }

func (f *pieceFile) open(hasEnds bool) (err error) {
	if f.body, err = os.Open(f.path); err == nil && hasEnds {
		f.tails, err = os.Open(f.ends())
	}

	return err
}

func (f *pieceFile) remove() {
	_ = f.body.Close() // of a nil file, an error
	_ = f.tails.Close()
	_ = os.Remove(f.path)
	_ = os.Remove(f.ends())
}

// joined is parts of files, one after another.
type joined []struct {
	of   io.ReaderAt
	span engine.Span
}

// ReadAt reads from the parts as if they were one file.
func (j joined) ReadAt(p []byte, offset int64) (read int, err error) {
	for _, part := range j {
		size := part.span.Size()
		if offset >= size {
			offset -= size

			continue
		}

		length := min(int64(len(p)-read), size-offset)

		n, err := part.of.ReadAt(p[read:read+int(length)], part.span.From+offset)
		if read += n; int64(n) < length {
			return read, errors.Join(err, io.ErrUnexpectedEOF)
		}

		if offset = 0; read == len(p) {
			return read, nil
		}
	}

	return read, io.EOF
}
