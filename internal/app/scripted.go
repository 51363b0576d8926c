//go:build scripted

package app

import (
	"os"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/query"
)

// replaceByScripts replaces the agents by scripted ones if QUERN_TEST_SCRIPTED is true. Tests and measures build quernd
// with the tag `scripted`; released programs do not contain scripted agents.
func replaceByScripts(agents map[string]agent.Agent, asking *query.Query) {
	if os.Getenv("QUERN_TEST_SCRIPTED") == "true" {
		agents["nl2ql"], agents["assistant"] = agent.Script{Query: asking}, agent.Script{Query: asking, Planning: true}
	}
}
