package duckdb

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// TestMain also runs as the sealed child, and as the unsealed process of the positive controls.
func TestMain(m *testing.M) {
	if os.Args[0] == sandbox.Name {
		os.Exit(sandbox.Main(os.Args[1:], "", map[string]sandbox.Program{
			engine.DuckDB: Program(), attacker: {Prepare: prepareAttack}, intruder: {Prepare: prepareIntruder}, papers: {Prepare: preparePapers},
		}))
	}

	if len(os.Args) > 1 && os.Args[1] == "free" {
		attackFreely()
		os.Exit(0)
	}

	if len(os.Args) > 1 && os.Args[1] == intruder {
		intrudeFreely()
		os.Exit(0)
	}

	if err := os.Setenv("QUERN_CANARY", canary); err != nil { // no child may inherit it
		panic(err)
	}

	os.Exit(m.Run())
}

// room is more than any of these tests needs, even with the race detector, whose shadow memory counts.
const room = 1 << 48

func children(t *testing.T, tier sandbox.Tier) *sandbox.Sandbox {
	t.Helper()

	s, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(t.TempDir(), "jobs"), Binary: "/proc/self/exe", MinIsolation: sandbox.Reduced, MaxIsolation: tier, Idle: 1,
		Programs: []string{engine.DuckDB, attacker, papers}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	t.Log("sandbox:", s.Tier())

	return s
}

// session opens a session of the program with the file mounted under the name.
func session(t *testing.T, s *sandbox.Sandbox, path, name string) *engine.Session {
	t.Helper()

	sessions := engine.New(engine.Config{
		Sandbox: s, Program: engine.DuckDB, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Sessions: 1, Memory: room, Threads: 2, Disk: 1 << 30,
	})

	opened, err := sessions.Open(t.Context(), time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { opened.Close() })
	require.NoError(t, opened.Mount(path, name))

	return opened
}

func bounds() engine.Bounds {
	return engine.Bounds{Columns: 100, Record: 1 << 20, Unpacked: 64 << 20, SetAside: 100}
}

// written writes a new file and returns its path.
func written(tb testing.TB, content string) string {
	tb.Helper()

	path := filepath.Join(tb.TempDir(), "file")
	require.NoError(tb, os.WriteFile(path, []byte(content), 0o600))

	return path
}

func encoded(t *testing.T, value any) string {
	t.Helper()

	data, err := json.Marshal(value)
	require.NoError(t, err)

	return string(data)
}
