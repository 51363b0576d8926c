package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/a2a"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/mcp"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/server"
	"quern.dev/quern/internal/verified"
)

// newAgents wires the handlers of A2A and MCP, by the operationId of the contract.
func (a *App) newAgents(asking *query.Query, kept *verified.Verified) (map[string]func(http.ResponseWriter, *http.Request) error, error) {
	var contract struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
	}
	if err := json.Unmarshal(api.Document, &contract); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}

	known, public, maxBody := catalog.Catalog{DB: a.db, Now: time.Now}, string(a.config.Server.PublicURL), int64(a.config.Server.MaxBody)
	agents := a2a.New(a2a.Config{
		Runs: a.runs, Push: a.webhooks, Catalog: known, PublicURL: public, Version: contract.Info.Version, MaxBody: maxBody, Now: time.Now, Who: server.Caller, Note: server.Note,
	})
	handlers := agents.Handlers()
	a.webhooks.Notify = agents.Notification

	tools, err := mcp.New(mcp.Config{
		Runs: a.runs, Query: asking, Catalog: known, Verified: kept, Audit: audit.Log{DB: a.db}, PublicURL: public, TrustedOrigins: a.config.Server.CORSOrigins,
		Version: contract.Info.Version, MaxBody: maxBody, RequestTimeout: a.config.Server.RequestTimeout, QueryTimeout: a.queryTimeout(), Now: time.Now,
		Who: server.Caller, Note: server.Note,
	})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}

	maps.Copy(handlers, tools.Handlers())

	return handlers, nil
}

// queryTimeout is how long a request that runs a statement may take.
func (a *App) queryTimeout() time.Duration {
	return a.config.Query.Timeout + a.config.Query.WaitTimeout + a.config.Server.RequestTimeout
}
