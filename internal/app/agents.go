package app

import (
	"encoding/json"
	"fmt"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/a2a"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/server"
)

// newAgents wires the A2A handlers.
func (a *App) newAgents() (*a2a.Agents, error) {
	var contract struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
	}
	if err := json.Unmarshal(api.Document, &contract); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}

	return a2a.New(a2a.Config{
		Runs: a.runs, Catalog: catalog.Catalog{DB: a.db, Now: time.Now}, PublicURL: string(a.config.Server.PublicURL),
		Version: contract.Info.Version, MaxBody: int64(a.config.Server.MaxBody), Now: time.Now,
		Who: server.Caller, Note: server.Note,
	}), nil
}
