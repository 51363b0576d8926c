package a2a

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// Config is what the agents need.
type Config struct {
	Runs      *run.Runs
	Catalog   catalog.Catalog
	PublicURL string
	Version   string // of the interface
	MaxBody   int64
	Now       func() time.Time

	// What those in front of us know of a request, and do with one that fails.
	Who  func(context.Context) auth.Principal
	Fail func(http.ResponseWriter, *http.Request, error)
	Note func(context.Context, error) // of what failed although the answer is 200
}

// Agents serves the agents, behind what checks the token.
type Agents struct {
	Config

	mux    *http.ServeMux
	agents []profile
	began  time.Time
}

const basePath = "/api/v1/a2a"

// New returns Agents.
func New(c Config) *Agents { return serve(c, profiles()) }

func serve(c Config, agents []profile) *Agents {
	a := &Agents{Config: c, mux: http.NewServeMux(), agents: agents, began: c.Now()}
	a.mux.HandleFunc("GET "+basePath, a.list)
	a.mux.HandleFunc("GET "+basePath+"/{agent}", a.named(a.entry))
	a.mux.HandleFunc("POST "+basePath+"/{agent}", a.named(a.call))
	a.mux.HandleFunc("GET "+basePath+"/{agent}"+cardPath, a.named(a.card))

	return a
}

// ServeHTTP serves the catalog, the cards and the agents.
func (a *Agents) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// named finds the agent that a request is about.
func (a *Agents) named(next func(http.ResponseWriter, *http.Request, profile)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(a.agents, func(p profile) bool { return p.name == r.PathValue("agent") })
		if i < 0 {
			a.Fail(w, r, fault.Absent())

			return
		}

		next(w, r, a.agents[i])
	}
}

// entry is an agent in the catalog.
type entry struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	AgentCard string `json:"agentCard"`
}

func (a *Agents) entryOf(p profile) entry {
	url := a.PublicURL + basePath + "/" + p.name

	return entry{Name: p.name, URL: url, AgentCard: url + cardPath}
}

func (a *Agents) list(w http.ResponseWriter, _ *http.Request) {
	var entries []entry
	for _, p := range a.agents {
		entries = append(entries, a.entryOf(p))
	}

	write(w, entries)
}

func (a *Agents) entry(w http.ResponseWriter, _ *http.Request, p profile) { write(w, a.entryOf(p)) }

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // it can only fail because the client left
}
