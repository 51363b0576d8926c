package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// peer is another agent that calls one of Quern's agents about its own namespace.
type peer struct {
	*filled

	agent string
}

func newPeer(d *filled, agent string) *peer { return &peer{d, agent} }

func (p *peer) address() string { return p.s.url + "/a2a/" + p.agent }

// request returns a JSON-RPC request. params is JSON.
func (p *peer) request(method, params string, headers ...string) *http.Request {
	p.t.Helper()

	return newRequest(p.t, http.MethodPost, p.address(), p.bearer, fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": %q, "params": %s}`, method, params), headers...)
}

func (p *peer) call(method, params string, headers ...string) *answer {
	p.t.Helper()

	return send(p.t, p.request(method, params, headers...))
}

// ask returns the parameters of a message. more contains further members of the parameters.
func (p *peer) ask(id, script, more string) string {
	p.t.Helper()

	if more != "" {
		more = ", " + more
	}

	return fmt.Sprintf(`{"message": {"messageId": %q, "role": "ROLE_USER", "parts": [{"text": %s}], "metadata": {"namespace": %q}}%s}`,
		id, encode(p.t, script), p.owner+"/"+p.namespace, more)
}

const atOnceConfig = `"configuration": {"returnImmediately": true}`

// begin sends a question and does not wait for its result.
func (p *peer) begin(script string) a2aTask {
	p.t.Helper()

	answer := p.call("SendMessage", p.ask(uuid.NewString(), script, atOnceConfig))
	result := rpcResult(p.t, answer)
	require.NotNil(p.t, result.Task, answer.body)

	return *result.Task
}

// follow reads a stream to its end and returns its events.
func (p *peer) follow(request *http.Request) (events []a2aEvent) {
	p.t.Helper()

	for _, e := range follow(p.t, request, 1000) {
		if e.data != "" {
			events = append(events, rpcResult(p.t, &answer{body: e.data}))
		}
	}

	return events
}

type a2aTask struct {
	ID, ContextID string
	Status        a2aStatus
	Artifacts     []a2aArtifact
	History       []a2aMessage
}

type a2aStatus struct {
	State, Timestamp string
	Message          *a2aMessage
}

type a2aMessage struct {
	MessageID, ContextID, TaskID, Role string
	Parts                              []a2aPart
	Metadata                           map[string]any
}

type a2aPart struct {
	Text *string
	Data json.RawMessage
}

type a2aArtifact struct {
	ArtifactID, Name string
	Parts            []a2aPart
	Metadata         map[string]any
}

// a2aEvent is one event of a stream. Exactly one member is set.
type a2aEvent struct {
	Task         *a2aTask
	StatusUpdate *struct {
		TaskID, ContextID string
		Status            a2aStatus
	}
	ArtifactUpdate *struct {
		TaskID, ContextID string
		Artifact          a2aArtifact
	}
}

// String returns a short name of the event.
func (e a2aEvent) String() string {
	short := func(state string) string { return strings.ToLower(strings.TrimPrefix(state, "TASK_STATE_")) }

	switch {
	case e.Task != nil:
		return "task " + short(e.Task.Status.State)
	case e.StatusUpdate != nil && e.StatusUpdate.Status.State == "TASK_STATE_WORKING" && e.StatusUpdate.Status.Message != nil:
		return []string{"", "instruction", "plan"}[len(e.StatusUpdate.Status.Message.Parts)]
	case e.StatusUpdate != nil:
		return short(e.StatusUpdate.Status.State)
	case e.ArtifactUpdate != nil:
		return e.ArtifactUpdate.Artifact.Name
	default:
		return "nothing"
	}
}

func words(events []a2aEvent) string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.String()
	}

	return strings.Join(list, ", ")
}

// rpcResult returns the result of an answer, which must not be an error.
func rpcResult(t *testing.T, answer *answer) (result a2aEvent) {
	t.Helper()

	var body struct {
		Result *a2aEvent
		Error  json.RawMessage
	}
	answer.json(t, &body)
	require.Empty(t, body.Error, answer.body)
	require.NotNil(t, body.Result, answer.body)

	return *body.Result
}

// task calls GetTask or CancelTask and returns the task.
func (p *peer) task(method, id string) (task a2aTask) {
	p.t.Helper()

	answer := p.call(method, `{"id": "`+id+`"}`)

	var body struct{ Result *a2aTask }
	answer.json(p.t, &body)
	require.NotNil(p.t, body.Result, answer.body)

	return *body.Result
}

// rpcError returns the code and the message of an answer, which must be an error.
func rpcError(t *testing.T, answer *answer) (code int, message string) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var body struct {
		ID    json.RawMessage
		Error *struct {
			Code    int
			Message string
			Data    []map[string]any
		}
	}
	answer.json(t, &body)
	require.NotNil(t, body.Error, answer.body)
	require.NotEmpty(t, body.Error.Data, answer.body)
	require.Equal(t, "type.googleapis.com/google.rpc.ErrorInfo", body.Error.Data[0]["@type"])

	return body.Error.Code, body.Error.Message
}

const (
	oneStep  = `{"reasoning": "The rows say it.", "response": "Two regions.", "steps": [{"instruction": "List the regions.", "reasoning": "They are a column.", "queries": ["SELECT region FROM orders ORDER BY region"]}]}`
	waiting  = `{"pause": 600000, "steps": [{"instruction": "Wait."}]}`
	failing  = `{"reasoning": "It will fail.", "fail": true, "steps": [{"instruction": "Count.", "queries": ["SELECT count(*) AS n FROM orders"]}]}`
	unasked  = `{"response": "Which one?", "outcome": "clarification", "clarification": {"question": "Which one?", "options": ["orders", "returns"]}}`
	noScript = `What?`
)

// TestA2AGolden compares the responses of every method of both agents, on success and with each error, byte by byte with recorded
// ones.
func TestA2AGolden(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=4")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	golden(t, "catalog", send(t, newRequest(t, http.MethodGet, s.url+"/a2a", "", "")))

	for _, agent := range []string{"nl2ql", "assistant"} {
		p := newPeer(d, agent)
		capture := func(name, method, params string, headers ...string) *answer {
			t.Helper()

			answer := p.call(method, params, headers...)
			golden(t, agent+"/"+name, answer)

			return answer
		}

		golden(t, agent+"/entry", send(t, newRequest(t, http.MethodGet, p.address(), "", "")))
		golden(t, agent+"/card", send(t, newRequest(t, http.MethodGet, p.address()+"/.well-known/agent-card.json", "", "")))
		capture("GetExtendedAgentCard", "GetExtendedAgentCard", `{}`)

		first := p.ask(uuid.NewString(), oneStep, "")
		id := rpcResult(t, capture("SendMessage", "SendMessage", first)).Task.ID
		capture("SendMessage-again", "SendMessage", first)
		capture("SendMessage-clarification", "SendMessage", p.ask(uuid.NewString(), unasked, ""))
		capture("SendMessage-refused", "SendMessage", p.ask(uuid.NewString(), noScript, ""))
		capture("SendMessage-failed", "SendMessage", p.ask(uuid.NewString(), failing, ""))
		capture("SendStreamingMessage", "SendStreamingMessage", p.ask(uuid.NewString(), oneStep, ""))
		capture("SendStreamingMessage-again", "SendStreamingMessage", first)
		capture("SendStreamingMessage-refused", "SendStreamingMessage", p.ask(uuid.NewString(), noScript, ""))
		capture("SendStreamingMessage-failed", "SendStreamingMessage", p.ask(uuid.NewString(), failing, ""))
		capture("GetTask", "GetTask", `{"id": "`+id+`"}`)
		capture("ListTasks", "ListTasks", `{"status": "TASK_STATE_COMPLETED", "pageSize": 2}`)
		capture("ListTasks-artifacts", "ListTasks", `{"status": "TASK_STATE_FAILED", "pageSize": 1, "includeArtifacts": true, "historyLength": 0}`)
		capture("ListTasks-none", "ListTasks", `{"status": "TASK_STATE_REJECTED"}`)

		waits := p.ask(uuid.NewString(), waiting, atOnceConfig)
		running := rpcResult(t, capture("SendMessage-immediately", "SendMessage", waits)).Task.ID

		await(t, "the plan is out, or at least the work has begun", func() bool {
			status := p.task("GetTask", running).Status

			return status.Message != nil || agent == "nl2ql" && status.State == "TASK_STATE_WORKING"
		})

		capture("GetTask-running", "GetTask", `{"id": "`+running+`"}`)

		subscribed := openStream(t, p.request("SubscribeToTask", `{"id": "`+running+`"}`))
		subscribed.next()
		capture("CancelTask", "CancelTask", `{"id": "`+running+`"}`)
		golden(t, agent+"/SubscribeToTask", subscribed.rest())
		capture("CancelTask-again", "CancelTask", `{"id": "`+running+`"}`)

		for name, one := range a2aErrors(p, id) {
			capture("error-"+name, one.method, one.params, one.headers...)
		}

		var queued []string
		for range 4 {
			queued = append(queued, p.begin(waiting).ID)
		}

		capture("error-too-many", "SendMessage", p.ask(uuid.NewString(), oneStep, ""))

		for _, id := range queued {
			p.task("CancelTask", id)
		}
	}
}

type rpcCase struct {
	method, params string
	headers        []string
}

// a2aErrors returns a request for each error.
func a2aErrors(p *peer, completed string) map[string]rpcCase {
	message := func(more string) string {
		return `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "{}"}]` + more + `}}`
	}
	here := `"metadata": {"namespace": "` + p.namespace + `"}`
	missing := `{"id": "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70"}`
	push := `{"taskId": "` + completed + `", "id": "x", "url": "https://127.0.0.1/receiver"}`

	return map[string]rpcCase{
		"method":             {method: "Send", params: `{}`},
		"params":             {method: "GetTask", params: `[]`},
		"no-namespace":       {method: "SendMessage", params: message("")},
		"unseen-namespace":   {method: "SendMessage", params: message(`, "metadata": {"namespace": "bob/shop"}`)},
		"unseen-dataset":     {method: "SendMessage", params: message(`, "metadata": {"namespace": "` + p.namespace + `", "datasets": ["absent"]}`)},
		"context":            {method: "SendStreamingMessage", params: message(`, "contextId": "mine", ` + here)},
		"finished":           {method: "SendMessage", params: message(`, "taskId": "` + completed + `", ` + here)},
		"message-no-task":    {method: "SendMessage", params: message(`, "taskId": "x", ` + here)},
		"get-no-task":        {method: "GetTask", params: missing},
		"cancel-no-task":     {method: "CancelTask", params: missing},
		"subscribe-no-task":  {method: "SubscribeToTask", params: missing},
		"cancel-finished":    {method: "CancelTask", params: `{"id": "` + completed + `"}`},
		"subscribe-finished": {method: "SubscribeToTask", params: `{"id": "` + completed + `"}`},
		"content":            {method: "SendMessage", params: `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}, {"raw": "AA=="}], ` + here + `}}`},
		"version":            {method: "GetTask", params: missing, headers: []string{"A2A-Version: 0.3"}},
		"push-create":        {method: "CreateTaskPushNotificationConfig", params: push},
		"push-get":           {method: "GetTaskPushNotificationConfig", params: push},
		"push-list":          {method: "ListTaskPushNotificationConfigs", params: `{"taskId": "0199c0ea-d6e7-7f80-89a1-2b3c4d5e6f70"}`},
		"push-delete":        {method: "DeleteTaskPushNotificationConfig", params: push},
		"list-page":          {method: "ListTasks", params: `{"pageSize": 101, "pageToken": "x"}`},
	}
}

// openedStream is a stream that is read one event at a time.
type openedStream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	text     strings.Builder
}

func openStream(t *testing.T, request *http.Request) *openedStream {
	t.Helper()

	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))

	return &openedStream{t: t, response: response, lines: bufio.NewReader(response.Body)}
}

// next returns the next event, or false at the end of the stream.
func (o *openedStream) next() (event a2aEvent, more bool) {
	o.t.Helper()

	for {
		line, err := o.lines.ReadString('\n')
		o.text.WriteString(line)

		if err != nil {
			return a2aEvent{}, false
		}

		if data, isData := strings.CutPrefix(line, "data: "); isData {
			return rpcResult(o.t, &answer{body: data}), true
		}
	}
}

// rest reads the stream to its end and returns all events, including those that earlier calls of next returned.
func (o *openedStream) rest() *answer {
	o.t.Helper()

	for more := true; more; {
		_, more = o.next()
	}

	return &answer{status: o.response.StatusCode, header: o.response.Header, body: o.text.String()}
}

var (
	goldenIDs   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	goldenTimes = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z`)
	goldenToken = regexp.MustCompile(`"nextPageToken":"[\w-]+"`)
)

// withoutSigns removes the keep-alive comments from a stream.
func withoutSigns(stream string) string { return strings.ReplaceAll(stream, ": keep-alive\n\n", "") }

// golden compares an answer with the recorded one. Ids are replaced by numbers in order of appearance, and times and page tokens
// by constants.
func golden(t *testing.T, name string, answer *answer) {
	t.Helper()

	numbers := map[string]string{}
	text := goldenIDs.ReplaceAllStringFunc(withoutSigns(answer.body), func(id string) string {
		if numbers[id] == "" {
			numbers[id] = fmt.Sprintf("<id %d>", len(numbers)+1)
		}

		return numbers[id]
	})
	text = goldenToken.ReplaceAllString(goldenTimes.ReplaceAllString(text, "<time>"), `"nextPageToken":"<token>"`)
	text = fmt.Sprintf("%d %s\n\n%s", answer.status, answer.header.Get("Content-Type"), text)

	file := filepath.Join("testdata", "a2a", filepath.FromSlash(name)+".golden")

	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}

	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, name)
}
