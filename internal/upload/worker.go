package upload

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"quern.dev/quern/internal/job"
)

// CleanArgs is the job that keeps sessions and bytes from piling up.
type CleanArgs struct{}

// Kind names the job.
func (CleanArgs) Kind() string { return "upload.clean" }

// CleanQueue is where it waits: apart from what people wait for.
const CleanQueue = "housekeeping"

const cleanEvery = time.Minute

// cleanWork is the one lease of all cleaners.
var cleanWork = uuid.NewSHA1(uuid.NameSpaceOID, []byte("upload.clean")) //nolint:gochecknoglobals // a constant

// Cleaner works CleanArgs.
type Cleaner struct {
	river.WorkerDefaults[CleanArgs]

	Uploads Uploads
	Jobs    func() *job.Client // there only when everything is wired
}

// Work cleans, unless another does.
func (c *Cleaner) Work(ctx context.Context, j *river.Job[CleanArgs]) error {
	work := job.Work{ID: cleanWork, Job: j.Args, Queue: CleanQueue}

	return job.Snooze(c.Jobs().Hold(ctx, work, c.Uploads.Clean))
}

// SweepArgs is the job that looks for what no row knows.
type SweepArgs struct{}

// Kind names the job.
func (SweepArgs) Kind() string { return "upload.sweep" }

const sweepEvery = 24 * time.Hour

// Sweeper works SweepArgs.
type Sweeper struct {
	river.WorkerDefaults[SweepArgs]

	Uploads Uploads
}

// Work sweeps. That two do it at once harms nothing.
func (s *Sweeper) Work(ctx context.Context, _ *river.Job[SweepArgs]) error {
	return s.Uploads.Sweep(ctx)
}

// Periodic inserts the jobs again and again.
func Periodic() []*river.PeriodicJob {
	every := func(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) {
			return args, &river.InsertOpts{Queue: CleanQueue, UniqueOpts: river.UniqueOpts{ByPeriod: interval}}
		}, &river.PeriodicJobOpts{RunOnStart: true})
	}

	return []*river.PeriodicJob{every(cleanEvery, CleanArgs{}), every(sweepEvery, SweepArgs{})}
}
