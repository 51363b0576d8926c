package sandbox_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// TestChildIsHeld makes children waste resources, violate the protocol and stop, on several tiers and unsealed. The
// parent must survive them without a seal.
func TestChildIsHeld(t *testing.T) { //nolint:tparallel // the tiers run one after the other, their children at once
	t.Parallel()

	quick := roomy()
	quick.Wall = time.Second

	for _, kernel := range kernels(t)[:3] { // all versions of Landlock behave the same here
		t.Run(kernel.name, func(t *testing.T) {
			s := start(t, kernel.config(config(t.TempDir())))
			small := quick
			small.Memory = data(t, s) + 256<<20
			small.Wall = 20 * time.Second

			cpu := roomy()
			cpu.CPU = time.Second

			disk := roomy()
			disk.Disk = 16 << 20

			for name, held := range map[string]struct {
				limits sandbox.Limits
				want   error
			}{
				"silence":                    {quick, sandbox.ErrTimeout},
				"signal itself to stop":      {quick, sandbox.ErrTimeout},
				"claim more than it sends":   {quick, sandbox.ErrTimeout},
				"spin":                       {cpu, sandbox.ErrTimeout},
				"eat memory":                 {small, sandbox.ErrMemory},
				"eat threads":                {roomy(), sandbox.ErrOutput},
				"write many files":           {disk, sandbox.ErrOutput},
				"write many empty files":     {roomy(), sandbox.ErrOutput},
				"write files without a name": {disk, sandbox.ErrOutput},
				"exit":                       {roomy(), sandbox.ErrKilled},
				"crash":                      {roomy(), sandbox.ErrKilled},
				"send half a frame and exit": {roomy(), sandbox.ErrKilled},
				"flood with frames":          {roomy(), sandbox.ErrProtocol},
				"flood with big frames":      {roomy(), sandbox.ErrProtocol},
				"claim a long frame":         {roomy(), sandbox.ErrProtocol},
				"talk rubbish":               {roomy(), sandbox.ErrProtocol},
				"send no JSON":               {roomy(), sandbox.ErrProtocol},
				"nest JSON":                  {roomy(), sandbox.ErrProtocol},
				"send another type":          {roomy(), sandbox.ErrProtocol},
				"be ready again":             {roomy(), sandbox.ErrProtocol},
				"end with rubbish":           {roomy(), sandbox.ErrProtocol},
				"close its pipes":            {roomy(), sandbox.ErrProtocol},
			} {
				if name == "flood with big frames" && kernel.name != "free" {
					continue // it is slow, and the parent behaves the same
				}

				t.Run(name, func(t *testing.T) {
					t.Parallel()

					child := run(t, s, held.limits, job{Do: name})
					pid := child.Pid()

					err := drain(child)
					exit := child.Close()

					if name == "eat memory" && errors.Is(err, sandbox.ErrKilled) {
						return // a runtime without memory can die without a recognisable reason
					}

					require.ErrorIs(t, err, held.want, exit.Log)
					require.ErrorIs(t, exit.Err, held.want)
					require.ErrorIs(t, unix.Kill(pid, 0), unix.ESRCH)
					require.NoDirExists(t, filepath.Dir(child.Folder().In))
				})
			}

			t.Run("write one big file", func(t *testing.T) {
				var said report

				child := run(t, s, disk, job{Do: "write one big file"})
				require.NoError(t, child.Receive(&said))
				require.Contains(t, said.Err, unix.EFBIG.Error())
			})
		})
	}
}

// drain receives messages until there is an error.
func drain(child *sandbox.Child) error {
	for {
		var said report
		if err := child.Receive(&said); err != nil {
			return err
		}
	}
}

// data returns how many bytes of an idle child count as data. The race detector needs terabytes.
func data(t *testing.T, s *sandbox.Sandbox) int64 {
	t.Helper()

	child, err := s.Start(t.Context(), "hostile", roomy())
	require.NoError(t, err)

	defer child.Close()

	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(child.Pid()), "status"))
	require.NoError(t, err)

	_, after, found := strings.Cut(string(status), "VmData:")
	require.True(t, found)

	kilobytes, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	require.NoError(t, err)

	return kilobytes << 10
}

func TestChildThatBehaves(t *testing.T) { //nolint:tparallel // a few short steps
	t.Parallel()

	for _, kernel := range kernels(t) {
		t.Run(kernel.name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, kernel.config(config(dir)))

			source := filepath.Join(dir, "source")
			require.NoError(t, os.WriteFile(source, []byte(canary), 0o400))

			child, err := s.Start(t.Context(), "hostile", roomy())
			require.NoError(t, err)

			defer child.Close()

			for _, name := range []string{"", ".", "..", "a/b", "../a", "/a"} {
				require.Error(t, child.Mount(source, name), name)
			}

			require.NoError(t, child.Mount(source, "given"))
			require.NoError(t, child.Send(job{Do: "behave"}))

			bulk := make(chan int64)

			go func() {
				n, _ := io.Copy(io.Discard, child.Data())
				bulk <- n
			}()

			var said report

			require.NoError(t, child.Receive(&said))
			require.Equal(t, report{Got: canary}, said)
			require.ErrorIs(t, child.Receive(&said), io.EOF)
			require.ErrorIs(t, child.Receive(&said), io.EOF)
			require.EqualValues(t, 1<<20, <-bulk)

			made := filepath.Join(dir, "made")
			size, err := child.Take("made", made, 1<<20)
			require.NoError(t, err)
			require.EqualValues(t, len(canary), size)

			content, err := os.ReadFile(made)
			require.NoError(t, err)
			require.Equal(t, strings.ToUpper(canary), string(content))

			info, err := os.Stat(made)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o400), info.Mode())

			exit := child.Close()
			require.NoError(t, exit.Err)
			require.Equal(t, unix.SIGKILL, exit.Signal)
			require.Positive(t, exit.Memory)
			require.Positive(t, exit.CPU)
			require.Equal(t, exit, child.Close())
		})
	}
}

func TestChildHasNothingOfItsParent(t *testing.T) {
	t.Setenv("QUERN_CANARY", canary)

	// A descriptor that is left open for every child, as a careless library would do.
	left, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	require.NoError(t, err)

	defer unix.Close(left)

	s := start(t, config(t.TempDir()))

	for question, answer := range map[string]string{"tell its environment": "", "tell its descriptors": "0 1 2 3 4 5"} {
		var said report

		child := run(t, s, roomy(), job{Do: question})
		require.NoError(t, child.Receive(&said))
		require.Equal(t, report{Got: answer}, said)
	}
}

// TestChildHoldsFiles checks that the runtime does not confuse files that a child opens with the limits of its cgroup,
// which the runtime reads every second.
func TestChildHoldsFiles(t *testing.T) {
	t.Parallel()

	var said report

	child := run(t, start(t, config(t.TempDir())), roomy(), job{Do: "hold files open"})
	require.NoError(t, child.Receive(&said))
	require.Equal(t, report{}, said)
}

func TestTakeRefusesBait(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(canary), 0o600))

	s := start(t, sandbox.Free(config(dir)))
	child := run(t, s, roomy(), job{Do: "make bait", Path: secret})

	var said report

	require.NoError(t, child.Receive(&said))
	require.Empty(t, said.Err)

	to := filepath.Join(dir, "taken")

	for _, name := range []string{
		"symlink", "hardlink", "fifo", "folder", "folder/secret", "real", "absent", "", ".", "..", "../in", "/etc/passwd",
		"../../../../../../../../etc/passwd", "real/../symlink", "plain/x",
	} {
		_, err := child.Take(name, to, 1<<20)
		require.ErrorIs(t, err, sandbox.ErrProtocol, name)
		require.NoFileExists(t, to)
	}

	_, err := child.Take("plain", to, 4)
	require.ErrorIs(t, err, sandbox.ErrOutput)
	require.NoFileExists(t, to)

	_, err = child.Take("plain", secret, 1<<20)
	require.ErrorIs(t, err, os.ErrExist)

	size, err := child.Take("real/nested", to, 1<<20)
	require.NoError(t, err)
	require.EqualValues(t, 6, size)

	content, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, canary, string(content))
}

func TestLogIsCapped(t *testing.T) {
	t.Parallel()

	var said report

	child := run(t, start(t, config(t.TempDir())), roomy(), job{Do: "fill the log"})
	require.NoError(t, child.Receive(&said))
	require.Equal(t, "still here", said.Got)

	exit := child.Close()
	require.Len(t, exit.Log, 64<<10)
	require.NoError(t, exit.Err)
}

func TestDataIsCapped(t *testing.T) {
	t.Parallel()

	limits := roomy()
	limits.Data = 3 << 20

	child := run(t, start(t, config(t.TempDir())), limits, job{Do: "flood with data"})
	n, err := io.Copy(io.Discard, child.Data())
	require.ErrorIs(t, err, sandbox.ErrOutput)
	require.LessOrEqual(t, n, limits.Data)
	require.ErrorIs(t, child.Close().Err, sandbox.ErrOutput)
}

// TestNobodyWaitsForAGrandchild checks that a process that an unsealed child leaves behind, and that holds its pipes,
// does not block Receive or Close.
func TestNobodyWaitsForAGrandchild(t *testing.T) {
	t.Parallel()

	limits := roomy()
	limits.Wall = time.Second

	child := run(t, start(t, sandbox.Free(config(t.TempDir()))), limits, job{Do: "leave a grandchild"})
	began := time.Now()

	var said report

	require.Error(t, child.Receive(&said))
	child.Close()
	require.Less(t, time.Since(began), 15*time.Second)
}

func TestFolderThatTheChildSpoils(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"remove its folder", "nest folders"} {
		for _, kernel := range []func(sandbox.Config) sandbox.Config{sandbox.Free, func(c sandbox.Config) sandbox.Config { return c }} {
			child := run(t, start(t, kernel(config(t.TempDir()))), roomy(), job{Do: name})

			var said report

			require.NoError(t, child.Receive(&said))

			_, err := child.Take("absent", filepath.Join(t.TempDir(), "x"), 1)
			require.Error(t, err)
			require.NoError(t, child.Close().Err)
			require.NoDirExists(t, filepath.Dir(child.Folder().In))
		}
	}
}

func TestChildEndsWithItsContext(t *testing.T) {
	t.Parallel()

	s := start(t, config(t.TempDir()))
	left := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())

	child, err := s.Start(ctx, "hostile", roomy())
	require.NoError(t, err)

	defer child.Close()

	require.NoError(t, child.Send(job{Do: "silence"}))
	time.AfterFunc(50*time.Millisecond, func() { cancel(left) })

	require.ErrorIs(t, drain(child), left)
	require.ErrorIs(t, child.Send(job{}), left)

	_, err = io.ReadAll(child.Data())
	require.ErrorIs(t, err, left)

	_, err = s.Start(ctx, "hostile", roomy())
	require.ErrorIs(t, err, left)
}

// TestSendToADeafChild checks that Send to a child that does not read, and so fills the pipe, returns when the wall
// clock limit is reached.
func TestSendToADeafChild(t *testing.T) {
	t.Parallel()

	limits := roomy()
	limits.Wall = time.Second

	child := run(t, start(t, config(t.TempDir())), limits, job{Do: "silence"})

	var err error
	for err == nil {
		err = child.Send(job{Path: strings.Repeat("x", 1<<20)})
	}

	require.ErrorIs(t, err, sandbox.ErrTimeout)
	require.Error(t, child.Send(job{Path: strings.Repeat("x", sandbox.MaxFrame)}))
}

func TestProgramThatFails(t *testing.T) {
	t.Parallel()

	child := run(t, start(t, config(t.TempDir())), roomy(), job{Do: "nothing that it knows"})

	failed, ok := errors.AsType[*sandbox.FailedError](drain(child))
	require.True(t, ok)
	require.Contains(t, failed.Message, "nothing that it knows")
	require.NoError(t, child.Close().Err)
}
