package a2a

import (
	"context"
	"maps"
	"strconv"
	"strings"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"

	"quern.dev/quern/internal/run"
)

// reply handles a message to an existing task. If the task waits for a choice, the message names an option, or it is a new
// question in the context of the task, which ends the wait. Every other task takes no message.
func (h handler) reply(ctx context.Context, message *protocol.Message) (run.Run, error) {
	found, err := h.find(ctx, message.TaskID)

	switch {
	case err != nil:
		return run.Run{}, err
	case message.ContextID != "" && message.ContextID != found.Conversation.String():
		return run.Run{}, invalidField("message.contextId", "is not the context of the task")
	}

	words, err := questionOf(message)

	switch option := optionOf(found, words); {
	case err == nil && option > 0:
		return h.Runs.Choose(ctx, h.who, found.ID, option)
	case found.Status != run.Waiting:
		return h.repeated(ctx, inContextOf(found, message))
	case err != nil:
		return run.Run{}, err
	default:
		return h.ask(ctx, inContextOf(found, message))
	}
}

// repeated returns the run of a message that ended the wait of its task before. Every other message to the task is refused.
func (h handler) repeated(ctx context.Context, message *protocol.Message) (run.Run, error) {
	once, err := h.once(message)
	if err != nil {
		return run.Run{}, err
	}

	made, err := h.Runs.Asked(ctx, h.who, once)

	return made, orElse(err, protocol.NewError(protocol.ErrUnsupportedOperation,
		"The task does not accept further messages. Send the message with the contextId of the task and without its taskId."))
}

// inContextOf returns the message as a new question in the context of a task.
func inContextOf(found run.Run, message *protocol.Message) *protocol.Message {
	next := *message
	next.TaskID, next.ContextID = "", found.Conversation.String()

	if _, given := next.Metadata["namespace"]; !given {
		next.Metadata = map[string]any{"namespace": found.Question.Username + "/" + found.Question.Namespace}
		maps.Copy(next.Metadata, message.Metadata)
	}

	return &next
}

// optionOf returns the number of the option that words name, by its number or by its text; 0 if they name none. For a
// repeated message it is the option that was chosen.
func optionOf(r run.Run, words string) int {
	words = strings.TrimSpace(words)

	if last := r.Question.LastChosen(); r.Status != run.Waiting && last != nil && (words == strconv.Itoa(last.Number) || words == last.Interpretation) {
		return last.Number
	}

	if r.Status != run.Waiting || r.Result == nil || r.Result.Clarification == nil {
		return 0
	}

	for _, option := range r.Result.Clarification.Options {
		if words == strconv.Itoa(option.Number) || words == option.Interpretation {
			return option.Number
		}
	}

	return 0
}

// continued yields the events of a task from the last choice on.
func (h handler) continued(ctx context.Context, r run.Run, yield func(protocol.Event, error) bool) {
	if !h.agent.bare {
		h.current(ctx, r, h.agent.order(&telling{run: r}), yield)

		return
	}

	order := h.agent.order(&telling{run: r, choices: len(r.Question.Chosen) - 1})
	h.narrate(ctx, r, r.Question.LastChosen().Event-1, order, yield)
}
