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
	Format engine.Format
	Body   io.Reader
	// Once is asked for when the body was read: its hash is part of what must be the same.
	Once func() auth.Once
}

// Append stores rows. When it returns they are in a snapshot: all of them, or none.
//
// Faults: NotFound, Forbidden, BadRequest, ValidationFailed, PayloadTooLarge, Conflict, LimitExceeded, Unavailable,
// RateLimited if the caller has too many bodies under way.
func (g *Ingest) Append(ctx context.Context, who auth.Principal, at catalog.Path, rows Rows) (stored int64, err error) {
	dataset, err := g.allow(ctx, who, auth.Editor, at)
	if err != nil {
		return 0, err
	}

	end, err := g.bodies.Begin(who)
	if err != nil {
		return 0, err
	}
	defer end()

	body, size, err := g.spool(rows.Body)
	if body != nil {
		defer os.Remove(body.Name())
		defer body.Close()
	}

	if err != nil {
		return 0, err
	}

	once := rows.Once()
	made := Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: uuid.Must(uuid.NewV7()), Caller: who.Account, Status: Running, Mode: lake.Append,
		Epoch: dataset.Epoch, Phase: phaseQueued, BytesTotal: size, CreatedAt: g.Now(), StartedAt: g.Now(),
		kind: kindRows, format: rows.Format,
	}

	first, err := g.claim(ctx, who, dataset, made, once)

	switch {
	case err != nil:
		return 0, err
	case first != nil:
		return first.rows, first.asFault()
	}

	stored, err = g.appendBody(ctx, made, body)
	if err != nil && once.Given() {
		// Nothing is stored, so the same request may be made again. If this cannot be written, it is a day later.
		forgetting := context.WithoutCancel(ctx)
		_ = g.DB.InTx(forgetting, func(tx postgres.Tx) error { return once.ForgetTx(forgetting, tx, dataset.Account, who) })
	}

	return stored, err
}

// claim records the ingestion. If the same request was made before, its outcome is returned instead.
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
				return fault.New(fault.Conflict, "The same request is still running.")
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

		entry := who.Audit(made.Account, made.CreatedAt, "rows.append", dataset.Audit())
		entry.Detail = made.ID.String()
		made.audit = &entry

		return insertIngestion(ctx, tx, made)
	})

	return before, err
}

// appendBody takes a recorded body through to its snapshot.
func (g *Ingest) appendBody(ctx context.Context, made Ingestion, body *os.File) (stored int64, err error) {
	err = g.Jobs().Hold(ctx, made.work(), func(ctx context.Context, lease job.Lease) error {
		w := &working{Ingest: g, lease: lease, i: made}

		if err := w.stage(ctx, body); err != nil {
			err = bodyFault(err)

			return errors.Join(err, w.fail(ctx, err))
		}

		// From here on it may be committed by anybody, so the caller's leaving changes nothing.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
		defer cancel()

		now, err := g.committed(ctx, w.i)
		if err == nil {
			stored, err = now.rows, now.asFault()
		}

		return err
	})
	if errors.Is(err, job.ErrLost) || errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Unavailable, "It is not known whether the rows were stored. Repeat the request with the same Idempotency-Key.")
	}

	return stored, err
}

const commitTime = 30 * time.Second

// bodyFault is a failure of a file in the words of a request.
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

// spool keeps a body in a file, where a child can read it.
func (g *Ingest) spool(body io.Reader) (*os.File, int64, error) {
	file, err := os.CreateTemp(g.Dir, "body-")
	if err != nil {
		return nil, 0, err
	}

	size, err := io.Copy(file, io.LimitReader(body, g.MaxBody+1))

	switch {
	case err != nil:
		return file, 0, fault.Wrap(err, fault.BadRequest, "The body could not be read to its end.")
	case size > g.MaxBody:
		return file, 0, fault.New(fault.PayloadTooLarge, fmt.Sprintf("The body has more than %d bytes. Upload a file instead.", g.MaxBody))
	case size == 0:
		return file, 0, fault.New(fault.BadRequest, "The body is empty.")
	}

	return file, size, nil
}
