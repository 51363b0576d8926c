package a2a

import (
	"encoding/json"
	"fmt"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/run"
)

// order converts the events of a run to events of the protocol. The result depends only on the log. The beginning of a log
// may have been deleted, so the last event alone must produce everything that was not delivered before.
type order interface {
	next(event run.Event) ([]protocol.Event, error)
	complete(at time.Time, result run.Result) ([]protocol.Event, error)
}

// telling is the common part of all orders.
type telling struct {
	run     run.Run
	started bool // the working status was delivered
	choices int  // number of options that were chosen before
}

// choose starts the events after a choice: the run works again, and what it delivers replaces what it delivered before.
func (t *telling) choose(at time.Time) []protocol.Event {
	t.started = false
	t.choices++

	return t.begin(at)
}

// waiting returns the update for a run that waits for a choice.
func (t *telling) waiting(event run.Event) (protocol.Event, error) {
	result, err := resultOf(event)
	waits := t.run
	waits.Status, waits.BeganAt = run.Waiting, event.At
	waits.Question.Chosen = make([]run.Choice, t.choices)

	return t.update(statusOf(waits, &result, run.Failure{})), err
}

func (t *telling) info() protocol.TaskInfo {
	return protocol.TaskInfo{TaskID: protocol.TaskID(t.run.ID.String()), ContextID: t.run.Conversation.String()}
}

// begin returns the update to the working status, once.
func (t *telling) begin(at time.Time) []protocol.Event {
	if t.started {
		return nil
	}

	t.started = true

	return []protocol.Event{t.update(protocol.TaskStatus{State: protocol.TaskStateWorking, Timestamp: moment(at)})}
}

func (t *telling) update(status protocol.TaskStatus) protocol.Event {
	info := t.info()

	return &protocol.TaskStatusUpdateEvent{TaskID: info.TaskID, ContextID: info.ContextID, Status: status}
}

// working returns an update in the working state with a message. name identifies the message within the run.
func (t *telling) working(at time.Time, name string, parts ...*protocol.Part) protocol.Event {
	return t.update(protocol.TaskStatus{State: protocol.TaskStateWorking, Timestamp: moment(at), Message: t.message(name, parts...)})
}

// message returns a message of the agent. Its id is derived from the run and the name, so it is the same on every replica.
func (t *telling) message(name string, parts ...*protocol.Part) *protocol.Message {
	if t.choices > 0 {
		name += fmt.Sprintf(" after choice %d", t.choices)
	}

	said := protocol.NewMessageForTask(protocol.MessageRoleAgent, t.info(), parts...)
	said.ID = uuid.NewSHA1(t.run.ID, []byte(name)).String()

	return said
}

func (t *telling) artifact(name string, metadata map[string]any, parts ...*protocol.Part) protocol.Event {
	info := t.info()

	return &protocol.TaskArtifactUpdateEvent{
		TaskID: info.TaskID, ContextID: info.ContextID, LastChunk: true,
		Artifact: &protocol.Artifact{ID: protocol.ArtifactID(name), Name: name, Metadata: metadata, Parts: parts},
	}
}

// end returns the updates for the end of a run. It calls complete for a run that has a result.
func (t *telling) end(event run.Event, complete func(at time.Time, result run.Result) ([]protocol.Event, error)) ([]protocol.Event, error) {
	if event.Kind != run.EventCompleted {
		last, err := t.ended(event)

		return []protocol.Event{last}, err
	}

	result, err := resultOf(event)
	if err != nil {
		return nil, err
	}

	return complete(event.At, result)
}

// ended returns the last update of a run without a result.
func (t *telling) ended(event run.Event) (protocol.Event, error) {
	ended := t.run
	ended.Status, ended.FinishedAt = run.Cancelled, event.At

	var failed run.Failure

	if event.Kind == run.EventFailed {
		ended.Status = run.Failed

		if err := json.Unmarshal(event.Body, &failed); err != nil {
			return nil, err
		}
	}

	return t.update(statusOf(ended, nil, failed)), nil
}

// completed returns the last update of a run with a result.
func (t *telling) completed(at time.Time, result run.Result) protocol.Event {
	ended := t.run
	ended.Status, ended.FinishedAt = run.Completed, at

	return t.update(statusOf(ended, &result, run.Failure{}))
}

func resultOf(event run.Event) (run.Result, error) {
	var body run.Completion
	if err := json.Unmarshal(event.Body, &body); err != nil || body.Result == nil {
		return run.Result{}, err
	}

	return *body.Result, nil
}

// text returns a text part with words, or with otherwise if words is empty.
func text(words, otherwise string) *protocol.Part {
	if words == "" {
		words = otherwise
	}

	return protocol.NewTextPart(words)
}

func data(value any) (*protocol.Part, error) {
	encoded, err := json.Marshal(value)
	part := protocol.NewDataPart(json.RawMessage(encoded))
	part.MediaType = jsonType

	return part, err
}

// rows is the data part with the rows of a step.
type rows struct {
	Rows      []json.RawMessage `json:"rows"`
	Columns   any               `json:"columns"`
	RowCount  int64             `json:"rowCount"`
	Truncated bool              `json:"truncated"`
}

func (t *telling) rowsOf(step run.Step) rows {
	found := rows{Rows: step.Data, Columns: step.Columns, RowCount: step.RowCount, Truncated: isCut(t.run, step)}

	if limit := t.run.Question.MaxRows; limit > 0 && limit < len(found.Rows) {
		found.Rows = found.Rows[:limit]
	}

	if found.Rows == nil {
		found.Rows = []json.RawMessage{}
	}

	if step.Columns == nil {
		found.Columns = []struct{}{}
	}

	return found
}

// isCut reports whether an artifact has fewer rows than its step.
func isCut(r run.Run, step run.Step) bool {
	limit := r.Question.MaxRows

	return step.Truncated || limit > 0 && limit < len(step.Data)
}

func moment(at time.Time) *time.Time { return new(at.UTC().Truncate(time.Millisecond)) }
