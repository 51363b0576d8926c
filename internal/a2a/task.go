package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/run"
)

// statusOf returns the status of a run as a task. failed is used for a run that failed, result for a run that is completed
// or waits.
func statusOf(r run.Run, result *run.Result, failed run.Failure) protocol.TaskStatus {
	t := &telling{run: r, choices: len(r.Question.Chosen)}
	status := protocol.TaskStatus{State: protocol.TaskStateWorking, Timestamp: moment(r.ChangedAt())}

	switch r.Status {
	case run.Running:
		if r.BeganAt.IsZero() {
			status.State = protocol.TaskStateSubmitted
		}
	case run.Cancelled:
		status.State = protocol.TaskStateCanceled
	case run.Failed, run.Expired:
		status.State = protocol.TaskStateFailed
		status.Message = t.message("end", text(failed.Message, "The question could not be answered."))
		status.Message.Metadata = map[string]any{"error": failedAs(failed)}
	case run.Waiting:
		status.State = protocol.TaskStateInputRequired
		status.Message = t.message("wait", text(askedOf(*result), said(*result)))
		status.Message.Metadata = outcomeOf(r, *result)
	case run.Completed:
		status.State = protocol.TaskStateCompleted
		status.Message = t.message("end", text(result.Response, said(*result)))
		status.Message.Metadata = outcomeOf(r, *result)
	}

	return status
}

// askedOf returns the question and its options as text, for clients that read only text.
func askedOf(result run.Result) string {
	lines := []string{result.Response}

	if result.Clarification != nil {
		for _, option := range result.Clarification.Options {
			lines = append(lines, fmt.Sprintf("%d. %s", option.Number, option.Interpretation))
		}
	}

	return strings.Join(lines, "\n")
}

// said returns a sentence for a result without a response in words.
func said(result run.Result) string {
	switch result.Outcome {
	case "withheld":
		return "The result is withheld because it was computed from data that you may no longer see."
	case "no_data":
		return "Nothing was found."
	default:
		return "Done."
	}
}

// outcomeOf returns what the REST API says about a result apart from its text and its steps: the metadata of the final
// message, and the data of the answer.
func outcomeOf(r run.Run, result run.Result) map[string]any {
	truncated := slices.ContainsFunc(result.Steps, func(step run.Step) bool { return isCut(r, step) })

	known := map[string]any{"outcome": result.Outcome, "truncated": truncated, "asOf": append([]any{}, anys(result.AsOf)...)}

	if result.Checks != nil {
		known["checks"] = result.Checks
	}

	if result.Clarification != nil {
		known["clarification"] = result.Clarification
	}

	if result.Interpretation != "" {
		known["interpretation"] = result.Interpretation
	}

	explain(known, result.Basis, result.Explained, result.Verified)
	doubt(known, result.Doubts)

	if result.Model != "" {
		known["model"] = result.Model
	}

	if result.Usage != nil {
		known["usage"] = result.Usage
	}

	return known
}

// stepOf returns the metadata of the artifact that has the statement of a step.
func stepOf(step run.Step) map[string]any {
	known := map[string]any{"index": step.Index, "instruction": step.Instruction, "reasoning": step.Reasoning}
	explain(known, step.Basis, step.Explained, step.Verified)
	doubt(known, step.Doubts)

	return known
}

// explain adds to metadata what a statement was made from, and what words were taken for.
func explain(known map[string]any, basis run.Basis, explained []run.Explained, verified *run.VerifiedAs) {
	if basis != "" {
		known["basis"] = basis
	}

	if len(explained) > 0 {
		known["explained"] = explained
	}

	if verified != nil {
		known["verified"] = verified
	}
}

// doubt adds to metadata where a statement does not fit the question.
func doubt(known map[string]any, doubts []run.Doubt) {
	if len(doubts) > 0 {
		known["doubts"] = doubts
	}
}

// submitted returns the task as it was when the question was accepted.
func submitted(r run.Run) *protocol.Task {
	info := (&telling{run: r}).info()

	return &protocol.Task{
		ID: info.TaskID, ContextID: info.ContextID, History: []*protocol.Message{question(r)},
		Status: protocol.TaskStatus{State: protocol.TaskStateSubmitted, Timestamp: moment(r.CreatedAt)},
	}
}

// question returns the message that started the run.
func question(r run.Run) *protocol.Message {
	asked := protocol.NewMessageForTask(protocol.MessageRoleUser, (&telling{run: r}).info(), protocol.NewTextPart(r.Question.Text))
	asked.Metadata = map[string]any{"namespace": r.Question.Username + "/" + r.Question.Namespace}

	if asked.ID = r.Question.MessageID; asked.ID == "" {
		asked.ID = uuid.NewSHA1(r.ID, []byte("question")).String()
	}

	return asked
}

// task returns the current state of a run as a task. After the end of the run, messages about its progress are not
// included.
func (h handler) task(ctx context.Context, r run.Run) (*protocol.Task, error) {
	task, order := submitted(r), h.agent.order(&telling{run: r})

	if r.Status == run.Completed {
		updates, err := order.complete(r.FinishedAt, *r.Result)
		apply(task, updates...)

		return task, err
	}

	events, err := h.soFar(ctx, r)
	if err != nil {
		return nil, err
	}

	return task, tell(task, order, events...)
}

// tell applies events of the log to a task.
func tell(task *protocol.Task, order order, events ...run.Event) error {
	for _, e := range events {
		updates, err := order.next(e)
		if err != nil {
			return err
		}

		apply(task, updates...)

		if e.Kind == run.EventChosen {
			reply, err := choiceOf(task, e)
			if err != nil {
				return err
			}

			task.History = append(task.History, reply)
		}
	}

	return nil
}

// choiceOf returns the message with which the caller chose an option.
func choiceOf(task *protocol.Task, e run.Event) (*protocol.Message, error) {
	var chosen run.Chosen
	if err := json.Unmarshal(e.Body, &chosen); err != nil {
		return nil, err
	}

	info := protocol.TaskInfo{TaskID: task.ID, ContextID: task.ContextID}
	reply := protocol.NewMessageForTask(protocol.MessageRoleUser, info, protocol.NewTextPart(strconv.Itoa(chosen.Number)))
	reply.ID = uuid.NewSHA1(uuid.MustParse(string(task.ID)), fmt.Appendf(nil, "choice %d", e.Seq)).String()

	return reply, nil
}

// apply applies updates to a task. An artifact replaces an earlier one with the same id. Earlier status messages are moved to the history, which is reduced to the question when
// the task has ended.
func apply(task *protocol.Task, updates ...protocol.Event) {
	for _, update := range updates {
		switch update := update.(type) {
		case *protocol.TaskStatusUpdateEvent:
			if task.Status.Message != nil {
				task.History = append(task.History, task.Status.Message)
			}

			task.Status = update.Status
		case *protocol.TaskArtifactUpdateEvent:
			task.Artifacts = slices.DeleteFunc(task.Artifacts, func(a *protocol.Artifact) bool { return a.ID == update.Artifact.ID })
			task.Artifacts = append(task.Artifacts, update.Artifact)
		}
	}

	if task.Status.State.Terminal() {
		task.History = task.History[:1]
	}
}

// trim keeps the newest length messages of the history; all if length is nil.
func trim(task *protocol.Task, length *int) *protocol.Task {
	if length != nil && len(task.History) > *length {
		task.History = task.History[len(task.History)-*length:]
	}

	return task
}
