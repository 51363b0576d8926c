package run

import (
	"cmp"
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
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/tracing"
)

// Config holds the dependencies and limits of Runs.
type Config struct {
	DB      *postgres.DB
	Store   *blob.Store
	Catalog catalog.Catalog
	Agents  map[string]agent.Agent
	// CheckModel returns ValidationFailed for a model or a provider that is not configured.
	CheckModel func(model, provider string) error
	Models     []Model            // what a question can name; the first one is the default
	Jobs       func() *job.Client // a function because the client is created after Runs
	Tracing    *tracing.Tracing   // nil means no tracing
	Log        *slog.Logger
	Now        func() time.Time

	Folder *disk.Watch // the work folder

	// Forget deletes what others keep about runs that are deleted, in the same transaction.
	Forget func(ctx context.Context, tx postgres.Tx, account uuid.UUID, runs []uuid.UUID) error

	// Ended is called when a worker has ended a run or made it wait for a choice, with the time since the worker began. nil means
	// that nobody observes.
	Ended func(agent string, status Status, took time.Duration)

	Suggest func(ctx context.Context, who auth.Principal, want Scope) ([]Suggestion, error)

	Credentials auth.Credentials // checked again while a run or a stream is in progress

	Timeout           time.Duration // longest duration of a run
	MaxPerUser        int           // runs of one account in progress at once
	MaxStreamsPerUser int           // streams of one account open at once in this process; 0 means no limit
	PollInterval      time.Duration // between two checks for new events
	Retention         time.Duration // of a run after its end; 0 means for ever
}

// Model is a model that a question can name.
type Model struct {
	Name     string
	Provider string
	Exposure string // how much of the data it may see at most: schema, values or rows
}

// Runs manages conversations and runs. Tail must be running for streams and runs to receive events.
type Runs struct {
	Config

	tail    *tail
	streams *auth.Concurrency
}

// Result is the result of a run.
type Result = agent.Result

// Question is a question with its scope.
type Question = agent.Question

// Scope is what suggestions are about.
type Scope = agent.Scope

// Suggestion is a question that is answered without a model.
type Suggestion = agent.Suggestion

// New returns Runs with this configuration.
func New(c Config) *Runs {
	if c.Tracing == nil {
		c.Tracing = tracing.Off()
	}

	r := &Runs{Config: c, tail: newTail(c)}
	if c.MaxStreamsPerUser > 0 {
		r.streams = auth.NewConcurrency(c.MaxStreamsPerUser, "streams open")
	}

	return r
}

// Reserve counts one open stream of the caller until release is called. It must be called before a stream is opened for a
// client, so that no work starts for a stream that is refused.
//
// Faults: RateLimited if the caller has too many streams open.
func (r *Runs) Reserve(who auth.Principal) (release func(), err error) { return r.streams.Begin(who) }

// Tail reads new events for all streams of this process until ctx ends.
func (r *Runs) Tail(ctx context.Context) { r.tail.run(ctx) }

// Status is the status of a run.
type Status string

// ended reports whether a run with this status has ended.
func (s Status) ended() bool { return s != Running && s != Waiting }

// hasResult reports whether a run with this status has a result.
func (s Status) hasResult() bool { return s == Completed || s == Waiting }

const (
	Running   Status = "running"
	Waiting   Status = "waiting" // for the caller to choose an option
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Expired   Status = "expired"
)

// Statuses returns all statuses of runs.
func Statuses() []Status { return []Status{Running, Waiting, Completed, Failed, Cancelled, Expired} }

// Run is a run with its question and its result.
type Run struct {
	Account      uuid.UUID
	ID           uuid.UUID
	Conversation uuid.UUID
	Agent        string
	Question     agent.Question
	Status       Status
	Result       *agent.Result
	Error        *fault.Error
	Feedback     *Feedback // the rating in force; set only by Runs.Get and Runs.Conversation
	CreatedAt    time.Time
	DeadlineAt   time.Time
	BeganAt      time.Time // zero while the run waits for a worker; after a choice or a wait for one, when that began
	FinishedAt   time.Time
	TraceID      [16]byte

	caller    auth.Principal
	namespace uuid.UUID // set only until the run is inserted
	title     string    // likewise
	lastSeq   int64
	stored    *storedResult
}

const (
	maxTurns   = 200
	titleRunes = 80
	retryAfter = 5 * time.Second
)

// Ask is a request to answer a question.
type Ask struct {
	Question     agent.Question
	Agent        string
	Conversation uuid.UUID // uuid.Nil starts a new conversation
	Title        string    // of a new conversation; empty means the question
	Once         auth.Once
}

// Ask accepts a question and creates its run. From then on the run is processed even if this process ends.
//
// Faults: NotFound for a namespace, a dataset or a conversation that the caller cannot see; ValidationFailed for an unknown
// agent, model or time zone and for a conversation about another namespace; Conflict if the conversation has too many turns;
// RateLimited if the account has too many runs in progress, or has used up a limit of the day.
func (r *Runs) Ask(ctx context.Context, who auth.Principal, want Ask) (made Run, err error) {
	if _, known := r.Agents[want.Agent]; !known {
		return Run{}, fault.Invalid("agent", "is not an agent of this service")
	}

	if _, err := time.LoadLocation(want.Question.TimeZone); err != nil {
		return Run{}, fault.Invalid("timeZone", "is not the name of a time zone such as Europe/Vienna")
	}

	if want.Question.Model != "" || want.Question.Provider != "" {
		if err := r.CheckModel(want.Question.Model, want.Question.Provider); err != nil {
			return Run{}, err
		}
	}

	namespace, err := r.reach(ctx, who, want.Question)
	if err != nil {
		return Run{}, err
	}

	want.Question.Username, want.Question.Namespace = who.NameOf(want.Question.Username), namespace.Name

	now := r.now()
	draft := Run{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Conversation: want.Conversation, Agent: want.Agent, Question: want.Question,
		Status: Running, CreatedAt: now, DeadlineAt: now.Add(r.Timeout), caller: who, namespace: namespace.ID, title: want.Title, lastSeq: 1,
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
			err = fault.New(fault.NotFound, "The run of the first request with this Idempotency-Key was deleted. Use another key to ask again.")
		}

		if err == nil {
			made = *found
		}

		return err
	})
	if err == nil {
		r.Jobs().Wake(Queue)
		r.tail.hurry() // a run of the conversation that waited has ended
	}

	return made, err
}

// Asked returns the run that a request made before.
//
// Faults: NotFound if the request is not a repeated one.
func (r *Runs) Asked(ctx context.Context, who auth.Principal, once auth.Once) (Run, error) {
	var id uuid.UUID

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		id, err = once.Find(ctx, q, who.Account, who, r.now())

		return err
	})
	if err != nil {
		return Run{}, err
	}

	return r.own(ctx, who, id) // there is no run with the id uuid.Nil
}

// reach returns the namespace of a question, and checks that the caller may see the datasets to which it is limited.
func (r *Runs) reach(ctx context.Context, who auth.Principal, q agent.Question) (namespace catalog.Namespace, err error) {
	at := catalog.Path{Username: q.Username, Namespace: q.Namespace}

	err = r.DB.Do(ctx, func(db postgres.Querier) error {
		if namespace, err = r.Catalog.Lookup(ctx, db, who, at); err != nil {
			return err
		}

		for _, name := range q.Datasets {
			if _, err := r.Catalog.Allow(ctx, db, who, auth.Viewer, at.Named(name)); err != nil {
				if fault.Is(err, fault.NotFound) {
					err = r.Catalog.NoDataset(ctx, db, who, at.Named(name))
				}

				return err
			}
		}

		return nil
	})

	return namespace, err
}

// askTx inserts the run, its first event, its audit entry and its job.
func (r *Runs) askTx(ctx context.Context, tx postgres.Tx, draft *Run, namespace catalog.Namespace) error {
	running, err := lockRunning(ctx, tx, draft.Account)
	if err != nil {
		return err
	}

	if running >= r.MaxPerUser {
		return r.tooMany(running)
	}

	if err := r.countTx(ctx, tx, *draft); err != nil {
		return err
	}

	if err := r.turnTx(ctx, tx, draft, namespace); err != nil {
		return err
	}

	if err := insertRun(ctx, tx, *draft); err != nil {
		return err
	}

	body, err := json.Marshal(agent.RunStarted{RunID: draft.ID, ConversationID: draft.Conversation})
	if err != nil {
		return err
	}

	if err := insertFirst(ctx, tx, *draft, string(EventStarted), body); err != nil {
		return err
	}

	if err := audit.WriteTx(ctx, tx, draft.caller.Audit(draft.Account, draft.CreatedAt, "run.create", draft.audit())); err != nil {
		return err
	}

	return r.Jobs().InsertTx(ctx, tx, draft.args(), draft.opts())
}

// countTx counts the question, and checks the limits of what an answer needs.
func (r *Runs) countTx(ctx context.Context, tx postgres.Tx, draft Run) error {
	needs := []catalog.Kind{catalog.QuerySeconds, catalog.ScannedBytes}
	if len(r.Models) > 0 && draft.Question.By != agent.ByRules {
		needs = append(needs, catalog.Tokens)
	}

	return r.Catalog.TakeTx(ctx, tx, draft.Account, catalog.Questions, needs...)
}

// turnTx adds the run to its conversation, which it creates if needed. Runs of the conversation that wait for a choice end.
func (r *Runs) turnTx(ctx context.Context, tx postgres.Tx, draft *Run, namespace catalog.Namespace) error {
	if draft.Conversation == uuid.Nil {
		draft.Conversation = uuid.Must(uuid.NewV7())

		return insertConversation(ctx, tx, Conversation{
			Account: draft.Account, ID: draft.Conversation, Title: titleOf(cmp.Or(draft.title, draft.Question.Text)), Username: draft.Question.Username,
			Namespace: namespace.Name, CreatedAt: draft.CreatedAt, ActiveAt: draft.CreatedAt,
			namespaceAccount: namespace.Account, namespaceID: namespace.ID,
		})
	}

	found, err := lockConversation(ctx, tx, draft.Account, draft.Conversation)

	switch {
	case err != nil:
		return err
	case found == nil:
		return noConversation()
	}

	if err := r.reachesAll(ctx, tx, draft.caller, found.ID); err != nil {
		return err
	}

	switch {
	case found.namespaceID != namespace.ID || found.namespaceAccount != namespace.Account:
		return fault.Invalid("conversationId", "belongs to another namespace; start a new conversation")
	case found.turns >= maxTurns:
		return fault.New(fault.Conflict, fmt.Sprintf("The conversation has %d turns, which is the maximum. Start a new conversation.", maxTurns))
	default:
		found.Namespace = namespace.Name // it may have been renamed

		if err := closeWaiting(ctx, tx, draft.Account, found.ID, draft.CreatedAt); err != nil {
			return err
		}

		return touchConversation(ctx, tx, *found, draft.CreatedAt)
	}
}

// noConversation returns the fault for a conversation in a body that does not exist or belongs to another user.
func noConversation() error {
	return fault.New(fault.NotFound, "You have no conversation with this id. Leave out conversationId to start a new one.")
}

func titleOf(question string) string {
	runes := []rune(question)

	return string(runes[:min(len(runes), titleRunes)])
}

// mayChange returns Forbidden for a token with a role below editor. Such a token may ask questions, because that only
// reads, but may not change or delete conversations or delete runs.
func mayChange(who auth.Principal) error {
	if auth.Editor.Exceeds(who.Ceiling()) {
		return fault.New(fault.Forbidden, "This needs a token with the role editor.")
	}

	return nil
}

func (r Run) key() topicKey { return topicKey{r.Account, r.ID} }

func (r Run) audit() audit.Target { return audit.Target{Kind: "run", ID: r.ID.String()} }

func (r *Runs) now() time.Time { return r.Now().UTC().Truncate(time.Millisecond) }
