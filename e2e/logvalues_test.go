package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogHasNoCells checks that an error that quotes a cell is returned to the caller and never written to the log.
func TestLogHasNoCells(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	const cell = "planted4711"

	d.loaded("", "id,secret,day\n1,"+cell+",2026-01-01\n2,other,2026-01-02\n")

	for _, statement := range []string{
		`SELECT CAST(secret AS INTEGER) AS n FROM orders`,
		`SELECT CAST(secret AS DOUBLE) AS n FROM orders`,
		`SELECT CAST(secret AS DATE) AS n FROM orders`,
		`SELECT CAST(secret AS UUID) AS n FROM orders`,
		`SELECT CAST(secret AS BOOLEAN) AS n FROM orders`,
		`SELECT CAST(secret AS DECIMAL(9, 2)) AS n FROM orders`,
		`SELECT CAST(secret AS STRUCT(a INTEGER)) AS n FROM orders`,
		`SELECT strptime(secret, '%Y-%m-%d') AS n FROM orders`,
		`SELECT id FROM orders WHERE CAST(secret AS INTEGER) > 1`,
		`SELECT regexp_matches(id::VARCHAR, '(' || secret) AS n FROM orders`,
		`SELECT error(secret) AS n FROM orders`,
	} {
		for _, form := range []string{"application/json", "text/csv", "application/x-ndjson"} {
			require.NotEqual(t, http.StatusInternalServerError, d.ask(statement, "", "Accept: "+form).status, statement)
		}
	}

	require.Contains(t, d.ask(`SELECT CAST(secret AS INTEGER) AS n FROM orders`, "").body, cell, "the caller is told")

	for form, body := range map[string]string{
		"application/json":     `{"data": [{"id": "` + cell + `"}]}`,
		"application/x-ndjson": `{"id": "` + cell + `"}`,
		"text/csv":             "id\n" + cell + "\n",
	} {
		require.Equal(t, http.StatusUnprocessableEntity, d.post(body, "Content-Type: "+form).status, form)
		require.Equal(t, http.StatusBadRequest, d.post(strings.TrimRight(body, "\n}")+`{"`, "Content-Type: application/json").status, form)
	}

	d.load("", "id,secret,day\n"+cell+",x,"+cell+"\n")
	d.load(`"options": {"types": {"secret": "date"}}, "mode": "replace"`, "id,secret,day\n1,"+cell+",2026-01-01\n")
	d.load("", `{"id": 1, "secret": "`+cell+`"`)

	for line := range strings.Lines(s.log()) {
		require.NotContains(t, line, cell)
	}
}
