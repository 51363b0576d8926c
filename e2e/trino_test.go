//go:build trino

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

func TestTrino(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("ada")

	for name, story := range tableStories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			q, table := newTrino(t, s.databaseURL), newTable(t, s, bearer, name)
			for _, step := range story {
				table.do(step)
				q.requireTable(table.account, table.name, step.want)
			}

			q.requireHistory(table.account, table.name, story)
		})
	}

	t.Run("compacted", func(t *testing.T) {
		t.Parallel()
		trinoCompacted(t)
	})
	t.Run("changed rows", func(t *testing.T) {
		t.Parallel()
		trinoChanged(t)
	})
}

// trinoChanged checks that another engine reads the same rows after merges, deletes, restores and compactions.
func trinoChanged(t *testing.T) {
	t.Helper()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1s")
	m, q := newRowModel(t, s), newTrino(t, s.databaseURL)
	account, id := s.tableName(m.d.owner, m.d.namespace, m.d.name)

	for n := range 40 {
		m.step()

		if n%4 == 3 {
			m.requireRead(q.query(`SELECT n, name FROM ` + q.named(account, id)))
		}
	}

	require.Contains(t, fmt.Sprint(q.query(`SELECT operation FROM `+q.named(account, id+"$snapshots"))), "overwrite")
	t.Logf("steps: %v, rows: %d", m.done, len(m.rows))
}

// trinoCompacted checks that another engine can read a table after compaction and after snapshots expired.
func trinoCompacted(t *testing.T) {
	t.Helper()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_DELETE_GRACE=1h", "QUERN_SNAPSHOT_RETENTION=1h")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	for n := range 3 {
		d.stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
		d.stored(fmt.Sprintf(`{"data": [{"n": %d, "more": "text"}]}`, 10+n))
	}

	d.awaitCompacted()

	q := newTrino(t, s.databaseURL)
	account, id := s.tableName(d.owner, d.namespace, d.name)
	table, history := q.named(account, id), q.named(account, id+"$snapshots")
	require.Less(t, d.dataFiles(), 6)
	require.Equal(t, "[[6 36 3]]", fmt.Sprint(q.query(`SELECT count(*), sum(n), count(more) FROM `+table)))
	require.Contains(t, fmt.Sprint(q.query(`SELECT operation FROM `+history)), "replace")

	for _, row := range q.query(`SELECT snapshot_id, element_at(summary, 'total-records') FROM ` + history) {
		require.Equal(t, fmt.Sprint(row[1]), fmt.Sprint(q.query(fmt.Sprintf(`SELECT count(*) FROM %s FOR VERSION AS OF %v`, table, row[0]))[0][0]))
	}

	s.forgetOld(func() bool { return len(d.snapshots()) == 1 })
	require.Len(t, q.query(`SELECT snapshot_id FROM `+history), 1)
	require.Equal(t, "[[6 36 3]]", fmt.Sprint(q.query(`SELECT count(*), sum(n), count(more) FROM `+table)))
}

// trino is a catalog of the stack's Trino with the tables of one service.
type trino struct {
	t       *testing.T
	catalog string
}

// newTrino creates the catalog, using only the standard rows in the service's database.
func newTrino(t *testing.T, databaseURL string) *trino {
	t.Helper()

	database, err := url.Parse(databaseURL)
	require.NoError(t, err)

	q := &trino{t: t, catalog: "quern_" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	q.query("CREATE CATALOG " + q.catalog + " USING iceberg WITH (" + strings.Join([]string{
		property("iceberg.catalog.type", "jdbc"),
		property("iceberg.jdbc-catalog.driver-class", "org.postgresql.Driver"),
		property("iceberg.jdbc-catalog.connection-url", "jdbc:postgresql://"+database.Host+database.Path),
		property("iceberg.jdbc-catalog.connection-user", database.User.Username()),
		property("iceberg.jdbc-catalog.connection-password", password(t, databaseURL)),
		property("iceberg.jdbc-catalog.catalog-name", "quern"),
		property("iceberg.jdbc-catalog.schema-version", "V1"),
		property("iceberg.jdbc-catalog.default-warehouse-dir", "s3://"+stack.Env(t, "QUERN_TEST_S3_BUCKET")),
		property("iceberg.security", "read_only"),
		property("fs.native-s3.enabled", "true"),
		property("s3.path-style-access", "true"),
		property("s3.endpoint", stack.Env(t, "QUERN_TEST_S3_ENDPOINT")),
		property("s3.region", stack.Env(t, "QUERN_TEST_S3_REGION")),
		property("s3.aws-access-key", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY")),
		property("s3.aws-secret-key", stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")),
	}, ", ") + ")")
	t.Cleanup(func() { q.query("DROP CATALOG " + q.catalog) })

	return q
}

func property(name, value string) string {
	return quoted(name) + " = " + literal(value)
}

// named returns the name of a table of the catalog in a statement.
func (q *trino) named(account, table string) string {
	return q.catalog + "." + quoted(account) + "." + quoted(table)
}

// query runs a statement and returns all rows.
func (q *trino) query(statement string) (rows [][]any) {
	q.t.Helper()

	page := q.ask(http.MethodPost, stack.Env(q.t, "QUERN_TEST_TRINO_URL")+"/v1/statement", statement)
	rows = page.rows(q.t)

	for deadline := time.Now().Add(2 * patience); page.NextURI != ""; {
		require.True(q.t, time.Now().Before(deadline), "Trino takes too long for %s", statement)

		page = q.ask(http.MethodGet, page.NextURI, "")
		rows = append(rows, page.rows(q.t)...)
	}

	return rows
}

// trinoPage is one response of Trino's protocol. It may have some of the rows, and has the address of the next page.
type trinoPage struct {
	NextURI string
	Columns []struct{ Type string }
	Data    [][]any
	Error   *struct{ Message string }
}

func (q *trino) ask(method, address, statement string) (page trinoPage) {
	q.t.Helper()

	// The catalog is dropped after the context of the test has ended.
	request, err := http.NewRequest(method, address, strings.NewReader(statement))
	require.NoError(q.t, err)
	request.Header.Set("X-Trino-User", "quern")
	request.Header.Set("X-Trino-Client-Capabilities", "PARAMETRIC_DATETIME") // without it, times are truncated to milliseconds

	answer, err := try(request)
	require.NoError(q.t, err, "is Trino running? stack/up trino")
	require.Equal(q.t, http.StatusOK, answer.status, answer.body)

	decoder := json.NewDecoder(bytes.NewReader([]byte(answer.body)))
	decoder.UseNumber()
	require.NoError(q.t, decoder.Decode(&page))

	if page.Error != nil {
		require.Fail(q.t, page.Error.Message, statement)
	}

	return page
}

// rows returns the rows with numbers in the same Go types as those of readTable. Every other value is text in both.
func (p trinoPage) rows(t *testing.T) [][]any {
	t.Helper()

	for _, row := range p.Data {
		for column, value := range row {
			number, isNumber := value.(json.Number)
			if !isNumber {
				continue
			}

			var err error
			if p.Columns[column].Type == "double" {
				row[column], err = number.Float64()
			} else {
				row[column], err = number.Int64()
			}

			require.NoError(t, err)
		}
	}

	return p.Data
}

// requireTable checks that Trino reports the same types, rows and sums, and finds every row by its values. A row can be found
// only if the bounds and counts that Iceberg stores for each file are right.
func (q *trino) requireTable(account, table string, want tableContents) {
	q.t.Helper()

	var columns [][]any
	for _, column := range want.columns {
		columns = append(columns, []any{strings.ToLower(column.name), trinoType(column.kind)})
	}

	name := q.named(account, table)
	require.Equal(q.t, columns, q.query("SELECT column_name, data_type FROM "+q.catalog+".information_schema.columns"+
		" WHERE table_schema = '"+account+"' AND table_name = '"+table+"' ORDER BY ordinal_position"))

	q.requireRows(name, want)

	expressions, sums := []string{"count(*)"}, []any{int64(len(want.rows))}

	for i, column := range want.columns {
		var values []any
		for _, row := range want.rows {
			values = append(values, row[i])
		}

		if sum, isNumber := sumOf(column.kind, values); isNumber {
			expressions, sums = append(expressions, "sum("+quoted(column.name)+")"), append(sums, sum)
		}
	}

	found := q.query("SELECT " + strings.Join(expressions, ", ") + " FROM " + name)
	require.Equal(q.t, [][]any{sums}, found)
	q.t.Logf("Trino: %v, %s = %v", columns, strings.Join(expressions, ", "), found[0])

	var searches []string
	for _, row := range want.rows {
		searches = append(searches, "SELECT count(*) > 0 FROM "+name+" WHERE "+conditions(want.columns, row))
	}

	require.NotContains(q.t, q.query(strings.Join(searches, " UNION ALL ")), []any{false}, "a row is not found by its values")
}

// requireHistory checks that Trino can read the snapshot of each step.
func (q *trino) requireHistory(account, table string, story []tableStep) {
	q.t.Helper()

	snapshots := q.query(`SELECT snapshot_id FROM ` + q.named(account, table+"$snapshots") + ` ORDER BY committed_at`)
	require.Len(q.t, snapshots, len(story))

	for i, step := range story {
		q.requireRows(fmt.Sprintf("%s FOR VERSION AS OF %d", q.named(account, table), snapshots[i][0]), step.want)
	}
}

func (q *trino) requireRows(from string, want tableContents) {
	q.t.Helper()

	var names []string
	for _, column := range want.columns {
		names = append(names, quoted(column.name))
	}

	require.Equal(q.t, sorted(want.rows), sorted(q.query("SELECT "+strings.Join(names, ", ")+" FROM "+from)))
}

// trinoType returns Trino's name of a type. Times have microseconds, and JSON is text for other engines.
func trinoType(kind string) string {
	switch kind {
	case "timestamp", "time":
		return kind + "(6)"
	case "json":
		return "varchar"
	default:
		return kind
	}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// conditions returns a condition that holds for the row.
func conditions(columns []tableColumn, row []any) string {
	var all []string

	for i, column := range columns {
		if row[i] == nil {
			all = append(all, quoted(column.name)+" IS NULL")
		} else {
			all = append(all, fmt.Sprintf("%s = CAST(%s AS %s)", quoted(column.name), literal(fmt.Sprint(row[i])), trinoType(column.kind)))
		}
	}

	return strings.Join(all, " AND ")
}

// sumOf adds values as SQL does: nulls are ignored, and the sum of only nulls is null.
func sumOf(kind string, values []any) (sum any, isNumber bool) {
	var (
		integers int64
		floats   float64
		decimals big.Rat
		scale    int
	)

	for _, value := range values {
		switch value := value.(type) {
		case int64:
			integers += value
		case float64:
			floats += value
		case string:
			if decimal, ok := new(big.Rat).SetString(value); ok {
				decimals.Add(&decimals, decimal)
			}

			_, fraction, _ := strings.Cut(value, ".")
			scale = len(fraction)
		}
	}

	allNull := !slices.ContainsFunc(values, func(value any) bool { return value != nil })

	switch {
	case kind != "bigint" && kind != "double" && !strings.HasPrefix(kind, "decimal"):
		return nil, false
	case allNull:
		return nil, true
	case kind == "bigint":
		return integers, true
	case kind == "double":
		return floats, true
	default:
		return decimals.FloatString(scale), true
	}
}
