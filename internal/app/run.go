package app

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/benchmark"
	"quern.dev/quern/internal/build"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/feed"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
	"quern.dev/quern/internal/webhook"
)

// newRuns wires the agents that answer questions.
func (a *App) newRuns(asking *query.Query, known *verified.Verified) *run.Runs {
	c := a.config.Run

	tools := agent.Tools{Catalog: a.catalog(), Query: asking, Models: a.models, Now: time.Now, Verified: known}
	agents := map[string]agent.Agent{"nl2ql": agent.NL2QL{Tools: tools, Opinion: c.SecondOpinion}, "assistant": agent.Assistant{Tools: tools, Opinion: c.SecondOpinion}}

	if !a.models.Configured() {
		agents["nl2ql"], agents["assistant"] = agent.Planner{Tools: tools}, agent.Planner{Tools: tools, Planning: true}
	}

	for name, inner := range agents {
		agents[name] = agent.Verified{Agent: inner, Tools: tools, Planning: name == "assistant"}
	}

	replaceByScripts(agents, asking)

	var models []run.Model
	for _, model := range a.models.All() {
		models = append(models, run.Model{Name: model.Name, Provider: model.Provider, Exposure: model.Exposure.String()})
	}

	return run.New(run.Config{
		DB: a.db, Store: a.store, Catalog: a.catalog(), Credentials: a.credentials(), Folder: a.folder, Agents: agents, Jobs: func() *job.Client { return a.jobs },
		CheckModel: func(model, provider string) error {
			_, err := a.models.Choose(model, provider)

			return err
		},
		Ended: a.observed.run, Forget: a.webhooks.ForgetRunsTx, Suggest: tools.Suggest, Models: models, Tracing: a.tracing, Log: a.log, Now: time.Now, Timeout: c.Timeout, MaxPerUser: c.MaxPerUser, MaxStreamsPerUser: c.MaxStreamsPerUser, PollInterval: c.PollInterval, Retention: c.Retention,
	})
}

// newEvents wires the streams of events and the webhooks.
func (a *App) newEvents() error {
	c := a.config.Webhook

	client, err := httpClient(config.Connection{CAFile: c.CAFile, Timeout: c.Timeout})
	if err != nil {
		return fmt.Errorf("QUERN_WEBHOOK_%w", err)
	}

	transport, _ := client.Transport.(*http.Transport)
	a.webhooks = webhook.New(webhook.Config{
		DB: a.db, Catalog: a.catalog(), Credentials: a.credentials(), Log: a.log, Now: time.Now, Secret: []byte(a.config.Server.Secret.Reveal()), Transport: transport,
		Allowed: c.AllowedNetworks, Timeout: c.Timeout, Senders: c.Senders, First: c.RetryInterval, RetryTime: c.RetryTime, DisableAfter: c.DisableAfter,
	})
	a.feed = feed.New(feed.Config{
		DB: a.db, Catalog: a.catalog(), Credentials: a.credentials(), Log: a.log, Now: time.Now, Numbered: a.webhooks.Numbered,
	})

	return nil
}

// newBenchmarks wires the benchmarks of verified questions.
func (a *App) newBenchmarks(known *verified.Verified) *benchmark.Benchmarks {
	is := build.Read()

	return &benchmark.Benchmarks{
		DB: a.db, Catalog: a.catalog(), Verified: known, Runs: a.runs, Credentials: a.credentials(), Jobs: func() *job.Client { return a.jobs },
		Release: strings.TrimSpace(is.Version + " " + is.Revision[:min(len(is.Revision), shortRevision)]), Now: time.Now,
	}
}

const shortRevision = 12

// credentials returns what checks callers again whose request was authenticated some time ago.
func (a *App) credentials() auth.Credentials {
	return auth.Credentials{DB: a.db, Now: time.Now, GroupsMaxAge: a.config.OIDC.GroupsMaxAge}
}

// catalog returns the catalog. Its default exposure, for datasets whose owner set none, is the strictest of those that
// the operator set for external providers.
func (a *App) catalog() catalog.Catalog {
	c := catalog.Catalog{DB: a.db, Now: time.Now, DeleteGrace: a.config.Data.DeleteGrace, Refused: a.observed.refused}

	if a.config.Trino.URL != "" {
		c.TrinoThreshold = int64(a.config.Trino.Threshold)
	}

	for _, p := range a.config.Model.Providers {
		if said := catalog.Exposure(p.Exposure); !p.Local && (c.Exposure == "" || said.Less(c.Exposure)) {
			c.Exposure = said
		}
	}

	return c
}
