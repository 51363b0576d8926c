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

// Queue is where questions wait.
const Queue = "run"

func runOpts() *river.InsertOpts { return &river.InsertOpts{Queue: Queue} }

// Args is the job of a run.
type Args struct {
	Account uuid.UUID `json:"account"`
	Run     uuid.UUID `json:"run"`
}

// Kind names the job.
func (Args) Kind() string { return "run.run" }

func (r Run) args() Args { return Args{Account: r.Account, Run: r.ID} }

func (a Args) work() job.Work { return job.Work{Account: a.Account, ID: a.Run, Job: a, Queue: Queue} }

// Worker works Args.
type Worker struct {
	river.WorkerDefaults[Args]

	Runs *Runs
}

// Work answers the question, unless another does.
func (w *Worker) Work(ctx context.Context, j *river.Job[Args]) error {
	return job.Snooze(w.Runs.Jobs().Hold(ctx, j.Args.work(), func(ctx context.Context, lease job.Lease) error {
		return w.Runs.work(ctx, j.Args, lease, j.Attempt >= j.MaxAttempts)
	}))
}

// work goes on from what the log says. It ends with the run: when the agent is done, when the deadline has come, when
// somebody cancels it, and when the credential that asked is no longer valid.
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

		return nil // whoever ended it has said so
	case err != nil && !last && ctx.Err() != nil:
		return err // this process ends; another goes on
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

// resume reads a run and its log. It returns nil if there is nothing to do.
func (r *Runs) resume(ctx context.Context, args Args, lease job.Lease) (*record, error) {
	var (
		run    *Run
		events []Event
		reads  []query.Read
	)

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if run, err = selectRun(ctx, q, args.Account, args.Run); err == nil && run != nil {
			events, err = selectEvents(ctx, q, args.Account, args.Run, 0)
		}

		if err == nil && run != nil {
			reads, err = selectReads(ctx, q, args.Account, args.Run)
		}

		return err
	})
	if err != nil || run == nil || run.Status != Running {
		return nil, err
	}

	run.Question.Run = run.ID
	if run.Question.Earlier, err = r.earlier(ctx, *run); err != nil {
		return nil, err
	}

	log := &record{Runs: r, lease: lease, run: *run, pinned: map[uuid.UUID]uuid.UUID{}}
	log.pin(reads)

	for _, e := range events {
		log.before = append(log.before, e.Event)
	}

	return log, nil
}

// watch ends the work when the run has ended, and when the credential that asked is no longer valid.
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

// Kind names the job.
func (ExpireArgs) Kind() string { return "run.expire" }

const (
	houseQueue  = "housekeeping"
	expireEvery = 2 * time.Second
)

// expireWork is the one lease of all that do so.
var expireWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("run.expire")) //nolint:gochecknoglobals // a constant

// Expirer works ExpireArgs.
type Expirer struct {
	river.WorkerDefaults[ExpireArgs]

	Runs *Runs
}

// Work ends runs, unless another does.
func (e *Expirer) Work(ctx context.Context, j *river.Job[ExpireArgs]) error {
	return job.Snooze(e.Runs.Jobs().Hold(ctx, job.Work{ID: expireWork, Job: j.Args, Queue: houseQueue}, e.Runs.expire))
}

// CleanArgs is the job that removes what is not kept any more.
type CleanArgs struct{}

// Kind names the job.
func (CleanArgs) Kind() string { return "run.clean" }

const cleanEvery = 10 * time.Second

// cleanWork is the one lease of all cleaners.
var cleanWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("run.clean")) //nolint:gochecknoglobals // a constant

// Cleaner works CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Runs *Runs
}

// Work cleans, unless another does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	return job.Snooze(c.Runs.Jobs().Hold(ctx, job.Work{ID: cleanWork, Job: j.Args, Queue: houseQueue}, c.Runs.clean))
}

// EraseArgs is the job that takes out of runs what they read of a dataset that is gone.
type EraseArgs struct {
	Account uuid.UUID `json:"account"`
	Dataset uuid.UUID `json:"dataset"`
}

// Kind names the job.
func (EraseArgs) Kind() string { return "run.erase" }

func eraseOpts() *river.InsertOpts {
	return &river.InsertOpts{Queue: houseQueue, MaxAttempts: eraseAttempts}
}

// eraseAttempts go on for weeks: it must happen.
const eraseAttempts = 100

// Eraser works EraseArgs.
type Eraser struct {
	river.WorkerDefaults[EraseArgs]

	Runs *Runs
}

// Work erases. Two at once do no harm.
func (e *Eraser) Work(ctx context.Context, j *river.Job[EraseArgs]) error {
	return e.Runs.erase(ctx, j.Args)
}

// RepairArgs is the job that makes the tracing store agree with the ratings in force.
type RepairArgs struct{}

// Kind names the job.
func (RepairArgs) Kind() string { return "run.repair" }

const repairEvery = 5 * time.Second

// repairWork is the one lease of all that do so.
var repairWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("run.repair")) //nolint:gochecknoglobals // a constant

// Repairer works RepairArgs.
type Repairer struct {
	river.WorkerDefaults[RepairArgs]

	Runs *Runs
}

// Work repairs ratings, unless another does.
func (r *Repairer) Work(ctx context.Context, j *river.Job[RepairArgs]) error {
	return job.Snooze(r.Runs.Jobs().Hold(ctx, job.Work{ID: repairWork, Job: j.Args, Queue: houseQueue}, r.Runs.repair))
}

// Periodic inserts again and again what looks for late runs, for what is to be removed, and for ratings that the store
// may not have.
func Periodic() []*river.PeriodicJob {
	return []*river.PeriodicJob{periodic(ExpireArgs{}, expireEvery), periodic(CleanArgs{}, cleanEvery), periodic(RepairArgs{}, repairEvery)}
}

func periodic(args river.JobArgs, every time.Duration) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) {
		return args, &river.InsertOpts{Queue: houseQueue, UniqueOpts: river.UniqueOpts{ByPeriod: every}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}
