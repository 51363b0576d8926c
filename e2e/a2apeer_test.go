package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/stretchr/testify/require"
)

// newPublic starts a service that listens at its public address, with scripted agents and rows to ask about.
func newPublic(t *testing.T) *filled {
	t.Helper()

	s := startPublic(t, scripted)
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "peer"}`)))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	return d
}

// newSample starts a service that listens at its public address, without a model and with the sample of quernd dev.
func newSample(t *testing.T) *filled {
	t.Helper()

	s := startPublic(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := &filled{t, s, value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "peer"}`)), "ada", "roastery", "orders"}

	for _, name := range []string{"customers", "orders", "products"} {
		rows, err := os.ReadFile("../internal/dev/sample/" + name + ".csv")
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/roastery/"+name, d.bearer, "").status)

		one := *d
		one.name = name
		require.Equal(t, http.StatusOK, one.post(string(rows), "Content-Type: text/csv").status)
	}

	return d
}

// startPublic starts a service that listens at its public address.
func startPublic(t *testing.T, settings ...string) *service {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	return start(t, append(settings, "QUERN_LISTEN_ADDR="+address, "QUERN_PUBLIC_URL=http://"+address)...)
}

// installed returns the folder of a client of another project, and installs the client if it is missing.
func installed(t *testing.T, which string) string {
	t.Helper()

	install := exec.CommandContext(t.Context(), "peers/install", which)
	install.Stderr = os.Stderr
	folder, err := install.Output()
	require.NoError(t, err)

	return strings.TrimSpace(string(folder))
}

// runPeer runs a program that calls the agents. The program must succeed and report that it called both agents.
func runPeer(t *testing.T, d *filled, program string, args ...string) {
	t.Helper()
	require.Contains(t, runFor(t, d, program, args...), "talked to nl2ql and assistant")
}

// runFor runs a program with the address of the service, a token and a namespace in its environment, and returns its output.
func runFor(t *testing.T, d *filled, program string, args ...string) string {
	t.Helper()

	peer := exec.CommandContext(t.Context(), program, args...)
	peer.Env = append(os.Environ(), "QUERN_URL="+d.s.url, "QUERN_TOKEN="+d.bearer, "QUERN_NAMESPACE="+d.owner+"/"+d.namespace, "NO_PROXY=127.0.0.1")
	output, err := peer.CombinedOutput()
	require.NoError(t, err, string(output))

	return string(output)
}

// jsProgram copies a program next to the packages that it imports: Node.js resolves them relative to the folder of the program.
func jsProgram(t *testing.T, name string) string {
	t.Helper()

	program := filepath.Join(t.TempDir(), name)
	source, err := os.ReadFile("peers/js/" + name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, source, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(installed(t, "js"), "node_modules"), filepath.Join(filepath.Dir(program), "node_modules")))

	return program
}

// TestSlowModel checks that the libraries with their default timeouts get the answer of a model that takes 20 seconds.
func TestSlowModel(t *testing.T) {
	t.Parallel()

	d := newPublic(t)

	for name, command := range map[string][]string{
		"js":     {"node", jsProgram(t, "slow.mjs")},
		"python": {filepath.Join(installed(t, "python"), "bin", "python"), "peers/python/slow.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, runFor(t, d, command[0], command[1:]...), "waited twice")
		})
	}
}

// TestJSPeer checks that the JavaScript library finds the agents and gets the documented results from them.
func TestJSPeer(t *testing.T) {
	t.Parallel()

	runPeer(t, newPublic(t), "node", jsProgram(t, "peer.mjs"))
}

// TestPythonPeer checks the same with the Python library.
func TestPythonPeer(t *testing.T) {
	t.Parallel()
	runPeer(t, newPublic(t), filepath.Join(installed(t, "python"), "bin", "python"), "peers/python/peer.py")
}

// withToken is a transport that sends the token with every request.
type withToken string

func (token withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(token))

	return http.DefaultTransport.RoundTrip(request)
}

// TestGoPeer checks the same with the Go library. It uses the addresses in the catalog and not the cards, because the library
// cannot parse the protocol's form of the security requirements of a card.
func TestGoPeer(t *testing.T) {
	t.Parallel()

	d := newPublic(t)

	var catalog []struct{ Name, URL string }

	call(t, http.MethodGet, d.s.url+"/a2a", "", "").json(t, &catalog)
	require.Len(t, catalog, 2)

	for _, entry := range catalog {
		client, err := a2aclient.NewFromEndpoints(t.Context(), []*protocol.AgentInterface{protocol.NewAgentInterface(entry.URL, protocol.TransportProtocolJSONRPC)},
			a2aclient.WithJSONRPCTransport(&http.Client{Transport: withToken(d.bearer)}))
		require.NoError(t, err)

		talk(t, client, d, entry.Name)
	}
}

func talk(t *testing.T, client *a2aclient.Client, d *filled, agent string) {
	t.Helper()

	ask := func(script string, info protocol.TaskInfo) *protocol.SendMessageRequest {
		message := protocol.NewMessageForTask(protocol.MessageRoleUser, info, protocol.NewTextPart(script))
		message.Metadata = map[string]any{"namespace": d.namespace}

		return &protocol.SendMessageRequest{Message: message}
	}

	sent, err := client.SendMessage(t.Context(), ask(oneStep, protocol.TaskInfo{}))
	require.NoError(t, err)

	task, isTask := sent.(*protocol.Task)
	require.True(t, isTask)
	require.Equal(t, protocol.TaskStateCompleted, task.Status.State)

	var (
		seen []string
		rows any
	)

	for event, err := range client.SendStreamingMessage(t.Context(), ask(oneStep, protocol.TaskInfo{ContextID: task.ContextID})) {
		require.NoError(t, err)

		switch event := event.(type) {
		case *protocol.Task:
			seen = append(seen, "task")
		case *protocol.TaskStatusUpdateEvent:
			seen = append(seen, string(event.Status.State))
		case *protocol.TaskArtifactUpdateEvent:
			seen = append(seen, event.Artifact.Name)

			for _, part := range event.Artifact.Parts {
				if found, isFound := part.Data().(map[string]any); isFound && found["rows"] != nil {
					rows = found["rows"]
				}
			}
		}
	}

	working, completed := string(protocol.TaskStateWorking), string(protocol.TaskStateCompleted)
	require.Equal(t, map[string][]string{
		"nl2ql":     {working, "generated-query", "result-data", completed},
		"assistant": {"task", working, working, working, "step-0", "answer", completed},
	}[agent], seen)
	require.Equal(t, `[map[__metadata:map[score:1] region:north] map[__metadata:map[score:1] region:south]]`, fmt.Sprint(rows))

	got, err := client.GetTask(t.Context(), &protocol.GetTaskRequest{ID: task.ID})
	require.NoError(t, err)
	require.Equal(t, task, got)

	listed, err := client.ListTasks(t.Context(), &protocol.ListTasksRequest{ContextID: task.ContextID})
	require.NoError(t, err)
	require.Equal(t, 2, listed.TotalSize)

	// The service refuses to connect to this address.
	push, err := client.CreateTaskPushConfig(t.Context(), &protocol.PushConfig{TaskID: task.ID, URL: "https://localhost/none"})
	require.NoError(t, err)

	pushes, err := client.ListTaskPushConfigs(t.Context(), &protocol.ListTaskPushConfigRequest{TaskID: task.ID})
	require.NoError(t, err)
	require.Equal(t, []*protocol.PushConfig{push}, pushes)
	require.NoError(t, client.DeleteTaskPushConfig(t.Context(), &protocol.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: push.ID}))

	waits := ask(waiting, protocol.TaskInfo{})
	waits.Config = &protocol.SendMessageConfig{ReturnImmediately: true}
	sent, err = client.SendMessage(t.Context(), waits)
	require.NoError(t, err)

	running := sent.TaskInfo().TaskID
	first := true

	for event, err := range client.SubscribeToTask(t.Context(), &protocol.SubscribeToTaskRequest{ID: running}) {
		require.NoError(t, err)
		require.Equal(t, running, event.TaskInfo().TaskID)

		if first {
			cancelled, err := client.CancelTask(t.Context(), &protocol.CancelTaskRequest{ID: running})
			require.NoError(t, err)
			require.Equal(t, protocol.TaskStateCanceled, cancelled.Status.State)
		}

		first = false
	}

	require.False(t, first)

	_, err = client.GetTask(t.Context(), &protocol.GetTaskRequest{ID: protocol.NewTaskID()})
	require.ErrorIs(t, err, protocol.ErrTaskNotFound)
	_, err = client.CancelTask(t.Context(), &protocol.CancelTaskRequest{ID: task.ID})
	require.ErrorIs(t, err, protocol.ErrTaskNotCancelable)
	_, err = client.SendMessage(t.Context(), ask(oneStep, task.TaskInfo()))
	require.ErrorIs(t, err, protocol.ErrUnsupportedOperation)
	_, err = client.SendMessage(t.Context(), &protocol.SendMessageRequest{Message: protocol.NewMessage(protocol.MessageRoleUser, protocol.NewTextPart("x"))})
	require.ErrorIs(t, err, protocol.ErrInvalidParams)
}

// TestA2ADocument runs the examples in docs/a2a.md on the sample, without a model.
func TestA2ADocument(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../docs/a2a.md")
	require.NoError(t, err)

	d := newSample(t)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(installed(t, "js"), "node_modules"), filepath.Join(folder, "node_modules")))

	runs := map[string]struct {
		file    string
		program []string
	}{
		"curl":   {"ask.sh", []string{"bash"}},
		"js":     {"ask.mjs", []string{"node"}},
		"python": {"ask.py", []string{filepath.Join(installed(t, "python"), "bin", "python")}},
		"go":     {"ask.go", []string{"go", "run"}},
	}

	for _, block := range regexp.MustCompile("(?s)```\\w+ run=(\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		how, isKnown := runs[block[1]]
		require.True(t, isKnown, block[1])
		delete(runs, block[1])

		file := filepath.Join(folder, how.file)
		require.NoError(t, os.WriteFile(file, []byte(block[2]), 0o600))

		output := runFor(t, d, how.program[0], append(how.program[1:], file)...)
		require.Contains(t, output, `sum(`, block[1])
		require.Contains(t, output, "Switzerland", block[1])
		require.Contains(t, output, "interpretation", block[1])
	}

	require.Empty(t, runs, "not in the document")

	// What the REST API says about a result, a task says too, and the card describes it.
	for _, agent := range []string{"nl2ql", "assistant"} {
		p := newPeer(d, agent)
		schemas := p.schemas()
		message := strings.Replace(p.ask("m", "What is the total amount of orders by country?", ""), `"metadata": {`, `"metadata": {"helperPrompt": "Be brief.", "maxRows": 2, `, 1)
		task := rpcResult(t, p.call("SendMessage", message)).Task
		schemas.requireTask(t, *task)

		said := task.Status.Message
		require.Contains(t, *said.Parts[0].Text, "The planner does not use `helperPrompt`.")
		require.Equal(t, "planner", said.Metadata["model"])
		require.Equal(t, "rules", said.Metadata["basis"])
		require.NotEmpty(t, said.Metadata["explained"])
		require.NotEmpty(t, said.Metadata["interpretation"])
		require.Equal(t, true, said.Metadata["truncated"])

		var (
			run    struct{ Result map[string]any }
			within struct {
				Result struct{ Steps []struct{ Truncated bool } }
			}
		)

		found := call(t, http.MethodGet, d.s.url+"/query/runs/"+task.ID, d.bearer, "")
		found.json(t, &run)
		found.json(t, &within)
		require.False(t, within.Result.Steps[0].Truncated, "only the artifact is cut")

		for name, value := range run.Result {
			if name != "response" && name != "steps" {
				require.Equal(t, value, said.Metadata[name], name)
			}
		}
	}
}
