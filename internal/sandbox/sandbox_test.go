package sandbox_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

const canary = "the canary sings"

// TestSandbox tries every escape on every tier that this machine supports. Unsealed children, the positive control,
// must reach what sealed ones must not: an attempt that never works proves nothing.
func TestSandbox(t *testing.T) {
	t.Setenv("QUERN_CANARY", canary)

	outside := listen(t)

	for _, kernel := range kernels(t) {
		t.Run(kernel.name, func(t *testing.T) {
			s := start(t, kernel.config(config(t.TempDir())))
			require.Equal(t, kernel.sealed, s.Tier() != sandbox.None)

			for name := range escapes() {
				t.Run(name, func(t *testing.T) { outside.attempt(t, s, name, kernel.sealed) })
			}
		})
	}
}

// world contains what an escape can reach.
type world struct {
	dir     string
	address string
	victim  int
	heard   atomic.Int64 // number of connections, datagrams and signals received
}

func listen(t *testing.T) *world {
	t.Helper()

	w := &world{dir: t.TempDir()}
	w.serve(t, "unix", filepath.Join(w.dir, "canary.socket"))
	w.serve(t, "unix", "@"+filepath.Join(w.dir, "canary"))
	w.address = w.serve(t, "tcp", "127.0.0.1:0")

	datagrams, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", w.address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = datagrams.Close() })

	go func() {
		for buffer := make([]byte, 64); ; w.heard.Add(1) {
			if _, _, err := datagrams.ReadFrom(buffer); err != nil {
				return
			}
		}
	}()

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGUSR1)
	t.Cleanup(func() { signal.Stop(signals); close(signals) })

	go func() {
		for range signals {
			w.heard.Add(1)
		}
	}()

	victim := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })

	w.victim = victim.Process.Pid

	return w
}

func (w *world) serve(t *testing.T, network, address string) string {
	t.Helper()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			w.heard.Add(1)

			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()

	return listener.Addr().String()
}

// attempt makes a child try one escape, and checks the canaries.
func (w *world) attempt(t *testing.T, s *sandbox.Sandbox, name string, sealed bool) {
	t.Helper()

	path := filepath.Join(w.dir, "canary")
	_ = os.Remove(path)
	_ = os.Remove(path + ".new")
	require.NoError(t, os.WriteFile(path, []byte(canary), 0o600))
	require.NoError(t, os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)))

	before, err := os.Stat(path)
	require.NoError(t, err)

	heard := w.heard.Load()

	child, err := s.Start(t.Context(), "hostile", roomy())
	require.NoError(t, err)
	t.Cleanup(func() { child.Close() })
	require.NoError(t, child.Mount(path, "given"))
	require.NoError(t, os.Symlink(path, filepath.Join(child.Folder().Tmp, "link")))
	require.NoError(t, child.Send(job{Do: name, Path: path, Address: w.address, Pid: os.Getpid(), Victim: w.victim}))

	var said report

	err = child.Receive(&said)
	reached := err != nil || said.Err == "" // in the control, one escape replaces the child with another program, which ends the connection

	if !sealed {
		privileged := name == "make a namespace" || name == "trace a process"
		require.True(t, reached || (privileged && os.Getuid() != 0), "the control did not reach: %v %s", err, said.Err)

		return
	}

	require.NoError(t, err)
	require.NotEmpty(t, said.Err, "reached: %q", said.Got)
	require.Empty(t, said.Got)
	require.ErrorIs(t, child.Receive(&said), io.EOF)
	require.NoError(t, child.Close().Err)

	require.Equal(t, heard, w.heard.Load())
	require.NoFileExists(t, path+".new")

	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.Mode(), after.Mode())
	require.Equal(t, before.ModTime(), after.ModTime())

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, canary, string(content))
}
