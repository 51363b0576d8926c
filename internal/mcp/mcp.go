package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
)

// Config holds the dependencies and limits of a Server.
type Config struct {
	Runs           *run.Runs
	Query          *query.Query
	Catalog        catalog.Catalog
	Verified       *verified.Verified
	Audit          audit.Log
	PublicURL      string
	TrustedOrigins []string // of web pages that may call this service
	Version        string   // of the API
	MaxBody        int64
	RequestTimeout time.Duration
	QueryTimeout   time.Duration // for tools that run statements
	Now            func() time.Time

	// Functions of the HTTP server in front.
	Who  func(context.Context) auth.Principal // returns the caller of a request
	Note func(context.Context, error)         // records a failure of a request that is answered with status 200
}

// Server serves the protocol.
type Server struct {
	Config

	handler http.Handler
	origins *http.CrossOriginProtection
	hosts   map[string]bool
}

// New returns a Server.
func New(c Config) (*Server, error) {
	s := &Server{Config: c, origins: http.NewCrossOriginProtection(), hosts: map[string]bool{"localhost": true}}

	for _, origin := range append([]string{c.PublicURL}, c.TrustedOrigins...) {
		address, err := url.Parse(origin)
		if err != nil {
			return nil, err
		}

		if err := s.origins.AddTrustedOrigin(address.Scheme + "://" + address.Host); err != nil {
			return nil, err
		}

		s.hosts[strings.ToLower(address.Hostname())] = true
	}

	served, err := s.newServer()
	if err != nil {
		return nil, err
	}

	s.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return served }, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: c.MaxBody, Logger: slog.New(slog.DiscardHandler),
		DisableLocalhostProtection: true, // checkOrigin also works behind a proxy on the same machine
	})

	return s, nil
}

// Handlers returns the handler, by the operationId of the contract. The server in front checks the token and writes the error
// that the handler returns.
func (s *Server) Handlers() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{"callTool": s.call}
}

// requestKey is the key of the context of the HTTP request in the context of a tool. The latter does not end when a client of
// an earlier version of the protocol disconnects.
type requestKey struct{}

func (s *Server) call(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkOrigin(r); err != nil {
		return err
	}

	if err := checkMedia(r); err != nil {
		return err
	}

	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}

	out := newResponse(w)
	defer out.close()

	r = r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.handler.ServeHTTP(out, r)

	return nil
}

// checkOrigin refuses web pages of other origins, and pages whose name was made to point to this service (DNS rebinding): the
// host in the request must be one that nobody else can own.
func (s *Server) checkOrigin(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	host = strings.ToLower(strings.Trim(host, "[]"))
	isPrivate := net.ParseIP(host) != nil || !strings.Contains(host, ".") && host != ""

	if !isPrivate && !s.hosts[host] {
		return fault.New(fault.Forbidden, "This service does not answer under this host name. Use "+s.PublicURL+".")
	}

	if err := s.origins.Check(r); err != nil {
		return fault.New(fault.Forbidden, "Web pages of this origin may not call the service. An operator can allow the origin with QUERN_CORS_ORIGINS.")
	}

	return nil
}

const (
	jsonType    = "application/json"
	eventStream = "text/event-stream"
)

// checkMedia checks the types of the request and of the response. A client that accepts anything gets a stream.
func checkMedia(r *http.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Header.Get("Content-Type") != "" && (err != nil || media != jsonType) {
		return fault.New(fault.UnsupportedMediaType, "The body must be application/json in UTF-8.")
	}

	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	if accept != "" && !strings.Contains(accept, eventStream) && !strings.Contains(accept, "*/*") {
		return fault.New(fault.NotAcceptable, "Send the header Accept: application/json, text/event-stream.")
	}

	r.Header.Set("Content-Type", jsonType)
	r.Header.Set("Accept", jsonType+", "+eventStream)

	return nil
}

// readBody reads the request. A batch would count as one request for the rate limit, so it is refused; the protocol has none since
// 2025-06-18.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBody))
	if _, isLarge := errors.AsType[*http.MaxBytesError](err); isLarge {
		return nil, fault.New(fault.PayloadTooLarge, "The request is too large.")
	}

	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case err != nil:
		return nil, fault.Wrap(err, fault.BadRequest, "The body could not be read to its end.")
	case len(start) == 0 || start[0] != '{':
		return nil, fault.New(fault.BadRequest, "The body must be one JSON-RPC message. Batches are not supported.")
	}

	return body, nil
}
