package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// a2aRules are the rules of A2A 1.0 that servers get wrong, each held over HTTP. The two that begin with "deviation" are
// broken on purpose, as docs/a2a.md says.
func a2aRules() map[string]func(r *ruled) {
	return map[string]func(r *ruled){
		// The wire.
		"every method of the protocol is known": func(r *ruled) {
			for _, method := range a2aMethods {
				require.NotContains(r.t, r.call(method, `{"id": "x", "taskId": "x"}`).body, "-32601", method)
			}
		},
		"SendMessage gives the task below task": func(r *ruled) {
			require.Equal(r.t, []string{"task"}, keys(r.t, r.result("SendMessage", r.ask(uuid.NewString(), "{}", ""))))
		},
		"GetTask and CancelTask give the task itself": func(r *ruled) {
			task := r.begin(waiting)
			require.Equal(r.t, task.ID, r.task("GetTask", task.ID).ID)
			require.Equal(r.t, "TASK_STATE_CANCELED", r.task("CancelTask", task.ID).Status.State)
		},
		"an event has exactly one member, and neither kind nor final": func(r *ruled) {
			for _, data := range r.events(r.ask(uuid.NewString(), oneStep, "")) {
				members := keys(r.t, field(r.t, data, "result"))
				require.Len(r.t, members, 1)
				require.Contains(r.t, []string{"task", "statusUpdate", "artifactUpdate"}, members[0])
				require.NotContains(r.t, data, `"kind"`)
				require.NotContains(r.t, data, `"final"`)
			}
		},
		"ListTasks has its four members, the list also if it is empty": func(r *ruled) {
			result := r.result("ListTasks", `{"contextId": "none"}`)
			require.JSONEq(r.t, `{"tasks": [], "totalSize": 0, "pageSize": 50, "nextPageToken": ""}`, string(result))
		},
		"roles and states have the names of ProtoJSON": func(r *ruled) {
			answer := r.call("SendMessage", r.ask(uuid.NewString(), oneStep, ""))
			for _, name := range regexp.MustCompile(`"(?:role|state)":"(\w+)"`).FindAllStringSubmatch(answer.body, -1) {
				require.Contains(r.t, []string{"ROLE_USER", "ROLE_AGENT", "TASK_STATE_COMPLETED"}, name[1])
			}
		},
		"the card has the proto's form of security": func(r *ruled) {
			card := r.card()
			require.JSONEq(r.t, `{"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}}`, string(field(r.t, card, "securitySchemes")))
			require.JSONEq(r.t, `[{"schemes": {"bearer": {"list": []}}}]`, string(field(r.t, card, "securityRequirements")))
		},
		"an error has details: an array with types, the reason in capitals, the protocol's domain": func(r *ruled) {
			answer := r.call("GetTask", `{"id": "x"}`)
			data := field(r.t, string(field(r.t, answer.body, "error")), "data")
			require.JSONEq(r.t, `[{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}]`, string(data))
		},
		"a request that breaks a rule names the field": func(r *ruled) {
			answer := r.call("ListTasks", `{"pageSize": -1}`)
			require.Contains(r.t, answer.body, `{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"must be 1 to 100","field":"pageSize"}]}`)
		},

		// JSON-RPC.
		"what is not JSON: -32700": func(r *ruled) {
			for _, body := range []string{"", "{", "nonsense", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xff\"}", `{"jsonrpc": "2.0", "id": 1} x`} {
				require.Equal(r.t, -32700, r.raw(body), body)
			}
		},
		"what is no request: -32600": func(r *ruled) {
			for _, body := range []string{
				`[]`, `1`, `"x"`, `null`, `{}`, `{"jsonrpc": "2.0", "method": "GetTask"}`, `{"jsonrpc": "2.0", "id": null, "method": "GetTask"}`,
				`{"jsonrpc": "2.0", "id": {}, "method": "GetTask"}`, `{"jsonrpc": "2.0", "id": true, "method": "GetTask"}`,
				`{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}`, `{"id": 1, "method": "GetTask"}`, `{"jsonrpc": "2.0", "id": 1, "method": 1}`, `{"jsonrpc": "2.0", "id": 1}`,
			} {
				require.Equal(r.t, -32600, r.raw(body), body)
			}
		},
		"a batch: -32600": func(r *ruled) {
			require.Equal(r.t, -32600, r.raw(`[{"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}]`))
		},
		"an unknown method: -32601": func(r *ruled) {
			for _, method := range []string{"message/send", "tasks/get", "sendMessage", "SENDMESSAGE"} {
				require.Equal(r.t, -32601, r.code(method, `{}`), method)
			}
		},
		"parameters of another shape: -32602": func(r *ruled) {
			for _, params := range []string{`[]`, `1`, `"x"`, `{"id": 1}`, `{"id": {}}`, `{}`, `{"historyLength": "x", "id": "x"}`} {
				require.Equal(r.t, -32602, r.code("GetTask", params), params)
			}
		},
		"a part of another shape: -32602": func(r *ruled) {
			for _, part := range []string{`{}`, `{"kind": "text"}`, `{"text": "x", "data": 1}`, `{"text": 1}`, `"x"`, `{"raw": "!"}`} {
				require.Equal(r.t, -32602, r.code("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [`+part+`]}}`), part)
			}
		},
		"ids come back as they were": func(r *ruled) {
			for _, id := range []string{`1`, `-1`, `1.50`, `"x"`, `""`, `12345678901234567890`} {
				answer := send(r.t, newRequest(r.t, http.MethodPost, r.address(), r.bearer, `{"jsonrpc": "2.0", "id": `+id+`, "method": "ListTasks"}`))
				require.Equal(r.t, id, string(field(r.t, answer.body, "id")))
			}
		},
		"parameters may be left out": func(r *ruled) {
			for _, body := range []string{`{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}`, `{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": null}`} {
				answer := send(r.t, newRequest(r.t, http.MethodPost, r.address(), r.bearer, body))
				require.Contains(r.t, answer.body, `"result"`)
			}
		},
		"a body that is too large: -32600": func(r *ruled) {
			require.Equal(r.t, -32600, r.raw(`{"jsonrpc": "2.0", "id": 1, "method": "`+strings.Repeat("x", maxBody)+`"}`))
		},
		"another content type: -32005": func(r *ruled) {
			for _, media := range []string{"text/plain", "application/xml", "application/json; charset=latin1"} {
				code, _ := rpcError(r.t, r.call("ListTasks", `{}`, "Content-Type: "+media))
				require.Equal(r.t, -32005, code, media)
			}
		},
		"answers are application/json": func(r *ruled) {
			require.Equal(r.t, "application/json", r.call("ListTasks", `{}`).header.Get("Content-Type"))
			require.Equal(r.t, "application/json", r.call("GetTask", `{"id": "x"}`).header.Get("Content-Type"))
		},
		"with and without a slash at the end": func(r *ruled) {
			request := r.request("ListTasks", `{}`)
			request.URL.Path += "/"
			answer, err := try(request)
			require.NoError(r.t, err)
			require.Equal(r.t, http.StatusOK, answer.status)
			require.Contains(r.t, answer.body, `"tasks"`)
		},
		"names with underscores are taken, and come out without": func(r *ruled) {
			task := r.begin("{}")
			answer := r.call("ListTasks", `{"context_id": "`+task.ContextID+`", "page_size": 7, "history_length": 0}`)
			require.Contains(r.t, answer.body, `"pageSize":7`)
			require.Contains(r.t, answer.body, task.ID)
			require.NotRegexp(r.t, `"[a-z]+_[a-z_]+":`, answer.body)
		},
		"a name in both forms: -32602": func(r *ruled) {
			require.Equal(r.t, -32602, r.code("ListTasks", `{"page_size": 7, "pageSize": 7}`))
		},
		"unknown members are ignored": func(r *ruled) {
			r.result("ListTasks", `{"new": 1, "more": {"a": []}}`)
		},
		"metadata keeps its names": func(r *ruled) {
			message := `{"message": {"messageId": "` + uuid.NewString() + `", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "` + r.namespace + `", "time_zone": 1}}}`
			r.result("SendMessage", message)
		},
		"the character zero: -32602": func(r *ruled) {
			require.Equal(r.t, -32602, r.code("SendMessage", r.ask("m", "a\x00b", "")))
			require.Equal(r.t, -32602, r.code("SendMessage", `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}], "metadata": {"namespace": "a\u0000"}}}`))
		},
		"errors tell nothing of the inside": func(r *ruled) {
			for _, params := range []string{`{"pageToken": "AAAA"}`, `{"pageToken": "` + strings.Repeat("_", 32) + `"}`, `{"status": 3}`, `{"statusTimestampAfter": "yesterday"}`} {
				code, message := rpcError(r.t, r.call("ListTasks", params))
				require.Equal(r.t, -32602, code, params)
				require.NotRegexp(r.t, `(?i)json:|unmarshal|go |sql|pgx|a2a\.`, message)
			}
		},

		// Versions and extensions.
		"a version that is not 1.0: -32009": func(r *ruled) {
			for _, version := range []string{"0.3", "0.3.0", "9.9", "abc", "1", "1.1", "2.0", "10.0"} {
				code, _ := rpcError(r.t, r.call("ListTasks", `{}`, "A2A-Version: "+version))
				require.Equal(r.t, -32009, code, version)
			}
		},
		"the patch of a version does not count": func(r *ruled) {
			for _, version := range []string{"1.0", "1.0.0", "1.0.7"} {
				require.Contains(r.t, r.call("ListTasks", `{}`, "A2A-Version: "+version).body, `"result"`, version)
			}
		},
		"the version may be a parameter of the address": func(r *ruled) {
			for version, wanted := range map[string]string{"1.0": `"tasks":[]`, "0.3": `"code":-32009`} {
				request := r.request("ListTasks", `{"contextId": "none"}`)
				request.URL.RawQuery = "A2A-Version=" + url.QueryEscape(version)
				require.Contains(r.t, send(r.t, request).body, wanted)
			}
		},
		"deviation: a request without a version counts as 1.0": func(r *ruled) {
			r.result("ListTasks", `{}`)
		},
		"the version stands at the interface, not at the card": func(r *ruled) {
			card := r.card()
			require.NotContains(r.t, keys(r.t, []byte(card)), "protocolVersion")
			require.Contains(r.t, string(field(r.t, card, "supportedInterfaces")), `"protocolVersion":"1.0"`)
		},
		"extensions are a list, and those in use are said": func(r *ruled) {
			uri := "https://quern.dev/a2a/metadata/v1"
			answer := r.call("ListTasks", `{}`, "A2A-Extensions: https://example.org/x, "+uri)
			require.Equal(r.t, uri, answer.header.Get("A2A-Extensions"))
			require.Empty(r.t, r.call("ListTasks", `{}`, "A2A-Extensions: https://example.org/x").header.Get("A2A-Extensions"))
		},

		// Who asks.
		"no token: 401 with a challenge, for streams too": func(r *ruled) {
			for _, method := range []string{"SendMessage", "SendStreamingMessage", "GetExtendedAgentCard"} {
				request := r.request(method, r.ask("m", "{}", ""), "Authorization: ")
				answer := send(r.t, request)
				require.Equal(r.t, http.StatusUnauthorized, answer.status)
				require.Contains(r.t, answer.header.Get("WWW-Authenticate"), "Bearer")
			}
		},
		"a task of another looks like one that is not there": func(r *ruled) {
			task := r.begin(waiting)
			other := newPeer(r.by(r.other), r.agent)

			for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
				require.Equal(r.t, other.call(method, `{"id": "`+uuid.NewString()+`"}`).body, other.call(method, `{"id": "`+task.ID+`"}`).body, method)
			}

			r.task("CancelTask", task.ID)
		},

		// Cards.
		"the card can be kept and asked for again": func(r *ruled) {
			address := r.address() + "/.well-known/agent-card.json"
			first := call(r.t, http.MethodGet, address, "", "")
			require.Contains(r.t, first.header.Get("Cache-Control"), "max-age=")
			require.Equal(r.t, http.StatusNotModified, call(r.t, http.MethodGet, address, "", "", "If-None-Match: "+first.header.Get("ETag")).status)
			require.Equal(r.t, http.StatusOK, call(r.t, http.MethodGet, address, "", "", `If-None-Match: "x"`).status)

			modified, err := http.ParseTime(first.header.Get("Last-Modified"))
			require.NoError(r.t, err)
			require.False(r.t, modified.After(time.Now()))
		},
		"lists of the card that are required are not empty": func(r *ruled) {
			card := r.card()
			for _, name := range []string{"supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"} {
				require.NotRegexp(r.t, `^(\[\]|null)$`, string(field(r.t, card, name)), name)
			}

			require.Contains(r.t, string(field(r.t, card, "skills")), `"tags":["`)
		},
		"the card tells no secrets, the extended one more": func(r *ruled) {
			require.NotContains(r.t, r.card(), r.namespace)

			extended := string(r.result("GetExtendedAgentCard", `{}`))
			require.Contains(r.t, extended, r.namespace)
			require.Contains(r.t, extended, `"examples"`)
			require.Contains(r.t, string(field(r.t, r.card(), "capabilities")), `"extendedAgentCard":true`)
		},

		// Push notifications are declared absent.
		"push notifications: -32003": func(r *ruled) {
			require.Contains(r.t, r.card(), `"pushNotifications":false`)

			for _, method := range a2aMethods {
				if strings.Contains(method, "Push") {
					require.Equal(r.t, -32003, r.code(method, `{"taskId": "x", "id": "x"}`), method)
				}
			}

			require.Equal(r.t, -32003, r.code("SendMessage", r.ask("m", "{}", `"configuration": {"taskPushNotificationConfig": {"url": "https://example.org"}}`)))
		},

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

var a2aMethods = []string{ //nolint:gochecknoglobals // a constant
	"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "GetExtendedAgentCard",
	"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig",
}

// ruled is one who holds an agent to a rule.
type ruled struct {
	*peer

	other string // token of somebody to whom nothing is shared
}

// result is that of a call that must go well.
func (r *ruled) result(method, params string) json.RawMessage {
	r.t.Helper()

	answer := r.call(method, params)
	require.NotContains(r.t, answer.body, `"error":{`)

	return field(r.t, answer.body, "result")
}

// code is that of a call that must fail.
func (r *ruled) code(method, params string) int {
	r.t.Helper()

	code, _ := rpcError(r.t, r.call(method, params))

	return code
}

// raw is the code of a request that is no call.
func (r *ruled) raw(body string) int {
	r.t.Helper()

	code, _ := rpcError(r.t, send(r.t, newRequest(r.t, http.MethodPost, r.address(), r.bearer, body)))

	return code
}

// about is a message with further members.
func (r *ruled) about(more string) string {
	return `{"message": {"messageId": "` + uuid.NewString() + `", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "` + r.namespace + `"}, ` + more + `}}`
}

// events are the data of a stream.
func (r *ruled) events(params string) (list []string) {
	r.t.Helper()

	for _, e := range follow(r.t, r.request("SendStreamingMessage", params), 1000) {
		list = append(list, e.data)
	}

	return list
}

func (r *ruled) card() string {
	r.t.Helper()

	return call(r.t, http.MethodGet, r.address()+"/.well-known/agent-card.json", "", "").body
}

// field is a member of an object.
func field(t *testing.T, object, name string) json.RawMessage {
	t.Helper()

	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(object), &members), object)

	return members[name]
}

func keys(t *testing.T, object json.RawMessage) (names []string) {
	t.Helper()

	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members), string(object))

	for name := range members {
		names = append(names, name)
	}

	return names
}

func TestA2ARules(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_PER_USER=1000", "QUERN_RUN_WORKERS=16", fmt.Sprintf("QUERN_MAX_BODY=%d", maxBody))
	key := s.newKey()

	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	for _, agent := range []string{"nl2ql", "assistant"} {
		for name, check := range a2aRules() {
			t.Run(agent+": "+name, func(t *testing.T) {
				t.Parallel()

				d := *d
				d.t = t

				check(&ruled{peer: newPeer(&d, agent), other: key.token("stranger")})
			})
		}
	}
}
