package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMCPPeers lets the official libraries of Python and TypeScript use the tools, in the versions for both generations of the
// protocol: they list the tools, ask, choose an option, page through rows, get errors that they can read, and cancel.
func TestMCPPeers(t *testing.T) {
	t.Parallel()

	program := filepath.Join(t.TempDir(), "peer.mjs") // Node.js resolves modules relative to the folder of the program
	source, err := os.ReadFile("peers/mcp-js/peer.mjs")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, source, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(installed(t, "mcp-js"), "node_modules"), filepath.Join(filepath.Dir(program), "node_modules")))

	for _, peer := range []struct {
		name    string
		run     []string
		version string
		cancels bool // a client that disconnects cancels its run
	}{
		{name: "Python 2.3.0", run: []string{filepath.Join(installed(t, "mcp-python"), "bin", "python"), "peers/mcp-python/peer.py"}, version: "2026-07-28", cancels: true},
		{name: "Python 1.30.0", run: []string{filepath.Join(installed(t, "mcp-python-1"), "bin", "python"), "peers/mcp-python/peer.py"}, version: "2025-11-25"},
		{name: "TypeScript client 2.4.0", run: []string{"node", program, "client"}, version: "2026-07-28", cancels: true},
		{name: "TypeScript SDK 1.32.2", run: []string{"node", program, "sdk"}, version: "2025-11-25"},
	} {
		t.Run(peer.name, func(t *testing.T) {
			t.Parallel()

			d := newPublic(t)
			require.Contains(t, runFor(t, d, peer.run[0], peer.run[1:]...), "used the tools over "+peer.version)

			status := func() string {
				var runs struct{ Data []struct{ Status string } }
				call(t, http.MethodGet, d.s.url+"/query/runs?limit=1", d.bearer, "").json(t, &runs)

				return runs.Data[0].Status
			}

			if peer.cancels {
				await(t, "the run of the client that left is cancelled", func() bool { return status() == "cancelled" })
			} else {
				require.Equal(t, "running", status())
			}
		})
	}
}

// TestMCPReplicas alternates between two replicas behind a proxy, and kills one of them while calls are in progress. The proxy learns
// of it by the broken connection. A call that was in progress fails at once; all later ones succeed, and the runs go on.
func TestMCPReplicas(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_WORKERS=0") // a run whose worker is killed too is the matter of TestRunKillLoop
	other := another(t, s, scripted)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 1}, {"id": 2}]}`)

	var (
		requests atomic.Int64
		isDead   [2]atomic.Bool
	)

	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := requests.Add(1) % 2
		if isDead[to].Load() {
			to = 1 - to
		}

		address, _ := url.Parse([]string{s.root, other.root}[to]) // it is ours
		proxy := httputil.NewSingleHostReverseProxy(address)
		proxy.FlushInterval = -1
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
			isDead[to].Store(true)
			w.WriteHeader(http.StatusBadGateway)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	through := *d
	through.s = &service{t: t, url: front.URL + "/api/v1"}

	step := func() {
		var run, again toolRun

		through.tool("ask", fmt.Sprintf(`{"namespace": %q, "question": %s}`, d.namespace, encode(t, `{"outcome": "clarification", "response": "Which?", "clarification": {"question": "Which?", "options": ["this", "that"]}, "then": {"response": "It is <chosen>.", "steps": [{"instruction": "read", "queries": ["SELECT range AS n FROM range(250)"]}]}}`)), &run)
		require.Equal(t, "waiting", run.Status)
		through.tool("choose", fmt.Sprintf(`{"runId": %q, "option": 1}`, run.RunID), &run)
		require.Equal(t, "It is this.", run.Response)
		through.tool("get_run", fmt.Sprintf(`{"runId": %q}`, run.RunID), &again)
		require.Equal(t, run, again)

		seen, cursor := 0, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			var page toolRows
			through.tool("read_rows", fmt.Sprintf(`{"runId": %q%s}`, run.RunID, cursor), &page)

			if seen, cursor = seen+len(page.Rows), ""; page.NextCursor != "" {
				cursor = fmt.Sprintf(`, "cursor": %q`, page.NextCursor)
			}
		}

		require.Equal(t, 250, seen)
	}

	for range 3 {
		step()
	}

	// Two calls in progress, one at each replica.
	slow := d.accept("assistant", `{"pause": 8000, "response": "Done.", "steps": [{"instruction": "read", "queries": ["SELECT 1 AS n"]}]}`)
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_run", "arguments": {"runId": %q}}}`, slow.RunID)
	broken := make(chan bool, 2)

	already := requests.Load()

	for range 2 {
		request := newRequest(t, http.MethodPost, through.s.url+"/mcp", d.bearer, body, "Mcp-Protocol-Version: 2025-11-25")

		go func() {
			answer, err := try(request)
			broken <- err != nil || answer.status != http.StatusOK || !strings.Contains(answer.body, `"result"`)
		}()
	}

	await(t, "both calls are in progress", func() bool { return requests.Load() == already+2 })
	s.kill()
	require.True(t, <-broken, "the call at the killed replica fails before the run ends")

	var run toolRun

	for tries := 0; ; tries++ { // as a client does whose call failed
		require.Less(t, tries, 3, "the proxy still uses the killed replica")

		if answer, err := try(newRequest(t, http.MethodPost, through.s.url+"/mcp", d.bearer, body, "Mcp-Protocol-Version: 2025-11-25")); err == nil && answer.status == http.StatusOK {
			require.NoError(t, json.Unmarshal([]byte(usedOf(t, answer).text()), &run))

			break
		}
	}

	require.False(t, <-broken, "the call at the other replica is answered")
	await(t, "the run is answered", func() bool {
		through.tool("get_run", fmt.Sprintf(`{"runId": %q}`, slow.RunID), &run)

		return run.Status == "completed" && run.Response == "Done."
	})
	step()
}

// TestMCPBridge uses the tools through `quern mcp`, as a host that starts programs does.
func TestMCPBridge(t *testing.T) {
	t.Parallel()

	d := newPublic(t)
	host := exec.CommandContext(t.Context(), quernBinary(), "mcp")
	host.Env = append(os.Environ(), "QUERN_SERVER="+strings.TrimSuffix(d.s.url, "/api/v1"), "QUERN_TOKEN="+d.bearer, "QUERN_HOME="+t.TempDir())
	in, err := host.StdinPipe()
	require.NoError(t, err)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())

	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)

	talk := func(message string) (answer struct {
		ID     json.RawMessage
		Result json.RawMessage
		Error  *struct{ Message string }
	},
	) {
		_, err := fmt.Fprintln(in, message)
		require.NoError(t, err)
		require.True(t, lines.Scan(), lines.Err())
		require.NoError(t, json.Unmarshal(lines.Bytes(), &answer), lines.Text())

		return answer
	}

	require.Contains(t, string(talk(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).Result), `"quern"`)
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.NoError(t, err)
	require.Contains(t, string(talk(`{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"list_datasets","arguments":{}}}`).Result), d.path())

	modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	require.Contains(t, string(talk(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"query","arguments":{"sql":"SELECT 42 AS n"},`+modern+`}}`).Result), `[[42]]`)
	require.NotNil(t, talk(`garbage`).Error)
	require.NoError(t, in.Close())
	require.NoError(t, host.Wait())
}
