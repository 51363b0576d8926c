package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern.dev/quern/internal/sandbox"
)

// TestMain is three programs: the tests, the child that they start, and a parent that they kill.
func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == sandbox.Name:
		os.Exit(sandbox.Main(os.Args[1:], version, programs()))
	case len(os.Args) > 2 && os.Args[1] == "parent":
		parent(os.Args[2])
	}

	goleak.VerifyTestMain(m)
}

// version is that of the programs of these tests.
const version = "tested"

func programs() map[string]sandbox.Program {
	return map[string]sandbox.Program{
		"hostile": {Prepare: func(folder sandbox.Folder) (sandbox.Serve, error) {
			return hostile, os.WriteFile(folder.Tmp+"/prepared", nil, 0o600)
		}},
		"broken": {Prepare: func(sandbox.Folder) (sandbox.Serve, error) { return nil, os.ErrPermission }},
		"mortal": {Prepare: func(sandbox.Folder) (sandbox.Serve, error) {
			time.AfterFunc(300*time.Millisecond, func() { os.Exit(9) })

			return hostile, nil
		}},
	}
}

func config(dir string) sandbox.Config {
	return sandbox.Config{
		Dir: dir, Binary: "/proc/self/exe", Version: version, MinIsolation: sandbox.None, Idle: 1, Programs: []string{"hostile"}, Log: slog.New(slog.DiscardHandler),
	}
}

// parent starts idle children and one with a job, prints their process numbers, and waits to be killed.
func parent(dir string) {
	s, err := sandbox.New(config(dir))
	if err != nil {
		panic(err)
	}

	child, err := s.Start(context.Background(), "hostile", roomy())
	if err != nil {
		panic(err)
	}

	if err := child.Send(job{Do: "silence"}); err != nil {
		panic(err)
	}

	for s.Stats().Idle == 0 {
		time.Sleep(time.Millisecond)
	}

	for _, pid := range s.Pids() {
		fmt.Println(pid) //nolint:forbidigo // this is the program's answer
	}

	fmt.Println("all") //nolint:forbidigo // this is the program's answer
	select {}
}

// roomy returns limits that no correct child reaches, even with the race detector, whose shadow memory counts as data.
func roomy() sandbox.Limits {
	return sandbox.Limits{Memory: 1 << 50, Disk: 64 << 20, Wall: 30 * time.Second, CPU: time.Minute}
}

// kernel is a way to seal children that is tested on this machine.
type kernel struct {
	name   string
	sealed bool
	config func(sandbox.Config) sandbox.Config
}

// kernels returns all tiers that the machine supports, and the positive control.
func kernels(t *testing.T) []kernel {
	t.Helper()

	s := start(t, config(t.TempDir()))
	require.NotEqual(t, sandbox.None, s.Tier(), "this kernel has no Landlock or no seccomp")

	list := []kernel{
		{name: "free", config: sandbox.Free},
		{name: fmt.Sprintf("%s-landlock-%d", s.Tier(), s.Landlock()), sealed: true, config: func(c sandbox.Config) sandbox.Config { return c }},
	}

	for abi := 1; abi < min(7, s.Landlock()); abi++ {
		list = append(list, kernel{
			name: fmt.Sprintf("reduced-landlock-%d", abi), sealed: true,
			config: func(c sandbox.Config) sandbox.Config { return sandbox.Older(c, abi) },
		})
	}

	return list
}

func start(t *testing.T, config sandbox.Config) *sandbox.Sandbox {
	t.Helper()

	s, err := sandbox.New(config)
	require.NoError(t, err)
	t.Cleanup(s.Close)

	return s
}

// run starts a child with the job.
func run(t *testing.T, s *sandbox.Sandbox, limits sandbox.Limits, what job) *sandbox.Child {
	t.Helper()

	child, err := s.Start(t.Context(), "hostile", limits)
	require.NoError(t, err)
	t.Cleanup(func() { child.Close() })
	require.NoError(t, child.Send(what))

	return child
}
