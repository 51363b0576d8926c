package run

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// Queue is the queue of runs.
const Queue = "run"

// benchmarkPriority lets the questions of people go before those of benchmarks. The default priority is 1, which goes first.
const benchmarkPriority = 2

func (r Run) opts() *river.InsertOpts {
	opts := &river.InsertOpts{Queue: Queue}
	if r.Question.By != "" {
		opts.Priority = benchmarkPriority
	}

	return opts
}

// Args is the job of a run.
type Args struct {
	Account uuid.UUID `json:"account"`
	Run     uuid.UUID `json:"run"`
}

// Kind returns the name of the job.
func (Args) Kind() string { return "run.run" }

func (r Run) args() Args { return Args{Account: r.Account, Run: r.ID} }

func (a Args) work() job.Work { return job.Work{Account: a.Account, ID: a.Run, Job: a, Queue: Queue} }

// Worker is the worker for Args.
type Worker struct {
	river.WorkerDefaults[Args]

	Runs *Runs
}

// Work processes the run, unless another worker does. If the work folder is full, the job waits: another replica may have
// space.
func (w *Worker) Work(ctx context.Context, j *river.Job[Args]) error {
	err := w.Runs.Jobs().Attempt(ctx, job.Attempt{
		Work: j.Args.work(),
		Room: func() error { return w.Runs.Folder.Room(0) },
		Do: func(ctx context.Context, lease job.Lease) error {
			return w.Runs.work(ctx, j.Args, lease, j.Attempt >= j.MaxAttempts)
		},
	})
	if errors.Is(err, job.ErrLost) { // the caller may have chosen before the worker that asked gave its lease back
		err = job.Wait(err)
	}

	return job.Snooze(err)
}

// work continues a run from its log. It ends when the agent is done, the deadline passes, the run is cancelled, or the
// credential that asked is no longer valid.
func (r *Runs) work(ctx context.Context, args Args, lease job.Lease, last bool) error {
	log, err := r.resume(ctx, args, lease)
	if err != nil || log == nil {
		return err
	}

	if err := r.Credentials.Check(ctx, log.run.caller); lapsed(err) {
		return notEnded(log.end(ctx, agent.Result{}, errLapsed()))
	} else if err != nil {
		return err
	}

	working, stop := context.WithDeadlineCause(ctx, log.run.DeadlineAt, errEnded)
	defer stop()

	watched, ended := context.WithCancelCause(working)
	defer ended(nil)

	go func() {
		err := fault.Try(func() error {
			r.watch(watched, log.run, ended)

			return nil
		})
		if err != nil {
			ended(err)
		}
	}()

	result, tell, err := r.answer(watched, log.run, log)
	if err != nil && fault.From(err).Code == fault.Internal && watched.Err() == nil {
		r.Log.ErrorContext(ctx, "a run failed", "run", log.run.ID, "account", log.run.Account, "error", err)
	}

	switch {
	case errors.Is(context.Cause(watched), errEnded), errors.Is(err, errEnded):
		tell(errEnded)

		return nil // the end is already recorded
	case err != nil && !last && ctx.Err() != nil:
		return err // this process is stopping; another one continues
	case fault.IsNoRoom(err) && r.Folder.Room(0) != nil:
		return job.Wait(err) // continue when this replica has space, or on another one
	}

	reason, failure := r.reason(ctx, log.run, context.Cause(watched), err)
	if failure != nil {
		return failure
	}

	failure = log.end(ctx, result, reason)
	if notEnded(failure) == nil {
		tell(cmp.Or(failure, reason))
	}

	return notEnded(failure)
}

// resume starts a run or takes it over, and reads its log. It returns nil if the run is not in progress.
func (r *Runs) resume(ctx context.Context, args Args, lease job.Lease) (*record, error) {
	var (
		run    *Run
		events []Event
		reads  []query.Read
	)

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if run, err = beginRun(ctx, q, args.Account, args.Run, r.now()); err == nil && run != nil {
			events, err = selectEvents(ctx, q, args.Account, args.Run, 0)
		}

		if err == nil && run != nil {
			reads, err = selectPinned(ctx, q, args.Account, args.Run)
		}

		return err
	})
	if err != nil || run == nil {
		return nil, err
	}

	r.tail.tellBegun(run.key(), run.BeganAt)

	run.Question.Run = run.ID
	if run.Question.By == "" {
		run.Question.Earlier, err = r.earlier(ctx, *run)
	}

	if err != nil {
		return nil, err
	}

	log := &record{Runs: r, lease: lease, run: *run, pinned: map[uuid.UUID]uuid.UUID{}}
	log.pin(reads)

	for _, e := range sinceChoice(events) {
		log.before = append(log.before, e.Event)
	}

	return log, nil
}

// watch stops the work when the run has ended, or when the credential that asked is no longer valid.
func (r *Runs) watch(ctx context.Context, run Run, ended context.CancelCauseFunc) {
	follower, _ := r.tail.follow(run.key(), run.lastSeq)
	defer follower.leave()

	follower.heldBy(run.caller)

	for {
		events, err := follower.next(ctx)
		if lapsed(err) {
			ended(err)
		}

		if err != nil {
			return
		}

		for _, e := range events {
			if e.Ends() {
				ended(errEnded)

				return
			}
		}
	}
}

// ExpireArgs is the job that ends runs whose deadline has passed.
type ExpireArgs struct{}

// Kind returns the name of the job.
func (ExpireArgs) Kind() string { return "run.expire" }

const (
	expireEvery = 2 * time.Second
)

// Expirer is the worker for ExpireArgs.
type Expirer struct {
	river.WorkerDefaults[ExpireArgs]

	Runs *Runs
}

// Work ends runs whose deadline has passed, unless another worker does.
func (e *Expirer) Work(ctx context.Context, j *river.Job[ExpireArgs]) error {
	return e.Runs.Jobs().Alone(ctx, j.Args, e.Runs.expire)
}

// CleanArgs is the job that removes expired runs, events and objects.
type CleanArgs struct{}

// Kind returns the name of the job.
func (CleanArgs) Kind() string { return "run.clean" }

const cleanEvery = 10 * time.Second

// Cleaner is the worker for CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Runs *Runs
}

// Work removes expired data, unless another worker does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return c.Runs.Jobs().Alone(ctx, j.Args, c.Runs.clean)
}

// EraseArgs is the job that removes from runs what they read from a permanently deleted dataset.
type EraseArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind returns the name of the job.
func (EraseArgs) Kind() string { return "run.erase" }

func eraseOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: job.CleanupQueue, MaxAttempts: eraseAttempts}
}

// eraseAttempts is the number of attempts. They continue for weeks, because the data must be erased.
const eraseAttempts = 100

// Eraser is the worker for EraseArgs.
type Eraser struct {
	river.WorkerDefaults[EraseArgs]

	Runs *Runs
}

// Work erases the data. Two workers may do so at the same time.
func (e *Eraser) Work(ctx context.Context, j *river.Job[EraseArgs]) error {
	return e.Runs.erase(ctx, j.Args)
}

// RepairArgs is the job that makes the tracing store agree with the ratings in force.
type RepairArgs struct{}

// Kind returns the name of the job.
func (RepairArgs) Kind() string { return "run.repair" }

const repairEvery = 5 * time.Second

// Repairer is the worker for RepairArgs.
type Repairer struct {
	river.WorkerDefaults[RepairArgs]

	Runs *Runs
}

// Work repairs ratings, unless another worker does.
func (r *Repairer) Work(ctx context.Context, j *river.Job[RepairArgs]) error {
	return r.Runs.Jobs().Alone(ctx, j.Args, r.Runs.repair)
}

// Periodic returns the periodic jobs: ending late runs, removing expired data, and repairing ratings in the tracing store.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{job.Every(expireEvery, ExpireArgs{}), job.Every(cleanEvery, CleanArgs{}), job.Every(repairEvery, RepairArgs{})}
}
