package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func (d *filled) merge(key, body string, headers ...string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/rows?mode=merge&key="+key, body, headers...)
}

// TestMergeRows merges posted rows and files by their key.
func TestMergeRows(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1h")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	// Into a dataset without rows everything is added.
	require.Equal(t, http.StatusOK, d.merge("n", `{"data": [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}, {"n": null, "name": "no key"}]}`).status)
	d.named("", "a.csv", "n,name\n3,c\n4,d\n5,e\n")

	tried := d.call(http.MethodPost, "/rows?mode=merge&key=n&dryRun=true", `{"data": [{"n": 4}, {"n": 6}, {"n": 1}]}`)
	require.JSONEq(t, `{"indexed": 3, "replaced": 2, "dryRun": true}`, tried.body)

	answer := d.merge("N", `{"data": [{"n": 4, "name": "D"}, {"n": 6, "name": "f"}, {"n": null, "name": "no key either"}, {"n": 1, "more": true}]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, []string{"2", "<nil>", "3 a.csv:1", "5 a.csv:3", "4", "6", "<nil>", "1"}, d.sourced())
	require.Equal(t, [][]any{{nil, true}}, values(d.result(`SELECT name, more FROM orders WHERE n = 1`, "").Data, "name", "more"))
	require.Equal(t, "merge", d.snapshots()[0].Operation)

	// Files: repeated keys are set aside, and rows know where they come from.
	merged := d.named(`"mode": "merge", "key": ["n"], "options": {"types": {"n": "bigint"}}`, "b.csv", "n,name\n2,B\nx,?\n7,g\n2,BB\n7,G\n")
	require.Equal(t, "completed", merged.Status, "%+v", merged)
	require.Equal(t, int64(3), merged.Progress.RowsSetAside)
	require.Equal(t, []string{"<nil>", "3 a.csv:1", "5 a.csv:3", "4", "6", "<nil>", "1", "2 b.csv:1", "7 b.csv:3"}, d.sourced())

	reasons := d.call(http.MethodGet, "/ingestions/"+merged.ID+"/setAside", "").body
	require.Contains(t, reasons, `"reason":"the key occurs in row 1 already","row":4`)
	require.Contains(t, reasons, `"reason":"the key occurs in row 3 already","row":5`)

	mergeRefused(t, d)
	mergeTogether(t, d)
	mergeCommas(t, newFilled(t, s, "ada", d.bearer))
}

// mergeCommas merges by columns whose names have commas and quotes.
func mergeCommas(t *testing.T, d *filled) {
	t.Helper()

	const key = `"last, first",n,b "c"`

	d.stored(`{"data": [{"last, first": "Bell, Ada", "n": 1, "b \"c\"": 1, "v": 1}, {"last, first": "Bell, Eve", "n": 1, "b \"c\"": 1, "v": 1}]}`)

	answer := d.merge(url.QueryEscape(key), `{"data": [{"last, first": "Bell, Ada", "n": 1, "b \"c\"": 1, "v": 2}, {"last, first": "Bell, Ada", "n": 1, "b \"c\"": 2, "v": 3}]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, [][]any{{1.0}, {2.0}, {3.0}}, values(d.result(`SELECT v FROM orders ORDER BY v`, "").Data, "v"))
	require.Equal(t, []string{"key"}, requireFault(t, "an open quote", d.merge(url.QueryEscape("\"n\n"), `{"data": [{"n": 1}]}`), 422, "VALIDATION_FAILED"))
}

func values(rows []map[string]any, names ...string) (list [][]any) {
	for _, row := range rows {
		var cells []any
		for _, name := range names {
			cells = append(cells, row[name])
		}

		list = append(list, cells)
	}

	return list
}

func mergeRefused(t *testing.T, d *filled) {
	t.Helper()

	before := d.sourced()
	require.Equal(t, []string{"data.2"}, requireFault(t, "a key twice", d.merge("n", `{"data": [{"n": 1}, {"n": 2}, {"n": 1}]}`), 422, "VALIDATION_FAILED"))

	for what, answer := range map[string]*answer{
		"no key":         d.call(http.MethodPost, "/rows?mode=merge", `{"data": [{"n": 1}]}`),
		"no such column": d.merge("absent", `{"data": [{"n": 1}]}`),
		"twice":          d.merge("n,N", `{"data": [{"n": 1}]}`),
		"a double":       d.merge("d", `{"data": [{"n": 1, "d": 1.5}]}`),
		"two columns":    d.merge("n,absent", `{"data": [{"n": 1}]}`),
		"key of append":  d.call(http.MethodPost, "/rows?key=n", `{"data": [{"n": 1}]}`),
	} {
		require.Equal(t, []string{"key"}, requireFault(t, what, answer, 422, "VALIDATION_FAILED"))
	}

	requireFault(t, "another mode", d.call(http.MethodPost, "/rows?mode=replace", `{"data": [{"n": 1}]}`), 422, "VALIDATION_FAILED")
	require.Equal(t, before, d.sourced())
}

// mergeTogether merges many bodies at once, half of them with keys in common. Every key is there once.
func mergeTogether(t *testing.T, d *filled) {
	t.Helper()

	before := len(d.snapshots())

	var merging sync.WaitGroup

	const clients = 24

	for n := range clients {
		merging.Go(func() {
			body := fmt.Sprintf(`{"data": [{"n": %d, "name": "own %d"}, {"n": %d, "name": "shared %d"}]}`, 1000+n, n, 2000+n%6, n)
			answer := d.merge("n", body, "Idempotency-Key: "+uuid.NewString())

			if answer.status != http.StatusOK {
				t.Errorf("%d: %s", answer.status, answer.body)
			}
		})
	}

	merging.Wait()

	found := d.result(`SELECT n, count(*) AS times FROM orders WHERE n >= 1000 GROUP BY n ORDER BY n`, "").Data
	require.Len(t, found, clients+6)

	for _, row := range found {
		require.InDelta(t, 1, row["times"], 0, "%v", row)
	}

	t.Logf("%d merges made %d snapshots", clients, len(d.snapshots())-before)
	require.NotContains(t, strings.Join(d.operations(), " "), "clear")
}

// operations returns the operations of the snapshots, newest first.
func (d *filled) operations() (list []string) {
	d.t.Helper()

	for _, s := range d.snapshots() {
		list = append(list, s.Operation)
	}

	return list
}
