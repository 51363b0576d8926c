package sandbox_test

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"quern.dev/quern/internal/sandbox"
)

// The tests of this file that write programs do not run in parallel: a process that another test starts meanwhile could hold such a
// file open for writing, and then the system does not execute it.

// copied returns the path of a copy of this program.
func copied(t *testing.T) string {
	t.Helper()

	own, err := os.Open("/proc/self/exe")
	require.NoError(t, err)

	defer own.Close()

	path := filepath.Join(t.TempDir(), sandbox.Name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err)

	_, err = io.Copy(file, own)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	return path
}

// written returns the path of a file with this content.
func written(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), sandbox.Name)
	require.NoError(t, os.WriteFile(path, []byte(content), mode))

	return path
}

// otherVersion is a child of another version, as a script.
const otherVersion = `#!/bin/sh
printf 'r\0\0\0\023{"version":"other"}' >&4
exec sleep 60
`

// TestUnusableBinary checks that a missing, wrong or foreign file is an error at the start, which names the file and the reason.
func TestUnusableBinary(t *testing.T) { //nolint:paralleltest // see above
	for name, c := range map[string]struct{ path, want string }{
		"missing":          {filepath.Join(t.TempDir(), sandbox.Name), "no such file or directory"},
		"a folder":         {t.TempDir(), "permission denied"},
		"not executable":   {written(t, otherVersion, 0o600), "permission denied"},
		"of another kind":  {written(t, "\x7fELF", 0o700), "exec format error"},
		"another program":  {written(t, "#!/bin/sh\n", 0o700), "exit code 0"},
		"lacks a library":  {written(t, "#!/bin/sh\necho cannot open shared object file\nexit 127\n", 0o700), "cannot open shared object file"},
		"another protocol": {written(t, "#!/bin/sh\necho nonsense >&4\nexec sleep 60\n", 0o700), "invalid data"},
		"another version":  {written(t, otherVersion, 0o700), `has version "other", but this program needs version "tested"`},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := config(t.TempDir())
			wrong.Binary = c.path

			_, err := sandbox.New(wrong)
			require.ErrorIs(t, err, sandbox.ErrBinary)
			require.ErrorContains(t, err, wrong.Binary)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestBinaryReplaced checks that children execute the file that was there at the start, also after an upgrade replaced or removed it.
func TestBinaryReplaced(t *testing.T) { //nolint:paralleltest // see above
	for name, replace := range map[string]func(path string) error{
		"by another": func(path string) error { return os.Rename(written(t, otherVersion, 0o700), path) },
		"by nothing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			before := config(t.TempDir())
			before.Binary, before.Idle = copied(t), 0
			s := start(t, before)

			require.NoError(t, replace(before.Binary))

			for range 3 {
				var said report

				child := run(t, s, roomy(), job{Do: "tell its environment"})
				require.NoError(t, child.Receive(&said))
				require.NoError(t, child.Close().Err)
			}

			_, err := sandbox.New(before)
			require.ErrorIs(t, err, sandbox.ErrBinary, "the next service uses the new file")
		})
	}
}

// TestBinaryOverwritten checks that a child of another version gets no work. A file can be overwritten only while no child runs.
func TestBinaryOverwritten(t *testing.T) { //nolint:paralleltest // see above
	before := config(t.TempDir())
	before.Binary, before.Idle = copied(t), 0
	s := start(t, before)

	child := run(t, s, roomy(), job{Do: "silence"})
	require.ErrorIs(t, os.WriteFile(before.Binary, []byte(otherVersion), 0o700), unix.ETXTBSY)
	child.Close()

	require.NoError(t, os.WriteFile(before.Binary, []byte(otherVersion), 0o700))

	_, err := s.Start(t.Context(), "hostile", roomy())
	require.ErrorIs(t, err, sandbox.ErrBinary)
	require.ErrorContains(t, err, `has version "other"`)
}

// TestChildIsNamed checks that lists of processes show what a child is.
func TestChildIsNamed(t *testing.T) {
	t.Parallel()

	s := start(t, config(t.TempDir()))
	child := run(t, s, roomy(), job{Do: "silence"})
	about := "/proc/" + strconv.Itoa(child.Pid())

	name, err := os.ReadFile(about + "/comm")
	require.NoError(t, err)
	require.Equal(t, sandbox.Name+"\n", string(name))

	line, err := os.ReadFile(about + "/cmdline")
	require.NoError(t, err)
	require.Equal(t, sandbox.Name+"\x00hostile\x00", string(line))
}
