package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// a2aFormatRules are about message formats, JSON-RPC, versions and extensions.
func a2aFormatRules() map[string]func(r *ruled) {
	return map[string]func(r *ruled){
		// Message formats.
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

			artifacts := "https://quern.dev/a2a/artifacts/v1"
			require.Equal(r.t, uri+","+artifacts, r.call("ListTasks", `{}`, "A2A-Extensions: "+artifacts+","+uri).header.Get("A2A-Extensions"))
			require.Empty(r.t, r.call("ListTasks", `{}`, "A2A-Extensions: https://example.org/x").header.Get("A2A-Extensions"))
		},
	}
}
