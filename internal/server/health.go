package server

import (
	"context"
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is the state of one dependency of the service.
type Check struct {
	Name     string `json:"name"`
	Required bool   `json:"required"` // the service cannot work without it
	OK       bool   `json:"ok"`
	Problem  string `json:"problem,omitempty"`
}

type readiness struct {
	Status string  `json:"status"`
	Checks []Check `json:"checks,omitempty"`
}

func (s *Server) ready(ctx context.Context) (int, readiness) {
	checks := s.config.Ready(ctx)
	failed := func(c Check) bool { return !c.OK }

	switch {
	case slices.ContainsFunc(checks, func(c Check) bool { return c.Required && !c.OK }):
		return http.StatusServiceUnavailable, readiness{Status: "unavailable", Checks: checks}
	case slices.ContainsFunc(checks, failed):
		return http.StatusOK, readiness{Status: "degraded", Checks: checks}
	default:
		return http.StatusOK, readiness{Status: "ok", Checks: checks}
	}
}

// healthz reports that the process answers. It does not check dependencies, because a restart would not repair them.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	callOf(r.Context()).probe = true

	writeJSON(w, http.StatusOK, readiness{Status: "ok"})
}

// readyz reports only a status word to the public; the admin listener reports the reasons.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	callOf(r.Context()).probe = true

	status, state := s.ready(r.Context())
	writeJSON(w, status, readiness{Status: state.Status})
}

// Admin serves metrics, pprof and the detailed readiness. It requires no token: bind it to loopback.
func (s *Server) Admin(metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status, state := s.ready(r.Context())
		writeJSON(w, status, state)
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)

	return mux
}
