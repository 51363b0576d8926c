package e2e

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

const (
	queryStream  = "working, generated-query, result-data, completed"
	threeSteps   = `{"pause": 200, "reasoning": "Three.", "response": "Done.", "steps": [{"instruction": "a", "queries": ["SELECT 1 AS n"]}, {"instruction": "b", "queries": ["SELECT 2 AS n"]}, {"instruction": "c", "queries": ["SELECT 3 AS n"]}]}`
	answerStream = "task submitted, working, plan, instruction, instruction, instruction, step-0, step-1, step-2, answer, completed" //nolint:dupword // each is one event
)

// streaming starts replicas whose limits on questions, statements and streams are high enough for every test here.
func streaming(t *testing.T, replicas int, more ...string) []*peer {
	t.Helper()

	settings := []string{scripted, "QUERN_RUN_MAX_PER_USER=10000", "QUERN_QUERY_MAX_PER_USER=1000", "QUERN_RUN_MAX_STREAMS_PER_USER=10000", "QUERN_RATE_LIMIT=0"}
	settings = append(settings, more...)
	one := start(t, settings...)
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "asker"}`))
	d := newFilled(t, one, "ada", bearer)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	peers := []*peer{newPeer(d, "nl2ql")}

	for range replicas - 1 {
		other := *d
		other.s = another(t, one, settings...)
		peers = append(peers, newPeer(&other, "nl2ql"))
	}

	return peers
}

func (p *peer) as(agent string) *peer { return newPeer(p.filled, agent) }

// TestStreamOrder checks that a stream has the events of its agent in order, and that every repetition returns the same events.
func TestStreamOrder(t *testing.T) {
	t.Parallel()

	for replicas := 1; replicas <= 2; replicas++ {
		t.Run(fmt.Sprintf("nl2ql streams four events, replicas: %d", replicas), func(t *testing.T) {
			t.Parallel()

			peers := streaming(t, replicas)
			scripts := []string{oneStep, "{}", noScript, `{"response": "No.", "steps": [{"instruction": "x", "queries": ["SELECT nothing", "SELECT 1 AS n"]}, {"instruction": "y", "queries": ["SELECT 2 AS n"]}]}`}
			requests := make(chan int)

			var clients sync.WaitGroup

			for range 8 {
				clients.Go(func() {
					for i := range requests {
						p := peers[i%replicas]
						if seen := words(p.follow(p.request("SendStreamingMessage", p.ask(uuid.NewString(), scripts[i/replicas%len(scripts)], "")))); seen != queryStream {
							t.Errorf("%d: %s", i, seen)
						}
					}
				})
			}

			for i := range loops(500) {
				requests <- i
			}

			close(requests)
			clients.Wait()
		})
	}

	t.Run("subscribers everywhere see the same", func(t *testing.T) {
		t.Parallel()

		peers := streaming(t, 2)

		for agent, script := range map[string]string{"assistant": threeSteps, "nl2ql": `{"pause": 400, "response": "One.", "steps": [{"instruction": "x", "queries": ["SELECT 1 AS n"]}]}`} {
			one, two := peers[0].as(agent), peers[1].as(agent)

			for range loops(50) {
				message := one.ask(uuid.NewString(), script, "")
				id := rpcResult(t, one.call("SendMessage", strings.TrimSuffix(message, "}")+", "+atOnceConfig+"}")).Task.ID
				// The same message is the same task, so SendStreamingMessage returns the task's stream from the beginning, on
				// both replicas.
				streams := []*openedStream{
					openStream(t, one.request("SubscribeToTask", `{"id": "`+id+`"}`)), openStream(t, two.request("SubscribeToTask", `{"id": "`+id+`"}`)),
					openStream(t, one.request("SendStreamingMessage", message)), openStream(t, two.request("SendStreamingMessage", message)),
				}

				var texts []string
				for _, stream := range streams {
					texts = append(texts, withoutSigns(stream.rest().body))
				}

				require.Equal(t, texts[2], texts[3])

				for _, subscribed := range texts[:2] {
					task, rest, _ := strings.Cut(subscribed, "\n\n")
					require.Contains(t, task, `"result":{"task":{`)
					require.True(t, strings.HasSuffix(texts[2], rest), "%s\n\n%s", subscribed, texts[2])
				}

				require.Equal(t, map[string]string{"assistant": answerStream, "nl2ql": queryStream}[agent], words(two.follow(two.request("SendStreamingMessage", message))))
			}
		}
	})
}

// TestStreamKillLoop kills the replica of a stream after each of its events. A client that goes on at the other replica has missed nothing.
func TestStreamKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	peers := streaming(t, 2)
	whole := strings.Count(answerStream, ",") + 1

	cuts := []int{2, whole - 4}
	if full() {
		cuts = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	}

	for i, cut := range cuts {
		kill.Round(t)

		dying, other := peers[i%2].as("assistant"), peers[(i+1)%2].as("assistant")
		stream := openStream(t, dying.request("SendStreamingMessage", dying.ask(uuid.NewString(), threeSteps, "")))

		var seen []a2aEvent

		for range cut {
			event, more := stream.next()
			require.True(t, more)

			seen = append(seen, event)
		}

		dying.s.kill()

		rest := other.call("SubscribeToTask", `{"id": "`+seen[0].Task.ID+`"}`)
		for line := range strings.Lines(rest.body) {
			if data, isData := strings.CutPrefix(line, "data: "); isData {
				seen = append(seen, rpcResult(t, &answer{body: data}))
			}
		}

		dying.s.restart()

		// The task may have ended meanwhile. Then the client gets the task instead of a stream.
		if rest.header.Get("Content-Type") == "application/json" {
			code, _ := rpcError(t, rest)
			require.Equal(t, -32004, code)

			ended := other.task("GetTask", seen[0].Task.ID)
			seen = append(seen, a2aEvent{Task: &ended})
		}

		requireWhole(t, other, seen)
	}
}

// requireWhole checks the events of two streams together: a client that received them has missed nothing, and no artifact was
// sent twice with different content.
func requireWhole(t *testing.T, p *peer, seen []a2aEvent) {
	t.Helper()

	var (
		said      []string
		artifacts = map[string]a2aArtifact{}
		names     []string
	)

	hear := func(message *a2aMessage) {
		if message != nil && message.Role == "ROLE_AGENT" && !slices.Contains(said, *message.Parts[0].Text) {
			said = append(said, *message.Parts[0].Text)
		}
	}
	take := func(artifact a2aArtifact) {
		if before, known := artifacts[artifact.Name]; known {
			require.Equal(t, before, artifact)

			return
		}

		artifacts[artifact.Name] = artifact
		names = append(names, artifact.Name)
	}

	for _, event := range seen {
		switch {
		case event.Task != nil:
			for _, message := range event.Task.History {
				hear(&message)
			}

			hear(event.Task.Status.Message)

			for _, artifact := range event.Task.Artifacts {
				take(artifact)
			}
		case event.StatusUpdate != nil:
			hear(event.StatusUpdate.Status.Message)
		case event.ArtifactUpdate != nil:
			take(event.ArtifactUpdate.Artifact)
		}
	}

	if last := seen[len(seen)-1]; last.Task == nil {
		require.Equal(t, []string{"Three.", "a", "b", "c", "Done."}, said, words(seen))
	}

	require.Equal(t, []string{"step-0", "step-1", "step-2", "answer"}, names, words(seen))
	require.Equal(t, "completed", strings.TrimPrefix(seen[len(seen)-1].String(), "task "))

	task := p.task("GetTask", seen[0].Task.ID)
	require.Equal(t, "TASK_STATE_COMPLETED", task.Status.State)

	for _, artifact := range task.Artifacts {
		require.Equal(t, artifact, artifacts[artifact.Name])
	}
}

const runWorkers = 8 // default number of workers of a process

// TestManyStreams checks that many streams that are open at once all end correctly, even if some clients never read.
func TestManyStreams(t *testing.T) {
	t.Parallel()

	p := streaming(t, 1)[0]
	script := `{"pause": 1000, "response": "Done.", "steps": [{"instruction": "x", "queries": ["SELECT repeat('x', 500000) AS n"]}]}`

	// These clients open a connection and never read from it.
	for range 20 {
		address, err := net.ResolveTCPAddr("tcp", strings.TrimPrefix(p.s.root, "http://"))
		require.NoError(t, err)

		connection, err := net.DialTCP("tcp", nil, address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		require.NoError(t, connection.SetReadBuffer(1024))
		require.NoError(t, p.request("SendStreamingMessage", p.ask(uuid.NewString(), script, "")).Write(connection))
	}

	// While all workers are busy every stream stays open.
	var busy []string
	for range runWorkers {
		busy = append(busy, p.begin(waiting).ID)
	}

	var (
		clients sync.WaitGroup
		turns   = make(chan struct{}, 16) // limits how many clients ask at once
		many    = loops(500)
		opened  sync.WaitGroup
	)

	opened.Add(many)

	for i := range many {
		turns <- struct{}{}

		clients.Go(func() {
			isOpen := sync.OnceFunc(func() {
				<-turns
				opened.Done()
			})
			defer isOpen()

			script, want := "{}", "task submitted, working, plan, answer, completed"
			if i%2 == 1 {
				script, want = `{"fail": true}`, "task submitted, working, plan, failed"
			}

			stream := openStream(t, p.as("assistant").request("SendStreamingMessage", p.ask(uuid.NewString(), script, "")))
			first, _ := stream.next()
			seen := []a2aEvent{first}

			isOpen()

			for event, more := stream.next(); more; event, more = stream.next() {
				seen = append(seen, event)
			}

			if words(seen) != want {
				t.Errorf("%d: %s", i, words(seen))
			}
		})
	}

	opened.Wait()

	for _, id := range busy {
		p.task("CancelTask", id)
	}

	clients.Wait()
}

// TestKeepAlive checks that a stream without events stays open and sends keep-alive comments.
func TestKeepAlive(t *testing.T) {
	t.Parallel()

	silence, signs := 12*time.Second, 3
	if full() {
		silence, signs = 62*time.Second, 15
	}

	p := streaming(t, 1)[0]
	began := time.Now()
	script := fmt.Sprintf(`{"pause": %d, "steps": [{"instruction": "x"}]}`, silence.Milliseconds())
	text := openStream(t, p.request("SendStreamingMessage", p.ask(uuid.NewString(), script, ""))).rest().body

	require.Greater(t, time.Since(began), silence)
	require.GreaterOrEqual(t, strings.Count(text, ": keep-alive\n\n"), signs)
	require.Contains(t, text, "TASK_STATE_COMPLETED")
}

// TestForeignTasks checks that a task that the caller may not see looks absent in every method: for other users, for tokens
// limited to something else, and for the other agent. None of these calls may change the task.
func TestForeignTasks(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))

	for _, agent := range []string{"nl2ql", "assistant"} {
		owner := newPeer(d, agent)
		task := owner.begin(waiting)

		// Bob can see the namespace, but not the tasks of others.
		share(t, s, d.bearer, "namespaces/self/"+d.namespace, "bob", "editor")

		strangers := map[string]*peer{
			"another user":                          newPeer(d.by(key.token("bob")), agent),
			"a token that reaches something else":   newPeer(d.by(restrictedToken(t, s, d.bearer, target("self", makeDataset(t, s, d.bearer), ""))), agent),
			"the other agent":                       newPeer(d, map[string]string{"nl2ql": "assistant", "assistant": "nl2ql"}[agent]),
			"a user to whom nothing at all belongs": newPeer(d.by(key.token("nobody")), agent),
		}

		for who, p := range strangers {
			absent := uuid.NewString()

			for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
				foreign := p.call(method, `{"id": "`+task.ID+`"}`)
				require.Equal(t, p.call(method, `{"id": "`+absent+`"}`).body, foreign.body, "%s: %s", who, method)
				require.Contains(t, foreign.body, "-32001", "%s: %s", who, method)
			}

			for _, method := range []string{"SendMessage", "SendStreamingMessage"} {
				named := func(what, id string) string {
					return p.call(method, `{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "`+d.owner+"/"+d.namespace+`"}, "`+what+`": "`+id+`"}}`).body
				}

				require.Equal(t, named("taskId", absent), named("taskId", task.ID), "%s: %s", who, method)
				require.Contains(t, named("taskId", task.ID), "-32001", "%s: %s", who, method)

				if who != "the other agent" { // the conversation belongs to the caller
					require.Equal(t, named("contextId", absent), named("contextId", task.ContextID), "%s: %s", who, method)
					require.Contains(t, named("contextId", task.ContextID), "-32602", "%s: %s", who, method)
				}
			}

			require.NotContains(t, p.call("ListTasks", `{}`).body, task.ID, who)
			require.Contains(t, p.call("ListTasks", `{"contextId": "`+task.ContextID+`"}`).body, `"tasks":[]`, who)
		}

		require.NotEqual(t, "TASK_STATE_CANCELED", owner.task("GetTask", task.ID).Status.State)

		reaches := newPeer(d.by(restrictedToken(t, s, d.bearer, target("self", d.namespace, ""))), agent)
		require.Contains(t, reaches.call("GetTask", `{"id": "`+task.ID+`"}`).body, "-32001", "what it reads is not known yet")

		own := reaches.begin(waiting)
		require.Equal(t, own.ID, reaches.task("GetTask", own.ID).ID)
		require.Contains(t, reaches.call("ListTasks", `{"contextId": "`+own.ContextID+`"}`).body, own.ID)
		require.Equal(t, "TASK_STATE_CANCELED", reaches.task("CancelTask", own.ID).Status.State)
		require.Equal(t, "TASK_STATE_CANCELED", owner.task("CancelTask", task.ID).Status.State)
	}
}
