//go:build !scripted

package app

import (
	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/query"
)

// replaceByScripts does nothing: only tests have scripted agents.
func replaceByScripts(map[string]agent.Agent, *query.Query) {}
