package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// modernAsk calls ask in the stateless version of the protocol, and returns the result. capabilities are those of the host.
func modernAsk(t *testing.T, s *service, bearer, capabilities, params string) (result struct {
	ResultType, RequestState string
	InputRequests            map[string]struct {
		Method string
		Params struct {
			Message         string
			RequestedSchema json.RawMessage
		}
	}
	Content []struct{ Text string }
	IsError bool
},
) {
	t.Helper()

	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", %s, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": %s}}}`, params, capabilities)
	answer := call(t, http.MethodPost, s.url+"/mcp", bearer, body, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: ask")
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	all := messages(t, answer)
	require.NoError(t, json.Unmarshal(field(t, string(all[len(all)-1]), "result"), &result), answer.body)

	return result
}

// TestMCPElicitation checks that a host which says so is made to ask its user which interpretation is meant, that any replica
// takes the answer, and that nobody can answer for another.
func TestMCPElicitation(t *testing.T) {
	t.Parallel()

	d := newPublic(t)
	other := another(t, d.s, scripted)
	stranger := d.s.newKey().token("stranger")
	question := `{"outcome": "clarification", "response": "Which?", "clarification": {"question": "Which?", "options": ["this", "that"]}, "then": {"response": "It is <chosen>."}}`
	ask := fmt.Sprintf(`"arguments": {"namespace": %q, "question": %s}`, d.namespace, encode(t, question))

	for _, without := range []string{`{}`, `{"elicitation": {"url": {}}}`, `{"sampling": {}}`} {
		told := modernAsk(t, d.s, d.bearer, without, ask)
		require.Empty(t, told.InputRequests, without)
		require.Contains(t, told.Content[0].Text, `"status":"waiting"`, without)
	}

	const forms = `{"elicitation": {"form": {}}}`

	for _, capabilities := range []string{`{"elicitation": {}}`, forms, `{"elicitation": {"form": {}, "url": {}}}`} {
		asked := modernAsk(t, d.s, d.bearer, capabilities, ask)
		require.Equal(t, "input_required", asked.ResultType)
		require.Empty(t, asked.Content)
		require.Equal(t, "elicitation/create", asked.InputRequests["option"].Method)
		require.Equal(t, "Which?", asked.InputRequests["option"].Params.Message)
		require.JSONEq(t, `{"type": "object", "required": ["option"], "properties": {"option": {"type": "string", "title": "Interpretation",
			"oneOf": [{"const": "1", "title": "this"}, {"const": "2", "title": "that"}]}}}`, string(asked.InputRequests["option"].Params.RequestedSchema))

		answered := fmt.Sprintf(`%s, "requestState": %q, "inputResponses": {"option": {"action": "accept", "content": {"option": "2"}}}`, ask, asked.RequestState)

		stolen := modernAsk(t, d.s, stranger, capabilities, answered)
		require.True(t, stolen.IsError)
		require.Contains(t, stolen.Content[0].Text, "NOT_FOUND: You have no run with this id.")

		for range 2 { // a repeated answer has the same result
			require.Contains(t, modernAsk(t, other, d.bearer, capabilities, answered).Content[0].Text, `"response":"It is that."`)
		}
	}

	forged := modernAsk(t, d.s, d.bearer, forms, ask+`, "requestState": "x", "inputResponses": {"option": {"action": "accept", "content": {"option": "2"}}}`)
	require.True(t, forged.IsError)
	require.Contains(t, forged.Content[0].Text, "requestState")

	python := filepath.Join(installed(t, "mcp-python"), "bin", "python")
	require.Contains(t, runFor(t, d, python, "peers/mcp-python/elicit.py"), "asked the user")
}
