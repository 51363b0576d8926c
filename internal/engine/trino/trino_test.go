package trino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

const schema = "q_0123456789abcdef0123456789abcdef"

// other is the other side of the protocol. It says what a test wants, in the order of requests.
type other struct {
	sync.Mutex
	*httptest.Server

	pages []string // {} is the address of the server
	asked []string
}

func newOther(t *testing.T, pages ...string) (*other, *Trino) {
	t.Helper()

	o := &other{pages: pages}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)

	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)

	made, err := New(Config{URL: o.URL, Catalog: "quern", Client: client, Memory: 1 << 30, Scan: 1 << 40})
	require.NoError(t, err)

	return o, made
}

func (o *other) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.Lock()
	defer o.Unlock()

	body, _ := io.ReadAll(r.Body)
	o.asked = append(o.asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", string(body)))

	if r.Method == http.MethodDelete || len(o.pages) == 0 {
		w.WriteHeader(http.StatusNoContent)

		return
	}

	page := o.pages[0]
	o.pages = o.pages[1:]

	if page == "nothing" {
		<-r.Context().Done()

		return
	}

	if status := 0; strings.HasPrefix(page, "status ") {
		_, _ = fmt.Sscanf(page, "status %d", &status)
		w.WriteHeader(status)

		return
	}

	_, _ = io.WriteString(w, strings.ReplaceAll(page, "{}", o.URL))
}

const first = `{"id": "1", "nextUri": "{}/v1/1"}`

// all runs a statement and returns its rows.
func all(ctx context.Context, of *Trino, s Statement) (rows []string, ran engine.Ran, err error) {
	s.User, s.Schema, s.Source, s.Token, s.Timeout = "ada", schema, schema, "secret", time.Minute

	result, err := of.Run(ctx, s)
	if err != nil {
		return nil, ran, err
	}
	defer result.Close()

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			ran, err = result.Finish()

			return rows, ran, err
		}

		if err != nil {
			return rows, ran, err
		}

		rows = append(rows, string(row.JSON))
	}
}

func TestPagesBecomeRows(t *testing.T) {
	t.Parallel()

	o, of := newOther(t, first, "status 503", "status 502", `{"id": "1", "nextUri": "{}/v1/2", "columns": [{"name": "n", "typeSignature": {"rawType": "bigint"}}], "data": [[1]]}`,
		`{"id": "1", "nextUri": "{}/v1/3"}`, `{"id": "1", "data": [[null], [3]]}`)

	rows, ran, err := all(t.Context(), of, Statement{Text: "SELECT 1"})
	require.NoError(t, err)
	require.Equal(t, []string{`{"n":1}`, `{"n":null}`, `{"n":3}`}, rows)
	require.Equal(t, engine.Ran{Rows: 3}, ran)
	require.Equal(t, []string{"POST /v1/statement SELECT 1", "GET /v1/1 ", "GET /v1/1 ", "GET /v1/1 ", "GET /v1/2 ", "GET /v1/3 "}, o.asked)
}

func TestLimitsCutAndCancel(t *testing.T) {
	t.Parallel()

	page := `{"id": "1", "nextUri": "{}/v1/2", "columns": [{"name": "n", "typeSignature": {"rawType": "bigint"}}], "data": [[1], [2], [3]]}`

	for by, s := range map[string]Statement{engine.ByRows: {Rows: 2}, engine.ByBytes: {Bytes: 16}} {
		o, of := newOther(t, first, page)

		rows, ran, err := all(t.Context(), of, s)
		require.NoError(t, err)
		require.Equal(t, []string{`{"n":1}`, `{"n":2}`}, rows)
		require.Equal(t, engine.Ran{Rows: 2, Truncated: by}, ran)
		require.Equal(t, "DELETE /v1/2 ", o.asked[len(o.asked)-1])
	}
}

func TestEndOfContextCancels(t *testing.T) {
	t.Parallel()

	o, of := newOther(t, first, `{"id": "1", "nextUri": "{}/v1/2", "columns": [{"name": "n", "typeSignature": {"rawType": "bigint"}}], "data": [[1]]}`)

	ctx, cancel := context.WithCancelCause(t.Context())
	revoked := fault.New(fault.Unauthorized, "revoked")

	result, err := of.Run(ctx, Statement{})
	require.NoError(t, err)
	cancel(revoked)

	_, err = result.Next()
	require.NoError(t, err)
	_, err = result.Next()
	require.ErrorIs(t, err, revoked)

	result.Close()
	require.Equal(t, "DELETE /v1/2 ", o.asked[len(o.asked)-1])
}

func TestFailuresAreFaults(t *testing.T) {
	t.Parallel()

	failed := func(kind, name, message string) string {
		return fmt.Sprintf(`{"id": "1", "error": {"message": %q, "errorName": %q, "errorType": %q, "errorLocation": {"lineNumber": 2, "columnNumber": 3}}}`, message, name, kind)
	}

	for page, code := range map[string]fault.Code{
		failed("INSUFFICIENT_RESOURCES", "EXCEEDED_TIME_LIMIT", "x"):          fault.Timeout,
		failed("INSUFFICIENT_RESOURCES", "EXCEEDED_GLOBAL_MEMORY_LIMIT", "x"): fault.LimitExceeded,
		failed("USER_ERROR", "EXCEEDED_SCAN_LIMIT", "x"):                      fault.LimitExceeded,
		failed("INSUFFICIENT_RESOURCES", "CLUSTER_OUT_OF_MEMORY", "x"):        fault.Unavailable,
		failed("INSUFFICIENT_RESOURCES", "QUERY_QUEUE_FULL", "x"):             fault.Unavailable,
		failed("EXTERNAL", "ICEBERG_CATALOG_ERROR", "secret address"):         fault.Unavailable,
		failed("INTERNAL_ERROR", "REMOTE_TASK_ERROR", "secret address"):       fault.Unavailable,
		failed("USER_ERROR", "ADMINISTRATIVELY_KILLED", "x"):                  fault.Unavailable,
		`status 500`:                          fault.Unavailable,
		`status 404`:                          fault.Unavailable,
		`no JSON`:                             fault.Unavailable,
		`{"id": "1"}`:                         fault.Unavailable,
		`{"nextUri": "http://example.com/1"}`: fault.Unavailable,
		`{"id": "1", "columns": [{"name": "n", "typeSignature": {"rawType": "bigint"}}], "data": [[1, 2]]}`:     fault.Unavailable,
		`{"id": "1", "columns": [{"name": "n", "typeSignature": {"rawType": "bigint"}}], "data": [["a cell"]]}`: fault.Unavailable,
	} {
		_, of := newOther(t, page)

		_, _, err := all(t.Context(), of, Statement{})
		require.True(t, fault.Is(err, code), "%s: %v", page, err)
		require.NotContains(t, err.Error(), "secret address")
		require.NotContains(t, err.Error(), "a cell")
	}

	_, of := newOther(t, failed("USER_ERROR", "COLUMN_NOT_FOUND", "line 2:3: Column 'quern."+schema+"_1.orders.regoin' cannot be resolved"))

	_, _, err := all(t.Context(), of, Statement{Text: "SELECT é,\n  x"})
	said, ok := errors.AsType[*engine.StatementError](err)
	require.True(t, ok, err)
	require.Equal(t, "line 2:3: Column 'orders.regoin' cannot be resolved", said.Message)
	require.Equal(t, 13, said.Position)
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()

	o, of := newOther(t)
	o.Close()

	_, _, err := all(t.Context(), of, Statement{})
	require.True(t, fault.Is(err, fault.Unavailable), err)
	require.NotContains(t, err.Error(), "127.0.0.1")
}

// TestCoordinatorHangs checks that a request without an answer is not sent again: the statement would only wait longer.
func TestCoordinatorHangs(t *testing.T) {
	t.Parallel()

	o, of := newOther(t, first, "nothing")

	_, _, err := all(t.Context(), of, Statement{})
	require.True(t, fault.Is(err, fault.Unavailable), err)

	o.Lock()
	defer o.Unlock()

	require.Equal(t, []string{"POST /v1/statement ", "GET /v1/1 ", "DELETE /v1/1 "}, o.asked)
}

func TestCells(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ kind, value, name, want string }{
		{`{"rawType": "bigint"}`, `9007199254740993`, "bigint", `"9007199254740993"`},
		{`{"rawType": "bigint"}`, `-9007199254740991`, "bigint", `-9007199254740991`},
		{`{"rawType": "double"}`, `1.0E20`, "double", `100000000000000000000.0`},
		{`{"rawType": "double"}`, `1.5E21`, "double", `1.5e21`},
		{`{"rawType": "double"}`, `2.5E-7`, "double", `2.5e-7`},
		{`{"rawType": "double"}`, `0.1`, "double", `0.1`},
		{`{"rawType": "double"}`, `"NaN"`, "double", `"NaN"`},
		{`{"rawType": "double"}`, `"-Infinity"`, "double", `"-Infinity"`},
		{`{"rawType": "real"}`, `0.1`, "float", `0.1`},
		{`{"rawType": "decimal", "arguments": [{"value": 9}, {"value": 2}]}`, `"19.90"`, "decimal(9,2)", `19.9`},
		{`{"rawType": "decimal", "arguments": [{"value": 9}, {"value": 2}]}`, `"-0.00"`, "decimal(9,2)", `-0.0`},
		{`{"rawType": "decimal", "arguments": [{"value": 38}, {"value": 0}]}`, `"12345678901234567890"`, "decimal(38,0)", `"12345678901234567890"`},
		{`{"rawType": "varchar", "arguments": [{"value": 3}]}`, `"a\"b"`, "varchar", `"a\"b"`},
		{`{"rawType": "json"}`, `"{\"a\": [1]}"`, "json", `{"a": [1]}`},
		{`{"rawType": "timestamp"}`, `"2026-11-15 10:11:12.500000"`, "timestamp", `"2026-11-15T10:11:12.5"`},
		{`{"rawType": "timestamp"}`, `"2026-11-15 10:11:10"`, "timestamp", `"2026-11-15T10:11:10"`},
		{`{"rawType": "time"}`, `"10:11:12.000000"`, "time", `"10:11:12"`},
		{`{"rawType": "timestamp with time zone"}`, `"2026-11-15 10:11:12.000 UTC"`, "timestamp with time zone", `"2026-11-15T10:11:12Z"`},
		{`{"rawType": "timestamp with time zone"}`, `"2026-11-15 10:11:12.000 +02:00"`, "timestamp with time zone", `"2026-11-15T08:11:12Z"`},
		{`{"rawType": "timestamp with time zone"}`, `"2026-07-15 10:11:12.5 Europe/Zurich"`, "timestamp with time zone", `"2026-07-15T08:11:12.5Z"`},
		{`{"rawType": "array", "arguments": [{"value": {"rawType": "bigint"}}]}`, `[1, null, 9007199254740993]`, "bigint[]", `[1,null,"9007199254740993"]`},
		{`{"rawType": "map", "arguments": [{"value": {"rawType": "varchar"}}, {"value": {"rawType": "double"}}]}`, `{"a": 1}`, "map(varchar, double)", `{"a":1.0}`},
		{`{"rawType": "row", "arguments": [{"value": {"fieldName": {"name": "a"}, "typeSignature": {"rawType": "bigint"}}}]}`, `[1]`, "struct(a bigint)", `{"a":1}`},
		{`{"rawType": "unknown"}`, `null`, "null", `null`},
	} {
		var kind signature
		require.NoError(t, json.Unmarshal([]byte(c.kind), &kind))

		cell := cellOf(kind)
		line, err := cell.append(nil, json.RawMessage(c.value))
		require.NoError(t, err, c.value)
		require.Equal(t, c.want, string(line))
		require.Equal(t, c.name, cell.name)
		require.True(t, json.Valid(line), string(line))
	}
}

func TestRepeatedNames(t *testing.T) {
	t.Parallel()

	_, of := newOther(t, `{"id": "1", "columns": [{"name": "a", "typeSignature": {"rawType": "bigint"}}, {"name": "A", "typeSignature": {"rawType": "bigint"}}, {"name": "a", "typeSignature": {"rawType": "bigint"}}], "data": [[1, 2, 3]]}`)

	rows, _, err := all(t.Context(), of, Statement{})
	require.NoError(t, err)
	require.Equal(t, []string{`{"a":1,"A_1":2,"a_2":3}`}, rows)
}
