package app

import (
	"time"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
)

// newRuns wires what answers questions.
func (a *App) newRuns(asking *query.Query) *run.Runs {
	c := a.config.Run

	agents := map[string]agent.Agent{}
	if c.Scripted {
		agents["nl2ql"], agents["assistant"] = agent.Script{Query: asking}, agent.Script{Query: asking, Planning: true}
	}

	return run.New(run.Config{
		DB: a.db, Store: a.store, Catalog: catalog.Catalog{DB: a.db, Now: time.Now}, Agents: agents, Jobs: func() *job.Client { return a.jobs },
		Tracing: a.tracing, Log: a.log, Now: time.Now, Time: c.Time, Running: c.PerUser, Poll: c.Poll, Keep: c.Keep,
	})
}
