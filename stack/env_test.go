package stack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("QUERN_STACK_DIR", dir)
	t.Setenv("QUERN_TEST_FROM_PROCESS", "process")

	_, err := stack.Lookup("QUERN_TEST_FROM_FILE")
	require.ErrorContains(t, err, "make stack")

	content := "QUERN_TEST_FROM_PROCESS=file\nQUERN_TEST_FROM_FILE=postgres://u:p@h/d?a=b\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "env"), []byte(content), 0o600))

	value, err := stack.Lookup("QUERN_TEST_FROM_FILE")
	require.NoError(t, err)
	require.Equal(t, "postgres://u:p@h/d?a=b", value)

	value, err = stack.Lookup("QUERN_TEST_FROM_PROCESS")
	require.NoError(t, err)
	require.Equal(t, "process", value)

	_, err = stack.Lookup("QUERN_TEST_FROM")
	require.ErrorContains(t, err, "QUERN_TEST_FROM: not in "+filepath.Join(dir, "env"))
}

func TestEnv(t *testing.T) {
	t.Setenv("QUERN_STACK_DIR", t.TempDir())
	t.Setenv("QUERN_TEST_PRESENT", "yes")

	fatal := &recorder{}
	require.Equal(t, "yes", stack.Env(fatal, "QUERN_TEST_PRESENT"))
	require.Empty(t, fatal.message)
	stack.Env(fatal, "QUERN_TEST_ABSENT")
	require.Contains(t, fatal.message, "make stack")
}

func TestDir(t *testing.T) {
	t.Setenv("QUERN_STACK_DIR", "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	require.Equal(t, "/cache/quern/stack", stack.Dir())
	t.Setenv("QUERN_STACK_DIR", "/elsewhere")
	require.Equal(t, "/elsewhere", stack.Dir())
}

type recorder struct{ message string }

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.message = fmt.Sprintf(format, args...) }
