package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

const (
	// waitTime is how long a call waits for a run. Some clients give up after 60 seconds.
	waitTime = 45 * time.Second
	// cancelTime is how long the cancellation of a run may take whose client has disconnected.
	cancelTime = 5 * time.Second
	// stateless is the first version of the protocol in which a client cancels a call by disconnecting.
	stateless = "2026-07-28"
)

func (s *Server) ask(call *invocation) (any, error) {
	in := call.args.namespace()
	want := run.Ask{Agent: "assistant", Question: run.Question{
		Username: in.Username, Namespace: in.Namespace, Text: call.args.text("question", maxQuestion), Datasets: call.args.list("datasets"),
		TimeZone: call.args.text("timeZone", maxZone),
	}}

	if len(want.Question.Datasets) > maxList {
		call.args.refuse("datasets", "may have at most 20 names")
	}

	if call.args.has("conversationId") {
		if want.Conversation = call.args.id("conversationId"); want.Conversation == uuid.Nil {
			call.args.refuse("conversationId", "is not one of your conversations; omit it to start a new one")
		}
	}

	if err := call.args.check(); err != nil {
		return nil, err
	}

	made, err := s.Runs.Ask(call, call.who, want)
	if err != nil {
		return nil, absent(err, "There is no such namespace, dataset or conversation that you can see. Call list_datasets.")
	}

	return s.await(call, made, 0, true)
}

func (s *Server) getRun(call *invocation) (any, error) {
	found, err := s.Runs.Get(call, call.who, call.args.id("runId"))
	if err != nil {
		return nil, noRun(err)
	}

	if found.Status != run.Running {
		return showRun(found), nil
	}

	return s.await(call, found, 0, false)
}

func (s *Server) choose(call *invocation) (any, error) {
	id, option := call.args.id("runId"), call.args.integer("option", 0, 1, math.MaxInt32)
	if err := call.args.check(); err != nil {
		return nil, err
	}

	return s.chosen(call, id, option)
}

// chosen continues a run with an option.
func (s *Server) chosen(call *invocation, id uuid.UUID, option int) (any, error) {
	made, err := s.Runs.Choose(call, call.who, id, option)
	if err != nil {
		return nil, noRun(err)
	}

	return s.await(call, made, made.Question.LastChosen().Event-1, true)
}

func noRun(err error) error { return absent(err, "You have no run with this id. ask begins one.") }

// await waits for a run and returns it. A client that disconnects cancels the work that its call began, if its version of the
// protocol says so.
func (s *Server) await(call *invocation, made run.Run, after int64, began bool) (any, error) {
	waiting, stop := context.WithTimeout(call, waitTime)
	defer stop()

	err := s.follow(waiting, call, made.ID, after)

	if call.Err() != nil && began && call.request.Extra.Header.Get("Mcp-Protocol-Version") >= stateless {
		ending, stop := context.WithTimeout(context.WithoutCancel(call), cancelTime)
		defer stop()

		_, _ = s.Runs.Cancel(ending, call.who, made.ID) // it may have ended
	}

	if err != nil && waiting.Err() == nil {
		return nil, noRun(err)
	}

	found, err := s.Runs.Get(call, call.who, made.ID)
	if err != nil {
		return nil, noRun(err)
	}

	return showRun(found), nil
}

// follow waits until a run rests. If the client wants to know the progress, each event of the run is one.
func (s *Server) follow(ctx context.Context, call *invocation, id uuid.UUID, after int64) error {
	token := call.request.Params.GetProgressToken()
	if token == nil {
		return s.Runs.Await(ctx, call.who, id)
	}

	release, err := s.Runs.Reserve(call.who)
	if err != nil {
		return err
	}
	defer release()

	stream, err := s.Runs.Follow(ctx, call.who, id, after)
	if err != nil {
		return err
	}
	defer stream.Close()

	for {
		events, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		for _, e := range events {
			// A client that has disconnected ends the context. The SDK's own context ties the message to the request.
			//nolint:contextcheck // it is not that of the caller
			_ = call.request.Session.NotifyProgress(call.reply, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(e.Seq), Message: progress(e)})
		}

		if len(events) > 0 && events[len(events)-1].Rests() {
			return nil
		}
	}
}

// progress returns a fixed sentence for an event: what a model wrote or data contains must not look like a message of this service.
func progress(e run.Event) string {
	switch e.Kind {
	case run.EventStarted:
		return "The question was accepted."
	case run.EventPlan:
		return "The question has a plan."
	case run.EventStepStarted:
		return "A step has begun."
	case run.EventStep:
		return "A query has returned its rows."
	case run.EventChosen:
		return "The run goes on."
	case run.EventWaiting:
		return "The question has several interpretations."
	case run.EventCompleted, run.EventCancelled, run.EventFailed:
		return "The run has ended."
	default:
		return "Working."
	}
}

type shownRun struct {
	RunID          uuid.UUID      `json:"runId"`
	ConversationID uuid.UUID      `json:"conversationId"`
	Status         run.Status     `json:"status"`
	Outcome        string         `json:"outcome,omitempty"`
	Response       string         `json:"response,omitempty"`
	Interpretation string         `json:"interpretation,omitempty"`
	Basis          run.Basis      `json:"basis,omitempty"`
	Explained      []explained    `json:"explained,omitempty"`
	Verified       *verifiedAs    `json:"verified,omitempty"`
	Clarification  *clarification `json:"clarification,omitempty"`
	Checks         *checks        `json:"checks,omitempty"`
	Doubts         []string       `json:"doubts,omitempty"` // where a statement does not fit the question, and which rows it does not count
	Steps          []shownStep    `json:"steps,omitempty"`
	Model          string         `json:"model,omitempty"`
	Error          *shownError    `json:"error,omitempty"`
	Hint           string         `json:"hint,omitempty"`
}

// explained says what words of the question were taken for.
type explained struct {
	Words   string `json:"words"`
	As      string `json:"as"`
	Dataset string `json:"dataset,omitempty"`
	Column  string `json:"column,omitempty"`
	How     string `json:"how,omitempty"`
}

// verifiedAs is the verified question that answered.
type verifiedAs struct {
	ID         uuid.UUID         `json:"id"`
	Question   string            `json:"question"`
	Author     string            `json:"author"`
	VerifiedAt time.Time         `json:"verifiedAt"`
	Parameters map[string]string `json:"parameters"`
}

type clarification struct {
	Question string   `json:"question"`
	Options  []option `json:"options"`
}

type option struct {
	Number         int    `json:"number"`
	Interpretation string `json:"interpretation"`
}

type checks struct {
	Claims     int      `json:"claims"`
	Verified   int      `json:"verified"`
	Unverified []string `json:"unverified"`
}

type shownStep struct {
	Index       int    `json:"index"`
	Instruction string `json:"instruction"`
	Query       string `json:"query"`
	*table

	RowCount  int64 `json:"rowCount"`
	Truncated bool  `json:"truncated"`
}

type shownError struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

const (
	maxResponse = 10_000 // bytes
	maxQuery    = 3_000
	maxOption   = 400
	shownSteps  = 10
	stepRows    = 20
)

func showRun(r run.Run) shownRun {
	shown, left := shownRun{RunID: r.ID, ConversationID: r.Conversation, Status: r.Status}, newBudget()

	switch {
	case r.Status == run.Running:
		shown.Hint = "The run is still working. Call get_run with this runId."
	case r.Error != nil:
		shown.Error = &shownError{r.Error.Code, left.text(r.Error.Message, maxParagraph)}
	}

	if r.Result != nil {
		shown.add(*r.Result, left)
	}

	if r.Status == run.Waiting {
		shown.Hint = "Call choose with this runId and the number of an option. If the user has not said which one is meant, ask the user."
	}

	return shown
}

func (shown *shownRun) add(r run.Result, left *budget) {
	shown.Outcome, shown.Model = string(r.Outcome), left.text(r.Model, maxText)
	shown.Response, shown.Interpretation = left.text(r.Response, maxResponse), left.text(r.Interpretation, maxParagraph)

	shown.Basis = r.Basis

	for _, e := range r.Explained[:min(len(r.Explained), shownLists)] {
		if one := (explained{clip(e.Words, maxText), e.As, clip(e.Dataset, maxText), clip(e.Column, maxText), e.How}); left.take(one) {
			shown.Explained = append(shown.Explained, one)
		}
	}

	if v := r.Verified; v != nil {
		one := &verifiedAs{v.ID, clip(v.Question, maxText), v.Author, v.VerifiedAt, map[string]string{}}
		for _, p := range v.Parameters {
			one.Parameters[p.Name] = clip(p.Value, maxText)
		}

		if left.take(one) {
			shown.Verified = one
		}
	}

	if c := r.Clarification; c != nil {
		shown.Clarification = &clarification{Question: left.text(c.Question, maxParagraph), Options: []option{}}

		for _, o := range c.Options {
			if one := (option{o.Number, clip(o.Interpretation, maxOption)}); left.take(one) {
				shown.Clarification.Options = append(shown.Clarification.Options, one)
			}
		}
	}

	shown.addChecks(r, left)
	shown.addSteps(r.Steps, left)
}

// addChecks adds what the service could not confirm: claims of the text, and statements that may not fit the question.
func (shown *shownRun) addChecks(r run.Result, left *budget) {
	if c := r.Checks; c != nil {
		shown.Checks = &checks{Claims: c.Claims, Verified: c.Verified, Unverified: []string{}}

		for _, claim := range c.Unverified[:min(len(c.Unverified), shownLists)] {
			if claim = clip(claim, maxText); left.take(claim) {
				shown.Checks.Unverified = append(shown.Checks.Unverified, claim)
			}
		}
	}

	for _, one := range r.Doubts[:min(len(r.Doubts), shownLists)] {
		if text := clip(one.Text, maxParagraph); left.take(text) {
			shown.Doubts = append(shown.Doubts, text)
		}
	}
}

// addSteps adds the statements with their first rows. Each step gets an equal share of what is left.
func (shown *shownRun) addSteps(steps []run.Step, left *budget) {
	isCut := len(steps) > shownSteps

	for i, s := range steps[:min(len(steps), shownSteps)] {
		const names = 150 // bytes of the names of the fields

		share := &budget{left: left.left/(min(len(steps), shownSteps)-i) - names}
		before := share.left
		one := shownStep{
			Index: s.Index, Instruction: share.text(s.Instruction, maxText), Query: share.text(s.Query, min(maxQuery, before/2)), //nolint:mnd // half is for rows
			RowCount: s.RowCount, Truncated: s.Truncated,
		}
		one.table = newTable(s.Columns, share)

		by, err := one.read(rowsOf(s.Data), stepRows)
		if err != nil { // the rows are ours, so they can be read
			by = "bytes"
		}

		one.Truncated = one.Truncated || by != "" || int64(len(one.Rows)) < s.RowCount
		isCut = isCut || one.Truncated || one.hint() != ""
		left.left -= before - share.left + names
		shown.Steps = append(shown.Steps, one)
	}

	if isCut {
		shown.Hint = "Not all rows, columns or steps are shown. read_rows with this runId and the index of a step reads all its rows."
	}
}

func rowsOf(rows []json.RawMessage) func() (json.RawMessage, error) {
	next := 0

	return func() (json.RawMessage, error) {
		if next == len(rows) {
			return nil, io.EOF
		}

		next++

		return rows[next-1], nil
	}
}
