package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// keptRows is the answer to posted rows.
type keptRows struct {
	Indexed      int64
	SnapshotID   string
	RowsSetAside int64
	SetAside     []struct {
		Row    int64
		Reason string
	}
}

func (d *filled) declare(body string) *answer {
	d.t.Helper()

	return d.call(http.MethodPut, "/key", body)
}

func (d *filled) declared(body string) {
	d.t.Helper()

	answer := d.declare(body)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
}

// kept posts rows and returns what was stored.
func (d *filled) kept(body string, headers ...string) (done keptRows) {
	d.t.Helper()

	answer := d.post(body, headers...)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &done)

	return done
}

// key returns the key in the description of the dataset as JSON.
func (d *filled) key() string {
	d.t.Helper()

	var found struct {
		Metadata struct{ Key map[string]any }
	}

	d.call(http.MethodGet, "", "").json(d.t, &found)

	if found.Metadata.Key == nil {
		return ""
	}

	return fmt.Sprint(found.Metadata.Key["columns"], " ", found.Metadata.Key["duplicates"])
}

// requireUnique checks that n is never NULL, never occurs twice, and has this number of values.
func (d *filled) requireUnique(rows int) {
	d.t.Helper()

	found := d.result(`SELECT count(*) AS "all", count(n) AS known, count(DISTINCT n) AS different FROM orders`, "").Data
	require.Equal(d.t, [][]any{{float64(rows), float64(rows), float64(rows)}}, values(found, "all", "known", "different"))
}

// TestKeys declares keys, loads rows that violate them, and merges by them.
func TestKeys(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1h")
	issuer := s.newKey()
	d := newFilled(t, s, "ada", issuer.token("ada"))

	keyDeclared(t, d)
	keyPosted(t, d)
	keyTried(t, d)
	keyFiles(t, d)
	keyMerged(t, d)
	keyRestored(t, d)
	keyRefused(t, d)
	keyTold(t, d)

	t.Run("before the first rows", func(t *testing.T) {
		t.Parallel()
		keyBefore(t, newFilled(t, s, "ada", issuer.token("ada")))
	})
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		keyHostile(t, newFilled(t, s, "ada", issuer.token("ada")))
	})
	t.Run("who may", func(t *testing.T) {
		t.Parallel()
		keyRights(t, s, newFilled(t, s, "ada", issuer.token("ada")), issuer.token("bob"), issuer.token("eve"))
	})
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		keyTogether(t, newFilled(t, s, "ada", issuer.token("ada")), another(t, s, "QUERN_MAINTENANCE_INTERVAL=1h"))
	})
}

// keyDeclared declares keys over rows that violate them, and then one that they permit.
func keyDeclared(t *testing.T, d *filled) {
	t.Helper()

	d.named("", "a.csv", "n,name\n1,a\n2,b\n2,c\n,d\n,e\n")

	refused := d.declare(`{"columns": ["n"]}`)
	requireFault(t, "rows violate it", refused, 409, "CONFLICT")
	require.Contains(t, refused.body, "2 rows without a value in one of its columns, 1 row with the values of an earlier row")
	require.Empty(t, d.key())

	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 99, "d": 1e300}]}`).status)

	for what, body := range map[string]string{"no such column": `{"columns": ["absent"]}`, "twice": `{"columns": ["n", "N"]}`, "a double": `{"columns": ["d"]}`} {
		require.Equal(t, []string{"columns"}, requireFault(t, what, d.declare(body), 422, "VALIDATION_FAILED"))
	}

	for what, body := range map[string]string{"none": `{"columns": []}`, "no list": `{}`, "no rule": `{"columns": ["n"], "duplicates": "drop"}`} {
		requireFault(t, what, d.declare(body), 422, "VALIDATION_FAILED")
	}

	d.deleteRows(`{"condition": "n IS NULL OR n = 99 OR name = 'c'"}`)

	answer := d.declare(`{"columns": ["N"]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.JSONEq(t, `{"columns": ["n"], "duplicates": "setAside"}`, answer.body)
	require.Equal(t, "[n] setAside", d.key())
	require.Equal(t, []string{"1 a.csv:1", "2 a.csv:2"}, d.sourced())
}

// keyPosted posts rows that violate the key. The service sets them aside, and a repeated request returns the same answer.
func keyPosted(t *testing.T, d *filled) {
	t.Helper()

	body := `{"data": [{"n": 3, "name": "f"}, {"n": 2, "name": "g"}, {"n": 4, "name": "h"}, {"n": 3, "name": "i"}, {"name": "j"}, {"n": 2, "name": "k"}]}`
	once := "Idempotency-Key: " + uuid.NewString()
	done := d.kept(body, once)
	require.Equal(t, int64(2), done.Indexed)
	require.Equal(t, int64(4), done.RowsSetAside)
	require.Equal(t, "[{2 the key exists already} {4 the key occurs in row 1 already} {5 the key is null} {6 the key exists already}]", fmt.Sprint(done.SetAside))
	require.Equal(t, done, d.kept(body, once), "the same request has the same answer")
	require.Equal(t, []string{"1 a.csv:1", "2 a.csv:2", "3", "4"}, d.sourced())

	before := d.snapshots()
	require.Equal(t, int64(0), d.kept(`{"data": [{"n": 1}, {"n": 2}]}`).Indexed)
	require.Len(t, d.snapshots(), len(before), "no row is left, so there is no snapshot")

	clean := d.kept(`{"data": [{"n": 5, "name": "l"}]}`)
	require.Equal(t, int64(1), clean.Indexed)
	require.Zero(t, clean.RowsSetAside)

	requireFault(t, "without the column", d.post(`{"data": [{"name": "x"}]}`), 409, "CONFLICT")
	d.requireUnique(5)
}

// keyFiles loads files that violate the key. Rows keep their numbers, and files their order.
func keyFiles(t *testing.T, d *filled) {
	t.Helper()

	done := d.named(`"options": {"types": {"n": "bigint"}}, "accept": ["all"]`, "b.csv", "n,name\n6,m\nx,?\n5,n\n7,o\n6,p\n", "c.csv", "n,name\n8,q\n7,r\n,s\n9,t\n", "d.csv", "n,name\n1,u\n2,v\n")
	require.Equal(t, "completed", done.Status, "%+v", done.Error)
	require.Equal(t, int64(4), done.Progress.RowsDone)
	require.Equal(t, int64(7), done.Progress.RowsSetAside)
	require.Equal(t, "b.csv:2 b.csv:3 b.csv:5 c.csv:2 c.csv:3 d.csv:1 d.csv:2", placesOf(done.SetAside))
	require.Equal(t, "the key exists already", done.SetAside[1].Reason)
	require.Equal(t, "the key occurs in row 1 already", done.SetAside[2].Reason)
	require.Equal(t, "the key occurs in row 4 already of b.csv", done.SetAside[3].Reason)
	require.Equal(t, "the key is null", done.SetAside[4].Reason)
	require.Equal(t, []string{"1 a.csv:1", "2 a.csv:2", "3", "4", "5", "6 b.csv:1", "7 b.csv:4", "8 c.csv:1", "9 c.csv:4"}, d.sourced())

	// A replacement is compared with itself only.
	done = d.named(`"mode": "replace"`, "e.csv", "n,name\n1,a\n2,b\n1,c\n3,d\n")
	require.Equal(t, "completed", done.Status, "%+v", done.Error)
	require.Equal(t, []string{"1 e.csv:1", "2 e.csv:2", "3 e.csv:4"}, d.sourced())

	done = d.load(`"mode": "replace"`, "other,name\n1,a\n")
	require.Equal(t, "failed", done.Status)
	require.Contains(t, done.Error.Message, `no column "n"`)
	d.requireUnique(3)
}

// keyTried loads files that violate the key as a dry run, which says what a load would do.
func keyTried(t *testing.T, d *filled) {
	t.Helper()

	before := d.sourced()

	tried := d.named(`"dryRun": true, "options": {"types": {"n": "bigint"}}`, "b.csv", "n,name\n6,m\nx,?\n5,n\n7,o\n6,p\n", "c.csv", "n,name\n8,q\n7,r\n,s\n9,t\n", "d.csv", "n,name\n1,u\n2,v\n")
	require.Equal(t, "completed", tried.Status, "%+v", tried.Error)
	require.Equal(t, int64(4), tried.Progress.RowsDone)
	require.Equal(t, int64(7), tried.Progress.RowsSetAside)
	require.Contains(t, fmt.Sprintf("%+v", tried.Preview.Doubts), "6 rows would be set aside because of the key n: "+
		"row 3 of b.csv: the key exists already; row 5 of b.csv: the key occurs in row 1 already; row 2 of c.csv: the key occurs in row 4 already of b.csv; …")

	for more, says := range map[string]string{`"mode": "replace"`: "1 row would be set aside because of the key n: row 3: the key occurs in row 1 already", `"mode": "merge"`: "2 rows would be set aside"} {
		tried = d.named(`"dryRun": true, `+more, "e.csv", "n,name\n1,a\n2,b\n1,c\n"+map[bool]string{true: ",d\n"}[more == `"mode": "merge"`])
		require.Equal(t, "completed", tried.Status, "%+v", tried.Error)
		require.Contains(t, fmt.Sprintf("%+v", tried.Preview.Doubts), says)
	}

	tried = d.named(`"dryRun": true`, "f.csv", "name\na\n")
	require.Equal(t, "completed", tried.Status, "%+v", tried.Error)
	require.Contains(t, fmt.Sprintf("%+v", tried.Preview.Doubts), `The load would fail: The rows have no column "n".`)

	tried = d.named(`"dryRun": true`, "g.csv", "n,name\n100,a\n101,b\n")
	require.NotContains(t, fmt.Sprintf("%+v", tried.Preview.Doubts), "the key")
	require.Equal(t, before, d.sourced())
}

func placesOf(rows []setAside) string {
	places := make([]string, len(rows))
	for n, row := range rows {
		places[n] = fmt.Sprintf("%s:%d", row.File, row.Row)
	}

	return strings.Join(places, " ")
}

// keyMerged merges without naming the key.
func keyMerged(t *testing.T, d *filled) {
	t.Helper()

	answer := d.call(http.MethodPost, "/rows?mode=merge", `{"data": [{"n": 2, "name": "B"}, {"n": null, "name": "no key"}, {"n": 4, "name": "D"}]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var done keptRows

	answer.json(t, &done)
	require.Equal(t, int64(2), done.Indexed)
	require.Equal(t, "[{2 the key is null}]", fmt.Sprint(done.SetAside))
	require.Equal(t, []string{"1 e.csv:1", "3 e.csv:4", "2", "4"}, d.sourced())

	merged := d.named(`"mode": "merge"`, "g.csv", "n,name\n1,A\n5,E\n1,AA\n")
	require.Equal(t, "completed", merged.Status, "%+v", merged.Error)
	require.Equal(t, []string{"3 e.csv:4", "2", "4", "1 g.csv:1", "5 g.csv:2"}, d.sourced())

	require.Equal(t, http.StatusOK, d.merge("N", `{"data": [{"n": 5, "name": "E"}]}`).status)
	require.Equal(t, []string{"key"}, requireFault(t, "another key", d.merge("name", `{"data": [{"n": 5, "name": "E"}]}`), 422, "VALIDATION_FAILED"))
	d.requireUnique(5)
}

// keyRestored restores a snapshot that violates the key. The service refuses until the key is removed.
func keyRestored(t *testing.T, d *filled) {
	t.Helper()

	before := d.snapshots()
	first := before[len(before)-1].SnapshotID
	refused := d.restoreTo(first)
	requireFault(t, "it violates the key", refused, 409, "CONFLICT")
	require.Contains(t, refused.body, "Remove the key")
	require.Equal(t, http.StatusOK, d.restoreTo(before[1].SnapshotID).status)
	d.requireUnique(5)

	require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "/key", "").status)
	require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "/key", "").status, "it can be repeated")
	require.Empty(t, d.key())
	require.Equal(t, int64(2), d.kept(`{"data": [{"n": 1}, {"n": null}]}`).Indexed)
	requireFault(t, "no key", d.call(http.MethodPost, "/rows?mode=merge", `{"data": [{"n": 5, "name": "E"}]}`), 422, "VALIDATION_FAILED")
	require.Equal(t, http.StatusOK, d.restoreTo(first).status)
	require.Equal(t, http.StatusOK, d.restoreTo(before[1].SnapshotID).status)
}

// keyRefused loads duplicates into a dataset whose key refuses them.
func keyRefused(t *testing.T, d *filled) {
	t.Helper()

	d.declared(`{"columns": ["n"], "duplicates": "refuse"}`)
	require.Equal(t, "[n] refuse", d.key())

	before := d.sourced()

	for what, body := range map[string]string{
		"it exists": `{"data": [{"n": 100}, {"n": 1}]}`, "twice": `{"data": [{"n": 100}, {"n": 100}]}`, "null": `{"data": [{"n": 100}, {"n": null}]}`,
	} {
		once := "Idempotency-Key: " + uuid.NewString()
		refused := d.post(body, once)
		requireFault(t, what, refused, 409, "CONFLICT")
		require.Contains(t, refused.body, "1 row would violate the key n")
		require.Contains(t, refused.body, "Row 2: ")
		require.Equal(t, int64(1), d.kept(`{"data": [{"n": 101}]}`, once).Indexed, "the key of a refused request can be used again")
		require.Equal(t, int64(1), d.deleteRows(`{"condition": "n = 101"}`).RowCount)
	}

	failed := d.load("", "n,name\n100,a\n1,b\n")
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "CONFLICT", failed.Error.Code)
	require.Equal(t, "file 0:2", placesOf(failed.SetAside))

	merged := d.call(http.MethodPost, "/rows?mode=merge", `{"data": [{"n": 1, "name": "A"}, {"n": null}]}`)
	requireFault(t, "null in a merge", merged, 409, "CONFLICT")
	require.Equal(t, before, d.sourced())

	// The load is accepted as soon as the key permits it.
	d.deleteRows(`{"condition": "n = 1"}`)
	require.Equal(t, http.StatusAccepted, d.call(http.MethodPost, "/ingestions/"+failed.ID+"/retry", "").status)
	require.Equal(t, "completed", d.wait(failed.ID).Status)
	d.requireUnique(6)
}

// keyTold checks that models are told the key, although there is no profile.
func keyTold(t *testing.T, d *filled) {
	t.Helper()

	var described struct{ Keys [][]string }

	d.tool("describe_dataset", `{"dataset": "`+d.namespace+`/orders"}`, &described)
	require.Contains(t, described.Keys, []string{"n"})
}

// keyBefore declares a key before there are columns.
func keyBefore(t *testing.T, d *filled) {
	t.Helper()

	d.declared(`{"columns": ["Region", "n"]}`)
	requireFault(t, "a column is missing", d.post(`{"data": [{"n": 1}]}`), 409, "CONFLICT")
	requireFault(t, "a double", d.post(`{"data": [{"n": 1e300, "region": "a"}]}`), 409, "CONFLICT")
	require.Equal(t, int64(3), d.kept(`{"data": [{"n": 1, "region": "a"}, {"n": 1, "region": "b"}, {"n": 2, "region": "a"}, {"n": 1, "region": "a"}]}`).Indexed)
	require.Equal(t, int64(1), d.kept(`{"data": [{"n": 2, "region": "a"}, {"n": 2, "region": "b"}]}`).Indexed)

	// Clearing keeps the key.
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	require.Equal(t, int64(1), d.kept(`{"data": [{"n": 1, "region": "a"}, {"n": 1, "region": "a"}]}`).Indexed)
}

// keyHostile declares a key of columns with names that look like SQL.
func keyHostile(t *testing.T, d *filled) {
	t.Helper()

	require.Equal(t, http.StatusOK, d.post(`{"data": [{"a\" OR 1=1 --": 1, "select": "x", "n'); DROP TABLE new; --": 1}]}`).status)

	var found struct {
		Metadata struct{ ColumnNames []string }
	}

	d.call(http.MethodGet, "", "").json(t, &found)
	names, err := json.Marshal(found.Metadata.ColumnNames)
	require.NoError(t, err)
	d.declared(`{"columns": ` + string(names) + `}`)

	require.Equal(t, int64(1), d.kept(`{"data": [{"a\" OR 1=1 --": 1, "select": "x", "n'); DROP TABLE new; --": 1},
		{"a\" OR 1=1 --": 2, "select": "x", "n'); DROP TABLE new; --": 1}]}`).Indexed)
}

// keyRights checks who may declare a key.
func keyRights(t *testing.T, s *service, d *filled, reader, stranger string) {
	t.Helper()

	d.declared(`{"columns": ["n"]}`)

	for what, method := range map[string]string{`{"columns": ["m"]}`: http.MethodPut, "": http.MethodDelete} {
		require.Equal(t, http.StatusNotFound, call(t, method, d.url()+"/key", stranger, what).status)
	}

	call(t, http.MethodGet, s.url+"/users/me", reader, "")
	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")

	for what, method := range map[string]string{`{"columns": ["m"]}`: http.MethodPut, "": http.MethodDelete} {
		requireFault(t, method, call(t, method, d.url()+"/key", reader, what), 403, "FORBIDDEN")
	}

	require.Equal(t, "[n] setAside", d.key())
	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "editor")
	require.Equal(t, http.StatusOK, call(t, http.MethodPut, d.url()+"/key", reader, `{"columns": ["m"]}`).status)
	unshare(t, s, d.bearer, "datasets/"+d.path(), "bob")
	require.Equal(t, http.StatusNotFound, call(t, http.MethodPut, d.url()+"/key", reader, `{"columns": ["n"]}`).status)
	require.Equal(t, "[m] setAside", d.key())
}

// keyTogether posts overlapping rows through two services at once. Every row is stored once or set aside, and no value is there twice.
func keyTogether(t *testing.T, d *filled, second *service) {
	t.Helper()

	d.declared(`{"columns": ["n"]}`)

	var (
		posting         sync.WaitGroup
		mu              sync.Mutex
		indexed, set    int64
		clients, shared = 16, 10
	)

	for n := range clients {
		from := *d
		if n%2 == 1 {
			from.s = second
		}

		posting.Go(func() {
			var rows []string
			for row := range shared {
				rows = append(rows, fmt.Sprintf(`{"n": %d, "by": %d}`, row+n%3, n))
			}

			answer := from.post(fmt.Sprintf(`{"data": [{"n": %d, "by": %d}, %s]}`, 1000+n, n, strings.Join(rows, ", ")), "Idempotency-Key: "+uuid.NewString())

			var done keptRows
			if answer.status != http.StatusOK {
				t.Errorf("%d: %s", answer.status, answer.body)

				return
			}

			answer.json(t, &done)
			mu.Lock()
			defer mu.Unlock()

			indexed, set = indexed+done.Indexed, set+done.RowsSetAside
		})
	}

	posting.Wait()

	different := clients + shared + 2
	d.requireUnique(different)
	require.Equal(t, int64(different), indexed)
	require.Equal(t, int64(clients*(shared+1)-different), set)
}
