package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// used is the result of a tool.
type used struct {
	StructuredContent json.RawMessage
	Content           []struct{ Type, Text string }
	IsError           bool

	answer   *answer
	progress []float64
	failure  *struct {
		Code    int
		Message string
	}
}

// text returns the text of the result.
func (u used) text() string {
	if u.failure != nil {
		return u.failure.Message
	}

	return u.Content[0].Text
}

// messages returns the messages of a response, which is a stream or JSON.
func messages(t *testing.T, answer *answer) (found []json.RawMessage) {
	t.Helper()

	if !strings.HasPrefix(answer.header.Get("Content-Type"), "text/event-stream") {
		return []json.RawMessage{json.RawMessage(answer.body)}
	}

	for line := range strings.Lines(answer.body) {
		if data, isData := strings.CutPrefix(line, "data: "); isData {
			found = append(found, json.RawMessage(strings.TrimSpace(data)))
		}
	}

	return found
}

const resultCap = 40_000

// useTool calls a tool in the way of the versions of the protocol before 2026-07-28. It checks what is true for every result.
func useTool(t *testing.T, s *service, bearer, name, arguments string) used {
	t.Helper()

	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q, "arguments": %s, "_meta": {"progressToken": "p"}}}`, name, arguments)

	return usedOf(t, call(t, http.MethodPost, s.url+"/mcp", bearer, body, "Mcp-Protocol-Version: 2025-11-25"))
}

func usedOf(t *testing.T, answer *answer) (found used) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	found.answer = answer

	for _, text := range messages(t, answer) {
		var message struct {
			Method string
			Params struct{ Progress float64 }
			Result *used
			Error  *struct {
				Code    int
				Message string
			}
		}
		require.NoError(t, json.Unmarshal(text, &message), answer.body)

		switch {
		case message.Method == "notifications/progress":
			found.progress = append(found.progress, message.Params.Progress)
		case message.Result != nil:
			found.StructuredContent, found.Content, found.IsError = message.Result.StructuredContent, message.Result.Content, message.Result.IsError
		default:
			found.failure = message.Error
		}
	}

	switch {
	case found.failure != nil:
	case found.IsError:
		require.Empty(t, found.StructuredContent)
		require.NotEmpty(t, found.text())
	default:
		require.Equal(t, exactly(t, string(found.StructuredContent)), exactly(t, found.text()), "text and structured content differ")
		require.LessOrEqual(t, len(found.text()), resultCap)
	}

	return found
}

// toolStatus returns the status that REST has for the result of a tool, or the code of a JSON-RPC error.
func toolStatus(found used) int {
	switch code, _, _ := strings.Cut(found.text(), ":"); {
	case found.failure != nil:
		return found.failure.Code
	case !found.IsError:
		return http.StatusOK
	case code == "NOT_FOUND":
		return http.StatusNotFound
	case code == "FORBIDDEN":
		return http.StatusForbidden
	default:
		return http.StatusUnprocessableEntity
	}
}

// exactly decodes JSON with all digits of its numbers.
func exactly(t *testing.T, text string) (value any) {
	t.Helper()

	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&value))

	return value
}

// tool calls a tool, which must succeed, and returns what it returned.
func (d *filled) tool(name, arguments string, into any) used {
	d.t.Helper()

	found := useTool(d.t, d.s, d.bearer, name, arguments)
	require.Nil(d.t, found.failure, "%s %s: %+v", name, arguments, found.failure)
	require.False(d.t, found.IsError, "%s %s: %s", name, arguments, found.Content)
	reflect.ValueOf(into).Elem().SetZero()
	require.NoError(d.t, json.Unmarshal([]byte(found.text()), into))

	return found
}

// toolRows is a result with rows.
type toolRows struct {
	Columns     []struct{ Name, Type string }
	Rows        [][]json.RawMessage
	Truncated   bool
	TruncatedBy string
	AsOf        string
	NextCursor  string
	Hint        string
}

// toolRun is a run as the tools return it.
type toolRun struct {
	RunID, ConversationID, Status, Outcome, Response, Hint string
	Steps                                                  []struct {
		toolRows

		Query    string
		RowCount int
	}
	Clarification *struct {
		Options []struct {
			Number         int
			Interpretation string
		}
	}
	Error *struct{ Code, Message string }
}

func TestMCPTools(t *testing.T) { //nolint:tparallel // the parts use the same datasets
	t.Parallel()

	s := start(t, scripted, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"id": 9007199254740993, "city": "Zürich & <Bern>", "amount": 10.5}, {"id": 2, "city": "Wien", "amount": 4}]}`)
	giveProfile(t, s, d.bearer, d.namespace)

	var list struct {
		Datasets []struct {
			Dataset  string
			RowCount int
		}
	}

	size := d.tool("list_datasets", `{}`, &list)
	require.Len(t, list.Datasets, 1)
	require.Equal(t, d.path(), list.Datasets[0].Dataset)
	t.Logf("list_datasets: %d bytes", len(size.text()))
	d.tool("list_datasets", `{"search": "Wien"}`, &list)
	require.Len(t, list.Datasets, 1)
	d.tool("list_datasets", `{"search": "nothing of it", "namespace": "`+d.namespace+`"}`, &list)
	require.Empty(t, list.Datasets)

	var described struct {
		Dataset, SQLName string
		Columns          []struct{ Name, Type string }
		Sample           toolRows
	}

	size = d.tool("describe_dataset", `{"dataset": "`+d.namespace+`/orders"}`, &described)
	require.Equal(t, d.path(), described.Dataset)
	require.Len(t, described.Columns, 3)
	require.Len(t, described.Sample.Rows, 2)
	require.Contains(t, size.text(), `9007199254740993`)
	require.Contains(t, size.text(), `Zürich & <Bern>`)
	t.Logf("describe_dataset: %d bytes", len(size.text()))

	t.Run("checked", func(t *testing.T) { mcpChecked(t, d) })
	t.Run("values", func(t *testing.T) {
		var values struct {
			Matches []struct{ Words, Column, Value string }
		}

		d.tool("find_values", `{"namespace": "`+d.namespace+`", "text": "orders from wien"}`, &values)
		require.Equal(t, "Wien", values.Matches[0].Value)
		require.Equal(t, "wien", values.Matches[0].Words)
	})
	t.Run("query", func(t *testing.T) { mcpQuery(t, d, described.SQLName) })
	t.Run("runs", func(t *testing.T) { mcpRuns(t, d) })
	t.Run("resources", func(t *testing.T) { mcpResources(t, d) })
}

func mcpQuery(t *testing.T, d *filled, name string) {
	t.Helper()

	var found toolRows

	d.tool("query", `{"sql": "SELECT id FROM orders WHERE city LIKE $1", "parameters": ["Z%"], "namespace": "`+d.namespace+`"}`, &found)
	require.Equal(t, `"9007199254740993"`, string(found.Rows[0][0])) // as in REST
	require.False(t, found.Truncated)

	asOf := found.AsOf
	postRows(t, d.s, d.bearer, d.path(), `{"data": [{"id": 3, "city": "Graz", "amount": 1}]}`)
	d.tool("query", fmt.Sprintf(`{"sql": %q, "asOf": %q}`, "SELECT count(*) FROM "+name, asOf), &found)
	require.Equal(t, "2", string(found.Rows[0][0]))

	d.tool("query", fmt.Sprintf(`{"sql": %q, "limit": 2}`, "FROM "+name), &found)
	require.True(t, found.Truncated)
	require.Equal(t, "rows", found.TruncatedBy)
	require.Len(t, found.Rows, 2)
	require.Contains(t, found.Hint, "OFFSET")

	d.tool("query", `{"sql": "FROM range(1000)", "limit": 1000}`, &found)
	require.Len(t, found.Rows, 1000)
	require.False(t, found.Truncated)

	for statement, words := range map[string]string{
		"SELECT nme FROM orders": "QUERY_INVALID", "DELETE FROM orders": "QUERY_INVALID", "FROM order": "QUERY_INVALID", "SELECT $1": "arameter",
	} {
		refused := useTool(t, d.s, d.bearer, "query", fmt.Sprintf(`{"sql": %q, "namespace": %q}`, statement, d.namespace))
		require.True(t, refused.IsError, statement)
		require.Contains(t, refused.text(), words, statement)
	}

	unknown := useTool(t, d.s, d.bearer, "drop_everything", `{}`)
	require.Equal(t, -32602, unknown.failure.Code)
}

func mcpRuns(t *testing.T, d *filled) {
	t.Helper()

	ask := func(script string) string {
		return fmt.Sprintf(`{"namespace": %q, "question": %s}`, d.owner+"/"+d.namespace, encode(t, script))
	}

	var run toolRun

	size := d.tool("ask", ask(`{"response": "Thirty.", "steps": [{"instruction": "read", "queries": ["SELECT range AS n FROM range(250)"]}]}`), &run)
	t.Logf("ask: %d bytes", len(size.text()))
	require.Equal(t, "completed", run.Status)
	require.Equal(t, "Thirty.", run.Response)
	require.Len(t, run.Steps[0].Rows, 20)
	require.True(t, run.Steps[0].Truncated)
	require.Contains(t, run.Hint, "read_rows")
	require.Greater(t, len(size.progress), 2)
	require.IsIncreasing(t, size.progress)

	// All rows of the step, page by page.
	var (
		page   toolRows
		seen   []string
		cursor = ""
	)

	for cursor != "" || len(seen) == 0 {
		d.tool("read_rows", fmt.Sprintf(`{"runId": %q, "step": 0%s}`, run.RunID, cursor), &page)

		for _, row := range page.Rows {
			seen = append(seen, string(row[0]))
		}

		if cursor = ""; page.NextCursor != "" {
			cursor = fmt.Sprintf(`, "cursor": %q`, page.NextCursor)
		}
	}

	require.Len(t, seen, 250)
	require.Equal(t, "249", seen[249])

	d.tool("ask", ask(`{"outcome": "clarification", "response": "Which?", "clarification": {"question": "Which?", "options": ["this", "that"]}, "then": {"response": "It is <chosen>."}}`), &run)
	require.Equal(t, "waiting", run.Status)
	require.Equal(t, "that", run.Clarification.Options[1].Interpretation)

	wrong := useTool(t, d.s, d.bearer, "choose", fmt.Sprintf(`{"runId": %q, "option": 9}`, run.RunID))
	require.True(t, wrong.IsError)
	require.Contains(t, wrong.text(), "VALIDATION_FAILED")

	d.tool("choose", fmt.Sprintf(`{"runId": %q, "option": "2"}`, run.RunID), &run)
	require.Equal(t, "completed", run.Status)
	require.Equal(t, "It is that.", run.Response)

	var again toolRun
	d.tool("get_run", fmt.Sprintf(`{"runId": %q}`, run.RunID), &again)
	require.Equal(t, run, again)
}

// mcpChecked checks a text, and lists a verified question.
func mcpChecked(t *testing.T, d *filled) {
	t.Helper()

	var checked struct {
		Verified, Unverified int
		Claims               []struct {
			Claim, Reason string
			Start, End    int
			Verified      bool
		}
	}

	const text = "Wien has 4. Bern has 17."

	d.tool("check_text", fmt.Sprintf(`{"text": %q, "namespace": %q, "sql": "SELECT city, amount FROM orders"}`, text, d.namespace), &checked)
	require.Equal(t, 1, checked.Verified)
	require.Equal(t, 1, checked.Unverified)
	require.Equal(t, "17", checked.Claims[0].Claim, "doubts come first")
	require.Equal(t, "17", text[checked.Claims[0].Start:checked.Claims[0].End])
	require.NotEmpty(t, checked.Claims[0].Reason)
	require.True(t, useTool(t, d.s, d.bearer, "check_text", `{"text": "It is 4."}`).IsError, "nothing to check it against")

	var list struct {
		Questions []struct{ Question, SQL, Author string }
	}

	d.tool("list_verified", fmt.Sprintf(`{"namespace": %q}`, d.namespace), &list)
	require.Empty(t, list.Questions)

	kept := call(t, http.MethodPost, d.s.url+"/verified/self/"+d.namespace, d.bearer, `{"question": "How many cities exist?", "query": "SELECT count(DISTINCT city) AS n FROM orders"}`)
	require.Equal(t, http.StatusCreated, kept.status, kept.body)

	d.tool("list_verified", fmt.Sprintf(`{"namespace": %q}`, d.namespace), &list)
	require.Len(t, list.Questions, 1)
	require.Equal(t, "How many cities exist?", list.Questions[0].Question)
	require.Equal(t, "ada", list.Questions[0].Author)
}

func mcpResources(t *testing.T, d *filled) {
	t.Helper()

	read := func(uri string) string {
		answer := call(t, http.MethodPost, d.s.url+"/mcp", d.bearer, fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": %q}}`, uri))
		require.Equal(t, http.StatusOK, answer.status, answer.body)

		return string(messages(t, answer)[0])
	}

	require.Contains(t, read("quern://"+d.path()), `sqlName`)

	for _, absent := range []string{"quern://" + d.path() + "x", "quern://bob/x/y", "quern://x", "file:///etc/passwd", "quern://a/%zz/c"} {
		require.Contains(t, read(absent), `"code":-32602`, absent)
	}

	listed := call(t, http.MethodPost, d.s.url+"/mcp", d.bearer, `{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}`)
	require.Contains(t, listed.body, `"resources":[]`)

	prompt := call(t, http.MethodPost, d.s.url+"/mcp", d.bearer, `{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "explore", "arguments": {"namespace": "shop"}}}`)
	require.Contains(t, prompt.body, "the namespace shop")
}
