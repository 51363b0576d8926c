package server

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/benchmark"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/source"
	"quern.dev/quern/internal/span"
	"quern.dev/quern/internal/upload"
	"quern.dev/quern/internal/verified"
	"quern.dev/quern/internal/webhook"
)

// Config contains everything that the REST API needs.
type Config struct {
	Log            *slog.Logger
	Spans          *span.Spans // nil means that requests have no spans
	Metrics        prometheus.Registerer
	Authenticator  *auth.Authenticator
	Tokens         auth.Tokens
	Catalog        catalog.Catalog
	Uploads        upload.Uploads
	Ingest         *ingest.Ingest
	Query          *query.Query
	Runs           *run.Runs
	Feed           *feed.Feed
	Webhooks       *webhook.Webhooks
	Connections    *connection.Connections
	Sources        *source.Sources
	Verified       *verified.Verified
	Benchmark      *benchmark.Benchmarks
	Audit          audit.Log
	Accounts       auth.Accounts
	Queues         func(context.Context) ([]Queue, error)                    // of all replicas together
	Agents         map[string]func(http.ResponseWriter, *http.Request) error // handlers of other protocols, by operationId
	Ready          func(context.Context) []Check
	Console        *Console // nil if it is turned off
	PublicURL      string
	Issuer         string
	TrustedProxies []netip.Prefix
	CORSOrigins    []string
	RateLimit      float64 // requests per second for each caller; 0 means no limit
	RateBurst      int
	MaxBody        int64
	MaxRows        int64 // largest body of rows, in bytes
	RequestTimeout time.Duration
	QueryTimeout   time.Duration // for requests that run statements
	Dir            string        // holds results while they are sent; on the file system of the sandbox
	// WhenStopping calls do when the process stops, unless forget is called before.
	WhenStopping func(do func()) (forget func() bool)
}

// Server serves the contract.
type Server struct {
	config   Config
	contract *contract
	limiter  *limiter
	compress func(http.Handler) http.HandlerFunc
	metrics  metrics
	handler  http.Handler
}

const (
	basePath   = "/api/v1"
	agentsPath = basePath + "/a2a"
	toolsPath  = basePath + "/mcp"
)

// New returns a Server with a complete Handler.
func New(c Config) (*Server, error) {
	contract, err := loadContract()
	if err != nil {
		return nil, err
	}

	if c.Spans == nil {
		c.Spans = span.Off()
	}

	s := &Server{
		config: c, contract: contract, limiter: newLimiter(c.RateLimit, c.RateBurst), metrics: newMetrics(c.Metrics),
	}

	if s.compress, err = newCompressor(); err != nil {
		return nil, err
	}

	router, err := s.newRouter()
	if err != nil {
		return nil, err
	}

	s.handler = s.observe(s.secure(s.cors(router)))

	return s, nil
}

// Handler serves the API and, at the root, /healthz, /readyz and the console.
func (s *Server) Handler() http.Handler { return s.handler }

// handlers implements the generated interface, in one file for each resource.
type handlers struct {
	tokens      auth.Tokens
	catalog     catalog.Catalog
	uploads     upload.Uploads
	ingest      *ingest.Ingest
	query       *query.Query
	runs        *run.Runs
	verified    *verified.Verified
	benchmark   *benchmark.Benchmarks
	webhooks    *webhook.Webhooks
	connections *connection.Connections
	sources     *source.Sources
	audit       audit.Log
	accounts    auth.Accounts
	ready       func(context.Context) []Check
	queues      func(context.Context) ([]Queue, error)
	public      string // address of the service
	apiVersion  string // of the interface specification
}

var _ api.StrictServerInterface = handlers{}

// address returns the address of a resource, from the elements of its path.
func (h handlers) address(elements ...string) *string { return address(h.public, elements...) }

func address(public string, elements ...string) *string {
	var path strings.Builder
	for _, element := range elements {
		path.WriteString("/" + url.PathEscape(element))
	}

	return new(public + basePath + path.String())
}

// secure sets the headers that every response has. The documentation page and the console replace the content security policy.
func (s *Server) secure(next http.Handler) http.Handler {
	common := http.Header{
		"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
		"X-Content-Type-Options":  {"nosniff"},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {"no-store"},
	}
	if strings.HasPrefix(s.config.PublicURL, "https://") {
		common.Set("Strict-Transport-Security", "max-age=31536000")
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), common)
		next.ServeHTTP(w, r)
	})
}
