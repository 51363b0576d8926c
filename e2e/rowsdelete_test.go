package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// deletedRows is the answer to a request that deletes rows.
type deletedRows struct {
	DryRun     bool             `json:"dryRun"`
	RowCount   int64            `json:"rowCount"`
	SnapshotID string           `json:"snapshotId"`
	Data       []map[string]any `json:"data"`
}

func (d *filled) tryDelete(body string, headers ...string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/rows/delete", body, headers...)
}

func (d *filled) deleteRows(body string, headers ...string) (done deletedRows) {
	d.t.Helper()

	answer := d.tryDelete(body, headers...)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &done)

	return done
}

// sourced returns the column n of all rows in the order of the table, with the row of the file that each comes from, such as
// "3 b.csv:2", or "3" for a posted row.
func (d *filled) sourced() (rows []string) {
	d.t.Helper()

	for _, row := range d.result(`SELECT n FROM orders LIMIT 100000`, "").Data {
		text := fmt.Sprint(row["n"])

		metadata, _ := row["__metadata"].(map[string]any)
		if source, isFile := metadata["source"].(map[string]any); isFile {
			text += fmt.Sprintf(" %v:%v", source["file"], source["row"])
		}

		rows = append(rows, text)
	}

	return rows
}

// TestDeleteRows deletes rows by conditions. Rows for which a condition is NULL stay, the others keep their order and their
// provenance, and a restore brings deleted rows back.
func TestDeleteRows(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1h")
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))

	d.named("", "a.csv", "n,name\n1,a\n2,\n3,c\n4,d\n5,\n6,f\n")
	d.named(`"options": {"types": {"n": "bigint"}}`, "b.csv", "n,name,day\n7,g,2026-01-01\nx,h,\n9,i,2026-01-03\n10,,\n")
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 11, "name": "k"}, {"n": 12}]}`).status)

	all := []string{"1 a.csv:1", "2 a.csv:2", "3 a.csv:3", "4 a.csv:4", "5 a.csv:5", "6 a.csv:6", "7 b.csv:1", "9 b.csv:3", "10 b.csv:4", "11", "12"}
	require.Equal(t, all, d.sourced())

	// A dry run changes nothing.
	tried := d.deleteRows(`{"condition": "name >= $1", "parameters": ["c"], "dryRun": true}`)
	require.Equal(t, int64(6), tried.RowCount)
	require.Len(t, tried.Data, 6)
	require.Contains(t, fmt.Sprint(tried.Data[0]["__metadata"]), "a.csv")
	require.Empty(t, tried.SnapshotID)
	require.Equal(t, all, d.sourced())

	done := d.deleteRows(`{"condition": "name >= $least -- not \nOR n = 5", "parameters": {"least": "f"}}`)
	require.Equal(t, deletedRows{RowCount: 5, SnapshotID: d.snapshots()[0].SnapshotID}, done)
	require.Equal(t, []string{"1 a.csv:1", "2 a.csv:2", "3 a.csv:3", "4 a.csv:4", "10 b.csv:4", "12"}, d.sourced())
	require.Equal(t, "delete", d.snapshots()[0].Operation)

	// The files that were rewritten are rewritten again, and a file of which nothing is left goes away.
	require.Equal(t, int64(1), d.deleteRows(`{"condition": "n = (SELECT min(n) + 1 FROM orders)"}`).RowCount)
	require.Equal(t, int64(1), d.deleteRows(`{"condition": "orders.n = $1 AND $2 > 12345678901234567.1", "parameters": [12, 12345678901234567.2]}`).RowCount)
	require.Equal(t, []string{"1 a.csv:1", "3 a.csv:3", "4 a.csv:4", "10 b.csv:4"}, d.sourced())
	require.Equal(t, 2, d.dataFiles())

	// Nothing to remove makes no snapshot.
	before := d.snapshots()
	require.Equal(t, deletedRows{}, d.deleteRows(`{"condition": "n > 1000"}`))
	require.Equal(t, before, d.snapshots())

	require.Equal(t, int64(4), d.deleteRows(`{"condition": "true"}`).RowCount)
	require.Empty(t, d.sourced())
	require.Equal(t, int64(0), d.deleteRows(`{"condition": "true"}`).RowCount)

	require.Equal(t, http.StatusOK, d.restoreTo(before[len(before)-3].SnapshotID).status)
	require.Equal(t, all, d.sourced())

	deleteOnce(t, d)
	deleteRefused(t, d, key)
}

// deleteOnce repeats a request with its key.
func deleteOnce(t *testing.T, d *filled) {
	t.Helper()

	key := "Idempotency-Key: " + uuid.NewString()
	first := d.deleteRows(`{"condition": "n = 1"}`, key)
	require.Equal(t, int64(1), first.RowCount)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	require.Equal(t, first, d.deleteRows(`{"condition": "n = 1"}`, key), "it is not done twice")
	require.Contains(t, d.sourced(), "1")
	requireFault(t, "another body", d.tryDelete(`{"condition": "n = 2"}`, key), 422, "VALIDATION_FAILED")
}

// deleteRefused sends conditions and callers that are refused.
func deleteRefused(t *testing.T, d *filled, key *signer) {
	t.Helper()

	before := d.sourced()
	eve := newFilled(t, d.s, "eve", key.token("eve"))
	eve.named("", "secret.csv", "n,secret\n1,x\n")

	for condition, message := range map[string]string{
		"n = ":           "",
		"n":              "must be boolean",
		"  nothing = 1":  "column 3",
		"nothing = 1":    "nothing",
		"true) LIMIT (1": "one boolean expression",
		"true) UNION SELECT 1 FROM orders WHERE (true": "one boolean expression",
		"__row = 1":               "one boolean expression",
		"true; DROP TABLE orders": "",
		"n IN (SELECT n FROM \"eve/" + eve.namespace + "/orders\")": "no dataset",
		"n IN (SELECT n FROM read_csv('/etc/passwd'))":              "",
		"n = $1": "",
	} {
		answer := d.tryDelete(fmt.Sprintf(`{"condition": %q}`, condition))
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", condition, answer.body)
		require.Contains(t, answer.body, message, condition)
		require.NotContains(t, strings.ToLower(answer.body), "__source", condition)
	}

	share(t, d.s, d.bearer, "datasets/"+d.path(), "eve", "viewer")

	for _, body := range []string{`{"condition": "true"}`, `{"condition": "true", "dryRun": true}`} {
		answer := call(t, http.MethodPost, d.url()+"/rows/delete", eve.bearer, body)
		require.Equal(t, http.StatusForbidden, answer.status, answer.body)
	}

	require.Equal(t, before, d.sourced())
}
