package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMCPDocument runs the examples in docs/mcp.md, and checks the configurations of hosts: the address is served, the
// token is sent as it is expected, and the command exists.
func TestMCPDocument(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../docs/mcp.md")
	require.NoError(t, err)

	d := newPublic(t)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(installed(t, "mcp-js"), "node_modules"), filepath.Join(folder, "node_modules")))

	runs := map[string][]string{
		"mcp-python": {"use.py", filepath.Join(installed(t, "mcp-python"), "bin", "python")},
		"mcp-js":     {"use.mjs", "node"},
	}

	for _, block := range regexp.MustCompile("(?s)```\\w+ run=([\\w-]+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		how, isKnown := runs[block[1]]
		require.True(t, isKnown, block[1])
		delete(runs, block[1])

		file := filepath.Join(folder, how[0])
		require.NoError(t, os.WriteFile(file, []byte(block[2]), 0o600))

		output := runFor(t, d, how[1], file)
		require.Contains(t, output, "read_rows", block[1])
		require.Contains(t, output, d.path(), block[1])
	}

	require.Empty(t, runs, "not in the document")

	hosts := regexp.MustCompile("(?s)```json host=(\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, hosts, 3)

	for _, block := range hosts {
		type server struct {
			URL     string
			Headers map[string]string
			Command string
			Args    []string
		}

		var config struct{ Servers, MCPServers map[string]server }

		require.NoError(t, json.Unmarshal([]byte(block[2]), &config), block[1])

		for _, one := range []server{config.Servers["quern"], config.MCPServers["quern"]} {
			switch {
			case one.Command != "":
				require.Equal(t, "quern", one.Command)
				require.Contains(t, newCLI(t).run(append(one.Args, "--help")...), "Model Context Protocol")
			case one.URL != "":
				path, isOurs := strings.CutPrefix(one.URL, "https://quern.example.org")
				require.True(t, isOurs)
				require.Equal(t, "/api/v1/mcp", path)
				require.Regexp(t, `^Bearer \$\{(input:quern-token|env:QUERN_TOKEN)\}$`, one.Headers["Authorization"])
			}
		}
	}
}
