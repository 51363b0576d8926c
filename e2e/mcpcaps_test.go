package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestMCPCaps checks that a result has at most 40,000 bytes whatever the data, says what was cut, and can be read on.
func TestMCPCaps(t *testing.T) { //nolint:tparallel // the parts use the same datasets
	t.Parallel()

	s := start(t, scripted)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	long := strings.Repeat("x", 1<<20)
	postRows(t, s, d.bearer, d.path(), fmt.Sprintf(`{"data": [{"id": 1, "a": %q, "b": %q}, {"id": 2, "a": %q, "b": "short"}]}`, long, long, long))

	var pairs []string
	for i := range 2000 { // the default limit of a dataset
		pairs = append(pairs, fmt.Sprintf(`"column_%d": "ääääääääää %d"`, i, i))
	}

	row := "{" + strings.Join(pairs, ", ") + "}"
	d.beside("wide", `{"data": [`+row+`, `+row+`, `+row+`]}`)

	t.Run("1 MB cells", func(t *testing.T) {
		var found toolRows

		d.tool("query", `{"sql": "FROM orders", "namespace": "`+d.namespace+`"}`, &found)
		require.Len(t, found.Rows, 2)
		require.Len(t, string(found.Rows[0][1]), 1000+len(`"…"`))
		require.Contains(t, found.Hint, "3 cells were cut")

		d.tool("read_rows", `{"dataset": "`+d.namespace+`/orders"}`, &found)
		require.Len(t, found.Rows, 2)

		var described struct{ Sample toolRows }
		d.tool("describe_dataset", `{"dataset": "`+d.namespace+`/orders"}`, &described)
		require.Len(t, described.Sample.Rows, 2)

		var run toolRun
		d.tool("ask", fmt.Sprintf(`{"namespace": %q, "question": %s}`, d.namespace, encode(t, `{"response": "`+strings.Repeat("y", 5000)+`", "steps": [{"instruction": "read", "queries": ["FROM orders"]}, {"instruction": "read", "queries": ["FROM wide"]}]}`)), &run)
		require.Equal(t, "completed", run.Status)
		require.True(t, run.Steps[0].Truncated)
		require.Contains(t, run.Hint, "read_rows")

		for step, rows := range []int{2, 3} {
			seen, cursor := 0, ""
			for pages := 0; pages == 0 || cursor != ""; pages++ {
				d.tool("read_rows", fmt.Sprintf(`{"runId": %q, "step": %d%s}`, run.RunID, step, cursor), &found)

				if seen, cursor = seen+len(found.Rows), ""; found.NextCursor != "" {
					cursor = fmt.Sprintf(`, "cursor": %q`, found.NextCursor)
				}
			}

			require.Equal(t, rows, seen)
		}
	})

	t.Run("5,000 columns", func(t *testing.T) {
		var found toolRows

		d.tool("query", `{"sql": "FROM wide", "namespace": "`+d.namespace+`"}`, &found)
		require.Len(t, found.Columns, 100)
		require.Len(t, found.Rows[0], 100)
		require.Contains(t, found.Hint, "1900 of 2000 columns are not shown")

		seen, cursor := 0, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			d.tool("read_rows", fmt.Sprintf(`{"dataset": "%s/wide"%s}`, d.namespace, cursor), &found)
			require.NotEmpty(t, found.Rows)
			require.Contains(t, found.Hint, "1900 of 2000 columns")

			if seen, cursor = seen+len(found.Rows), ""; found.NextCursor != "" {
				cursor = fmt.Sprintf(`, "cursor": %q`, found.NextCursor)
			}
		}

		require.Equal(t, 3, seen)

		d.tool("read_rows", fmt.Sprintf(`{"dataset": "%s/wide", "columns": ["column_1999"]}`, d.namespace), &found)
		require.Len(t, found.Columns, 1)

		var described struct {
			Columns []any
			Hint    string
		}
		d.tool("describe_dataset", `{"dataset": "`+d.namespace+`/wide"}`, &described)
		require.LessOrEqual(t, len(described.Columns), 100)
		require.Contains(t, described.Hint, "of 2000 columns are not shown")

		var names []string
		for i := range 5000 {
			names = append(names, fmt.Sprintf("%d AS c%d", i, i))
		}

		d.tool("query", fmt.Sprintf(`{"sql": "SELECT %s"}`, strings.Join(names, ", ")), &found)
		require.Len(t, found.Columns, 100)
		require.Contains(t, found.Hint, "4900 of 5000 columns")
	})

	t.Run("many rows", func(t *testing.T) {
		var found toolRows

		d.tool("query", `{"sql": "SELECT repeat('r', 900) FROM range(1000)", "limit": 1000}`, &found)
		require.True(t, found.Truncated)
		require.Equal(t, "bytes", found.TruncatedBy)
		require.Greater(t, len(found.Rows), 30)
	})

	t.Run("many claims", func(t *testing.T) {
		var checked struct {
			Unverified int
			Claims     []struct{ Verified bool }
			Hint       string
		}

		d.tool("check_text", fmt.Sprintf(`{"text": %q, "sql": "SELECT 1 AS n"}`, strings.Repeat("The city of Nowhere has 77. ", 3_500)), &checked)
		require.Equal(t, 3_500, checked.Unverified)
		require.Less(t, len(checked.Claims), 3_500)
		require.NotEmpty(t, checked.Hint)
	})

	t.Run("many verified questions", func(t *testing.T) { mcpManyVerified(t, d) })
	t.Run("50,000 datasets", func(t *testing.T) { mcpManyDatasets(t, d) })
}

// mcpManyVerified reads all pages of verified questions whose statements alone exceed a page.
func mcpManyVerified(t *testing.T, d *filled) {
	t.Helper()

	kept := call(t, http.MethodPost, d.s.url+"/verified/self/"+d.namespace, d.bearer,
		fmt.Sprintf(`{"question": "How many orders exist?", "query": "SELECT count(*) AS n FROM orders -- %s"}`, strings.Repeat("x", 5_000)))
	require.Equal(t, http.StatusCreated, kept.status, kept.body)

	withDatabase(t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `INSERT INTO verified_questions (account_id, namespace_id, id, revision, status, reason, content, needs, author_id, author, verified_at, created_at)
			SELECT account_id, namespace_id, gen_random_uuid(), revision, status, reason, content, needs, author_id, author, verified_at, created_at
			FROM verified_questions, generate_series(1, 299)`)
		require.NoError(t, err)
	})

	seen := map[string]bool{}

	for cursor := ""; len(seen) == 0 || cursor != ""; {
		var list struct {
			Questions  []struct{ ID string }
			NextCursor string
		}

		d.tool("list_verified", `{"namespace": "`+d.namespace+`"`+cursor+`}`, &list)

		for _, one := range list.Questions {
			require.False(t, seen[one.ID], "%s is listed twice", one.ID)
			seen[one.ID] = true
		}

		if cursor = ""; list.NextCursor != "" {
			cursor = fmt.Sprintf(`, "cursor": %q`, list.NextCursor)
		}
	}

	require.Len(t, seen, 300)
}

// mcpManyDatasets lists datasets whose descriptions alone exceed a page.
func mcpManyDatasets(t *testing.T, d *filled) {
	t.Helper()

	withDatabase(t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `INSERT INTO datasets (account_id, id, namespace_id, name, name_key, data_description, created_at, updated_at)
			SELECT d.account_id, gen_random_uuid(), d.namespace_id, 'copy-' || i, 'copy-' || i, repeat('ä', 450), d.created_at, d.updated_at
			FROM datasets d, generate_series(1, 50000) i WHERE d.name = 'orders'`)
		require.NoError(t, err)
	})

	seen, cursor := map[string]bool{}, ""

	for range 10 {
		var list struct {
			Datasets   []struct{ Dataset string }
			NextCursor string
		}

		d.tool("list_datasets", `{"namespace": "`+d.namespace+`"`+cursor+`}`, &list)
		require.Greater(t, len(list.Datasets), 10)

		for _, one := range list.Datasets {
			require.False(t, seen[one.Dataset], "%s is listed twice", one.Dataset)
			seen[one.Dataset] = true
		}

		require.NotEmpty(t, list.NextCursor)
		cursor = fmt.Sprintf(`, "cursor": %q`, list.NextCursor)
	}
}
