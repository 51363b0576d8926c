package e2e

import (
	"strings"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// a2aMessageRules are about messages and waiting for the answer.
func a2aMessageRules() map[string]func(r *ruled) {
	return map[string]func(r *ruled){
		// Messages.
		"a message is checked: -32602": func(r *ruled) {
			for _, message := range []string{
				`null`, `{}`, `{"role": "ROLE_USER", "parts": [{"text": "x"}]}`, `{"messageId": "m", "parts": [{"text": "x"}]}`,
				`{"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}`, `{"messageId": "m", "role": "user", "parts": [{"text": "x"}]}`,
				`{"messageId": "m", "role": "ROLE_USER", "parts": []}`, `{"messageId": "m", "role": "ROLE_USER"}`, `{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": " "}]}`,
				`{"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {}}]}`, `{"messageId": "` + strings.Repeat("m", 129) + `", "role": "ROLE_USER", "parts": [{"text": "x"}]}`,
				`{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "` + strings.Repeat("x", 10_001) + `"}], "metadata": {"namespace": "x"}}`,
			} {
				require.Equal(r.t, -32602, r.code("SendMessage", `{"message": `+message+`}`), message)
				require.Equal(r.t, -32602, r.code("SendStreamingMessage", `{"message": `+message+`}`), message)
			}
		},
		"metadata is checked: -32602": func(r *ruled) {
			for _, more := range []string{
				`"namespace": 1`, `"namespace": ""`, `"namespace": "a/b/c"`, `"namespace": "../x"`, `"namespace": "%s", "model": 1`, `"namespace": "%s", "datasets": "orders"`,
				`"namespace": "%s", "datasets": [1]`, `"namespace": "%s", "asOf": "today"`, `"namespace": "%s", "timeZone": ""`,
			} {
				more = strings.ReplaceAll(more, "%s", r.namespace)
				require.Equal(r.t, -32602, r.code("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "metadata": {`+more+`}}}`), more)
			}
		},
		"a namespace beside the metadata of the message does not count": func(r *ruled) {
			message := `"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "{}"}]`
			for _, params := range []string{
				`{"message": {` + message + `}, "metadata": {"namespace": "` + r.namespace + `"}}`,
				`{"message": {` + message + `}, "namespace": "` + r.namespace + `"}`,
				`{"message": {` + message + `, "namespace": "` + r.namespace + `"}}`,
			} {
				request := r.request("SendMessage", params)
				request.URL.RawQuery = "namespace=" + r.namespace
				code, said := rpcError(r.t, send(r.t, request))
				require.Equal(r.t, -32602, code, params)
				require.Equal(r.t, "message metadata.namespace is required", said)
			}
		},
		"a namespace has three spellings": func(r *ruled) {
			for _, name := range []string{r.namespace, "self/" + r.namespace, r.owner + "/" + r.namespace, strings.ToUpper(r.owner) + "/" + r.namespace} {
				r.result("SendMessage", `{"message": {"messageId": "`+uuid.NewString()+`", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "`+name+`"}}}`)
			}
		},
		"a token that reaches one namespace supplies it": func(r *ruled) {
			one := *r.filled
			one.bearer = restrictedToken(r.t, r.s, r.bearer, target("self", r.namespace, ""))
			answer := newPeer(&one, r.agent).call("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "{}"}]}}`)
			require.Equal(r.t, map[string]any{"namespace": r.owner + "/" + r.namespace}, rpcResult(r.t, answer).Task.History[0].Metadata)
		},
		"a namespace that cannot be seen and one that is not there differ in no byte": func(r *ruled) {
			unseen, absent := makeDataset(r.t, r.s, r.other), "n-"+uuid.NewString()

			var bodies []string

			for _, name := range []string{unseen, absent} {
				bodies = append(bodies, r.call("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "stranger/`+name+`"}}}`).body)
			}

			require.Equal(r.t, bodies[0], bodies[1])
			require.Contains(r.t, bodies[0], "-32602")
		},
		"other content than text: -32005": func(r *ruled) {
			for _, part := range []string{`{"raw": "AA=="}`, `{"url": "https://example.org"}`, `{"data": {}}`, `{"text": "x", "mediaType": "image/png"}`} {
				require.Equal(r.t, -32005, r.code("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}, `+part+`], "metadata": {"namespace": "x"}}}`), part)
			}

			require.Equal(r.t, -32005, r.code("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "AA==", "mediaType": "image/png"}]}}`))
		},
		"output modes that we do not have: -32005": func(r *ruled) {
			require.Equal(r.t, -32005, r.code("SendMessage", r.ask("m", "{}", `"configuration": {"acceptedOutputModes": ["image/png"]}`)))

			for _, mode := range []string{"text/plain", "text/*", "*/*", "application/json"} {
				r.result("SendMessage", r.ask(uuid.NewString(), "{}", `"configuration": {"acceptedOutputModes": ["image/png", "`+mode+`"]}`))
			}
		},
		"the parts with text are one question": func(r *ruled) {
			result := r.result("SendMessage", `{"message": {"messageId": "`+uuid.NewString()+`", "role": "ROLE_USER", "parts": [{"text": "{"}, {"text": "}"}], "metadata": {"namespace": "`+r.namespace+`"}}}`)
			require.Contains(r.t, string(result), `"parts":[{"text":"{\n}"}],"role":"ROLE_USER"`)
		},
		"the same message again is the same task": func(r *ruled) {
			message := r.ask(uuid.NewString(), oneStep, "")
			task, events := r.call("SendMessage", message).body, r.events(message)
			require.Equal(r.t, task, r.call("SendMessage", message).body)
			require.Equal(r.t, events, r.events(message))
		},
		"another message with the same id is another task": func(r *ruled) {
			id := uuid.NewString()
			one, two := rpcResult(r.t, r.call("SendMessage", r.ask(id, "{}", ""))).Task, rpcResult(r.t, r.call("SendMessage", r.ask(id, "{ }", ""))).Task
			require.NotEqual(r.t, one.ID, two.ID)
		},

		// Waiting.
		"SendMessage waits for the end, unless it is told not to": func(r *ruled) {
			task := rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), oneStep, "")))
			require.Equal(r.t, "TASK_STATE_COMPLETED", task.Task.Status.State)

			running := r.begin(waiting)
			require.Equal(r.t, "TASK_STATE_SUBMITTED", running.Status.State)
			r.task("CancelTask", running.ID)
		},
		"not to wait has no effect on streams": func(r *ruled) {
			events := r.follow(r.request("SendStreamingMessage", r.ask(uuid.NewString(), oneStep, atOnceConfig)))
			require.Equal(r.t, "completed", events[len(events)-1].String())
		},
		"the length of the history holds for all three": func(r *ruled) {
			message := r.ask(uuid.NewString(), "{}", "")
			id := rpcResult(r.t, r.call("SendMessage", message)).Task.ID

			for length, count := range map[string]int{``: 1, `, "historyLength": 0`: 0, `, "historyLength": 1`: 1, `, "historyLength": 9`: 1} {
				configured := strings.TrimSuffix(message, "}") + `, "configuration": {` + strings.TrimPrefix(length, ", ") + `}}`
				require.Equal(r.t, count, strings.Count(r.call("SendMessage", configured).body, `"history"`), length)
				require.Equal(r.t, count, strings.Count(r.call("GetTask", `{"id": "`+id+`"`+length+`}`).body, `"history"`), length)
				require.Equal(r.t, count, strings.Count(r.call("ListTasks", `{"pageSize": 1`+length+`}`).body, `"history"`), length)
			}

			for method, params := range map[string]string{
				"SendMessage": r.ask("m", "{}", `"configuration": {"historyLength": -1}`), "GetTask": `{"id": "` + id + `", "historyLength": -1}`, "ListTasks": `{"historyLength": -1}`,
			} {
				require.Equal(r.t, -32602, r.code(method, params), method)
			}
		},
	}
}
