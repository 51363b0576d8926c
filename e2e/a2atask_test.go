package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// a2aTaskRules are about tasks, streams and lists of tasks.
func a2aTaskRules() map[string]func(r *ruled) {
	return map[string]func(r *ruled){
		// Tasks.
		"what has ended takes no message, no subscriber and no cancel": func(r *ruled) {
			task := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), "{}", ""))).Task
			require.Equal(r.t, -32004, r.code("SendMessage", r.about(`"taskId": "`+task.ID+`"`)))
			require.Equal(r.t, -32004, r.code("SendStreamingMessage", r.about(`"taskId": "`+task.ID+`", "contextId": "`+task.ContextID+`"`)))
			require.Equal(r.t, -32004, r.code("SubscribeToTask", `{"id": "`+task.ID+`"}`))
			require.Equal(r.t, -32002, r.code("CancelTask", `{"id": "`+task.ID+`"}`))
		},
		"to cancel twice is to cancel": func(r *ruled) {
			task := r.begin(waiting)
			cancelled := r.task("CancelTask", task.ID)
			require.Equal(r.t, cancelled, r.task("CancelTask", task.ID))
		},
		"a context of the caller goes on, any other is refused": func(r *ruled) {
			task := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), "{}", ""))).Task
			next := rpcResult(r.t, r.call("SendMessage", r.about(`"contextId": "`+task.ContextID+`"`))).Task
			require.Equal(r.t, task.ContextID, next.ContextID)
			require.NotEqual(r.t, task.ID, next.ID)

			for _, context := range []string{"mine", uuid.NewString(), task.ID, strings.ToUpper(task.ContextID)} {
				answer := r.call("SendMessage", r.about(`"contextId": "`+context+`"`))
				code, _ := rpcError(r.t, answer)
				require.Equal(r.t, -32602, code)
				require.Contains(r.t, answer.body, `"field":"message.contextId"`)
			}
		},
		"a context about another namespace is refused": func(r *ruled) {
			task := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), "{}", ""))).Task
			elsewhere := makeDataset(r.t, r.s, r.bearer)
			answer := r.call("SendMessage", strings.Replace(r.about(`"contextId": "`+task.ContextID+`"`), r.namespace, elsewhere, 1))
			require.Contains(r.t, answer.body, `"field":"message.contextId"`)
		},
		"a task that is named must be there, and in the context": func(r *ruled) {
			task := r.begin(waiting)
			require.Equal(r.t, -32001, r.code("SendMessage", r.about(`"taskId": "`+uuid.NewString()+`"`)))
			require.Equal(r.t, -32602, r.code("SendMessage", r.about(`"taskId": "`+task.ID+`", "contextId": "`+uuid.NewString()+`"`)))
			r.task("CancelTask", task.ID)
		},
		"what the agent says carries task and context": func(r *ruled) {
			for _, data := range r.events(r.ask(uuid.NewString(), oneStep, "")) {
				event := rpcResult(r.t, &answer{body: data})
				if event.StatusUpdate == nil || event.StatusUpdate.Status.Message == nil {
					continue
				}

				said := event.StatusUpdate.Status.Message
				require.Equal(r.t, event.StatusUpdate.TaskID, said.TaskID)
				require.Equal(r.t, event.StatusUpdate.ContextID, said.ContextID)
				require.Equal(r.t, "ROLE_AGENT", said.Role)
				require.NotEmpty(r.t, said.MessageID)
			}
		},
		"times are UTC, in milliseconds": func(r *ruled) {
			body := strings.Join(r.events(r.ask(uuid.NewString(), oneStep, "")), "\n")
			for _, found := range regexp.MustCompile(`"timestamp":"([^"]*)"`).FindAllStringSubmatch(body, -1) {
				require.Regexp(r.t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`, found[1])
			}
		},
		"a question asked over REST is a task of its agent alone": func(r *ruled) {
			run := r.accept(r.agent, "{}")
			require.Equal(r.t, run.ConversationID, r.task("GetTask", run.RunID).ContextID)

			for _, agent := range []string{"nl2ql", "assistant"} {
				if agent != r.agent {
					require.Equal(r.t, -32001, (&ruled{peer: newPeer(r.filled, agent)}).code("GetTask", `{"id": "`+run.RunID+`"}`))
				}
			}
		},

		// Streams.
		"an error before the first event is no stream": func(r *ruled) {
			for method, params := range map[string]string{"SendStreamingMessage": `{}`, "SubscribeToTask": `{"id": "x"}`} {
				answer := r.call(method, params)
				require.Equal(r.t, "application/json", answer.header.Get("Content-Type"))
				require.Contains(r.t, answer.body, `"error"`)
			}
		},
		"a subscriber gets the task first, though it waits": func(r *ruled) {
			task := r.begin(waiting)
			subscribed := openStream(r.t, r.request("SubscribeToTask", `{"id": "`+task.ID+`"}`))
			first, _ := subscribed.next()
			require.NotNil(r.t, first.Task)
			require.Equal(r.t, task.ID, first.Task.ID)
			r.task("CancelTask", task.ID)

			last, more := first, true
			for event := first; more; event, more = subscribed.next() {
				last = event
			}

			require.Equal(r.t, "canceled", last.String())
		},
		"closing one stream concerns no other, and not the task": func(r *ruled) {
			message := r.ask(uuid.NewString(), `{"pause": 300, "response": "Done.", "steps": [{"instruction": "Count.", "queries": ["SELECT 1 AS n"]}]}`, "")
			task := rpcResult(r.t, r.call("SendMessage", strings.TrimSuffix(message, "}")+", "+atOnceConfig+"}")).Task
			one := openStream(r.t, r.request("SubscribeToTask", `{"id": "`+task.ID+`"}`))
			two := openStream(r.t, r.request("SubscribeToTask", `{"id": "`+task.ID+`"}`))
			_ = one.response.Body.Close()

			require.Contains(r.t, two.rest().body, "TASK_STATE_COMPLETED")
			require.Equal(r.t, "TASK_STATE_COMPLETED", r.task("GetTask", task.ID).Status.State)
		},
		"deviation: the stream of nl2ql does not open with the task, that of the assistant does": func(r *ruled) {
			events := r.follow(r.request("SendStreamingMessage", r.ask(uuid.NewString(), oneStep, "")))
			require.Equal(r.t, r.agent == "assistant", events[0].Task != nil)
		},
		"results are artifacts, each with parts": func(r *ruled) {
			task := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), oneStep, ""))).Task
			require.NotEmpty(r.t, task.Artifacts)

			for _, artifact := range task.Artifacts {
				require.NotEmpty(r.t, artifact.ArtifactID)
				require.NotEmpty(r.t, artifact.Parts)
			}
		},
		"the task has the artifacts of its stream": func(r *ruled) {
			var artifacts []a2aArtifact

			id := ""
			for _, event := range r.follow(r.request("SendStreamingMessage", r.ask(uuid.NewString(), oneStep, ""))) {
				if event.ArtifactUpdate != nil {
					id, artifacts = event.ArtifactUpdate.TaskID, append(artifacts, event.ArtifactUpdate.Artifact)
				}
			}

			require.Equal(r.t, artifacts, r.task("GetTask", id).Artifacts)
		},
		"no rows are an empty list, and large numbers keep their digits": func(r *ruled) {
			script := `{"response": "x", "steps": [{"instruction": "x", "queries": ["SELECT 9007199254740991 AS n FROM orders WHERE false"]}]}`
			require.Contains(r.t, r.call("SendMessage", r.ask(uuid.NewString(), script, "")).body, `"rows":[],`)

			script = strings.Replace(script, "WHERE false", "LIMIT 1", 1)
			require.Contains(r.t, r.call("SendMessage", r.ask(uuid.NewString(), script, "")).body, `{"n":9007199254740991,"__metadata":`)
		},

		// Lists.
		"ListTasks is checked: -32602": func(r *ruled) {
			for _, params := range []string{`{"status": "DONE"}`, `{"status": "completed"}`, `{"pageSize": 101}`, `{"pageSize": -1}`, `{"pageSize": "x"}`, `{"pageToken": "x"}`} {
				require.Equal(r.t, -32602, r.code("ListTasks", params), params)
			}
		},
		"ListTasks gives every task once, the last change first": func(r *ruled) {
			first := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), oneStep, ""))).Task
			for range 4 {
				r.call("SendMessage", r.about(`"contextId": "`+first.ContextID+`"`))
			}

			var (
				times []string
				token string
			)

			for page := range 3 {
				var list struct {
					Tasks               []a2aTask
					TotalSize, PageSize int
					NextPageToken       string
				}

				require.NoError(r.t, json.Unmarshal(r.result("ListTasks", `{"contextId": "`+first.ContextID+`", "pageSize": 2, "pageToken": "`+token+`"}`), &list))
				require.Equal(r.t, 5, list.TotalSize)
				require.Equal(r.t, 2, list.PageSize)
				require.Equal(r.t, page == 2, list.NextPageToken == "")

				token = list.NextPageToken

				for _, task := range list.Tasks {
					require.Empty(r.t, task.Artifacts)

					at, err := time.Parse(time.RFC3339, task.Status.Timestamp)
					require.NoError(r.t, err)

					times = append(times, at.Format("2006-01-02T15:04:05.000")+task.ID)
				}
			}

			require.Len(r.t, times, 5)
			require.IsDecreasing(r.t, times)

			whole := string(r.result("ListTasks", `{"contextId": "`+first.ContextID+`", "includeArtifacts": true}`))
			require.Contains(r.t, whole, `"rows":[{`)
			require.Contains(r.t, whole, `"pageSize":20,`)
			require.Contains(r.t, string(r.result("ListTasks", `{"contextId": "`+first.ContextID+`", "status": "TASK_STATE_WORKING"}`)), `"totalSize":0`)
			require.Contains(r.t, string(r.result("ListTasks", `{"contextId": "`+first.ContextID+`", "statusTimestampAfter": "2100-01-01T00:00:00Z"}`)), `"totalSize":0`)
			require.Contains(r.t, string(r.result("ListTasks", `{"contextId": "`+first.ContextID+`", "statusTimestampAfter": "2000-01-01T00:00:00Z"}`)), `"totalSize":5`)
		},
	}
}
