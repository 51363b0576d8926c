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
)

// call is what is known of the request under way; observe begins it and writes it as one line.
type call struct {
	id          string
	address     string
	operation   string // operationId; empty until the route is known
	who         auth.Principal
	requestHash [32]byte
	probe       bool // a health check: not worth a line
	err         error
}

type callKey struct{}

// callOf returns the call that observe put into the context.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		panic("a request that did not pass observe")
	}

	return c
}

// Caller is who makes the request under way.
func Caller(ctx context.Context) auth.Principal { return callOf(ctx).who }

// Note keeps an error for the log line of a request whose answer does not show it.
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
			Name: "quern_server_request_seconds", Help: "Time to answer by operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"operation"}),
	}
	registry.MustRegister(m.requests, m.duration)

	return m
}

// observe gives the request its id and address, turns a panic into INTERNAL, and writes one line and
// the metrics when the answer is out.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		c := &call{address: s.clientAddress(r)}
		c.id = s.requestID(r)
		answer := &answer{ResponseWriter: w}
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))

		w.Header().Set("X-Request-Id", c.id)

		defer func() {
			if problem := recover(); problem != nil {
				s.recovered(answer, r, problem)
			}

			s.record(r, c, answer, time.Since(begin))
		}()

		next.ServeHTTP(answer, r)
	})
}

func (s *Server) recovered(answer *answer, r *http.Request, problem any) {
	if err, ok := problem.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(problem) // net/http's own way to drop a connection
	}

	err := fault.Panicked(problem)
	if answer.status != 0 {
		callOf(r.Context()).err = err

		panic(http.ErrAbortHandler) // the answer has begun: only a broken connection can tell the client
	}

	s.Fail(answer, r, err)
}

func (s *Server) record(r *http.Request, c *call, answer *answer, took time.Duration) {
	operation := c.operation
	if operation == "" {
		operation = "none"
	}

	if r.Method == http.MethodHead {
		answer.bytes = 0 // net/http writes the headers alone
	}

	s.metrics.requests.WithLabelValues(operation, strconv.Itoa(answer.status)).Inc()
	s.metrics.duration.WithLabelValues(operation).Observe(took.Seconds())

	level := slog.LevelInfo
	if c.probe {
		level = slog.LevelDebug
	}

	fields := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("operation", operation), slog.Int("status", answer.status), slog.Int64("bytes", answer.bytes),
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

		if answer.status >= http.StatusInternalServerError || answer.status == http.StatusOK && e.Code == fault.Internal {
			level = slog.LevelError
		}
	}

	s.config.Log.LogAttrs(r.Context(), level, "request", fields...)
}

// reason is what the log says of a failure beyond its code. The texts of faults in a statement, in a body or in a file
// are for the caller alone, because they quote cells; of those only the names of the fields are logged.
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

// requestID takes over the id that a trusted proxy gave.
func (s *Server) requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); id != "" && s.trusts(peer(r)) && requestIDPattern.MatchString(id) {
		return id
	}

	return uuid.Must(uuid.NewV7()).String()
}

// clientAddress is the nearest address that is not one of our proxies.
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

// answer remembers what was written. Unwrap lets http.ResponseController reach the connection.
type answer struct {
	http.ResponseWriter

	status int
	bytes  int64
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}

	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}

	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)

	return n, err
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
