package app

import (
	"time"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
)

// newRuns wires what answers questions.
func (a *App) newRuns(asking *query.Query) *run.Runs {
	c := a.config.Run

	writer := agent.NL2QL{Catalog: a.catalog(), Query: asking, Models: a.models, Now: time.Now, Opinion: c.Opinion}
	agents := map[string]agent.Agent{"nl2ql": writer, "assistant": agent.Assistant{NL2QL: writer}}

	if !a.models.Configured() {
		agents["nl2ql"], agents["assistant"] = agent.Planner{NL2QL: writer}, agent.Planner{NL2QL: writer, Planning: true}
	}

	if c.Scripted {
		agents["nl2ql"], agents["assistant"] = agent.Script{Query: asking}, agent.Script{Query: asking, Planning: true}
	}

	return run.New(run.Config{
		DB: a.db, Store: a.store, Catalog: a.catalog(), Credentials: a.credentials(), Agents: agents, Jobs: func() *job.Client { return a.jobs },
		Tracing: a.tracing, Log: a.log, Now: time.Now, Time: c.Time, Running: c.PerUser, Streams: c.Streams, Poll: c.Poll, Keep: c.Keep,
	})
}

// credentials checks callers again whose request was authenticated a while ago.
func (a *App) credentials() auth.Credentials {
	return auth.Credentials{DB: a.db, Now: time.Now, GroupsMaxAge: a.config.OIDC.GroupsMaxAge}
}

// catalog is what exists. Where an owner has not said what external models may see, the operator has: the least of them.
func (a *App) catalog() catalog.Catalog {
	c := catalog.Catalog{DB: a.db, Now: time.Now}

	for _, p := range a.config.Model.Providers {
		if said := catalog.Exposure(p.Exposure); !p.Local && (c.Exposure == "" || said.Less(c.Exposure)) {
			c.Exposure = said
		}
	}

	return c
}
