package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGolden runs the sessions of testdata/cli in order on one service. Each session is a file of commands with their output.
// Text that differs in every run is replaced by a name: <id 1> is the same id everywhere, also in commands.
//
//nolint:tparallel // the sessions are one story
func TestGolden(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_INGEST_WORKERS=2", "QUERN_MAINTENANCE_WORKERS=1", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	c := s.signedIn(t, value(t, call(t, "POST", s.url+"/user/tokens", s.realm.password("ada"), `{"name": "golden", "role": "owner"}`)))
	session := &goldenSession{cli: c, s: s, names: map[string]string{}, values: map[string]string{}}

	for name, content := range map[string]string{
		"orders.csv":   "id,day,region,total\n1,2026-11-02,north,19.90\n2,2026-11-03,north,1205.00\n3,2026-11-03,south,7.25\n4,2026-11-04,\"東京\",12\n", //nolint:gosmopolitan // letters of two columns
		"bad.csv":      "id,total\n" + strings.Repeat("1,2\nx,\"3\n", 3),
		"sources.yaml": "connections:\n  - {name: nightly, s3: {endpoint: https://s3.example, region: x, bucket: acme, accessKeyId: x}}\n",
		"foreign.yaml": "sources: [{name: nightly, connection: bob/lake, dataset: bob/shop/orders}]\n",
		"mixed.csv":    "id,day\n1,01/02/2026\n2,03/04/2026\n",
		"report.sql":   "SELECT count(*) AS n FROM orders\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(c.home, name), []byte(content), 0o600))
	}

	files, err := filepath.Glob("testdata/cli/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)

			got := session.play(t, string(content))

			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}

			require.Equal(t, string(content), got)
		})
	}
}

type goldenSession struct {
	*cli

	s             *service
	names, values map[string]string // names of ids by the longest known form of the id, and the reverse
}

// play runs the commands of a session and returns it with the actual output: lines of standard error begin with "! ", and an exit
// code is the last line.
func (g *goldenSession) play(t *testing.T, script string) string {
	t.Helper()

	out := new(strings.Builder)

	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}

		text, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			continue
		}

		if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n\n") && !strings.HasPrefix(out.String()[strings.LastIndex(strings.TrimSuffix(out.String(), "\n"), "\n")+1:], "#") {
			out.WriteString("\n")
		}

		out.WriteString(line)

		for name, value := range g.values {
			text = strings.ReplaceAll(text, name, value)
		}

		stdout, stderr, code := g.shell(t, text)
		out.WriteString(g.normal(stdout))

		for line := range strings.Lines(g.normal(stderr)) {
			out.WriteString("! " + line)
		}

		if code != 0 {
			fmt.Fprintf(out, "[exit %d]\n", code)
		}
	}

	return out.String()
}

func (g *goldenSession) shell(t *testing.T, text string) (stdout, stderr string, code int) {
	t.Helper()

	var out, err strings.Builder

	command := exec.CommandContext(t.Context(), "bash", "-c", text)
	command.Dir = g.home
	command.Env = append(slices.Clone(g.env), "PATH="+filepath.Dir(quernBinary())+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = &out, &err

	if command.Run() != nil {
		code = command.ProcessState.ExitCode()
	}

	return out.String(), err.String(), code
}

// variation is a pattern of text that differs from run to run, with the name that replaces it.
type variation struct {
	pattern *regexp.Regexp
	name    string
}

var (
	// uuidPattern matches ids, and their beginnings as lists show them.
	uuidPattern = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b`)
	varying     = []variation{ //nolint:gochecknoglobals // never changed
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?`), "<moment of the day>"},
		{regexp.MustCompile(`quern_\w+`), "<token>"},
		{regexp.MustCompile(`\bin [0-9.]+(m?s)\b`), "in <time>"},
		{regexp.MustCompile(`"elapsedMs": \d+`), `"elapsedMs": <n>`},
		{regexp.MustCompile(`"(date|resetsAt)": "[^"]*"`), `"$1": "<day>"`},
	}
)

// nameOf returns the name of an id, or of an id that begins with the text.
func (g *goldenSession) nameOf(id string) string {
	for known, name := range g.names {
		if strings.HasPrefix(known, id) || strings.HasPrefix(id, known) {
			if len(id) > len(known) {
				delete(g.names, known)
				g.names[id], g.values[name] = name, id
			}

			return name
		}
	}

	name := fmt.Sprintf("<id %d>", len(g.names)+1)
	g.names[id], g.values[name] = name, id

	return name
}

// normal replaces text that differs from run to run by names.
func (g *goldenSession) normal(text string) string {
	text = strings.ReplaceAll(text, g.s.root, "<server>")
	text = uuidPattern.ReplaceAllStringFunc(text, func(id string) string {
		name := g.nameOf(id)

		// Pad the name to the width of the id, so that columns stay aligned.
		return name + strings.Repeat("_", len(id)-len(name))
	})

	for _, one := range varying {
		text = one.pattern.ReplaceAllString(text, one.name)
	}

	return text
}
