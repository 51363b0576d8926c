package a2a

import (
	"context"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/run"
)

// statusOf is the status of a run. Of one that failed it takes the words, of one that is completed the result.
func statusOf(r run.Run, result *run.Result, words string) protocol.TaskStatus {
	t := &telling{run: r}
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
		status.Message = t.message("end", text(words, "The question could not be answered."))
	case run.Completed:
		status.State = protocol.TaskStateCompleted
		status.Message = t.message("end", text(result.Response, said(*result)))
		status.Message.Metadata = outcomeOf(*result)
	}

	return status
}

// said is a sentence for a result that has no words.
func said(result run.Result) string {
	switch result.Outcome {
	case "withheld":
		return "The result is withheld: it was made of data that you may not see any more."
	case "no_data":
		return "Nothing was found."
	default:
		return "Done."
	}
}

// outcomeOf is what a reader should know beside the words.
func outcomeOf(result run.Result) map[string]any {
	truncated := false
	for _, step := range result.Steps {
		truncated = truncated || step.Truncated
	}

	known := map[string]any{"outcome": result.Outcome, "truncated": truncated, "asOf": append([]any{}, anys(result.AsOf)...)}

	if result.Checks != nil {
		known["checks"] = result.Checks
	}

	if result.Clarification != nil {
		known["clarification"] = result.Clarification
	}

	if result.Reading != "" {
		known["reading"] = result.Reading
	}

	if result.ByRules() {
		known["model"] = result.Model
	}

	return known
}

// submitted is the task as it was accepted.
func submitted(r run.Run) *protocol.Task {
	info := (&telling{run: r}).info()

	return &protocol.Task{
		ID: info.TaskID, ContextID: info.ContextID, History: []*protocol.Message{question(r)},
		Status: protocol.TaskStatus{State: protocol.TaskStateSubmitted, Timestamp: moment(r.CreatedAt)},
	}
}

// question is the message that made the run.
func question(r run.Run) *protocol.Message {
	asked := protocol.NewMessageForTask(protocol.MessageRoleUser, (&telling{run: r}).info(), protocol.NewTextPart(r.Question.Text))
	asked.Metadata = map[string]any{"namespace": r.Question.Username + "/" + r.Question.Namespace}

	if asked.ID = r.Question.MessageID; asked.ID == "" {
		asked.ID = uuid.NewSHA1(r.ID, []byte("question")).String()
	}

	return asked
}

// task is a run as it is now. When it has ended, what it said on the way is over.
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

// tell lets the task become what events make of it.
func tell(task *protocol.Task, order order, events ...run.Event) error {
	for _, e := range events {
		updates, err := order.next(e)
		if err != nil {
			return err
		}

		apply(task, updates...)
	}

	return nil
}

// apply makes updates part of the task. What was said before is history, until the task has ended.
func apply(task *protocol.Task, updates ...protocol.Event) {
	for _, update := range updates {
		switch update := update.(type) {
		case *protocol.TaskStatusUpdateEvent:
			if task.Status.Message != nil {
				task.History = append(task.History, task.Status.Message)
			}

			task.Status = update.Status
		case *protocol.TaskArtifactUpdateEvent:
			task.Artifacts = append(task.Artifacts, update.Artifact)
		}
	}

	if task.Status.State.Terminal() {
		task.History = task.History[:1]
	}
}

// trim leaves the newest messages. Who says nothing gets all.
func trim(task *protocol.Task, length *int) *protocol.Task {
	if length != nil && len(task.History) > *length {
		task.History = task.History[len(task.History)-*length:]
	}

	return task
}
