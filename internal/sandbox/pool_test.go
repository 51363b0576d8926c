package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"quern.dev/quern/e2e/kill"
	"quern.dev/quern/internal/sandbox"
)

func TestPoolKeepsChildrenReady(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	pooled := config(t.TempDir())
	pooled.Idle = 3
	s := start(t, pooled)

	ready := func() bool { return s.Stats().Idle == 3 }

	rounds := 1
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		rounds = 20
	}

	var dead []int

	for range rounds {
		kill.Round(t)
		require.Eventually(t, ready, 20*time.Second, time.Millisecond)

		// Kill all idle children: none of them may be handed out, and the pool must be full again.
		dead = s.Pids()
		for _, pid := range dead {
			require.NoError(t, kill.ID(t, pid))
		}

		for _, pid := range dead {
			require.Eventually(t, func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }, 5*time.Second, time.Millisecond)
		}
	}

	for range 4 {
		var said report

		child := run(t, s, roomy(), job{Do: "tell its environment"})
		require.NotContains(t, dead, child.Pid())
		require.NoError(t, child.Receive(&said))
		child.Close()
	}

	require.Eventually(t, ready, 20*time.Second, time.Millisecond)

	stats := s.Stats()
	require.EqualValues(t, 4, stats.Used)
	require.Zero(t, stats.Running)
	require.Len(t, s.Pids(), 3)
	require.EqualValues(t, 3*rounds, stats.Killed)
	require.Zero(t, stats.Timeouts)

	var took []time.Duration

	for range 30 {
		require.Eventually(t, ready, 20*time.Second, time.Millisecond)

		began := time.Now()
		child, err := s.Start(t.Context(), "hostile", roomy())
		took = append(took, time.Since(began))

		require.NoError(t, err)
		child.Close()
	}

	slices.Sort(took)
	t.Logf("Start with a warm pool: p50 %s, p95 %s", took[15], took[28])
}

// Callers may end the context of a child before they close it. That is no failure.
func TestChildThatIsNotNeeded(t *testing.T) {
	t.Parallel()

	var said report

	s := start(t, config(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	child, err := s.Start(ctx, "hostile", roomy())
	require.NoError(t, err)
	require.NoError(t, child.Send(job{Do: "tell its environment"}))
	require.NoError(t, child.Receive(&said))
	cancel()
	require.Eventually(t, func() bool { return errors.Is(unix.Kill(child.Pid(), 0), unix.ESRCH) }, 5*time.Second, time.Millisecond)
	require.ErrorIs(t, child.Close().Err, context.Canceled)
	require.Zero(t, s.Stats().Killed)
}

func TestPoolWithoutReadyChildren(t *testing.T) {
	t.Parallel()

	cold := config(t.TempDir())
	cold.Idle = 0
	s := start(t, cold)

	var took []time.Duration

	for range 10 {
		var said report

		began := time.Now()
		child := run(t, s, roomy(), job{Do: "tell its environment"})
		took = append(took, time.Since(began))

		require.NoError(t, child.Receive(&said))
		child.Close()
	}

	slices.Sort(took)
	t.Logf("Start without a pool: p50 %s", took[5])

	_, err := s.Start(t.Context(), "unknown", roomy())
	require.ErrorContains(t, err, "unknown")
}

func TestChildThatDoesNotComeUp(t *testing.T) {
	t.Parallel()

	for program, want := range map[string]string{"broken": "permission denied", "unheard": "unknown program"} {
		var log bytes.Buffer

		bad := config(t.TempDir())
		bad.Programs = []string{program}
		bad.Log = slog.New(slog.NewTextHandler(&log, nil))

		s, err := sandbox.New(bad)
		require.NoError(t, err)

		_, err = s.Start(t.Context(), program, roomy())
		require.ErrorContains(t, err, want)
		time.Sleep(200 * time.Millisecond)
		s.Close()

		require.Contains(t, log.String(), want)
		require.Less(t, strings.Count(log.String(), want), 8, "it must try less and less often")
	}
}

func TestChildThatDiesWhileItWaits(t *testing.T) {
	t.Parallel()

	mortal := config(t.TempDir())
	mortal.Programs = []string{"mortal"}
	s := start(t, mortal)

	time.Sleep(time.Second)
	require.GreaterOrEqual(t, s.Stats().Started, int64(3))
	require.LessOrEqual(t, len(s.Pids()), 1)
}

func TestCloseEndsAll(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s, err := sandbox.New(config(dir))
	require.NoError(t, err)

	child := run(t, s, roomy(), job{Do: "silence"})
	pids := s.Pids()

	time.AfterFunc(50*time.Millisecond, s.Close)
	require.Error(t, drain(child))
	s.Close()

	for _, pid := range pids {
		require.ErrorIs(t, unix.Kill(pid, 0), unix.ESRCH)
	}

	require.Equal(t, []string{"lock"}, names(t, dir))

	_, err = s.Start(t.Context(), "hostile", roomy())
	require.Error(t, err)
}

func TestTierIsTheOperatorsWord(t *testing.T) {
	t.Parallel()

	for _, step := range []struct {
		config sandbox.Config
		least  sandbox.Tier
		want   sandbox.Tier
		works  bool
	}{
		{sandbox.Free(config(t.TempDir())), sandbox.Reduced, sandbox.None, false},
		{sandbox.Free(config(t.TempDir())), sandbox.None, sandbox.None, true},
		{sandbox.Older(config(t.TempDir()), 0), sandbox.Reduced, sandbox.None, false},
		{sandbox.Older(config(t.TempDir()), 3), sandbox.Full, sandbox.Reduced, false},
		{sandbox.Older(config(t.TempDir()), 6), sandbox.Full, sandbox.Reduced, false},
		{sandbox.Older(config(t.TempDir()), 3), sandbox.Reduced, sandbox.Reduced, true},
	} {
		step.config.MinIsolation = step.least

		s, err := sandbox.New(step.config)
		if !step.works {
			require.ErrorContains(t, err, step.want.String()+" sandbox")

			continue
		}

		require.NoError(t, err)
		require.Equal(t, step.want, s.Tier())
		s.Close()
	}

	for _, tier := range []sandbox.Tier{sandbox.Full, sandbox.Reduced, sandbox.None} {
		parsed, err := sandbox.ParseTier(tier.String())
		require.NoError(t, err)
		require.Equal(t, tier, parsed)
	}

	_, err := sandbox.ParseTier("some")
	require.Error(t, err)
}

// TestParentDies checks that the children of a killed parent die, and that the next parent removes the folder of the
// dead one, but not while that parent is alive.
func TestParentDies(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	other := exec.CommandContext(t.Context(), "/proc/self/exe", "parent", dir)
	other.Stderr = os.Stderr

	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())

	var pids []int

	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "all"; {
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)

		pids = append(pids, pid)
	}

	require.Len(t, pids, 2, "one works, one waits")

	start(t, config(dir))
	require.Len(t, names(t, dir), 3, "the lock, the other parent, this one")

	for _, pid := range pids {
		require.True(t, lives(pid))
	}

	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())

	began := time.Now()

	for _, pid := range pids {
		require.Eventually(t, func() bool { return !lives(pid) }, 5*time.Second, time.Millisecond)
	}

	t.Logf("children were gone %s after their parent", time.Since(began))
	require.Len(t, names(t, dir), 3)

	start(t, config(dir))
	require.Len(t, names(t, dir), 3, "the lock and the two parents of this process")
}

// lives reports whether a process runs. A process that is dead but not reaped does not count.
func lives(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}

	_, after, _ := strings.Cut(string(stat), ") ")

	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func names(t *testing.T, dir string) []string {
	t.Helper()

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)

	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}

	return list
}

// TestCallsExist checks that all allowed calls exist on each architecture. With an unknown name, children could not be
// started.
func TestCallsExist(t *testing.T) {
	t.Parallel()

	for name, info := range map[string]*arch.Info{"amd64": arch.X86_64, "arm64": arch.AARCH64} {
		allowed := sandbox.Allowed(name)
		require.NotEmpty(t, allowed)

		for _, call := range append(allowed, "clone3") {
			require.Contains(t, info.SyscallNames, call, name)
		}

		for _, group := range sandbox.Conditional() {
			for _, condition := range group.NamesWithCondtions {
				require.Contains(t, allowed, condition.Name)
				require.Contains(t, info.SyscallNames, condition.Name, name)
			}
		}
	}

	require.Empty(t, sandbox.Allowed("riscv64"))
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("m\x00\x00\x00\x02{}"))
	f.Add([]byte("m\xff\xff\xff\xff{}"))
	f.Add([]byte("m\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		_, payload, err := sandbox.ReadFrame(bytes.NewReader(content))
		if err != nil {
			return
		}

		require.LessOrEqual(t, len(payload), sandbox.MaxFrame)
		require.EqualValues(t, len(payload), binary.BigEndian.Uint32(content[1:]))
		require.True(t, bytes.Equal(content[5:5+len(payload)], payload))

		_, _, err = sandbox.ReadFrame(bytes.NewReader(content[:4]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}
