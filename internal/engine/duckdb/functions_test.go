package duckdb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFunctionsAreJudged checks that DuckDB has exactly the functions that were reviewed. Statements may call every
// function that internal/query does not refuse by name. After an upgrade of DuckDB, review the new functions in the
// list. Refuse a function in internal/query if it reveals facts about the machine, reaches outside, or only waits or
// consumes processor time. Then run the test with -update.
func TestFunctionsAreJudged(t *testing.T) {
	t.Parallel()

	db, err := unlocked()
	require.NoError(t, err)

	type named struct {
		Name string `json:"name"`
	}

	found, err := rows[named](db, `SELECT DISTINCT function_type || ' ' || function_name AS name FROM duckdb_functions()
		WHERE function_name SIMILAR TO '[a-z_][a-z0-9_]*' ORDER BY ALL`)
	require.NoError(t, err)
	require.Greater(t, len(found), 500)

	var list strings.Builder
	for _, one := range found {
		list.WriteString(one.Name + "\n")
	}

	path := filepath.Join("testdata", "functions.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(list.String()), 0o600))
	}

	known, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(known), list.String())
}
