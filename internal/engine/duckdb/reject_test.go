package duckdb

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// TestIsNoRoom checks that only errors of the system count as a full disk, not texts that users wrote.
func TestIsNoRoom(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"ours":              {fmt.Errorf("unpacking: %w", &os.PathError{Op: "write", Path: "tmp/a", Err: syscall.ENOSPC}), true},
		"a quota":           {syscall.EDQUOT, true},
		"too large":         {syscall.EFBIG, false},
		"DuckDB's":          {&statementError{`IO Error: Could not write file "tmp/a.parquet": No space left on device`}, true},
		"DuckDB's quota":    {&statementError{`IO Error: Could not write file "tmp/a.parquet": Disk quota exceeded`}, true},
		"as JSON":           {&statementError{`{"exception_type":"IO","exception_message":"Could not write file \"tmp/spill/x\": No space left on device","errno":"28"}`}, true},
		"of a statement":    {&refusal{engine.StatementError{Kind: "io", Message: "Could not write file: No space left on device"}}, true},
		"somebody's words":  {&statementError{`Invalid Input Error: No space left on device`}, false},
		"somebody's error":  {&refusal{engine.StatementError{Kind: "invalid input", Message: "IO Error: No space left on device"}}, false},
		"another one of IO": {&statementError{`IO Error: Cannot open file "in/a": No such file or directory`}, false},
		"another one":       {errors.New("No space left on device"), false},
		"none":              {nil, false},
	} {
		require.Equal(t, test.want, isNoRoom(test.err), name)
	}

	full := &statementError{`IO Error: Could not write file "tmp/a.parquet": No space left on device`}
	require.Equal(t, error(full), explain(full), "the file is not to blame")
}

// TestChildEndsWithoutText checks that a child that fails returns the kind of DuckDB's error and not its text, which can quote
// values of users: the service logs what a child ended with.
func TestChildEndsWithoutText(t *testing.T) {
	t.Parallel()

	const quoted = "planted4711"

	opened := session(t, children(t, sandbox.Full), written(t, ""), "file")

	// Without files this is no valid statement.
	_, err := opened.Merge(engine.View{Columns: []engine.Column{{Name: quoted, Type: engine.Bigint}}}, "merged.parquet")
	require.ErrorContains(t, err, "DuckDB refused a statement: Parser Error")
	require.NotContains(t, err.Error(), quoted)
}
