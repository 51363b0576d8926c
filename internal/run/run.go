package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/tracing"
)

// Config is what runs need.
type Config struct {
	DB      *postgres.DB
	Store   *blob.Store
	Catalog catalog.Catalog
	Agents  map[string]agent.Agent
	Jobs    func() *job.Client // there only when everything is wired
	Tracing *tracing.Tracing   // nil: none
	Log     *slog.Logger
	Now     func() time.Time

	Credentials auth.Credentials // checked again while a run or a stream goes on

	Time    time.Duration // that a run may take
	Running int           // of one account at once
	Streams int           // of one account at once, in this process; 0: any number
	Poll    time.Duration // between two looks at new events
	Keep    time.Duration // after a run has ended; 0: for ever
}

// Runs keeps conversations and runs. Run its tail.
type Runs struct {
	Config

	tail    *tail
	streams *auth.AtOnce
}

// Result is what comes of a question.
type Result = agent.Result

// Question is what somebody wants to know.
type Question = agent.Question

// New returns Runs.
func New(c Config) *Runs {
	if c.Tracing == nil {
		c.Tracing = tracing.Off()
	}

	r := &Runs{Config: c, tail: newTail(c)}
	if c.Streams > 0 {
		r.streams = auth.NewAtOnce(c.Streams, "streams open")
	}

	return r
}

// Tail reads new events for all streams of this process until ctx ends.
func (r *Runs) Tail(ctx context.Context) { r.tail.run(ctx) }

// Status is how a run is.
type Status string

const (
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Expired   Status = "expired"
)

// Run is a question with what came of it.
type Run struct {
	Account      uuid.UUID
	ID           uuid.UUID
	Conversation uuid.UUID
	Agent        string
	Question     agent.Question
	Status       Status
	Result       *agent.Result
	Error        *fault.Error
	CreatedAt    time.Time
	DeadlineAt   time.Time
	BeganAt      time.Time // zero while it waits for a worker
	FinishedAt   time.Time
	TraceID      [16]byte

	caller  auth.Principal
	lastSeq int64
	stored  *storedResult
}

const (
	maxTurns   = 200
	titleRunes = 80
	retryAfter = 5 * time.Second
)

// Ask is a request for an answer.
type Ask struct {
	Question     agent.Question
	Agent        string
	Conversation uuid.UUID // uuid.Nil for a new one
	Once         auth.Once
}

// Ask accepts a question. From then on it will be worked, whatever happens to this process.
//
// Faults: NotFound for a namespace, a dataset or a conversation that the caller cannot see, ValidationFailed for a
// conversation about another namespace, Conflict if it has too many turns, RateLimited.
func (r *Runs) Ask(ctx context.Context, who auth.Principal, want Ask) (made Run, err error) {
	if _, known := r.Agents[want.Agent]; !known {
		return Run{}, fault.Invalid("agent", "is not an agent of this service")
	}

	if _, err := time.LoadLocation(want.Question.TimeZone); err != nil {
		return Run{}, fault.Invalid("timeZone", "is not the name of a time zone, such as Europe/Vienna")
	}

	namespace, err := r.reach(ctx, who, want.Question)
	if err != nil {
		return Run{}, err
	}

	now := r.now()
	draft := Run{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Conversation: want.Conversation, Agent: want.Agent, Question: want.Question,
		Status: Running, CreatedAt: now, DeadlineAt: now.Add(r.Time), caller: who, lastSeq: 1,
	}
	_, _ = rand.Read(draft.TraceID[:])

	err = r.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, draft.ID, now)
		if err != nil {
			return err
		}

		if !repeated {
			if err := r.askTx(ctx, tx, &draft, namespace); err != nil {
				return err
			}
		}

		found, err := selectRun(ctx, tx, who.Account, first)
		if err == nil && found == nil {
			err = fault.Absent() // deleted since
		}

		if err == nil {
			made = *found
		}

		return err
	})
	if err == nil {
		r.Jobs().Wake(Queue)
	}

	return made, err
}

// reach finds the namespace, and makes sure that the caller can see the datasets that the question is limited to.
func (r *Runs) reach(ctx context.Context, who auth.Principal, q agent.Question) (namespace catalog.Namespace, err error) {
	at := catalog.Path{Username: q.Username, Namespace: q.Namespace}

	err = r.DB.Do(ctx, func(db postgres.Querier) error {
		if namespace, err = r.Catalog.Visible(ctx, db, who, at); err != nil {
			return err
		}

		for _, name := range q.Datasets {
			if _, err := r.Catalog.Allow(ctx, db, who, auth.Viewer, at.Named(name)); err != nil {
				return err
			}
		}

		return nil
	})

	return namespace, err
}

// askTx makes the run, its first event and its job.
func (r *Runs) askTx(ctx context.Context, tx postgres.Tx, draft *Run, namespace catalog.Namespace) error {
	running, err := lockRunning(ctx, tx, draft.Account)
	if err != nil {
		return err
	}

	if running >= r.Running {
		limited := fault.New(fault.RateLimited, fmt.Sprintf("You have %d questions running; that is as many as you may have. Wait for one, or cancel it.", running))
		limited.RetryAfter = retryAfter

		return limited
	}

	if err := r.turnTx(ctx, tx, draft, namespace); err != nil {
		return err
	}

	if err := insertRun(ctx, tx, *draft); err != nil {
		return err
	}

	body, err := json.Marshal(started{RunID: draft.ID, ConversationID: draft.Conversation})
	if err != nil {
		return err
	}

	if err := insertFirst(ctx, tx, *draft, string(kindStarted), body); err != nil {
		return err
	}

	if err := audit.WriteTx(ctx, tx, draft.caller.Audit(draft.Account, draft.CreatedAt, "run.create", draft.audit())); err != nil {
		return err
	}

	return r.Jobs().InsertTx(ctx, tx, draft.args(), runOpts())
}

// turnTx puts the run into its conversation.
func (r *Runs) turnTx(ctx context.Context, tx postgres.Tx, draft *Run, namespace catalog.Namespace) error {
	if draft.Conversation == uuid.Nil {
		draft.Conversation = uuid.Must(uuid.NewV7())

		return insertConversation(ctx, tx, Conversation{
			Account: draft.Account, ID: draft.Conversation, Title: titleOf(draft.Question.Text), Username: draft.Question.Username,
			Namespace: namespace.Name, CreatedAt: draft.CreatedAt, ActiveAt: draft.CreatedAt,
			namespaceAccount: namespace.Account, namespaceID: namespace.ID,
		})
	}

	found, err := lockConversation(ctx, tx, draft.Account, draft.Conversation)

	switch {
	case err != nil:
		return err
	case found == nil:
		return fault.Absent()
	}

	if err := r.reachesAll(ctx, tx, draft.caller, found.ID); err != nil {
		return err
	}

	switch {
	case found.namespaceID != namespace.ID || found.namespaceAccount != namespace.Account:
		return fault.Invalid("conversationId", "is about another namespace; begin a new conversation")
	case found.turns >= maxTurns:
		return fault.New(fault.Conflict, fmt.Sprintf("The conversation has %d turns and takes no more. Begin a new one.", maxTurns))
	default:
		return touchConversation(ctx, tx, *found, draft.CreatedAt)
	}
}

func titleOf(question string) string {
	runes := []rune(question)

	return string(runes[:min(len(runes), titleRunes)])
}

// mayChange: asking is reading, and whoever may only read changes nothing that was asked.
func mayChange(who auth.Principal) error {
	if auth.Editor.Exceeds(who.Ceiling()) {
		return fault.New(fault.Forbidden, "This needs a token with the role editor.")
	}

	return nil
}

func (r Run) key() topicKey { return topicKey{r.Account, r.ID} }

func (r Run) audit() audit.Target { return audit.Target{Kind: "run", ID: r.ID.String()} }

func (r *Runs) now() time.Time { return r.Now().UTC().Truncate(time.Millisecond) }
