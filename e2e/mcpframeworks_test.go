package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// newToolModel starts a model with the interface of OpenAI that calls list_datasets, and then answers with what the tool returned.
func newToolModel(t *testing.T) *httptest.Server {
	t.Helper()

	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var said struct {
			Messages []struct {
				Role    string
				Content any
			}
		}

		if json.NewDecoder(r.Body).Decode(&said) != nil || r.URL.Path != "/chat/completions" {
			w.WriteHeader(http.StatusNotFound)

			return
		}

		message := map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": "call_1", "type": "function", "function": map[string]any{"name": "list_datasets", "arguments": "{}"},
		}}}

		if last := said.Messages[len(said.Messages)-1]; last.Role == "tool" {
			found, _ := json.Marshal(last.Content) // it was decoded
			message = map[string]any{"role": "assistant", "content": "The tool says: " + string(found)}
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "1", "object": "chat.completion", "created": 1, "model": "test", "choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": message}},
			"usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
		})
	}))
	t.Cleanup(served.Close)

	return served
}

// TestMCPFrameworks runs the examples for agent frameworks in docs/mcp.md, with a model that calls a tool.
func TestMCPFrameworks(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../docs/mcp.md")
	require.NoError(t, err)

	d, model := newPublic(t), newToolModel(t)
	blocks := regexp.MustCompile("(?s)```python framework=([\\w-]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 2)

	for _, block := range blocks {
		t.Run(block[1], func(t *testing.T) {
			t.Parallel()

			file := filepath.Join(t.TempDir(), "agent.py")
			require.NoError(t, os.WriteFile(file, []byte(block[2]), 0o600))

			program := exec.CommandContext(t.Context(), filepath.Join(installed(t, block[1]), "bin", "python"), file)
			program.Env = append(os.Environ(), "QUERN_URL="+d.s.url, "QUERN_TOKEN="+d.bearer, "MODEL=test", "OPENAI_BASE_URL="+model.URL, "OPENAI_API_KEY=none",
				"LANGSMITH_TRACING=false", "NO_PROXY=127.0.0.1")
			output, err := program.CombinedOutput()
			require.NoError(t, err, string(output))
			require.Contains(t, string(output), "The tool says: ")
			require.Contains(t, string(output), d.path())
		})
	}
}
