package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Rows are rows in the body of a request.
type Rows struct {
	Mode   lake.Mode // Append or Merge
	Key    []string  // of a merge
	DryRun bool      // only of a merge: store nothing
	Format engine.Format
	Body   io.Reader
	// Once is called after the body was read, because the hash of the body identifies the request.
	Once func() auth.Once
}

// Stored is what a request stored.
type Stored struct {
	Rows          int64
	Snapshot      uuid.UUID  // contains the rows; uuid.Nil if there were none
	SetAside      []SetAside // the first rows that the key of the dataset left out
	SetAsideCount int64      // number of all rows set aside
	Replaced      int64      // only of a dry run: number of rows whose place they would take
}

// Append stores rows, all or none, except those that the key of the dataset sets aside. Merged rows take the place of those with the same key. If it succeeds, the rows are in a snapshot. If it fails with Unavailable, the rows may
// be staged already and may still be committed.
//
// Faults: NotFound, Forbidden, BadRequest, ValidationFailed, PayloadTooLarge, Conflict, LimitExceeded, Unavailable,
// RateLimited if the caller has too many posts in progress.
func (g *Ingest) Append(ctx context.Context, who auth.Principal, at catalog.Path, rows Rows) (stored Stored, err error) {
	if err := checkKey(rows.Mode, rows.Key); err != nil {
		return Stored{}, err
	}

	if rows.DryRun && rows.Mode != lake.Merged {
		return Stored{}, fault.Invalid("dryRun", "is only for the mode merge")
	}

	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return Stored{}, err
	}

	if rows.Key, err = mergeKey(rows.Mode, rows.Key, dataset); err != nil {
		return Stored{}, err
	}

	end, err := g.posts.Begin(who)
	if err != nil {
		return Stored{}, err
	}
	defer end()

	body, size, err := g.spool(rows.Body)
	if body != nil {
		defer os.Remove(body.Name())
		defer body.Close()
	}

	if err != nil {
		return Stored{}, err
	}

	once := rows.Once()
	made := Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: uuid.Must(uuid.NewV7()), Caller: who.Account, Status: Running, Mode: rows.Mode, Key: rows.Key,
		Epoch: dataset.Epoch, Phase: phaseQueued, BytesTotal: size, CreatedAt: g.Now(), StartedAt: g.Now(),
		kind: kindRows, format: rows.Format,
	}

	if rows.DryRun {
		w := &working{Ingest: g, i: made, isTried: true}
		err := w.stage(ctx, body)

		return Stored{Rows: w.i.RowsDone, Replaced: w.replaces}, bodyFault(err)
	}

	first, err := g.claim(ctx, who, dataset, made, once)

	switch {
	case err != nil:
		return Stored{}, err
	case first != nil:
		return first.stored, first.asFault()
	}

	stored, err = g.appendBody(ctx, made, body)
	if err != nil && once.Given() {
		g.forgetFailed(context.WithoutCancel(ctx), who, made, once)
	}

	return stored, err
}

// forgetFailed releases the key of a failed request, so that the caller can use it for another body. It keeps the key while
// the outcome is unknown: the rows may be committed later, and a repeated request must find them. It also keeps the key if
// the database does not answer.
func (g *Ingest) forgetFailed(ctx context.Context, who auth.Principal, made Ingestion, once auth.Once) {
	_ = g.DB.InTx(ctx, func(tx postgres.Tx) error {
		now, err := selectOutcome(ctx, tx, made)
		if err != nil || now.status != Failed {
			return err
		}

		return once.ForgetTx(ctx, tx, made.Account, who)
	})
}

// claim records the ingestion. If the same request was completed before, it returns the outcome of that request
// instead.
func (g *Ingest) claim(ctx context.Context, who auth.Principal, dataset catalog.Dataset, made Ingestion, once auth.Once) (before *outcome, err error) {
	err = g.DB.InTx(ctx, func(tx postgres.Tx) error {
		before = nil

		first, repeated, err := once.ClaimTx(ctx, tx, dataset.Account, who, made.ID, made.CreatedAt)
		if err != nil {
			return err
		}

		if repeated {
			now, err := selectOutcome(ctx, tx, Ingestion{Account: dataset.Account, Dataset: dataset.ID, ID: first})

			switch {
			case err != nil:
				return err
			case now.status == Running || now.status == Queued:
				return auth.InProgress()
			case now.status == Completed:
				before = &now

				return nil
			}

			if err := once.ForgetTx(ctx, tx, dataset.Account, who); err != nil {
				return err
			}

			if _, _, err := once.ClaimTx(ctx, tx, dataset.Account, who, made.ID, made.CreatedAt); err != nil {
				return err
			}
		}

		if made.Mode != lake.Deleted { // a full account can always delete
			if err := g.Catalog.RoomTx(ctx, tx, who, made.Account, made.BytesTotal); err != nil {
				return err
			}
		}

		entry := who.Audit(made.Account, made.CreatedAt, "rows."+string(made.Mode), dataset.Audit())
		entry.Detail = made.ID.String()
		made.audit = &entry

		return insertIngestion(ctx, tx, made)
	})

	return before, err
}

// appendBody processes a recorded body until its rows are in a snapshot.
func (g *Ingest) appendBody(ctx context.Context, made Ingestion, body *os.File) (stored Stored, err error) {
	err = g.Jobs().Hold(ctx, made.work(), func(ctx context.Context, lease job.Lease) error {
		w := &working{Ingest: g, lease: lease, i: made}

		if err := w.stage(ctx, body); err != nil {
			err = bodyFault(err)

			return errors.Join(err, w.fail(ctx, err))
		}

		// From here on any process may commit the rows, so the end of the request must not stop the wait for the
		// outcome.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
		defer cancel()

		now, err := g.committed(ctx, w.i)
		if err == nil {
			stored, err = now.stored, now.asFault()
		}

		return err
	})
	if errors.Is(err, job.ErrLost) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Unavailable, "It is not known whether the rows were stored. Repeat the request with the same Idempotency-Key.")
	}

	return stored, err
}

const commitTime = 30 * time.Second

// bodyFault returns a failure of a file as a fault of the request.
func bodyFault(err error) error {
	f, ok := errors.AsType[*engine.FileError](err)
	if !ok {
		return err
	}

	field, message, named := strings.Cut(f.Message, ": ")

	switch {
	case f.Code == engine.InvalidFile:
		return fault.New(fault.BadRequest, f.Message)
	case f.Code == engine.InvalidOptions && named:
		return fault.Invalid(field, message)
	default:
		return fault.New(codeOf(f.Code), f.Message)
	}
}

// spool writes a body to a file that a sealed process can read.
func (g *Ingest) spool(body io.Reader) (*os.File, int64, error) {
	if err := g.Folder.Room(0); err != nil {
		return nil, 0, err
	}

	file, err := os.CreateTemp(g.Dir, "body-")
	if err != nil {
		return nil, 0, err
	}

	size, err := io.Copy(g.Folder.Writer(file), io.LimitReader(body, g.MaxBody+1))

	switch {
	case fault.IsNoRoom(err):
		return file, 0, fault.NoRoom(err)
	case err != nil:
		return file, 0, fault.Wrap(err, fault.BadRequest, "The body could not be read to its end.")
	case size > g.MaxBody:
		return file, 0, fault.New(fault.PayloadTooLarge, fmt.Sprintf("The body has more than %d bytes. Upload a file instead.", g.MaxBody))
	case size == 0:
		return file, 0, fault.New(fault.BadRequest, "The body is empty.")
	}

	return file, size, nil
}
