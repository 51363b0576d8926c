package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/run"
)

// logged returns an event of a log from its kind and its body.
func logged(text string) (e run.Event) {
	kind, body, _ := strings.Cut(text, " ")
	if body == "" {
		body = "{}"
	}

	e.Body, e.At = json.RawMessage(body), time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

	switch kind {
	case "runStarted":
		e.Kind = run.EventStarted
	case "begun":
		e.Kind = run.EventBegun
	case "plan":
		e.Kind = run.EventPlan
	case "stepStarted":
		e.Kind = run.EventStepStarted
	case "step":
		e.Kind = run.EventStep
	case "runWaiting":
		e.Kind = run.EventWaiting
	case "optionChosen":
		e.Kind = run.EventChosen
	case "runCompleted":
		e.Kind = run.EventCompleted
	case "runCancelled":
		e.Kind = run.EventCancelled
	case "runFailed":
		e.Kind = run.EventFailed
	default: // a kind that this package does not use
	}

	return e
}

func wordOf(event protocol.Event) string {
	switch event := event.(type) {
	case *protocol.Task:
		return "task"
	case *protocol.TaskArtifactUpdateEvent:
		return event.Artifact.Name
	case *protocol.TaskStatusUpdateEvent:
		if message := event.Status.Message; message != nil {
			return strings.ToLower(strings.TrimPrefix(string(event.Status.State), "TASK_STATE_")) + ":" + message.Parts[0].Text()
		}

		return strings.ToLower(strings.TrimPrefix(string(event.Status.State), "TASK_STATE_"))
	default:
		return fmt.Sprintf("%T", event)
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()

	const (
		done     = `runCompleted {"result": {"response": "Yes.", "outcome": "answer", "steps": [{"index": 0, "instruction": "a", "query": "A"}, {"index": 1, "instruction": "b", "query": "B"}]}}`
		empty    = `runCompleted {"result": {"response": "No.", "outcome": "refused", "steps": []}}`
		withheld = `runCompleted {"result": {"response": "", "outcome": "withheld", "steps": []}}`
		plan     = `plan {"steps": ["a", "b"], "reasoning": "why"}`
		step0    = `step {"index": 0, "instruction": "a", "query": "A"}`
		step1    = `step {"index": 1, "instruction": "b", "query": "B"}`
		waits    = `runWaiting {"result": {"response": "Which?", "outcome": "clarification", "steps": [], "clarification": {"question": "Which?", "options": [{"number": 1, "interpretation": "x"}]}}}`
		chosen   = `optionChosen {"number": 1, "interpretation": "x"}`
		hidden   = "The result is withheld because it was computed from data that you may no longer see."
	)

	for name, one := range map[string]struct {
		agent int // index in profiles
		log   []string
		want  string
	}{
		"nl2ql":                               {0, []string{"runStarted", "stepStarted", "queryExecuting", "queryExecuting", step0, done}, "working, generated-query, result-data, completed:Yes."},
		"nl2ql, a worker has begun":           {0, []string{"runStarted", "begun", "stepStarted", step0, done}, "working, generated-query, result-data, completed:Yes."},
		"nl2ql thinks":                        {0, []string{"runStarted", "begun"}, "working"},
		"assistant, a worker has begun":       {1, []string{"runStarted", "begun", "planningStarted"}, "task, working"},
		"nl2ql takes several steps":           {0, []string{"runStarted", "stepStarted", step0, "stepStarted", step1, done}, "working, generated-query, result-data, completed:Yes."},
		"nl2ql makes no query":                {0, []string{"runStarted", empty}, "working, generated-query, result-data, completed:No."},
		"nl2ql, the log is gone":              {0, []string{done}, "working, generated-query, result-data, completed:Yes."},
		"nl2ql fails":                         {0, []string{"runStarted", "stepStarted", `runFailed {"code": "X", "message": "Broken."}`}, "working, failed:Broken."},
		"nl2ql fails without words":           {0, []string{"runStarted", "runFailed"}, "failed:The question could not be answered."},
		"nl2ql is cancelled while it waits":   {0, []string{"runStarted", "runCancelled"}, "canceled"},
		"nl2ql, withheld":                     {0, []string{"runStarted", "planningStarted", withheld}, "working, generated-query, result-data, completed:" + hidden},
		"nl2ql asks":                          {0, []string{"runStarted", "begun", waits}, "working, generated-query, result-data, input_required:Which?\n1. x"},
		"nl2ql asks, and an option is chosen": {0, []string{"runStarted", "begun", waits, chosen, "stepStarted", step0, done}, "working, generated-query, result-data, input_required:Which?\n1. x, working, generated-query, result-data, completed:Yes."},
		"nl2ql, from the choice on":           {0, []string{chosen, "stepStarted", step0, done}, "working, generated-query, result-data, completed:Yes."},
		"assistant asks":                      {1, []string{"runStarted", "planningStarted", plan, "answerStarted", "answer", waits}, "task, working, working:why, working:a, working:b, input_required:Which?\n1. x"},
		"assistant asks, and one is chosen":   {1, []string{"runStarted", plan, waits, chosen, plan, step0, step1, done}, "task, working, working:why, working:a, working:b, input_required:Which?\n1. x, working, working:why, working:a, working:b, step-0, step-1, answer, completed:Yes."},
		"assistant":                           {1, []string{"runStarted", "planningStarted", plan, "stepStarted", step0, "stepStarted", step1, "answerStarted", "answer", done}, "task, working, working:why, working:a, working:b, step-0, step-1, answer, completed:Yes."},
		"assistant, the second is done first": {1, []string{"runStarted", plan, step1, step0, done}, "task, working, working:why, working:a, working:b, step-0, step-1, answer, completed:Yes."},
		"assistant, the first is never done":  {1, []string{"runStarted", plan, step1, `runCompleted {"result": {"response": "Yes.", "outcome": "answer", "steps": [{"index": 1, "instruction": "b"}]}}`}, "task, working, working:why, working:a, working:b, step-1, answer, completed:Yes."},
		"assistant without a plan":            {1, []string{"runStarted", `stepStarted {"index": 0, "instruction": "a"}`, step0, done}, "task, working, working:Steps to the answer: 1., working:a, step-0, step-1, answer, completed:Yes."},
		"assistant says nothing before":       {1, []string{"runStarted", empty}, "task, working, working:Steps to the answer: 0., answer, completed:No."},
		"assistant, the log is gone":          {1, []string{done}, "working, working:Steps to the answer: 2., working:a, working:b, step-0, step-1, answer, completed:Yes."},
		"assistant, withheld amid it":         {1, []string{"runStarted", plan, step1, withheld}, "task, working, working:why, working:a, working:b, answer, completed:" + hidden},
		"assistant fails":                     {1, []string{"runStarted", plan, step0, `runFailed {"message": "Broken."}`}, "task, working, working:why, working:a, working:b, step-0, failed:Broken."},
		"assistant is cancelled":              {1, []string{"runStarted", plan, "runCancelled"}, "task, working, working:why, working:a, working:b, canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := run.Run{ID: uuid.New(), Conversation: uuid.New(), Status: run.Running}
			order := profiles()[one.agent].order(&telling{run: r})

			var seen []string

			for _, text := range one.log {
				updates, err := order.next(logged(text))
				require.NoError(t, err)

				for _, update := range updates {
					require.Equal(t, protocol.TaskID(r.ID.String()), update.TaskInfo().TaskID)
					require.Equal(t, r.Conversation.String(), update.TaskInfo().ContextID)

					seen = append(seen, wordOf(update))
				}
			}

			require.Equal(t, one.want, strings.Join(seen, ", "))
		})
	}
}

// FuzzRequest checks that every input is accepted or refused without a panic, and that the id in the response is valid JSON.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "metadata": {"a_b": 1}}}}`,
		`{"jsonrpc": "2.0", "id": "x", "method": "ListTasks", "params": {"page_size": 5, "status": "TASK_STATE_WORKING"}}`,
		`{"jsonrpc": "2.0", "id": null}`, `[]`, `{"id": -1e5}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":[{"__a":"\u0000"}]}`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}

		asked, err := parse(text)
		require.True(t, json.Valid(asked.ID), "%s", asked.ID)

		if err != nil {
			require.NotZero(t, failureOf(err).Code)

			return
		}

		for _, into := range []any{&protocol.SendMessageRequest{}, &protocol.ListTasksRequest{}, &protocol.GetTaskRequest{}} {
			if err := decode(asked.Params, into); err != nil {
				require.Equal(t, -32602, failureOf(err).Code)
			}
		}
	})
}
