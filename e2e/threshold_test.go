package e2e

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThreshold checks that a dataset that grows beyond the threshold gets Trino once, with an entry in the audit of its owner, and that the
// operator can take it back. It needs no Trino: no statement reads the dataset there.
func TestThreshold(t *testing.T) {
	t.Parallel()

	const nobody = "QUERN_TRINO_URL=http://127.0.0.1:9"

	s := start(t, nobody, "QUERN_CATALOG_LISTEN="+freeAddress(t), "QUERN_CATALOG_SECRET="+strings.Repeat("s", 40), "QUERN_TRINO_THRESHOLD=4KiB")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	engine := func() string {
		var described struct{ Metadata struct{ Engine string } }

		d.call(http.MethodGet, "", "").json(t, &described)

		return described.Metadata.Engine
	}
	changes := func() (details []string) {
		var page struct {
			Data []struct{ Action, Username, Detail string }
		}

		call(t, http.MethodGet, s.url+"/audit", d.bearer, "").json(t, &page)

		for _, entry := range page.Data {
			if entry.Action == "dataset.engine" {
				require.Equal(t, "operator", entry.Username)

				details = append(details, entry.Detail)
			}
		}

		return details
	}
	large := func() {
		var rows []map[string]any
		for n := range 2000 {
			rows = append(rows, map[string]any{"n": n * n * 7919})
		}

		body, err := json.Marshal(map[string]any{"data": rows})
		require.NoError(t, err)
		d.stored(string(body))
	}

	d.stored(`{"data": [{"n": 1}]}`)
	require.Equal(t, "duckdb", engine())
	require.Empty(t, changes())

	large()
	require.Equal(t, "trino", engine())
	require.Len(t, changes(), 1)
	require.Regexp(t, `^trino: its data files have \d+ bytes, more than QUERN_TRINO_THRESHOLD$`, changes()[0])

	large()
	require.Len(t, changes(), 1, "it has crossed the threshold already")

	command := exec.CommandContext(t.Context(), binary(), "engine", "set", d.path(), "duckdb")
	command.Env = []string{"QUERN_DATABASE_URL=" + s.databaseURL, nobody}
	printed, err := command.CombinedOutput()
	require.NoError(t, err, string(printed))

	large()
	require.Equal(t, "duckdb", engine(), "the operator has decided")
	require.Equal(t, []string{"duckdb"}, changes()[:1])

	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	large()
	require.Equal(t, "trino", engine(), "it crosses the threshold again")
}
