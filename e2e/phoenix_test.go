package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// phoenix is a project in a tracing store.
type phoenix struct {
	t            *testing.T
	url, project string
	endpoint     string // address of the store for the service
}

// sharedPhoenix returns a new project in the tracing store of the stack, which is never stopped.
func sharedPhoenix(t *testing.T) *phoenix {
	t.Helper()

	p := &phoenix{t: t, url: stack.Env(t, "QUERN_TEST_PHOENIX_URL"), project: "e2e-" + uuid.NewString()}
	p.endpoint = p.url
	t.Cleanup(func() {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodDelete, p.url+"/v1/projects/"+p.project, nil)
		require.NoError(t, err)

		_, _ = try(request) // the project may not exist
	})

	return p
}

// phoenixBehind is sharedPhoenix for a service that reaches the store through a proxy. A store takes half a minute to start, so a
// test interrupts the proxy instead.
func phoenixBehind(t *testing.T) (*phoenix, *proxy) {
	t.Helper()

	p := sharedPhoenix(t)
	between := newProxy(t, p.url)
	p.endpoint = "http://" + between.address

	return p, between
}

func (p *phoenix) settings() []string {
	return []string{"QUERN_TRACING_KIND=phoenix", "QUERN_TRACING_ENDPOINT=" + p.endpoint, "QUERN_TRACING_PROJECT=" + p.project}
}

type storedSpan struct {
	Name       string
	ParentID   string `json:"parent_id"`
	SpanKind   string `json:"span_kind"` // the attribute openinference.span.kind
	StatusCode string `json:"status_code"`
	Context    struct {
		TraceID string `json:"trace_id"`
		SpanID  string `json:"span_id"`
	}
	Attributes map[string]any
}

// spans returns the spans of a trace.
func (p *phoenix) spans(trace string) (found []storedSpan) {
	p.t.Helper()
	p.get("spans?limit=100&trace_id="+trace, &found)

	return found
}

type storedAnnotation struct {
	Name, Identifier string
	AnnotatorKind    string `json:"annotator_kind"`
	Result           struct {
		Label       string
		Score       float64
		Explanation *string
	}
}

// ratings returns the annotations of a trace.
func (p *phoenix) ratings(trace string) (found []storedAnnotation) {
	p.t.Helper()
	p.get("trace_annotations?trace_ids="+trace, &found)

	return found
}

// get reads a list of the project. The list stays empty if the project does not exist.
func (p *phoenix) get(path string, list any) {
	p.t.Helper()

	got, err := try(newRequest(p.t, http.MethodGet, p.url+"/v1/projects/"+url.PathEscape(p.project)+"/"+path, "", ""))
	require.NoError(p.t, err)

	if got.status == http.StatusNotFound {
		return
	}

	require.Equal(p.t, http.StatusOK, got.status, got.body)

	var page struct{ Data json.RawMessage }

	got.json(p.t, &page)
	require.NoError(p.t, json.Unmarshal(page.Data, list), got.body)
}

// ran asks a question of the scripted agent and returns the completed run and its trace.
func (d *filled) ran(script string) (run, trace string) {
	d.t.Helper()

	got := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("assistant", script, ""), "Accept: application/json")
	require.Equal(d.t, http.StatusOK, got.status, got.body)

	var made struct{ RunID, Status string }

	got.json(d.t, &made)
	require.Equal(d.t, "completed", made.Status, got.body)

	return made.RunID, d.s.trace(made.RunID)
}

// trace returns the id of a run's trace, which no operation returns.
func (s *service) trace(run string) (trace string) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(s.t, connection.QueryRow(ctx, `SELECT encode(trace_id, 'hex') FROM runs WHERE id = $1`, run).Scan(&trace))
	})

	return trace
}

// TestPhoenix checks that a run is one trace with all its statements, that the trace has no content unless the operator enables
// it, and that the trace stays the same when another process continues the run.
func TestPhoenix(t *testing.T) {
	t.Parallel()

	store := sharedPhoenix(t)
	s := start(t, append(store.settings(), scripted)...)
	d := newFilled(t, s, "asker", s.newKey().token("asker"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	script := `{"steps": [{"instruction": "count", "queries": ["SELECT nothing FROM orders", "SELECT region FROM orders"]}], "response": "Two regions."}`
	words := []string{"SELECT", "Two regions", "count"}

	run, trace := d.ran(script)
	spans := store.await(trace, 3)
	root := requireTree(t, spans)
	require.Equal(t, "invoke_agent assistant", root.Name)
	require.NotEqual(t, "ERROR", root.StatusCode)
	require.Equal(t, "AGENT", root.SpanKind)
	requireAttributes(t, root, map[string]any{
		"gen_ai.operation.name": "invoke_agent", "langfuse.observation.type": "agent",
		"gen_ai.agent.name": "assistant", "quern.run.id": run, "quern.outcome": "answer", "quern.model": "script",
	})

	var refused, read int

	for _, span := range spans {
		require.Equal(t, trace, span.Context.TraceID)

		for _, name := range []string{"session.id", "user.id", "langfuse.trace.name", "gen_ai.conversation.id"} {
			require.NotEmpty(t, span.Attributes[name], "%s of %s", name, span.Name)
		}

		switch {
		case span.Context.SpanID == root.Context.SpanID:
		case span.StatusCode == "ERROR":
			refused++

			requireAttributes(t, span, map[string]any{"error.type": "QUERY_INVALID", "quern.attempt": 1.0})
		default:
			read++

			require.Equal(t, "TOOL", span.SpanKind)
			requireAttributes(t, span, map[string]any{
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sql",
				"quern.attempt": 2.0, "db.response.returned_rows": 2.0,
			})
		}

		for _, word := range words {
			require.NotContains(t, encode(t, span), word, "nobody asked for content")
		}
	}

	require.Equal(t, []int{1, 1}, []int{refused, read})

	s.stop()
	s.settings = append(s.settings, "QUERN_TRACING_CAPTURE=true")
	s.restart()

	_, trace = d.ran(script)
	root = requireTree(t, store.await(trace, 3))
	require.Contains(t, root.Attributes["input.value"], "Two regions")
	require.Equal(t, "Two regions.", root.Attributes["output.value"])
	require.Contains(t, encode(t, store.spans(trace)), "SELECT region FROM orders")

	d.survives(store)
}

// survives kills the service during a run.
func (d *filled) survives(store *phoenix) {
	d.t.Helper()

	accepted := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, d.script("nl2ql", `{"pause": 1500, "response": "Done.", "steps": [
		{"instruction": "one", "queries": ["SELECT 1 AS a FROM orders"]}, {"instruction": "two", "queries": ["SELECT 2 AS b FROM orders"]},
		{"instruction": "three", "queries": ["SELECT 3 AS c FROM orders"]}]}`, ""), "Prefer: respond-async")
	require.Equal(d.t, http.StatusAccepted, accepted.status, accepted.body)

	var made struct{ RunID string }

	accepted.json(d.t, &made)
	trace := d.s.trace(made.RunID)
	await(d.t, "the first statement is in the store", func() bool { return len(store.spans(trace)) > 0 })
	d.s.kill()
	d.s.restart()
	await(d.t, "the run is completed", func() bool {
		return strings.Contains(call(d.t, http.MethodGet, d.s.url+"/query/runs/"+made.RunID, d.bearer, "").body, `"completed"`)
	})
	requireTree(d.t, store.await(trace, 4))
}

// await waits until a trace has count spans, and returns them. It fails if there are more.
func (p *phoenix) await(trace string, count int) (found []storedSpan) {
	p.t.Helper()
	await(p.t, "the spans are in the store", func() bool {
		found = p.spans(trace)

		return len(found) >= count
	})
	require.Len(p.t, found, count, encode(p.t, found))

	return found
}

// requireTree returns the root span, and checks that all other spans are its children.
func requireTree(t *testing.T, spans []storedSpan) (root storedSpan) {
	t.Helper()

	for _, span := range spans {
		if span.ParentID == "" {
			require.Empty(t, root.Name, "two roots")

			root = span
		}
	}

	for _, span := range spans {
		if span.Context.SpanID != root.Context.SpanID {
			require.Equal(t, root.Context.SpanID, span.ParentID)
		}
	}

	return root
}

func requireAttributes(t *testing.T, span storedSpan, want map[string]any) {
	t.Helper()

	for name, value := range want {
		require.Equal(t, value, span.Attributes[name], "%s of %s: %s", name, span.Name, encode(t, span))
	}
}
