package benchmark

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
)

// Benchmarks runs benchmarks and keeps their results.
type Benchmarks struct {
	DB          *postgres.DB
	Catalog     catalog.Catalog
	Verified    *verified.Verified
	Runs        *run.Runs
	Credentials auth.Credentials   // checked again while a benchmark is in progress
	Jobs        func() *job.Client // a function because the client is created later
	Release     string             // of this program; rules and prompts change only with it
	Now         func() time.Time
}

// Mode says what answers the questions.
type Mode = agent.By

// The modes.
const (
	Rules = agent.ByRules
	Model = agent.ByModel
)

// Status is the status of a benchmark.
type Status string

// The statuses.
const (
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Benchmark is a benchmark of a namespace.
type Benchmark struct {
	Account    uuid.UUID // of the owner of the namespace
	Namespace  uuid.UUID
	ID         uuid.UUID
	Status     Status
	Mode       Mode
	Model      string // empty for rules
	Provider   string
	Release    string
	Author     string
	Previous   uuid.UUID // the benchmark that it is compared with; uuid.Nil if there is none
	Questions  *int      // nil until the questions are listed
	Counts     Counts
	Better     int // than in the benchmark that it is compared with
	Worse      int
	Outdated   []Cause // what has changed since it completed; set only for the last completed benchmark of a mode
	Error      *fault.Error
	CreatedAt  time.Time
	FinishedAt time.Time

	caller       auth.Principal
	authorID     uuid.UUID
	conversation uuid.UUID
}

// Counts is the number of questions by outcome.
type Counts struct {
	Right, Wrong, Refused, AskedBack, Failed int
}

// Outcome is what became of a question.
type Outcome string

// The outcomes. A question has none until it is known.
const (
	Right        Outcome = "right"
	Wrong        Outcome = "wrong"
	Refused      Outcome = "refused"
	AskedBack    Outcome = "asked_back"
	FailedToTell Outcome = "failed"
)

// rank orders outcomes. A refusal is better than a wrong answer, which people may believe.
func (o Outcome) rank() int {
	switch o {
	case Right:
		return 2
	case Refused, AskedBack:
		return 1
	default:
		return 0
	}
}

// Result is the result of one question.
type Result struct {
	Question uuid.UUID
	Revision int64
	Text     string // as it was asked
	Outcome  Outcome
	Detail   string // what is wrong, without values of cells
	Run      uuid.UUID
	Rows     *int64 // of the answer
	Expected *int64 // rows of the verified statement

	data, meaning string
}

// maxKept is the number of benchmarks of a namespace that are kept.
const maxKept = 200

// New is a benchmark to start.
type New struct {
	At       catalog.Path
	Mode     Mode // empty means Model if the service has one, else Rules
	Model    string
	Provider string
	Once     auth.Once
}

// Create starts a benchmark. From then on it is processed even if this process ends.
//
// Faults: NotFound; Forbidden if the caller may not edit the namespace; ValidationFailed for a model that is not configured; Conflict if
// another benchmark of the namespace is running.
func (b *Benchmarks) Create(ctx context.Context, who auth.Principal, want New) (made Benchmark, err error) {
	namespace, err := b.Verified.Editable(ctx, who, want.At)
	if err != nil {
		return Benchmark{}, err
	}

	draft := Benchmark{
		Account: namespace.Account, Namespace: namespace.ID, ID: uuid.Must(uuid.NewV7()), Status: Running, Mode: want.Mode, Release: b.Release,
		Author: who.Username, CreatedAt: b.now(), caller: who, authorID: who.Account,
	}
	if err := b.choose(&draft, want); err != nil {
		return Benchmark{}, err
	}

	err = b.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, namespace.Account, who, draft.ID, draft.CreatedAt)
		if err != nil {
			return err
		}

		if !repeated {
			if err := b.createTx(ctx, tx, draft, namespace); err != nil {
				return err
			}
		}

		found, err := selectBenchmark(ctx, tx, namespace.Account, namespace.ID, first)
		if err == nil && found == nil {
			err = fault.Absent()
		}

		if err == nil {
			made = *found
		}

		return err
	})
	if constraint, ok := postgres.ViolatesUnique(err); ok && constraint == "benchmarks_running" {
		return Benchmark{}, fault.New(fault.Conflict, "A benchmark of this namespace is running. Wait until it ends, or cancel it.")
	}

	if err == nil {
		b.Jobs().Wake(Queue)
	}

	return made, err
}

// choose sets the mode and the model.
func (b *Benchmarks) choose(draft *Benchmark, want New) error {
	models := b.Runs.Models

	if draft.Mode == "" {
		draft.Mode = Rules
		if len(models) > 0 || want.Model != "" || want.Provider != "" {
			draft.Mode = Model
		}
	}

	switch {
	case draft.Mode == Rules && (want.Model != "" || want.Provider != ""):
		return fault.Invalid("model", "cannot be named with the mode rules, which asks no model")
	case draft.Mode == Rules:
		return nil
	case len(models) == 0:
		return fault.Invalid("mode", "is model, but no model is configured; use rules")
	}

	if err := b.Runs.CheckModel(want.Model, want.Provider); err != nil {
		return err
	}

	at := slices.IndexFunc(models, func(m run.Model) bool {
		return (want.Model == "" || m.Name == want.Model) && (want.Provider == "" || m.Provider == want.Provider)
	})
	draft.Model, draft.Provider = models[at].Name, models[at].Provider

	return nil
}

func (b *Benchmarks) createTx(ctx context.Context, tx postgres.Tx, draft Benchmark, namespace catalog.Namespace) error {
	last, err := selectLast(ctx, tx, draft)
	if err != nil {
		return err
	}

	draft.Previous = last

	if err := insertBenchmark(ctx, tx, draft); err != nil {
		return err
	}

	if err := forgetOld(ctx, tx, draft, maxKept); err != nil {
		return err
	}

	if err := b.noteTx(ctx, tx, draft.caller, draft, namespace, "benchmark.create"); err != nil {
		return err
	}

	return b.Jobs().InsertTx(ctx, tx, draft.args(), opts())
}

// Cancel ends a benchmark. Its results stay. Cancelling a cancelled benchmark again returns the same benchmark.
//
// Faults: NotFound; Forbidden if the caller may not edit the namespace; InvalidState if the benchmark ended in another way.
func (b *Benchmarks) Cancel(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (Benchmark, error) {
	found, err := b.Get(ctx, who, at, id, uuid.Nil)
	if err != nil {
		return Benchmark{}, err
	}

	namespace, err := b.Verified.Editable(ctx, who, at)
	if err != nil {
		return Benchmark{}, err
	}

	err = b.DB.InTx(ctx, func(tx postgres.Tx) error {
		ended, err := endBenchmark(ctx, tx, found.args(), Cancelled, nil, b.now())
		if err != nil || !ended {
			return err
		}

		return b.noteTx(ctx, tx, who, found, namespace, "benchmark.cancel")
	})
	if err != nil {
		return Benchmark{}, err
	}

	found, err = b.Get(ctx, who, at, id, uuid.Nil)
	if err == nil && found.Status != Cancelled {
		err = fault.New(fault.InvalidState, "The benchmark has already ended with the status "+string(found.Status)+".")
	}

	return found, err
}

func (b *Benchmarks) noteTx(ctx context.Context, tx postgres.Tx, who auth.Principal, of Benchmark, namespace catalog.Namespace, action string) error {
	entry := who.Audit(of.Account, b.now(), action, audit.Target{Kind: "benchmark", ID: of.ID.String(), Namespace: namespace.Name})
	entry.Detail = string(of.Mode)

	return audit.WriteTx(ctx, tx, entry)
}

func (b Benchmark) args() Args {
	return Args{Account: b.Account, Namespace: b.Namespace, Benchmark: b.ID}
}

func (b *Benchmarks) now() time.Time { return b.Now().UTC().Truncate(time.Millisecond) }
