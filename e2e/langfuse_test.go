package e2e

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// langfuse answers as the documentation of Langfuse 4 says, and refuses everything that is not documented. Langfuse itself needs
// a server that is not available here, so this is a simulation.
type langfuse struct {
	*httptest.Server

	mutex  sync.Mutex
	scores map[string]langfuseScore
	spans  map[string]int // number of spans by trace
	broken string         // why a request was refused that should never be sent
	down   bool
}

type langfuseScore struct {
	ID, TraceID, Name, DataType, Environment string
	Value                                    *float64
	Comment                                  json.RawMessage
	Metadata                                 map[string]string
}

const (
	langfusePublic = "pk-lf-1234"
	langfuseSecret = "sk-lf-5678"
)

func newLangfuse(t *testing.T) *langfuse {
	t.Helper()

	l := &langfuse{scores: map[string]langfuseScore{}, spans: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/public/otel/v1/traces", l.traces)
	mux.HandleFunc("POST /api/public/scores", l.create)
	mux.HandleFunc("DELETE /api/public/scores/{id}", l.remove)
	mux.HandleFunc("GET /api/public/v3/scores", l.list)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		l.refuse(w, http.StatusNotFound, "no such operation: "+r.Method+" "+r.URL.Path)
	})

	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mutex.Lock()
		defer l.mutex.Unlock()

		user, password, given := r.BasicAuth()

		switch {
		case l.down:
			l.answer(w, http.StatusServiceUnavailable, map[string]string{"message": "Service Unavailable"})
		case !given || user != langfusePublic || password != langfuseSecret:
			l.refuse(w, http.StatusUnauthorized, "Invalid credentials. Confirm that you've configured the correct host.")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(l.Close)

	return l
}

func (l *langfuse) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)

	_ = json.NewEncoder(w).Encode(body)
}

// refuse refuses a request and records that the service should not have sent it.
func (l *langfuse) refuse(w http.ResponseWriter, status int, reason string) {
	l.broken = reason
	l.answer(w, status, map[string]any{"message": "Invalid request data", "error": []string{reason}})
}

// traces accepts protobuf with gzip. One span without ids makes the whole batch invalid.
func (l *langfuse) traces(w http.ResponseWriter, r *http.Request) {
	for name, want := range map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", "X-Langfuse-Ingestion-Version": "4",
	} {
		if got := r.Header.Get(name); got != want {
			l.refuse(w, http.StatusBadRequest, name+" is "+got)

			return
		}
	}

	var batch collector.ExportTraceServiceRequest

	unpacked, err := gzip.NewReader(r.Body)
	if err == nil {
		var content []byte
		if content, err = io.ReadAll(unpacked); err == nil {
			err = proto.Unmarshal(content, &batch)
		}
	}

	if err != nil {
		l.refuse(w, http.StatusBadRequest, err.Error())

		return
	}

	for _, resource := range batch.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if len(span.GetTraceId()) != 16 || len(span.GetSpanId()) != 8 {
					l.refuse(w, http.StatusBadRequest, "a span without ids")

					return
				}

				var names []string
				for _, attribute := range span.GetAttributes() {
					names = append(names, attribute.GetKey())
				}

				for _, name := range []string{"langfuse.observation.type", "langfuse.trace.name", "session.id", "user.id"} {
					if !slices.Contains(names, name) {
						l.refuse(w, http.StatusBadRequest, "a span without "+name)

						return
					}
				}

				l.spans[hex.EncodeToString(span.GetTraceId())]++
			}
		}
	}

	l.answer(w, http.StatusOK, struct{}{})
}

var (
	traceIDs     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	environments = regexp.MustCompile(`^[a-z0-9-_]{1,40}$`)
)

func (l *langfuse) create(w http.ResponseWriter, r *http.Request) {
	var (
		one    langfuseScore
		fields map[string]json.RawMessage
		reason string
	)

	content, err := io.ReadAll(r.Body)
	err = errors.Join(err, json.Unmarshal(content, &one), json.Unmarshal(content, &fields))

	for name := range fields { // Go's decoder ignores case
		if !slices.Contains([]string{"id", "traceId", "name", "value", "dataType", "comment", "metadata", "environment"}, name) {
			err = errors.New("an unknown field: " + name)
		}
	}

	switch {
	case err != nil:
		reason = err.Error()
	case r.Header.Get("Content-Type") != "application/json":
		reason = "the content type"
	case one.ID == "" || len(one.ID) > 800:
		reason = "the id"
	case !traceIDs.MatchString(one.TraceID):
		reason = "the trace's id"
	case one.Name == "" || one.DataType != "BOOLEAN" || one.Value == nil || (*one.Value != 0 && *one.Value != 1):
		reason = "a score that is not 0 or 1 of the type BOOLEAN"
	case one.Comment == nil:
		reason = "no comment: an earlier one would stay" // a comment of null is allowed
	case !environments.MatchString(one.Environment):
		reason = "the environment"
	}

	if before, known := l.scores[one.ID]; reason == "" && known && encodeText(string(before.Comment)) != encodeText(string(one.Comment)) {
		reason = "another content for an id that is there: tomorrow there would be two"
	}

	if reason != "" {
		l.refuse(w, http.StatusBadRequest, reason)

		return
	}

	l.scores[one.ID] = one
	l.answer(w, http.StatusOK, map[string]string{"id": one.ID})
}

func (l *langfuse) remove(w http.ResponseWriter, r *http.Request) {
	delete(l.scores, r.PathValue("id"))
	l.answer(w, http.StatusAccepted, map[string]string{"message": "Score deletion queued successfully"})
}

func (l *langfuse) list(w http.ResponseWriter, r *http.Request) {
	found := []map[string]any{}

	for _, one := range l.scores {
		if one.TraceID == r.URL.Query().Get("traceId") && one.Name == r.URL.Query().Get("name") {
			found = append(found, map[string]any{"id": one.ID, "value": one.Value})
		}
	}

	l.answer(w, http.StatusOK, map[string]any{"data": found, "meta": map[string]any{"limit": 50}})
}

// of returns the scores of a trace, as id, value and comment.
func (l *langfuse) of(trace string) (found []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	for _, one := range l.scores {
		if one.TraceID == trace {
			found = append(found, fmt.Sprintf("%s %v %s", one.ID, *one.Value, one.Comment))
		}
	}

	return found
}

func (l *langfuse) set(down bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	l.down = down
}

// TestLangfuseContract checks that the requests to Langfuse match its documentation. It has never run against a real Langfuse.
func TestLangfuseContract(t *testing.T) {
	t.Parallel()

	store := newLangfuse(t)
	s := start(t, scripted, "QUERN_TRACING_KIND=langfuse", "QUERN_TRACING_ENDPOINT="+store.URL+"/",
		"QUERN_TRACING_KEY="+langfusePublic+":"+langfuseSecret, "QUERN_TRACING_ENVIRONMENT=e2e")
	d := newFilled(t, s, "asker", s.newKey().token("asker"))

	run, trace := d.ran(shortAnswer)
	other, otherTrace := d.ran(shortAnswer)

	d.rated(run, `{"thumbsUp": true, "comment": "Exactly."}`)
	require.Equal(t, []string{run + `-1 1 "Exactly."`}, store.of(trace))
	d.rated(other, `{"thumbsUp": false}`)

	d.rated(run, `{"thumbsUp": false}`)
	require.Equal(t, []string{run + `-2 0 null`}, store.of(trace), "each revision has an id, and the earlier one is gone")

	store.set(true)
	d.failsToRate(run, `{"thumbsUp": true, "comment": "Lost."}`)
	d.refused(call(t, http.MethodDelete, d.feedback(run), d.bearer, ""), http.StatusBadGateway, storeDown)
	d.inForce(run, false, "")
	d.ran(shortAnswer)
	store.set(false)
	s.settled()
	require.Equal(t, []string{run + `-2 0 null`}, store.of(trace))

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.feedback(run), d.bearer, "").status)
	require.Empty(t, store.of(trace))
	require.Equal(t, []string{other + `-1 0 null`}, store.of(otherTrace))

	await(t, "the spans are there", func() bool {
		store.mutex.Lock()
		defer store.mutex.Unlock()

		return store.spans[trace] > 0 && store.spans[otherTrace] > 0
	})

	store.mutex.Lock()
	defer store.mutex.Unlock()

	require.Empty(t, store.broken)
	require.NotContains(t, s.log(), langfuseSecret)
	require.NotContains(t, s.log(), "Basic ", "the log holds credentials")
}
