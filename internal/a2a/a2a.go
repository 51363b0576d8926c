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
	"quern.dev/quern/internal/webhook"
)

// Config holds the dependencies and limits of Agents.
type Config struct {
	Runs      *run.Runs
	Catalog   catalog.Catalog
	Push      *webhook.Webhooks
	PublicURL string
	Version   string // version of the API
	MaxBody   int64
	Now       func() time.Time

	// Functions of the HTTP server in front.
	Who  func(context.Context) auth.Principal // returns the caller of a request
	Note func(context.Context, error)         // records a failure of a request that is answered with status 200
}

// Agents serves the agents over HTTP.
type Agents struct {
	Config

	agents []profile
	began  time.Time
}

const basePath = "/api/v1/a2a"

// New returns Agents with this configuration.
func New(c Config) *Agents { return newAgents(c, profiles()) }

func newAgents(c Config, agents []profile) *Agents {
	return &Agents{Config: c, agents: agents, began: c.Now()}
}

// Handlers returns the handlers of the list of agents, of the agents and of their cards, by the operationId of the contract.
// The server in front checks tokens, sets the path value "agent", and writes the errors that the handlers return.
func (a *Agents) Handlers() map[string]func(http.ResponseWriter, *http.Request) error {
	return map[string]func(http.ResponseWriter, *http.Request) error{
		"listAgents":   a.list,
		"getAgent":     a.named(a.entry),
		"callAgent":    a.named(a.call),
		"getAgentCard": a.named(a.card),
	}
}

// named calls next with the agent in the path of the request, or fails with NotFound.
func (a *Agents) named(next func(http.ResponseWriter, *http.Request, profile) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		i := slices.IndexFunc(a.agents, func(p profile) bool { return p.name == r.PathValue("agent") })
		if i < 0 {
			return fault.Absent()
		}

		return next(w, r, a.agents[i])
	}
}

// entry is an agent in the list of agents.
type entry struct {
	Name      string `json:"name"`
	URL       string `json:"url"`
	AgentCard string `json:"agentCard"`
}

func (a *Agents) entryOf(p profile) entry {
	url := a.PublicURL + basePath + "/" + p.name

	return entry{Name: p.name, URL: url, AgentCard: url + cardPath}
}

func (a *Agents) list(w http.ResponseWriter, _ *http.Request) error {
	var entries []entry
	for _, p := range a.agents {
		entries = append(entries, a.entryOf(p))
	}

	write(w, entries)

	return nil
}

func (a *Agents) entry(w http.ResponseWriter, _ *http.Request, p profile) error {
	write(w, a.entryOf(p))

	return nil
}

func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // it can only fail because the client left
}
