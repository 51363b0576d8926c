package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// a2aRules are the rules of A2A 1.0 that servers often break, each checked over HTTP. Quern breaks the two that begin with
// "deviation" on purpose, as docs/a2a.md says.
func a2aRules() []map[string]func(r *ruled) {
	return []map[string]func(r *ruled){a2aFormatRules(), a2aAccessRules(), a2aMessageRules(), a2aTaskRules(), a2aSchemaRules()}
}

// a2aAccessRules are about authentication, agent cards and push notifications.
func a2aAccessRules() map[string]func(r *ruled) {
	return map[string]func(r *ruled){
		// Authentication and access.
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

		// Agent cards.
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

		// Push notifications. TestPushNotifications receives them.
		"push notifications of a task of another look like ones that are not there": func(r *ruled) {
			require.Contains(r.t, r.card(), `"pushNotifications":true`)

			task := r.begin(waiting)
			other := newPeer(r.by(r.other), r.agent)

			for _, method := range a2aMethods {
				if strings.Contains(method, "Push") {
					params := func(task string) string { return `{"taskId": "` + task + `", "id": "x", "url": "https://localhost"}` }
					require.Equal(r.t, -32001, r.code(method, params("x")), method)
					require.Equal(r.t, other.call(method, params(uuid.NewString())).body, other.call(method, params(task.ID)).body, method)
				}
			}

			r.task("CancelTask", task.ID)
		},
	}
}

var a2aMethods = []string{ //nolint:gochecknoglobals // a constant
	"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask", "GetExtendedAgentCard",
	"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig",
}

// ruled checks one rule against one agent.
type ruled struct {
	*peer

	other string // token of a user to whom nothing is shared
}

// result returns the result of a call, which must succeed.
func (r *ruled) result(method, params string) json.RawMessage {
	r.t.Helper()

	answer := r.call(method, params)
	require.Empty(r.t, field(r.t, answer.body, "error"), answer.body)

	return field(r.t, answer.body, "result")
}

// code returns the error code of a call, which must fail.
func (r *ruled) code(method, params string) int {
	r.t.Helper()

	code, _ := rpcError(r.t, r.call(method, params))

	return code
}

// raw sends a body as it is and returns the error code of the response.
func (r *ruled) raw(body string) int {
	r.t.Helper()

	code, _ := rpcError(r.t, send(r.t, newRequest(r.t, http.MethodPost, r.address(), r.bearer, body)))

	return code
}

// about returns the parameters of a message with further members.
func (r *ruled) about(more string) string {
	return `{"message": {"messageId": "` + uuid.NewString() + `", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "` + r.namespace + `"}, ` + more + `}}`
}

// events returns the data of each event of a stream.
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

// field returns a member of an object.
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

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=1000", "QUERN_RUN_WORKERS=16", fmt.Sprintf("QUERN_MAX_BODY=%d", maxBody))
	key := s.newKey()

	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	for _, agent := range []string{"nl2ql", "assistant"} {
		for _, rules := range a2aRules() {
			for name, check := range rules {
				t.Run(agent+": "+name, func(t *testing.T) {
					t.Parallel()

					d := *d
					d.t = t

					check(&ruled{peer: newPeer(&d, agent), other: key.token("stranger")})
				})
			}
		}
	}
}
