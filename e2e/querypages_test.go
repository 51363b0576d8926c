package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type rowPage struct {
	Columns    []struct{ Name, Type string }
	Data       []map[string]any
	NextCursor string
}

func (d *filled) preview(query string) (page rowPage) {
	d.t.Helper()

	answer := d.call(http.MethodGet, "/rows"+query, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &page)

	return page
}

// walk returns one column of all pages.
func (d *filled) walk(query, column string, between func()) (cells []any) {
	d.t.Helper()

	for cursor := ""; ; {
		page := d.preview("?limit=2" + query + cursor)
		for _, row := range page.Data {
			cells = append(cells, row[column])
		}

		if page.NextCursor == "" {
			return cells
		}

		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)

		between()
	}
}

func queryPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "walker", key.token("walker"))
	d.loaded("", "n,x\n1,a\n2,b\n3,c\n", "n,x\n4,d\n5,e\n")

	all := []any{1.0, 2.0, 3.0, 4.0, 5.0}
	changes := []func(){
		func() { d.loaded(`"mode": "replace"`, "m\nx\ny\nz\n") },
		func() { d.loaded("", "m\nw\n") },
	}

	require.Equal(t, all, d.walk("", "n", func() {}))
	require.Equal(t, all, d.walk("&columns=N", "n", func() {
		if len(changes) > 0 {
			changes[0]()
			changes = changes[1:]
		}
	}), "a walk stays with its snapshot")
	require.Equal(t, []any{"x", "y", "z", "w"}, d.walk("", "m", func() {}))

	page := d.preview("?columns=m&limit=1")
	require.Equal(t, []struct{ Name, Type string }{{"m", "varchar"}}, page.Columns)
	require.Equal(t, map[string]any{"m": "x", "__metadata": map[string]any{"score": 1.0, "source": map[string]any{"file": "file 0", "row": 1.0}}}, page.Data[0])

	for query, field := range map[string]string{"?columns=n": "columns", "?columns=m,,": "columns", "?cursor=nonsense": "cursor", "?limit=10001": "limit"} {
		require.Equal(t, []string{field}, requireFault(t, query, d.call(http.MethodGet, "/rows"+query, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))
	}

	// A cursor of one dataset is not valid for another.
	other := newFilled(t, s, "walker", d.bearer)
	other.loaded("", "n\n7\n")
	require.Equal(t, []string{"cursor"}, requireFault(t, "another's cursor",
		other.call(http.MethodGet, "/rows?limit=1&cursor="+url.QueryEscape(page.NextCursor), ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))
}

// queryLongPages checks pages of 10,000 rows, which are sent while they are read.
func queryLongPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "long", key.token("long"))
	d.loaded("", exportRows(0, 12_000))

	first := d.preview("?limit=10000")
	require.Len(t, first.Data, 10_000)

	rest := d.preview("?limit=10000&cursor=" + url.QueryEscape(first.NextCursor))
	require.Len(t, rest.Data, 2_000)
	require.Empty(t, rest.NextCursor)
}

// resultCut checks that no file hides that rows are missing.
func resultCut(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "cutter", key.token("cutter"))

	for media, count := range map[string]func(string) int{
		"text/csv": func(body string) int { return strings.Count(body, "\n") - 1 },
		"application/vnd.apache.arrow.stream": func(body string) int {
			_, rows := readArrow(t, body)

			return len(rows)
		},
		"application/vnd.apache.parquet": func(body string) int {
			_, rows := readParquet(t, body)

			return len(rows)
		},
	} {
		refused := d.ask("SELECT range AS n FROM range(10001)", "", "Accept: "+media)
		requireFault(t, media, refused, http.StatusUnprocessableEntity, "LIMIT_EXCEEDED")
		require.Contains(t, refused.body, "The result has more than 10000 rows")
		require.Empty(t, refused.header.Get("X-Quern-Result"))

		answer := d.ask("SELECT range AS n FROM range(10001)", `"truncate": true`, "Accept: "+media)
		info := requireResult(t, answer, media, 10000)
		require.True(t, info.Truncated)
		require.Equal(t, "rows", info.TruncatedBy)
		require.Equal(t, 10000, count(answer.body))

		answer = d.ask("SELECT range AS n FROM range(20000) LIMIT 10001", "", "Accept: "+media)
		require.False(t, requireResult(t, answer, media, 10001).Truncated)
		require.Equal(t, 10001, count(answer.body))
	}
}

func queryEmpty(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "hollow", key.token("hollow"))
	refused := d.ask("SELECT count(*) FROM orders", "")
	requireFault(t, "no rows yet", refused, http.StatusUnprocessableEntity, "QUERY_INVALID")
	require.Contains(t, refused.body, "has no rows yet")
	require.JSONEq(t, `{"columns": [], "data": []}`, d.call(http.MethodGet, "/rows", "").body)
	requireFault(t, "nothing to export", d.call(http.MethodGet, "/export", ""), http.StatusUnprocessableEntity, "INVALID_STATE")

	d.loaded("", "n,x\n1,a\n")
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	require.Equal(t, [][]any{{0.0}}, d.result("SELECT count(*) FROM orders", "").rows())
	require.Equal(t, []struct{ Name, Type string }{{"n", "bigint"}, {"x", "varchar"}}, d.result("FROM orders", "").Columns)
	require.JSONEq(t, `{"columns": [{"name": "n", "type": "bigint"}, {"name": "x", "type": "varchar"}], "data": []}`, d.call(http.MethodGet, "/rows", "").body)
	require.Equal(t, "n,x\n", d.call(http.MethodGet, "/export", "").body)
	require.Equal(t, "n,x\n", d.ask("FROM orders", "", "Accept: text/csv").body)
}
