package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// scripted is the setting that makes the agents execute scripts. Only a quernd with the build tag of the same name has it.
const scripted = "QUERN_TEST_SCRIPTED=true"

// script returns a question for the scripted agents of the tests. The script says what the agent does.
func (d *filled) script(agent, script, more string) string {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	return fmt.Sprintf(`{"username": %q, "namespace": %q, "agent": %q, "query": %s%s}`, d.owner, d.namespace, agent, encode(d.t, script), more)
}

// event is one event of a stream.
type event struct {
	id         int
	name, data string
}

// follow reads a stream to its end, or up to limit events.
func follow(t *testing.T, request *http.Request, limit int) (events []event) {
	t.Helper()
	followEach(t, request, func(one event) bool {
		events = append(events, one)

		return len(events) < limit
	})

	return events
}

// followEach passes each event of a stream to take, until the stream ends or take returns false.
func followEach(t *testing.T, request *http.Request, take func(event) bool) {
	t.Helper()

	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()

	request.Header.Set("Accept", "text/event-stream")

	response, err := http.DefaultClient.Do(request.WithContext(ctx))
	require.NoError(t, err)

	defer func() { _ = response.Body.Close() }()

	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))

	eachEvent(response.Body, take)
}

// readEvents reads up to limit events, or those that arrived before the connection ended. An incomplete event is dropped.
func readEvents(body io.Reader, limit int) (events []event) {
	eachEvent(body, func(one event) bool {
		events = append(events, one)

		return len(events) < limit
	})

	return events
}

func eachEvent(body io.Reader, take func(event) bool) {
	var one event

	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)

	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")

		switch name {
		case "id":
			one.id, _ = strconv.Atoi(value)
		case "event":
			one.name = value
		case "data":
			one.data = value
		case "":
			if one.name+one.data != "" && !take(one) { // a keep-alive comment has neither name nor data
				return
			}

			one = event{}
		}
	}
}

func TestAskStream(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=100", "QUERN_QUERY_MAX_PER_USER=100")
	key := s.newKey()
	d := newFilled(t, s, "asker", key.token("asker"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north", "amount": 3}, {"region": "south", "amount": 4}]}`).status)

	ask := func(agent, script string) []event {
		return follow(t, newRequest(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script(agent, script, "")), 1000)
	}

	counting := `{"steps": [{"instruction": "count", "queries": ["SELECT nothing FROM ` + d.name + `", "SELECT count(*) AS n FROM ` + d.name + `"]}], "response": "1 row."}`
	events := ask("nl2ql", counting)

	var names []string

	for i, e := range events {
		require.Equal(t, i+1, e.id)
		names = append(names, e.name)
	}

	require.Equal(t, []string{"runStarted", "stepStarted", "queryExecuting", "queryExecuting", "step", "runCompleted"}, names)
	require.Contains(t, events[4].data, `"data":[{"n":2`)

	var ids struct {
		RunID, ConversationID uuid.UUID
	}

	(&answer{body: events[0].data}).json(t, &ids)

	address := s.url + "/query/runs/" + ids.RunID.String()
	for after := range len(events) + 1 { // also after the last event, where the stream ends at once
		again := follow(t, newRequest(t, http.MethodGet, address+"/events", d.bearer, "", fmt.Sprintf("Last-Event-ID: %d", after)), 1000)
		require.Equal(t, events[after:], append([]event{}, again...))
	}

	got := call(t, http.MethodGet, address, d.bearer, "")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Contains(t, got.body, `"status":"completed"`)

	waited := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", `{"response": "Yes."}`, fmt.Sprintf(`"conversationId": %q`, ids.ConversationID)), "Accept: application/json")
	require.Equal(t, http.StatusOK, waited.status, waited.body)
	require.Contains(t, waited.body, `"response":"Yes."`)

	type turn struct {
		RunID                      uuid.UUID
		Question, Status, Response string
	}

	var (
		second       struct{ RunID uuid.UUID }
		conversation struct {
			ID    uuid.UUID
			Title string
			Turns []struct {
				turn
				Result struct{ Response string }
			}
		}
	)

	waited.json(t, &second)

	read := call(t, http.MethodGet, s.url+"/query/conversations/"+ids.ConversationID.String(), d.bearer, "")
	require.Equal(t, http.StatusOK, read.status, read.body)
	read.json(t, &conversation)
	require.Equal(t, ids.ConversationID, conversation.ID)
	require.NotEmpty(t, conversation.Title)

	turns := make([]turn, len(conversation.Turns))
	for i, one := range conversation.Turns {
		turns[i] = one.turn
		turns[i].Response = one.Result.Response
	}

	require.Equal(t, []turn{
		{ids.RunID, counting, "completed", "1 row."},
		{second.RunID, `{"response": "Yes."}`, "completed", "Yes."},
	}, turns, "oldest first")

	playStreams(t, s, d, key)
}
