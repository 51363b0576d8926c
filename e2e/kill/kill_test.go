package kill_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// fake is a test whose end and failures can be seen.
type fake struct {
	name   string
	said   []string
	ending []func()
}

func (f *fake) Helper()                        {}
func (f *fake) Name() string                   { return f.name }
func (f *fake) Failed() bool                   { return len(f.said) > 0 }
func (f *fake) Errorf(format string, _ ...any) { f.said = append(f.said, format) }
func (f *fake) Cleanup(run func())             { f.ending = append(f.ending, run) }

func (f *fake) end() {
	for _, run := range f.ending {
		run()
	}
}

// victim starts a process to kill.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()

	process := exec.CommandContext(t.Context(), "sleep", "100")
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Wait() })

	return process
}

// TestLoop checks what a kill loop writes: each process once, and each round, also of its parts.
func TestLoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kills")
	t.Setenv("QUERN_TEST_KILLS", path)

	loop, part := &fake{name: "TestIt"}, &fake{name: "TestIt/part"}

	kill.Loop(loop)

	for range 10 {
		one := victim(t)

		kill.Round(part)
		require.NoError(t, kill.Process(part, one.Process))
		require.NoError(t, kill.ID(loop, one.Process.Pid), "it is not reaped yet")
		require.Error(t, one.Wait())
		require.ErrorIs(t, kill.Process(loop, one.Process), os.ErrProcessDone)
	}

	loop.end()
	require.Empty(t, append(loop.said, part.said...))

	second := &fake{name: "TestIt"}
	kill.Loop(second)
	second.Errorf("it is red")
	second.end()

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.Len(t, lines, 2)

	for i, want := range []kill.Result{{Test: "TestIt", Kills: 10, Rounds: 10, Passed: true}, {Test: "TestIt"}} {
		var got kill.Result

		require.NoError(t, json.Unmarshal([]byte(lines[i]), &got))
		require.Positive(t, got.Seconds)

		got.Seconds = 0
		require.Equal(t, want, got)
	}
}

// TestNoLoop checks that a test that kills many processes must be a kill loop.
func TestNoLoop(t *testing.T) {
	t.Parallel()

	other := &fake{name: "TestOther"}

	for i := range 6 {
		require.False(t, other.Failed(), i)
		require.NoError(t, kill.Process(other, victim(t).Process))
	}

	require.True(t, other.Failed())
	other.end()

	again := &fake{name: "TestOther"}
	require.NoError(t, kill.Process(again, victim(t).Process))
	require.False(t, again.Failed(), "what it killed before does not count")
	again.end()
}
