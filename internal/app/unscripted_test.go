//go:build !scripted

package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/agent"
)

// TestNoScriptedAgents checks that the program does not react to the setting with which tests script the agents.
func TestNoScriptedAgents(t *testing.T) {
	t.Setenv("QUERN_TEST_SCRIPTED", "true")

	agents := map[string]agent.Agent{}
	replaceByScripts(agents, nil)
	require.Empty(t, agents)
}
