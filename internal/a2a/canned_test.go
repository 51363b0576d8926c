package a2a

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/webhook"
)

// canned is an agent that does what the agents of Quern never do: it asks for input, answers without a task, and makes
// files. The prefix of the message id selects the behaviour, as the conformance kit of the protocol requires. Its updates of
// a task are written to the log of a run.
type canned struct {
	mu    sync.Mutex
	talks map[uuid.UUID]*dialogue
}

// line is one update of a task.
type line struct {
	State    protocol.TaskState `json:"state,omitempty"`
	Text     string             `json:"text,omitempty"` // message of the state
	Artifact *protocol.Part     `json:"artifact,omitempty"`
}

// act is the reaction to a message.
type act struct {
	says  string // answer instead of a task
	works bool   // send the working status
	makes *protocol.Part
	takes time.Duration
	asks  bool
	ends  line
}

func actOf(messageID string) act {
	name, isKit := strings.CutPrefix(messageID, "tck-")
	file := func(part *protocol.Part) *protocol.Part {
		part.Filename, part.MediaType = "output.txt", plainText

		return part
	}

	for _, one := range []struct {
		prefix string
		act    act
	}{
		{"complete-task", act{ends: line{Text: "Hello from TCK"}}},
		{"input-required", act{asks: true}},
		{"message-response", act{says: "Direct message response"}},
		{"reject-task", act{ends: line{State: protocol.TaskStateRejected, Text: "rejected"}}},
		{"artifact-text", act{makes: protocol.NewTextPart("Generated text content")}},
		{"artifact-file-url", act{makes: file(protocol.NewFileURLPart("https://example.com/output.txt", plainText))}},
		{"artifact-file", act{makes: file(protocol.NewRawPart([]byte("tck")))}},
		{"artifact-data", act{makes: protocol.NewDataPart(map[string]any{"key": "value", "count": 42})}},
		{"stream-001", act{works: true, makes: protocol.NewTextPart("Stream hello from TCK")}},
		{"stream-002", act{says: "Stream hello from TCK"}},
		{"stream-003", act{works: true, makes: protocol.NewTextPart("Stream task lifecycle")}},
		{"stream-ordering-001", act{works: true, makes: protocol.NewTextPart("Ordered output")}},
		{"stream-artifact-text", act{works: true, makes: protocol.NewTextPart("Streamed text content")}},
		{"stream-artifact-file", act{works: true, makes: file(protocol.NewRawPart([]byte("tck")))}},
	} {
		if isKit && strings.HasPrefix(name, one.prefix) {
			return one.act
		}
	}

	if strings.HasPrefix(messageID, "test-resubscribe-message-id") {
		return act{works: true, takes: 4 * time.Second}
	}

	return act{}
}

// Answer implements agent.Agent.
func (c *canned) Answer(ctx context.Context, _ auth.Principal, asked agent.Question, log agent.Log) (agent.Result, error) {
	defer c.forget(asked.Run)

	var said []line

	say := func(l line) error {
		said = append(said, l)

		body, err := json.Marshal(l)
		if err != nil {
			return err
		}

		return log.Write(ctx, agent.Event{Kind: "line", Body: body})
	}

	does := actOf(asked.MessageID)

	if does.works {
		if err := say(line{State: protocol.TaskStateWorking}); err != nil {
			return agent.Result{}, err
		}
	}

	if does.makes != nil {
		if err := say(line{Artifact: does.makes}); err != nil {
			return agent.Result{}, err
		}
	}

	for does.asks {
		if err := say(line{State: protocol.TaskStateInputRequired}); err != nil {
			return agent.Result{}, err
		}

		answer, err := c.listen(ctx, asked.Run)
		if err != nil {
			return agent.Result{}, err
		}

		does = actOf(answer)
	}

	select {
	case <-ctx.Done():
		return agent.Result{}, ctx.Err()
	case <-time.After(does.takes):
	}

	last := does.ends
	last.State = cmp.Or(last.State, protocol.TaskStateCompleted)

	all, err := json.Marshal(append(said, last))

	return agent.Result{Response: string(all), Outcome: agent.Answer}, err
}

// cannedOrder converts the lines of the log to events. The result contains all lines.
type cannedOrder struct {
	*telling

	told int
}

func (o *cannedOrder) next(event run.Event) ([]protocol.Event, error) {
	switch event.Kind {
	case run.EventStarted:
		return []protocol.Event{submitted(o.run)}, nil
	case run.EventBegun:
		return nil, nil
	case run.EventCancelled, run.EventFailed, run.EventCompleted:
		return o.end(event, o.complete)
	default:
		var one line

		err := json.Unmarshal(event.Body, &one)

		return []protocol.Event{o.tell(event.At, one)}, err
	}
}

func (o *cannedOrder) complete(at time.Time, result run.Result) (events []protocol.Event, err error) {
	var all []line

	err = json.Unmarshal([]byte(result.Response), &all)
	for o.told < len(all) {
		events = append(events, o.tell(at, all[o.told]))
	}

	return events, err
}

func (o *cannedOrder) tell(at time.Time, l line) protocol.Event {
	o.told++

	if l.Artifact != nil {
		return o.artifact("made", nil, l.Artifact)
	}

	status := protocol.TaskStatus{State: l.State, Timestamp: moment(at)}
	if l.Text != "" {
		status.Message = o.message("end", protocol.NewTextPart(l.Text))
	}

	return o.update(status)
}

// dialogue is a run that may ask for input.
type dialogue struct {
	asks    chan struct{} // closed when the run asks for input
	answers chan string   // ids of messages
}

func (c *canned) of(id uuid.UUID) *dialogue {
	if c.talks[id] == nil {
		c.talks[id] = &dialogue{asks: make(chan struct{}), answers: make(chan string, 1)}
	}

	return c.talks[id]
}

func (c *canned) forget(id uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.talks, id)
}

// listen asks for input and returns the id of the message that answers.
func (c *canned) listen(ctx context.Context, id uuid.UUID) (string, error) {
	c.mu.Lock()
	d := c.of(id)
	close(d.asks)
	c.mu.Unlock()

	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case answer := <-d.answers:
		return answer, nil
	}
}

// answer passes a message to a run that waits for input. It returns false if the run does not wait.
func (c *canned) answer(id uuid.UUID, messageID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	d := c.of(id)

	select {
	case <-d.asks:
		d.asks = make(chan struct{})
		d.answers <- messageID

		return true
	default:
		return false
	}
}

// take implements talk.
func (c *canned) take(ctx context.Context, h handler, message *protocol.Message) (run.Run, *protocol.Message, error) {
	if words := actOf(message.ID).says; words != "" && message.TaskID == "" {
		said := protocol.NewMessage(protocol.MessageRoleAgent, protocol.NewTextPart(words))
		said.ContextID = cmp.Or(message.ContextID, uuid.NewString())

		return run.Run{}, said, nil
	}

	if found, err := h.find(ctx, message.TaskID); err == nil && (message.ContextID == "" || message.ContextID == found.Conversation.String()) && c.answer(found.ID, message.ID) {
		return found, nil, nil
	}

	// The kit does not send a namespace, and it repeats one message and expects a new task each time.
	message.Metadata = map[string]any{"namespace": "shop", "https://example.org/nonce": uuid.NewString()}

	return oneQuestion{}.take(ctx, h, message)
}

// wait implements talk.
func (c *canned) wait(ctx context.Context, h handler, made run.Run) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	c.mu.Lock()
	asks := c.of(made.ID).asks
	c.mu.Unlock()

	ended := make(chan error, 1)

	go func() { ended <- h.Runs.Await(ctx, h.who, made.ID) }()

	select {
	case err := <-ended:
		return err
	case <-asks:
		return nil
	}
}

// newCanned serves the canned agent and returns its address.
func newCanned(t *testing.T) string {
	t.Helper()

	db, who := pgtest.New(t), auth.Principal{Account: uuid.New(), Username: "ada"}
	names := catalog.Catalog{DB: db, Now: time.Now}

	_, err := names.CreateNamespace(t.Context(), who, catalog.NewNamespace{Name: "shop"})
	require.NoError(t, err)

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `
			INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
			VALUES ($1, 'person', $2, 'issuer', $2, '', '', '{}', now(), now())`, who.Account, who.Username)

		return err
	}))

	c := &canned{talks: map[uuid.UUID]*dialogue{}}

	var jobs *job.Client

	runs := run.New(run.Config{
		DB: db, Catalog: names, Agents: map[string]agent.Agent{"canned": c}, Jobs: func() *job.Client { return jobs },
		Credentials: auth.Credentials{DB: db, Now: time.Now},
		Log:         slog.New(slog.DiscardHandler), Now: time.Now, Timeout: time.Hour, MaxPerUser: 1000, PollInterval: 50 * time.Millisecond,
	})

	workers := river.NewWorkers()
	river.AddWorker(workers, &run.Worker{Runs: runs})

	jobs, err = job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler), Workers: workers, Queues: map[string]int{run.Queue: 100}})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(context.Background())

	var working sync.WaitGroup

	working.Go(func() { _ = jobs.Run(ctx) })
	working.Go(func() { runs.Tail(ctx) })

	server := httptest.NewUnstartedServer(nil)
	address := "http://" + server.Listener.Addr().String()
	agents := newAgents(Config{
		Push: webhook.New(webhook.Config{DB: db, Now: time.Now, Secret: []byte("secret"), Transport: &http.Transport{}}),
		Runs: runs, Catalog: names, PublicURL: address, Version: "1", MaxBody: 1 << 20, Now: time.Now,
		Who:  func(context.Context) auth.Principal { return who },
		Note: func(_ context.Context, err error) { t.Log(err) },
	}, []profile{{
		name: "canned", description: "Does what it is told.", output: []string{plainText, jsonType},
		skill: protocol.AgentSkill{ID: "canned", Name: "Canned", Tags: []string{"test"}, Description: "Does what it is told."},
		order: func(t *telling) order { return &cannedOrder{telling: t} }, talk: c,
	}})
	mux := http.NewServeMux()
	for pattern, id := range map[string]string{
		"GET " + basePath: "listAgents", "GET " + basePath + "/{agent}": "getAgent", "POST " + basePath + "/{agent}": "callAgent",
		"GET " + basePath + "/{agent}" + cardPath: "getAgentCard",
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := agents.Handlers()[id](w, r); err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
			}
		})
	}

	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/") // as the real server does
		mux.ServeHTTP(w, r)
	})
	server.Start()

	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		stop()
		working.Wait()
	})

	return address + basePath + "/canned"
}

// rpc calls a method and returns the body of the response. The caller closes it.
func rpc(t *testing.T, address, method, params string) io.ReadCloser {
	t.Helper()

	body := strings.NewReader(`{"jsonrpc": "2.0", "id": 1, "method": "` + method + `", "params": ` + params + `}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
	require.NoError(t, err)

	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)

	return response.Body
}

func read(t *testing.T, from io.ReadCloser) string {
	t.Helper()

	text, err := io.ReadAll(from)
	require.NoError(t, err)
	require.NoError(t, from.Close())

	return string(text)
}

// TestDialogue checks the parts of the protocol that the agents of Quern do not use.
func TestDialogue(t *testing.T) {
	t.Parallel()

	address := newCanned(t)
	call := func(method, params string) string { return read(t, rpc(t, address, method, params)) }
	message := func(id, more string) string {
		return `{"message": {"messageId": "` + id + `", "role": "ROLE_USER", "parts": [{"text": "x"}]` + more + `}}`
	}
	begin := func() string {
		var asked struct{ Result struct{ Task protocol.Task } }
		require.NoError(t, json.Unmarshal([]byte(call("SendMessage", message("tck-input-required", ""))), &asked))
		require.Equal(t, protocol.TaskStateInputRequired, asked.Result.Task.Status.State, "SendMessage waits no longer than the agent works")

		return string(asked.Result.Task.ID)
	}

	id := begin()
	named, reply := `{"id": "`+id+`"}`, `, "taskId": "`+id+`"`
	subscribed := rpc(t, address, "SubscribeToTask", named)

	// The stream opens before it reads the task, so wait for the task before sending replies.
	lines, opening := bufio.NewReader(subscribed), ""
	for !strings.HasPrefix(opening, "data: ") {
		var err error

		opening, err = lines.ReadString('\n')
		require.NoError(t, err)
	}

	require.Contains(t, opening, `"result":{"task":`)

	require.Contains(t, call("SendMessage", message("tck-input-required", reply)), "TASK_STATE_INPUT_REQUIRED", "it asks again")
	require.Contains(t, call("GetTask", named), "TASK_STATE_INPUT_REQUIRED")
	require.Contains(t, call("SendMessage", message("m", reply+`, "contextId": "`+uuid.NewString()+`"`)), "-32602")
	require.Contains(t, call("SendMessage", message("tck-complete-task", reply)), "TASK_STATE_COMPLETED")
	require.Contains(t, call("SendMessage", message("m", reply)), "-32004", "it has ended")

	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.NoError(t, subscribed.Close())

	events := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(rest)), "\n\n"), func(text string) bool { return strings.HasPrefix(text, ":") })
	require.Len(t, events, 2)
	require.Contains(t, events[0], "TASK_STATE_INPUT_REQUIRED")
	require.Contains(t, events[1], "TASK_STATE_COMPLETED")

	cancelled := call("CancelTask", `{"id": "`+begin()+`"}`)
	require.Contains(t, cancelled, "TASK_STATE_CANCELED")

	require.Contains(t, call("SendMessage", message("tck-message-response", "")), `"result":{"message":{`)
	require.Equal(t, 1, strings.Count(call("SendStreamingMessage", message("tck-message-response", "")), "data: "), "a message is all there is")
	require.Contains(t, call("SendMessage", message("tck-artifact-file", "")), `"raw":"dGNr"`)
}
