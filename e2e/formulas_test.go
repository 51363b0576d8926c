package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormulasInCSV checks that formulas in CSV can be escaped in query results and in exports, so that a spreadsheet does not
// run them.
func TestFormulasInCSV(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	d.loaded("", "id,note\n-1,=1+1\n2,plain\n")

	const raw, escaped = "id,note\n-1,=1+1\n2,plain\n", "id,note\n-1,'=1+1\n2,plain\n"

	require.Equal(t, raw, d.ask(`FROM orders`, "", "Accept: text/csv").body)
	require.Equal(t, escaped, d.ask(`FROM orders`, `"escapeFormulas": true`, "Accept: text/csv").body)
	require.Contains(t, d.ask(`FROM orders`, `"escapeFormulas": true`).body, `"note":"=1+1"`)

	require.Equal(t, raw, d.call(http.MethodGet, "/export", "").body)
	require.Equal(t, raw, d.call(http.MethodGet, "/export?escapeFormulas=false", "").body)
	require.Equal(t, escaped, d.call(http.MethodGet, "/export?format=csv&escapeFormulas=true", "").body)
	require.Contains(t, d.call(http.MethodGet, "/export?format=ndjson&escapeFormulas=true", "").body, `"note":"=1+1"`)
	require.Equal(t, http.StatusUnprocessableEntity, d.call(http.MethodGet, "/export?escapeFormulas=maybe", "").status)

	// Exports by a job: the escaped and the plain export of one snapshot are different files.
	d = newFilled(t, start(t, byJob, "QUERN_OIDC_ISSUER="+s.realm.issuer()), "ada", d.bearer)
	d.loaded("", exportRows(0, 100)+"100,=1+1,1.00,2026-01-01,x\n")

	require.Contains(t, download(t, d.ready("csv&escapeFormulas=true")).body, ",'=1+1,")
	require.Contains(t, download(t, d.ready("csv")).body, ",=1+1,")
}
