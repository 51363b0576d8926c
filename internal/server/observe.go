package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/span"
)

// call holds the facts about the request in progress; observe creates it and logs it as one line.
type call struct {
	id          string
	address     string
	operation   string // operationId; empty until the route is known
	who         auth.Principal
	requestHash [32]byte
	list        []byte // what listTag returned
	probe       bool   // a health check, which is logged at debug level only
	response    *recordedResponse
	err         error
	span        *span.Span // nil if the request has none
}

type callKey struct{}

// callOf returns the call that observe put into the context.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		panic("the request did not pass observe")
	}

	return c
}

// Caller returns the caller of the request in progress.
func Caller(ctx context.Context) auth.Principal { return callOf(ctx).who }

// Note keeps an error for the log line of a request whose response does not show the error.
func Note(ctx context.Context, err error) { callOf(ctx).err = err }

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quern_server_requests_total", Help: "Requests by operation and status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quern_server_request_seconds", Help: "Response time by operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}, []string{"operation"}),
	}
	registry.MustRegister(m.requests, m.duration)

	return m
}

// observe assigns the request its ID and client address, turns a panic into INTERNAL, and writes one log line and the
// metrics after the response.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		c := &call{id: s.requestID(r), address: s.clientAddress(r), response: &recordedResponse{ResponseWriter: w}}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))

		w.Header().Set("X-Request-Id", c.id)

		if strings.HasPrefix(r.URL.Path, basePath) {
			r = s.traced(w, r, c)
		}

		// recovered panics again to break the connection, and such a request is recorded too.
		defer func() { s.record(r, c, time.Since(begin)) }()
		defer func() {
			if problem := recover(); problem != nil {
				s.recovered(c.response, r, problem)
			}
		}()

		next.ServeHTTP(c.response, r)
	})
}

// traced starts the span of a request, and returns its trace in the header Traceparent of the response.
func (s *Server) traced(w http.ResponseWriter, r *http.Request, c *call) *http.Request {
	ctx, started := s.config.Spans.Request(r.Context(), r.Header, s.trusts(peer(r)))
	c.span = started

	w.Header().Set("Traceparent", span.Parent(ctx))

	return r.WithContext(ctx)
}

func (s *Server) recovered(w http.ResponseWriter, r *http.Request, problem any) {
	if err, ok := problem.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(problem) // how net/http handlers drop a connection
	}

	s.report(w, r, fault.Panicked(problem))
}

func (s *Server) record(r *http.Request, c *call, took time.Duration) {
	operation := c.operation
	if operation == "" {
		operation = "none"
	}

	if r.Method == http.MethodHead {
		c.response.bytes = 0 // net/http writes only the headers
	}

	s.metrics.requests.WithLabelValues(operation, strconv.Itoa(c.response.status)).Inc()
	s.observeDuration(r.Context(), operation, took)
	c.end(r, operation)

	level := slog.LevelInfo
	if c.probe {
		level = slog.LevelDebug
	}

	fields := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("operation", operation), slog.Int("status", c.response.status), slog.Int64("bytes", c.response.bytes),
		slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("address", c.address),
	}

	if c.who.Account != uuid.Nil {
		fields = append(fields, slog.String("account", c.who.Account.String()))
	}

	if c.who.Token != nil {
		fields = append(fields, slog.String("token", c.who.Token.ID.String()))
	}

	if c.err != nil {
		e := fault.From(c.err)
		fields = append(append(fields, slog.String("code", string(e.Code))), reason(c.err)...)

		switch {
		case fault.IsNoRoom(c.err): // the monitor of the disk has already logged an error
			level = slog.LevelWarn
		case c.response.status >= http.StatusInternalServerError || c.response.status == http.StatusOK && e.Code == fault.Internal:
			level = slog.LevelError
		}
	}

	s.config.Log.LogAttrs(r.Context(), level, "request", fields...)
}

// observeDuration adds the duration to the metrics, with the trace as an example if it is sent.
func (s *Server) observeDuration(ctx context.Context, operation string, took time.Duration) {
	duration := s.metrics.duration.WithLabelValues(operation)

	if with, ok := duration.(prometheus.ExemplarObserver); ok && span.Sent(ctx) {
		with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID(ctx)})
	} else {
		duration.Observe(took.Seconds())
	}
}

// end ends the span of a request. It contains the operation and not the path, because names in a path are chosen by users.
func (c *call) end(r *http.Request, operation string) {
	c.span.Name(r.Method + " " + operation)
	c.span.Set(span.Text("http.request.method", r.Method), span.Text("quern.operation", operation), span.Text("quern.request_id", c.id))

	if c.who.Account != uuid.Nil {
		c.span.Set(span.Text("quern.account", c.who.Account.String()))
	}

	c.span.Answered(c.response.status)
	c.span.End(c.err)
}

// reason returns the log fields of a failure beyond its code. The messages of faults in a statement, a body or a file
// are only for the caller, because they can quote cells; for those, reason returns only the names of the fields.
func reason(err error) []slog.Attr {
	e := fault.From(err)

	switch e.Code {
	case fault.Unauthorized, fault.Forbidden, fault.Internal, fault.UpstreamUnavailable, fault.Unavailable, fault.Timeout:
		return []slog.Attr{slog.String("error", err.Error())}
	default:
	}

	var names []string

	for _, sub := range e.Subs {
		if !slices.Contains(names, sub.Code) {
			names = append(names, sub.Code)
		}
	}

	if len(names) == 0 {
		return nil
	}

	return []slog.Attr{slog.String("fields", strings.Join(names, ","))}
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID returns the ID that a trusted proxy sent, or a new one.
func (s *Server) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && s.trusts(peer(r)) && requestIDPattern.MatchString(id) {
		return id
	}

	return uuid.Must(uuid.NewV7()).String()
}

// clientAddress returns the nearest address that is not a trusted proxy.
func (s *Server) clientAddress(r *http.Request) string {
	address := peer(r)
	hops := strings.Join(r.Header.Values("X-Forwarded-For"), ",")

	for s.trusts(address) {
		last := strings.LastIndexByte(hops, ',')

		forwarded, err := netip.ParseAddr(strings.TrimSpace(hops[last+1:]))
		if err != nil {
			break
		}

		address, hops = forwarded.Unmap(), hops[:max(last, 0)]
	}

	return address.String()
}

func (s *Server) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(s.config.TrustedProxies, func(network netip.Prefix) bool { return network.Contains(address) })
}

func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}

	address, _ := netip.ParseAddr(host)

	return address.Unmap()
}

// recordedResponse is a response whose status and size are recorded. http.ResponseController reaches the connection through
// Unwrap.
type recordedResponse struct {
	http.ResponseWriter

	status int
	bytes  int64
}

func (w *recordedResponse) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}

	w.ResponseWriter.WriteHeader(status)
}

func (w *recordedResponse) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}

	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)

	return n, err
}

func (w *recordedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
