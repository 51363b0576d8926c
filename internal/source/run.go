package source

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// RunStatus is the status of a run.
type RunStatus string

const (
	RunQueued    RunStatus = "queued"
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed"
	RunStopped   RunStatus = "stopped" // somebody must decide, or the source was paused
	RunFailed    RunStatus = "failed"
)

// Run is one refresh of a dataset from a source.
type Run struct {
	ID               uuid.UUID
	Status           RunStatus
	Files            int64 // that were loaded
	Rows             int64
	Bytes            int64
	RowsSetAside     int64 // of the loaded files
	Replaced         int64 // loaded files of which earlier rows were replaced
	RowsReplaced     int64
	Removed          int64 // files whose rows were removed
	RowsRemoved      int64
	Empty, LeftOut   int64  // files that were found and not loaded: without any bytes, or with a content that has failed
	Changed, Deleted int64  // loaded files that are no longer what they were, told for the first time
	Pinned           *int64 // snapshot of the table that was attached; nil for a source that loads
	Notes            []Note
	Stop             Stop
	Slot             time.Time // of the schedule; zero if somebody asked for the run
	CreatedAt        time.Time
	StartedAt        time.Time
	FinishedAt       time.Time

	account, source uuid.UUID
}

// Note tells what happened to a file that was loaded, and what the run has done about it.
type Note struct {
	Path  string `json:"path"`
	Event Event  `json:"event"`
}

// Event is what happened to a file that was loaded.
type Event string

const (
	Changed  Event = "changed"  // it has another content, and its rows stay
	Deleted  Event = "deleted"  // it is gone, and its rows stay
	Emptied  Event = "empty"    // it has no bytes any more, and its rows stay
	Replaced Event = "replaced" // its new content has replaced its rows
	Removed  Event = "removed"  // it is gone, and its rows are removed
)

const (
	maxNotes = 20   // of one run
	maxRuns  = 1000 // of one source that are kept
)

func (r Run) args() RunArgs { return RunArgs{Account: r.account, Source: r.source, Run: r.ID} }

func (a RunArgs) work() job.Work {
	return job.Work{Account: a.Account, ID: a.Run, Job: a, Queue: Queue}
}

// Run begins to load the new files of a source.
//
// Faults: NotFound, Forbidden, InvalidState if the source is paused or stopped, Conflict while a run is in progress.
func (s *Sources) Run(ctx context.Context, who auth.Principal, id uuid.UUID, once auth.Once) (begun Run, err error) {
	if err := mayRead(who); err != nil {
		return Run{}, err
	}

	draft := Run{ID: uuid.Must(uuid.NewV7()), Status: RunQueued, CreatedAt: s.now(), account: who.Account, source: id}

	err = s.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := present(lockSource(ctx, tx, who.Account, id))
		if err != nil {
			return err
		}

		if err := who.RequireEditor(); err != nil {
			return err
		}

		first, repeated, err := once.ClaimTx(ctx, tx, who.Account, who, draft.ID, draft.CreatedAt)
		if err != nil {
			return err
		}

		if !repeated {
			if err := s.beginTx(ctx, tx, who, found, draft); err != nil {
				return err
			}
		}

		now, err := selectRun(ctx, tx, RunArgs{Account: who.Account, Source: id, Run: first})
		if err == nil && now == nil {
			err = fault.Absent() // forgotten since
		}

		if err == nil {
			begun = *now
		}

		return err
	})
	if isOpen(err) {
		err = fault.New(fault.Conflict, "A run of this source is in progress. GET /sources/{sourceId}/runs shows it.")
	}

	return begun, err
}

func (s *Sources) beginTx(ctx context.Context, tx postgres.Tx, who auth.Principal, found Source, draft Run) error {
	switch found.Status {
	case Active:
	case Paused:
		return fault.New(fault.InvalidState, "The source is paused. Resume it first.")
	case Stopped:
		return fault.New(fault.InvalidState, "The source is stopped: "+found.Stop.Reason+" Resume it when this is decided.")
	}

	if _, err := insertRun(ctx, tx, draft); err != nil {
		return err
	}

	if err := s.Jobs().InsertTx(ctx, tx, draft.args(), insertOpts()); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, draft.CreatedAt, "source.run", found.audit()))
}

// Runs returns runs of a source before the given one, newest first.
//
// Faults: NotFound, Forbidden.
func (s *Sources) Runs(ctx context.Context, who auth.Principal, id, before uuid.UUID, limit int) (list []Run, next uuid.UUID, err error) {
	if err := mayRead(who); err != nil {
		return nil, uuid.Nil, err
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		if _, err := present(selectSource(ctx, q, who.Account, id)); err != nil {
			return err
		}

		list, err = selectRuns(ctx, q, who.Account, id, before, limit+1)

		return err
	})

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}

	return list, next, err
}

// stopError ends a run and stops its source.
type stopError struct {
	Stop

	path       string // of the file that somebody must decide about; empty for other reasons
	isOutdated bool   // the file was read with other options than the source has now
}

func (e stopError) Error() string { return e.Reason }

func stop(code StopCode, reason string) error {
	return stopError{Stop: Stop{Code: code, Reason: reason}}
}

// errPaused ends a run. The status of the source stays.
var errPaused = errors.New("the source is no longer active")

// work continues a run. If last is set, there is no further attempt after a failure.
func (s *Sources) work(ctx context.Context, args RunArgs, last bool) error {
	var (
		found *Source
		begun *Run
	)

	err := s.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if found, err = selectSource(ctx, q, args.Account, args.Source); err == nil {
			begun, err = selectRun(ctx, q, args)
		}

		return err
	})
	if err != nil {
		return err
	}

	if found == nil || begun == nil || !begun.FinishedAt.IsZero() {
		return s.Jobs().GiveBack(ctx, args.work())
	}

	w := &working{Sources: s, source: *found, run: *begun, window: 1}

	return s.Jobs().Attempt(ctx, job.Attempt{Work: args.work(), Last: last, Do: w.do, Passing: passing, Fail: w.fail})
}

// passing reports whether a later attempt may succeed.
func passing(err error) bool {
	for _, code := range []fault.Code{fault.Unavailable, fault.Timeout, fault.UpstreamUnavailable, fault.RateLimited, fault.Conflict} {
		if fault.Is(err, code) {
			return true
		}
	}

	return false
}

// fail records why a run has ended early.
func (w *working) fail(ctx context.Context, lease job.Lease, reason error) error {
	var (
		end     = w.run
		stopped stopError
	)

	switch {
	case errors.Is(reason, errPaused):
		end.Status, end.Stop = RunStopped, Stop{Reason: "The source was paused."}
	case errors.As(reason, &stopped):
		stopped = w.together(stopped)
		end.Status, end.Stop = RunStopped, stopped.Stop
	default:
		end.Status, end.Stop = RunFailed, Stop{Reason: fault.From(reason).Message}
	}

	end.FinishedAt = w.now()

	err := lease.Conclude(ctx, func(ctx context.Context, tx postgres.Tx) (bool, error) {
		var err error

		switch {
		case stopped.Reason != "":
			err = w.stopTx(ctx, tx, stopped.Stop, end.FinishedAt)
		case end.Status == RunFailed:
			err = w.tellFailedTx(ctx, tx, end.FinishedAt)
		}

		if err != nil {
			return false, err
		}

		return finishRun(ctx, tx, end)
	})

	if e, isFault := errors.AsType[*fault.Error](reason); end.Status == RunStopped || isFault && e.Code != fault.Internal {
		return err
	}

	return errors.Join(err, reason) // for the log
}

// stopTx stops the source, unless its owner has paused it.
func (w *working) stopTx(ctx context.Context, tx postgres.Tx, why Stop, now time.Time) error {
	isStopped, err := stopSource(ctx, tx, w.source, why)
	if err != nil || !isStopped {
		return err
	}

	data := event.Data{IngestionID: optional(why.Ingestion), Code: string(why.Code)}
	if err := w.tellTx(ctx, tx, event.SourceStopped, data, now); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, audit.Entry{Account: w.source.Account, At: now, Actor: "service", Action: "source.stop", Target: w.source.audit()})
}

// tellFailedTx tells the owner of the source that a run has failed, unless the run before it had failed too.
func (w *working) tellFailedTx(ctx context.Context, tx postgres.Tx, now time.Time) error {
	hadFailed, err := selectFailedBefore(ctx, tx, w.run)
	if err != nil || hadFailed {
		return err
	}

	return w.tellTx(ctx, tx, event.SourceFailed, event.Data{}, now)
}

func (w *working) tellTx(ctx context.Context, tx postgres.Tx, kind event.Type, data event.Data, now time.Time) error {
	subject := event.Subject{Kind: event.KindSource, Account: w.source.Account, ID: w.source.ID}
	data.SourceID, data.Source = &w.source.ID, w.source.Name
	data.Username, data.Namespace, data.Dataset = w.source.At.Username, w.source.At.Namespace, w.source.At.Dataset

	return event.WriteTx(ctx, tx, event.Event{Account: w.source.Account, Type: kind, At: now, Subject: subject, Data: data})
}
