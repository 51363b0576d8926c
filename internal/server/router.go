package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/rs/cors"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
)

// router serves the operations of the contract and the few addresses beside it.
type router struct {
	server *Server
	mux    *http.ServeMux
	served map[string]bool // patterns that have a handler
}

func (s *Server) newRouter() (http.Handler, error) {
	rt := &router{server: s, mux: http.NewServeMux(), served: map[string]bool{}}

	strict := api.NewStrictHandlerWithOptions(handlers{tokens: s.config.Tokens, catalog: s.config.Catalog, uploads: s.config.Uploads, ingest: s.config.Ingest, query: s.config.Query, runs: s.config.Runs, audit: s.config.Audit}, nil, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  s.failDecode,
		ResponseErrorHandlerFunc: s.Fail,
	})
	api.HandlerWithOptions(strict, api.StdHTTPServerOptions{BaseURL: basePath, BaseRouter: rt, ErrorHandlerFunc: s.Fail})

	docs, err := newDocs(s)
	if err != nil {
		return nil, err
	}

	rt.HandleFunc("POST "+basePath+"/data/{username}/{namespace}/{datasetName}/rows", s.appendRows)
	rt.HandleFunc("POST "+basePath+"/ingest/{namespace}/{datasetName}", s.appendRows)
	rt.HandleFunc("POST "+basePath+"/query", s.runQuery)
	rt.HandleFunc("GET "+basePath+"/data/{username}/{namespace}/{datasetName}/rows", s.listRows)
	rt.HandleFunc("GET "+basePath+"/data/{username}/{namespace}/{datasetName}/export", s.exportDataset)
	rt.HandleFunc("POST "+basePath+"/query/ask", s.ask)
	rt.HandleFunc("GET "+basePath+"/query/runs/{runId}", s.getRun)
	rt.HandleFunc("GET "+basePath+"/query/runs/{runId}/events", s.streamRunEvents)
	rt.HandleFunc("POST "+basePath+"/query/runs/{runId}/cancel", s.cancelRun)
	rt.HandleFunc("GET "+basePath+"/query/runs/{runId}/steps/{n}/rows", s.listStepRows)
	rt.HandleFunc("GET "+basePath+"/query/runs/{runId}/steps/{n}/export", s.exportStep)
	rt.HandleFunc("GET "+basePath+"/query/conversations/{conversationId}", s.getConversation)

	for _, pattern := range []string{"GET " + agentsPath, "GET " + agentsPath + "/{agent}", "POST " + agentsPath + "/{agent}", "GET " + agentsPath + "/{agent}/.well-known/agent-card.json"} {
		rt.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.config.Agents.ServeHTTP(w, r) })
	}

	rt.HandleFunc("GET "+basePath+"/openapi.json", docs.document)
	rt.HandleFunc("GET "+basePath+"/docs", docs.page)
	rt.mux.HandleFunc("GET /healthz", s.healthz)
	rt.mux.HandleFunc("GET /readyz", s.readyz)
	rt.mux.HandleFunc("GET "+resourceMetadataPath, s.resourceMetadata)

	for pattern, operation := range s.contract.operations {
		if !rt.served[pattern] {
			return nil, fmt.Errorf("operation %s has no handler", operation.id)
		}
	}

	return rt, nil
}

// failDecode is for what the checks let pass and Go's types do not hold: a number like 1e3 or 2^63 where a
// whole number is due.
func (s *Server) failDecode(w http.ResponseWriter, r *http.Request, err error) {
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		s.Fail(w, r, fault.Invalid(misfit.Field, "is not a number of the right kind or size"))

		return
	}

	s.Fail(w, r, err)
}

// HandleFunc registers an operation of the contract behind its checks. The generated code calls it.
func (rt *router) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	operation, ok := rt.server.contract.operations[pattern]
	if !ok {
		panic("a handler for what the contract does not have: " + pattern)
	}

	rt.served[pattern] = true
	rt.mux.Handle(pattern, rt.server.guard(operation, handler))
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Clients of an agent append a slash to its address, or do not.
	if agent, isSlashed := strings.CutSuffix(r.URL.Path, "/"); isSlashed && r.Method == http.MethodPost && path.Dir(agent) == agentsPath {
		r.URL.Path, r.URL.RawPath = agent, ""
	}

	// The mux would answer with a redirect to the clean path; we have one address for each thing.
	if r.URL.Path != path.Clean("/"+r.URL.Path) || r.Method == http.MethodConnect {
		rt.server.Fail(w, r, fault.Absent())

		return
	}

	if allow, refused := rt.server.contract.refuses(r.URL.Path, r.Method); refused {
		rt.notAllowed(w, r, allow)

		return
	}

	handler, pattern := rt.mux.Handler(r)
	if pattern != "" {
		rt.mux.ServeHTTP(w, r)

		return
	}

	// The mux knows which methods the path has; only its words are not ours.
	probe := &probe{header: http.Header{}}
	handler.ServeHTTP(probe, r)

	if probe.status == http.StatusMethodNotAllowed {
		rt.notAllowed(w, r, probe.header.Get("Allow"))

		return
	}

	rt.server.Fail(w, r, fault.Absent())
}

func (rt *router) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	rt.server.Fail(w, r, fault.New(fault.MethodNotAllowed, "This address does not take the method "+method(r)+"."))
}

// method is safe to repeat in a message.
func method(r *http.Request) string {
	return strings.Map(func(c rune) rune {
		if c < 'A' || c > 'Z' {
			return -1
		}

		return c
	}, r.Method)
}

// probe is an answer that nobody sees.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// cors answers preflights and names the origins that may read answers: those of the configuration.
func (s *Server) cors(next http.Handler) http.Handler {
	allowed := map[string]bool{}
	for _, origin := range s.config.CORSOrigins {
		allowed[strings.ToLower(strings.TrimRight(origin, "/"))] = true
	}

	return cors.New(cors.Options{
		AllowOriginFunc: func(origin string) bool { return allowed[strings.ToLower(origin)] },
		AllowedMethods:  []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{
			"Authorization", "Content-Type", "Accept", "Idempotency-Key", "If-Match", "If-None-Match", "Prefer", "Last-Event-ID", "A2A-Version", "A2A-Extensions",
		},
		ExposedHeaders: []string{"X-Request-Id", "X-Quern-Result", "ETag", "Retry-After", "Allow", "WWW-Authenticate", "A2A-Extensions"},
		MaxAge:         600,
	}).Handler(next)
}
