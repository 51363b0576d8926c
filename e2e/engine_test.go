package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherEngine is a quern-engine of another version: what it says when it is ready, as a script.
const otherEngine = `#!/bin/sh
printf 'r\0\0\0\023{"version":"other"}' >&4
exec sleep 60
`

// copyProgram copies a built program. The copy is made by another process, because a file that this one has open for writing could be
// open in the processes that it starts meanwhile, too, and such a file is not executed.
func copyProgram(t *testing.T, name, to string) {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "cp", filepath.Join(common.folder, name), to).CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestEngineReplaced is an upgrade that replaces quern-engine while the service of the earlier version runs. The service keeps the
// engine that it started with, also for the sealed processes that it starts later. After a restart it needs the new version.
func TestEngineReplaced(t *testing.T) {
	t.Parallel()

	engine := filepath.Join(t.TempDir(), "quern-engine")
	copyProgram(t, "quern-engine", engine)

	s := start(t, "QUERN_SANDBOX_ENGINE="+engine)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	require.NoError(t, os.WriteFile(engine+".new", []byte(otherEngine), 0o700))
	require.NoError(t, os.Rename(engine+".new", engine))

	for n := range 5 {
		require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2}]}`).status)
		require.Len(t, d.result("SELECT n FROM orders", "").Data, n+2)
	}

	require.NotContains(t, s.log(), `"level":"ERROR"`)
	s.stop()

	serve := exec.CommandContext(t.Context(), binary(), "serve")
	serve.Env = append(s.asServing(s.settings), "QUERN_SANDBOX_DIR="+t.TempDir())
	written, err := serve.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(written), engine+` has version "other", but this program needs version "`)
	require.Contains(t, string(written), "install the quern-engine that was built together with this quernd")

	copyProgram(t, "quern-engine", engine)
	s.restart()
	require.Len(t, d.result("SELECT n FROM orders", "").Data, 6)
}

// TestEngineIsBeside checks that quernd without its engine does not start, names the file that is missing, and needs the engine for no
// command on the database alone.
func TestEngineIsBeside(t *testing.T) {
	t.Parallel()

	alone := filepath.Join(t.TempDir(), "quernd")
	copyProgram(t, "quernd", alone)

	s := start(t)

	serve := exec.CommandContext(t.Context(), alone, "serve")
	serve.Env = append(s.asServing(s.settings), "QUERN_SANDBOX_DIR="+t.TempDir())
	written, err := serve.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(written), "QUERN_SANDBOX_ENGINE: the program of the sealed processes cannot be used: open "+filepath.Join(filepath.Dir(alone), "quern-engine")+": no such file or directory")

	list := exec.CommandContext(t.Context(), alone, "user", "list")
	list.Env = []string{"QUERN_DATABASE_URL=" + s.databaseURL}
	written, err = list.CombinedOutput()
	require.NoError(t, err, string(written))

	written, err = exec.CommandContext(t.Context(), filepath.Join(common.folder, "quern-engine"), "help").CombinedOutput()
	require.Error(t, err, "a person started it")
	require.Contains(t, string(written), "quern-engine")
	require.NotContains(t, string(written), "panic")
}
