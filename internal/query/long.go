package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Longs configures long statements: statements that a worker runs, with results of any size. They use the workers, the
// engine and the limits of exports.
//
//	request         worker          written
//	───────▶ queued ──────▶ running ──────▶ completed ──┐
//	            │              ├──▶ failed ─────────────┤ expired, or deleted by the caller
//	            └──────────────┴──▶ cancelled ──────────┴──▶ (deleted) ──cleanup──▶ the objects are removed
//
// The rows of pieces are inserted before their objects are written and deleted after the objects are removed. Each attempt
// has its own pieces, and only those of the attempt that completed the statement are ever shown.
type Longs struct {
	MaxPerUser int           // long statements of one account, queued or running
	MaxBytes   int64         // of all results of one account
	Retention  time.Duration // of a statement and its result after its end
}

// Status is the status of a long statement.
type Status string

// The statuses of a long statement.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Ended reports whether a statement with this status has ended.
func (s Status) Ended() bool { return s != Queued && s != Running }

// Long is a long statement.
type Long struct {
	ID         uuid.UUID
	Status     Status
	Want       Statement // without the values of parameters after its end
	Columns    []Column  // of a completed statement
	Reads      []Read    // what it reads, as soon as it is running
	Part       float64   // how much of the result is computed, 0 to 1
	Rows       int64     // that are written
	Bytes      int64     // likewise
	Error      *fault.Error
	CreatedAt  time.Time
	BeganAt    time.Time
	FinishedAt time.Time
	ExpiresAt  time.Time

	account uuid.UUID
	caller  auth.Principal
	attempt uuid.UUID
	tables  []readTable
	allowed []resolved // the datasets of tables, after access was checked
}

// readTable is a name in a statement and the dataset that it meant.
type readTable struct {
	Owner     string    `json:"owner,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	At        int       `json:"at"`
	Dataset   uuid.UUID `json:"dataset"`
}

func (l Long) args() LongArgs { return LongArgs{Account: l.account, Statement: l.ID} }

func (l Long) audit() audit.Target { return audit.Target{Kind: "statement", ID: l.ID.String()} }

// Start accepts a long statement. From then on it is processed even if this process ends. Its text is checked when it runs.
//
// Faults: ValidationFailed for parameters; RateLimited if the account has too many long statements in progress, or has used up a limit;
// LimitExceeded if the results that it keeps are too large.
func (q *Query) Start(ctx context.Context, who auth.Principal, want Statement, once auth.Once) (made Long, err error) {
	if _, err := want.Parameters.parse(); err != nil {
		return Long{}, err
	}

	now := q.Now().UTC().Truncate(time.Millisecond)
	draft := Long{
		ID: uuid.Must(uuid.NewV7()), Status: Queued, Want: want, CreatedAt: now, ExpiresAt: now.Add(q.Exports.Timeout + q.Longs.Retention),
		account: who.Account, caller: who,
	}

	err = q.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, isRepeated, err := once.ClaimTx(ctx, tx, who.Account, who, draft.ID, now)
		if err != nil {
			return err
		}

		if !isRepeated {
			if err := q.startTx(ctx, tx, draft); err != nil {
				return err
			}
		}

		found, err := selectLong(ctx, tx, who.Account, first, now)
		if err == nil && found == nil {
			err = fault.New(fault.NotFound, "The statement of the first request with this Idempotency-Key was deleted. Use another key to run it again.")
		}

		if err == nil {
			made = *found
		}

		return err
	})
	if err == nil {
		q.Exports.Jobs().Wake(ExportQueue)
	}

	return made, err
}

func (q *Query) startTx(ctx context.Context, tx postgres.Tx, draft Long) error {
	open, bytes, err := lockOpen(ctx, tx, draft.account)

	switch {
	case err != nil:
		return err
	case open >= q.Longs.MaxPerUser:
		return later(fault.RateLimited, fmt.Sprintf("You have %d long statements queued or running, which is the maximum. Wait for one to finish, or cancel one.", open))
	case bytes >= q.Longs.MaxBytes:
		return q.tooLarge(bytes)
	}

	if err := q.left(ctx, tx, draft.caller); err != nil {
		return err
	}

	if err := insertLong(ctx, tx, draft); err != nil {
		return err
	}

	if err := audit.WriteTx(ctx, tx, draft.caller.Audit(draft.account, draft.CreatedAt, "statement.create", draft.audit())); err != nil {
		return err
	}

	return q.Exports.Jobs().InsertTx(ctx, tx, draft.args(), longOpts())
}

func (q *Query) tooLarge(bytes int64) error {
	return fault.New(fault.LimitExceeded, fmt.Sprintf("The results of your long statements have %d bytes; %d are allowed. Delete some of the statements.", bytes, q.Longs.MaxBytes))
}

// Long returns a long statement of the caller.
//
// Faults: NotFound.
func (q *Query) Long(ctx context.Context, who auth.Principal, id uuid.UUID) (found Long, err error) {
	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		found, err = q.own(ctx, db, who, id)

		return err
	})

	return found, err
}

// own returns a long statement that the caller started. A restricted token sees only the statements that it started itself.
func (q *Query) own(ctx context.Context, db postgres.Querier, who auth.Principal, id uuid.UUID) (Long, error) {
	found, err := selectLong(ctx, db, who.Account, id, q.Now())
	if err != nil {
		return Long{}, err
	}

	if found == nil || (isRestricted(who) && (found.caller.Token == nil || found.caller.Token.ID != who.Token.ID)) {
		return Long{}, fault.Absent()
	}

	return *found, nil
}

func isRestricted(who auth.Principal) bool { return who.Token != nil && who.Token.Restricted }

// LongPage lists the long statements of the caller, newest first. next is uuid.Nil at the end.
func (q *Query) LongPage(ctx context.Context, who auth.Principal, after uuid.UUID, limit int) (page []Long, next uuid.UUID, err error) {
	if after == uuid.Nil {
		after = uuid.Max
	}

	var token uuid.UUID
	if isRestricted(who) {
		token = who.Token.ID
	}

	err = q.DB.Do(ctx, func(db postgres.Querier) error {
		page, err = selectLongs(ctx, db, who.Account, token, after, limit+1, q.Now())

		return err
	})
	if err == nil && len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}

	return page, next, err
}

// CancelLong cancels a long statement of the caller. Cancelling it again returns the same statement.
//
// Faults: NotFound, InvalidState if the statement ended in another way.
func (q *Query) CancelLong(ctx context.Context, who auth.Principal, id uuid.UUID) (found Long, err error) {
	err = q.DB.InTx(ctx, func(tx postgres.Tx) error {
		if found, err = q.own(ctx, tx, who, id); err != nil || found.Status == Cancelled {
			return err
		}

		now := q.Now()

		isChanged, err := endLong(ctx, tx, found, longEnd{status: Cancelled, at: now, until: now.Add(q.Longs.Retention)})
		if err != nil {
			return err
		}

		if !isChanged {
			return fault.New(fault.InvalidState, "The statement has already ended with the status "+string(found.Status)+".")
		}

		if err := audit.WriteTx(ctx, tx, who.Audit(who.Account, now, "statement.cancel", found.audit())); err != nil {
			return err
		}

		found, err = q.own(ctx, tx, who, id)

		return err
	})

	return found, err
}

// DeleteLong deletes a long statement of the caller and its result. A statement that has not ended is cancelled by it.
//
// Faults: NotFound, Forbidden.
func (q *Query) DeleteLong(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	return q.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := q.own(ctx, tx, who, id)
		if err != nil {
			return err
		}

		if auth.Editor.Exceeds(who.Ceiling()) {
			return fault.New(fault.Forbidden, "This needs a token with the role editor.")
		}

		if err := q.deleteLongTx(ctx, tx, found.account, found.ID, found.Status.Ended()); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, q.Now(), "statement.delete", found.audit()))
	})
}

// stopTime is how long a worker may still write an object of a statement that has ended.
const stopTime = time.Minute

// deleteLongTx deletes a long statement. Its objects are removed at once if it has ended.
func (q *Query) deleteLongTx(ctx context.Context, tx postgres.Tx, account, id uuid.UUID, hasEnded bool) error {
	at := q.Now()
	if !hasEnded {
		at = at.Add(stopTime)
	}

	return deleteLong(ctx, tx, account, id, at)
}

// longRequest is the request of a long statement as it is stored.
type longRequest struct {
	Username   string     `json:"username,omitempty"`
	Namespace  string     `json:"namespace,omitempty"`
	Dataset    string     `json:"dataset,omitempty"`
	Query      string     `json:"query"`
	AsOf       *time.Time `json:"asOf,omitempty"`
	Parameters Parameters `json:"parameters"`

	ParquetVersion int `json:"parquetVersion,omitempty"`
}

func (l Long) request() (string, error) {
	r := longRequest{
		Username: l.Want.Username, Namespace: l.Want.Namespace, Dataset: l.Want.Dataset, Query: l.Want.Text, Parameters: l.Want.Parameters,
		ParquetVersion: l.Want.ParquetVersion,
	}
	if !l.Want.AsOf.IsZero() {
		r.AsOf = &l.Want.AsOf
	}

	text, err := json.Marshal(r) //nolint:musttag // it is read by the same type

	return string(text), err
}

// statementOf returns the statement of a stored request. Numbers keep their digits, because they decide the type of a parameter.
func statementOf(request, format string) (want Statement, err error) {
	var r longRequest

	decoder := json.NewDecoder(strings.NewReader(request))
	decoder.UseNumber()

	if err := decoder.Decode(&r); err != nil { //nolint:musttag // it was written by the same type
		return want, err
	}

	want = Statement{Username: r.Username, Namespace: r.Namespace, Dataset: r.Dataset, Text: r.Query, Parameters: r.Parameters, ParquetVersion: r.ParquetVersion}
	if r.AsOf != nil {
		want.AsOf = *r.AsOf
	}

	for form, name := range formats() {
		if name == format {
			want.Form = form
		}
	}

	return want, nil
}
