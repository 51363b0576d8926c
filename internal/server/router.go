package server

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/rs/cors"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
)

// router serves the operations of the contract and the few addresses outside the contract.
type router struct {
	server   *Server
	mux      *http.ServeMux
	table    map[string]handlerFunc // by operationId
	problems []error                // handlers that cannot be registered
	console  *console               // nil if it is turned off
}

func (s *Server) newRouter() (http.Handler, error) {
	rt := &router{server: s, mux: http.NewServeMux(), table: map[string]handlerFunc{}}

	docs, err := newDocs(s)
	if err != nil {
		return nil, err
	}

	rt.addGenerated()

	for id, handler := range s.rawHandlers(docs) {
		rt.add(id, handler)
	}

	for id, handler := range s.config.Agents {
		rt.add(id, handler)
	}

	if err := rt.register(); err != nil {
		return nil, err
	}

	rt.mux.HandleFunc("GET /healthz", s.healthz)
	rt.mux.HandleFunc("GET /readyz", s.readyz)
	rt.mux.HandleFunc("GET "+resourceMetadataPath, s.resourceMetadata(s.config.PublicURL))
	rt.mux.HandleFunc("GET "+resourceMetadataPath+toolsPath, s.resourceMetadata(s.config.PublicURL+toolsPath))

	if s.config.Console != nil {
		if rt.console, err = newConsole(s); err != nil {
			return nil, err
		}

		rt.mux.HandleFunc("GET /console.json", rt.console.config)
	}

	return rt, nil
}

// rawHandlers returns the handlers, by operationId, of the operations that the generated server cannot serve because they
// stream, return files or read the request themselves. The contract marks them with x-quern-raw or x-quern-unread.
func (s *Server) rawHandlers(docs *docs) map[string]handlerFunc {
	return map[string]handlerFunc{
		"appendRows":         s.appendRows,
		"ingestRows":         s.appendRows,
		"listRows":           s.listRows,
		"exportDataset":      s.exportDataset,
		"runQuery":           s.runQuery,
		"getPiece":           s.getPiece,
		"listStatementRows":  s.listStatementRows,
		"ask":                s.ask,
		"getRun":             s.getRun,
		"cancelRun":          s.cancelRun,
		"chooseOption":       s.chooseOption,
		"streamRunEvents":    s.streamRunEvents,
		"streamEvents":       s.streamEvents,
		"listStepRows":       s.listStepRows,
		"exportStep":         s.exportStep,
		"exportSetAsideRows": s.exportSetAsideRows,
		"getConversation":    s.getConversation,
		"getOpenAPI":         docs.document,
		"getDocs":            docs.page,
	}
}

// addGenerated adds the handlers of the generated server.
func (rt *router) addGenerated() {
	s := rt.server

	strict := api.NewStrictHandlerWithOptions(handlers{
		tokens: s.config.Tokens, catalog: s.config.Catalog, uploads: s.config.Uploads, ingest: s.config.Ingest, query: s.config.Query,
		runs: s.config.Runs, verified: s.config.Verified, benchmark: s.config.Benchmark, webhooks: s.config.Webhooks, connections: s.config.Connections, sources: s.config.Sources, audit: s.config.Audit,
		accounts: s.config.Accounts, ready: s.config.Ready, queues: s.config.Queues, public: s.config.PublicURL, apiVersion: s.contract.document.Info.Version,
	}, nil, api.StrictHTTPServerOptions{RequestErrorHandlerFunc: s.failDecode, ResponseErrorHandlerFunc: s.fail})

	api.HandlerWithOptions(strict, api.StdHTTPServerOptions{BaseURL: basePath, BaseRouter: rt, ErrorHandlerFunc: s.fail})
}

// HandleFunc adds a handler of the generated server. It reports its failures itself.
func (rt *router) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	id, ok := rt.server.contract.ids[pattern]
	if !ok {
		id = pattern // which add reports
	}

	rt.add(id, func(w http.ResponseWriter, r *http.Request) error {
		handler(w, r)

		return nil
	})
}

func (rt *router) add(id string, handler handlerFunc) {
	if rt.table[id] != nil {
		rt.problems = append(rt.problems, fmt.Errorf("operation %s has two handlers", id))
	}

	if rt.server.contract.operations[id] == nil {
		rt.problems = append(rt.problems, fmt.Errorf("the contract has no operation for the handler %s", id))
	}

	rt.table[id] = handler
}

// register puts every handler behind the checks of its operation. It fails unless each operation has one handler and each
// handler has an operation.
func (rt *router) register() error {
	problems := rt.problems

	for id, op := range rt.server.contract.operations {
		if rt.table[id] == nil {
			problems = append(problems, fmt.Errorf("operation %s has no handler", id))

			continue
		}

		rt.mux.Handle(op.pattern, rt.server.guard(op, rt.table[id]))
	}

	return errors.Join(problems...)
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Some clients of an agent append a slash to its address.
	if agent, isSlashed := strings.CutSuffix(r.URL.Path, "/"); isSlashed && r.Method == http.MethodPost && path.Dir(agent) == agentsPath {
		r.URL.Path, r.URL.RawPath = agent, ""
	}

	// The mux would redirect to the clean path, but every resource has exactly one address.
	if r.URL.Path != path.Clean("/"+r.URL.Path) || r.Method == http.MethodConnect {
		rt.absent(w, r)

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

	// The mux knows the methods of the path; only its response text must be replaced.
	probe := &probe{header: http.Header{}}
	handler.ServeHTTP(probe, r)

	if probe.status == http.StatusMethodNotAllowed {
		rt.notAllowed(w, r, probe.header.Get("Allow"))

		return
	}

	rt.absent(w, r)
}

// absent serves an address that is none of the API.
func (rt *router) absent(w http.ResponseWriter, r *http.Request) {
	if rt.console == nil || !rt.console.serve(w, r) {
		rt.server.fail(w, r, rt.server.contract.noOperation(r.URL.Path))
	}
}

// noOperation returns the fault for a path that the contract does not have. The contract is public, so the message may differ from
// that for a resource that the caller may not see.
func (c *contract) noOperation(path string) error {
	message := "There is no operation with this path. "

	if similar := c.similar(path); similar != "" {
		message += "Did you mean " + basePath + similar + "? "
	}

	if strings.HasSuffix(path, "/") {
		message += "No path ends with a slash. "
	}

	return fault.New(fault.NotFound, message+"All paths begin with "+basePath+"/; "+basePath+"/docs lists them.")
}

func (rt *router) notAllowed(w http.ResponseWriter, r *http.Request, allow string) {
	w.Header().Set("Allow", allow)
	rt.server.fail(w, r, fault.New(fault.MethodNotAllowed, "This path has no operation "+method(r)+". It has: "+strings.Join(rt.purposes(r, allow), ", ")+". Use one of these, or another path of "+basePath+"/docs."))
}

// purposes returns the methods of a path and what they are for. HEAD is left out, because it is for the same as GET.
func (rt *router) purposes(r *http.Request, allow string) (list []string) {
	for one := range strings.SplitSeq(allow, ", ") {
		if one == http.MethodHead {
			continue
		}

		_, pattern := rt.mux.Handler(&http.Request{Method: one, URL: r.URL, Host: r.Host})
		if op := rt.server.contract.operations[rt.server.contract.ids[pattern]]; op != nil {
			one += " (" + op.summary + ")"
		}

		list = append(list, one)
	}

	return list
}

// method returns the method without characters that are unsafe in a message.
func method(r *http.Request) string {
	return strings.Map(func(c rune) rune {
		if c < 'A' || c > 'Z' {
			return -1
		}

		return c
	}, r.Method)
}

// probe is a response that is discarded.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// cors answers preflight requests and allows the configured origins to read responses.
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
			"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id",
		},
		ExposedHeaders: []string{"X-Request-Id", "Traceparent", "X-Quern-Result", "ETag", "Retry-After", "Allow", "WWW-Authenticate", "A2A-Extensions"},
		MaxAge:         600,
	}).Handler(next)
}
