package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// traceOf returns the trace in the header Traceparent of a response.
func (a *answer) traceOf(t *testing.T) string {
	t.Helper()

	header := a.header.Get("Traceparent")
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$`, header)

	return header[3:35]
}

// tracedLine is a line of the log.
type tracedLine struct {
	Msg       string
	TraceID   string `json:"trace_id"`
	RequestID string `json:"request_id"`
}

func (s *service) traced(requestID string) (found tracedLine) {
	s.t.Helper()
	await(s.t, "the request is logged", func() bool {
		for line := range strings.Lines(s.log()) {
			var one tracedLine
			if json.Unmarshal([]byte(line), &one) == nil && one.Msg == "request" && one.RequestID == requestID {
				found = one
			}
		}

		return found.Msg != ""
	})

	return found
}

// named returns the spans whose name begins with a text.
func named(spans []storedSpan, name string) (found []storedSpan) {
	return slices.DeleteFunc(slices.Clone(spans), func(s storedSpan) bool { return !strings.HasPrefix(s.Name, name) })
}

func spanNames(spans []storedSpan) (list []string) {
	for _, span := range spans {
		list = append(list, span.Name)
	}

	return list
}

// TestSpans follows a statement and a question from their requests through jobs, statements, sealed processes, PostgreSQL and the
// object store, in a real store of traces, and checks that nothing that a user wrote gets there.
func TestSpans(t *testing.T) {
	t.Parallel()

	store := sharedPhoenix(t)
	s := start(t, scripted, "QUERN_SPANS_ENDPOINT="+store.endpoint, "QUERN_SPANS_HEADERS=x-project-name="+store.project)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "northlands"}, {"region": "southlands"}]}`).status)

	// A trace has arrived when its root has, which ends last.
	arrived := func(trace, root string) (found []storedSpan) {
		await(t, "the trace has arrived: "+root, func() bool {
			found = store.spans(trace)

			return len(named(found, root)) > 0
		})

		return found
	}

	answer := send(t, d.question(`SELECT region FROM orders WHERE region = 'northlands'`, ""))
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	trace := answer.traceOf(t)
	metrics := func() string {
		return call(t, http.MethodGet, s.admin+"/metrics", "", "", "Accept: application/openmetrics-text; version=1.0.0").body
	}

	// A later request that takes as long replaces the exemplar.
	require.Contains(t, metrics(), `# {trace_id="`+trace+`"}`, "an exemplar of the duration")

	spans := arrived(trace, "POST runQuery")
	root := named(spans, "POST runQuery")[0]
	requireAttributes(t, root, map[string]any{"http.response.status_code": 200.0, "quern.request_id": answer.header.Get("X-Request-Id")})
	require.Equal(t, trace, s.traced(answer.header.Get("X-Request-Id")).TraceID)

	statement := named(spans, "statement")
	require.Len(t, statement, 1, spanNames(spans))
	require.Equal(t, root.Context.SpanID, statement[0].ParentID)

	for _, name := range []string{"sealed process open", "sealed process parse", "sealed process query", "postgres SELECT", "store GET"} {
		inside := slices.DeleteFunc(named(spans, name), func(one storedSpan) bool { return one.ParentID != statement[0].Context.SpanID })
		require.NotEmpty(t, inside, "%s is not inside the statement: %v", name, spanNames(spans))
	}

	refused := send(t, d.question("SELECT northlands FROM orders", ""))
	require.Equal(t, http.StatusUnprocessableEntity, refused.status, refused.body)
	spans = slices.Concat(spans, arrived(refused.traceOf(t), "POST runQuery"))
	requireAttributes(t, named(spans, "POST runQuery")[1], map[string]any{"error.type": "QUERY_INVALID"})

	asked := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("nl2ql", `{"response": "Both regions.", "steps": [{"instruction": "one", "queries": ["SELECT region FROM orders"]}]}`, ""), "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, asked.status, asked.body)
	spans = slices.Concat(spans, arrived(asked.traceOf(t), "POST ask"))

	// The question is answered in a trace of its own, because its job may run later and more than once.
	var answered []storedSpan

	await(t, "the job has arrived", func() bool {
		var all []storedSpan

		store.get("spans?limit=1000", &all)
		answered = named(all, "job run.run")

		return len(answered) == 1
	})
	requireAttributes(t, answered[0], map[string]any{"quern.job.outcome": "done", "quern.job.attempt": 1.0, "quern.job.queue": "run"})
	require.NotEqual(t, asked.traceOf(t), answered[0].Context.TraceID)

	inJob := store.spans(answered[0].Context.TraceID)
	require.NotEmpty(t, named(inJob, "statement"), spanNames(inJob))

	for _, word := range []string{"northlands", "southlands", "Both regions", "region", d.namespace} {
		require.NotContains(t, encode(t, slices.Concat(spans, inJob)), word)
	}

	require.Contains(t, metrics(), "\nquern_spans_lost_total 0.0\n")
}

// TestSpansWithoutStore checks that ids of traces need no store, who may choose them, and that a store that is down only loses spans.
func TestSpansWithoutStore(t *testing.T) {
	t.Parallel()

	const caller, theirs = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"

	s := start(t)
	bearer := s.newKey().token("ada")
	one := call(t, http.MethodGet, s.url+"/user/me", bearer, "", caller)
	other := call(t, http.MethodGet, s.url+"/user/me", bearer, "", caller)

	require.NotEqual(t, one.traceOf(t), other.traceOf(t))
	require.NotEqual(t, theirs, one.traceOf(t), "the caller is no trusted proxy")
	require.Equal(t, one.traceOf(t), s.traced(one.header.Get("X-Request-Id")).TraceID)

	s.stop()
	s.settings = append(s.settings, "QUERN_TRUSTED_PROXIES=127.0.0.0/8", "QUERN_SPANS_ENDPOINT=http://127.0.0.1:1")
	s.restart()

	behind := call(t, http.MethodGet, s.url+"/user/me", bearer, "", caller)
	require.Equal(t, http.StatusOK, behind.status, behind.body)
	require.Equal(t, theirs, behind.traceOf(t))

	await(t, "lost spans are counted", func() bool { return s.gauge("quern_spans_lost_total") > 0 })
}
