package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// readByPyIceberg returns the rows that PyIceberg reads of a table. It also reads every snapshot, which must have the number of rows that its summary says.
func readByPyIceberg(t *testing.T, d *filled) (rows [][]any) {
	t.Helper()

	database, err := url.Parse(d.s.databaseURL)
	require.NoError(t, err)

	database.Scheme = "postgresql+psycopg2"
	account, id := d.s.tableName(d.owner, d.namespace, d.name)

	reader := exec.CommandContext(t.Context(), filepath.Join(installed(t, "pyiceberg"), "bin", "python"), "peers/pyiceberg/read.py", account, id)
	reader.Stderr = os.Stderr
	reader.Env = append(os.Environ(), "CATALOG_URI="+database.String(), "NO_PROXY=127.0.0.1", "S3_ENDPOINT="+stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "S3_REGION="+stack.Env(t, "QUERN_TEST_S3_REGION"),
		"S3_ACCESS_KEY="+stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), "S3_SECRET_KEY="+stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"))
	output, err := reader.Output()
	require.NoError(t, err)

	var read struct {
		Rows      [][]any
		Snapshots []struct{ Rows, Said int }
	}

	require.NoError(t, json.Unmarshal(output, &read))
	require.NotEmpty(t, read.Snapshots)

	for _, s := range read.Snapshots {
		require.Equal(t, s.Said, s.Rows)
	}

	t.Logf("PyIceberg: %d rows, %d snapshots", len(read.Rows), len(read.Snapshots))

	return read.Rows
}

// requireRead compares rows that another program has read with the model. It may read the files in any order.
func (m *rowModel) requireRead(rows [][]any) {
	m.t.Helper()

	found, want := []string{}, []string{}
	for _, row := range rows {
		found = append(found, fmt.Sprint(row[0], " ", row[1]))
	}

	for _, row := range m.rows {
		want = append(want, fmt.Sprint(row.number(), " ", row.name))
	}

	require.ElementsMatch(m.t, want, found)
}
