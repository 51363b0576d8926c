package e2e

import (
	"encoding/base64"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestSteps checks that a caller can read all rows of a step, page by page and as a file, if the caller asked the question and
// still may see the data.
func TestSteps(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"values of every kind":        stepKinds,
		"more than fits an answer":    stepLarge,
		"many short rows":             stepShort,
		"who may read them":           stepAccess,
		"before and without a result": stepWithoutResult,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

// stepOf returns a script with one statement.
func stepOf(t *testing.T, statement string) string {
	t.Helper()

	return `{"response": "Done.", "steps": [{"instruction": "read", "queries": [` + encode(t, statement) + `]}]}`
}

// step calls an address of the first step of a run.
func (d *filled) step(run, address string) *answer {
	d.t.Helper()

	return call(d.t, http.MethodGet, d.s.url+"/query/runs/"+run+"/steps/0/"+address, d.bearer, "")
}

func (d *filled) stepFile(run, format, media string) string {
	d.t.Helper()

	file := d.step(run, "export?format="+format)
	require.Equal(d.t, http.StatusOK, file.status, file.body)
	require.Equal(d.t, media, file.header.Get("Content-Type"))
	require.Equal(d.t, "attachment; filename=step-0."+format, file.header.Get("Content-Disposition"))

	return file.body
}

// leaf returns all rows of the first step, read in pages of limit rows.
func (d *filled) leaf(run string, limit int) (columns []struct{ Name, Type string }, rows []string) {
	d.t.Helper()

	for cursor := ""; ; {
		got := d.step(run, fmt.Sprintf("rows?limit=%d%s", limit, cursor))
		require.Equal(d.t, http.StatusOK, got.status, got.body)

		var page rawPage

		got.json(d.t, &page)
		require.LessOrEqual(d.t, len(page.Data), limit)
		rows = append(rows, texts(page.Data)...)

		if page.NextCursor == "" {
			return page.Columns, rows
		}

		require.NotEmpty(d.t, page.Data)
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// asQuery returns the result of a statement without a run.
func (d *filled) asQuery(statement string) (columns []struct{ Name, Type string }, rows []string) {
	d.t.Helper()

	got := d.ask(statement, "")
	require.Equal(d.t, http.StatusOK, got.status, got.body)

	var result struct {
		Columns []struct{ Name, Type string }
		Data    []json.RawMessage
	}

	got.json(d.t, &result)

	return result.Columns, texts(result.Data)
}

func texts(rows []json.RawMessage) (list []string) {
	for _, row := range rows {
		list = append(list, string(row))
	}

	return list
}

// stepKinds checks that the values of a step are those of the statement itself, in every format.
func stepKinds(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "kinds", key.token("kinds"))
	statement := everyKind + ` UNION ALL BY NAME SELECT NULL::INTEGER AS i`
	run, _ := d.ran(stepOf(t, statement))

	columns, rows := d.asQuery(statement)
	gotColumns, gotRows := d.leaf(run, 1)
	require.Equal(t, columns, gotColumns)
	require.Equal(t, rows, gotRows)
	require.Len(t, rows, 2)

	bare := strings.ReplaceAll(strings.Join(rows, "\n")+"\n", `,"__metadata":{"score":1}`, "")
	require.Equal(t, bare, d.stepFile(run, "ndjson", "application/x-ndjson"))

	csv := d.ask(statement, "", "Accept: text/csv").body
	csv = strings.ReplaceAll(csv, `{""j"": 1}`, `{""j"":1}`) // the value of JSON is kept, but not its white space
	require.Equal(t, csv, d.stepFile(run, "csv", "text/csv"))
	require.Equal(t, csv, d.step(run, "export").body, "CSV unless another is named")

	types, cells := readParquet(t, d.ask(statement, "", "Accept: application/vnd.apache.parquet").body)
	gotTypes, gotCells := readParquet(t, d.stepFile(run, "parquet", "application/vnd.apache.parquet"))

	for i, c := range columns {
		switch c.Name {
		case "l", "o", "m", "j":
			require.Equal(t, "JSON", gotTypes[i], c.Name)
			require.JSONEq(t, map[string]string{"l": `[1, null]`, "o": `{"a": 1.5}`, "m": `{"k": "v"}`, "j": `{"j": 1}`}[c.Name], fmt.Sprint(gotCells[0][i]))
			require.Nil(t, gotCells[1][i])
		default:
			require.Equal(t, types[i], gotTypes[i], c.Name)
			require.Equal(t, fmt.Sprint(cells[0][i], cells[1][i]), fmt.Sprint(gotCells[0][i], gotCells[1][i]), c.Name)
		}
	}
}

// stepLarge checks rows that are too large for the response and for the database.
// stepShort checks that all rows are stored when they are few bytes but more than an event may have.
func stepShort(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "short", key.token("short"))
	run, _ := d.ran(stepOf(t, "SELECT i FROM range(1500) t(i) ORDER BY i"))

	_, rows := d.leaf(run, 100)
	require.Equal(t, 1500, len(rows)) //nolint:testifylint // a failure would print all rows
	require.Contains(t, rows[1499], `"i":1499`)
}

func stepLarge(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "large", key.token("large"))
	d.named("", "large.csv", exportRows(0, 3000))

	statement := `SELECT id, region, total, day, note, CASE WHEN id % 3 > 0 THEN repeat('<&é ', (id % 100)::INTEGER * 2) END AS filler, [total, NULL] AS pair, {'day': day, 'sum': total * 1.25} AS made FROM orders ORDER BY id`
	run, _ := d.ran(stepOf(t, statement))

	var found asked

	call(t, http.MethodGet, s.url+"/query/runs/"+run, d.bearer, "").json(t, &found)
	require.Equal(t, 3000, found.Result.Steps[0].RowCount)
	require.LessOrEqual(t, len(found.Result.Steps[0].Data), 1000)

	columns, rows := d.asQuery(statement)
	require.Len(t, rows, 3000)
	require.Greater(t, len(strings.Join(rows, "")), 1<<20)
	require.Contains(t, rows[2999], `"__metadata":{"score":1,"source":{"file":"large.csv","row":3000}}`)

	for _, limit := range []int{100, 37} {
		gotColumns, gotRows := d.leaf(run, limit)
		require.Equal(t, columns, gotColumns)
		require.Equal(t, rows, gotRows)
	}

	lines := strings.Split(strings.TrimSuffix(d.stepFile(run, "ndjson", "application/x-ndjson"), "\n"), "\n")
	require.Len(t, lines, 3000)

	for i, row := range rows {
		before, _, _ := strings.Cut(row, `,"__metadata":`)
		require.Equal(t, before+"}", lines[i])
	}

	require.Equal(t, d.ask(statement, "", "Accept: text/csv").body, d.stepFile(run, "csv", "text/csv"))

	_, cells := readParquet(t, d.ask(`FROM (`+statement+`) SELECT id, region, total, day, note, filler`, "", "Accept: application/vnd.apache.parquet").body)
	_, gotCells := readParquet(t, d.stepFile(run, "parquet", "application/vnd.apache.parquet"))
	require.Len(t, gotCells, 3000)

	for i, row := range gotCells {
		require.Equal(t, fmt.Sprint(cells[i]), fmt.Sprint(row[:len(row)-2]))
	}

	require.Equal(t, 1, s.count(`SELECT count(*) FROM run_objects WHERE run_id = $1 AND state = 'kept'`, run), "more than the database takes is in the store")
	d.forge(run)
}

// forge checks that an invented cursor is refused if it does not point to the beginning of a row.
func (d *filled) forge(run string) {
	d.t.Helper()

	cursor := func(place uint64) string {
		return base64.RawURLEncoding.EncodeToString(endian.BigEndian.AppendUint64(nil, place))
	}

	for _, forged := range []string{
		"x", cursor(1), cursor(7), cursor(1 << 20), cursor(1 << 62), cursor(1<<63 + 5), cursor(1<<64 - 1), base64.RawURLEncoding.EncodeToString([]byte(uuid.NewString())),
	} {
		require.Equal(d.t, []string{"cursor"}, requireFault(d.t, forged, d.step(run, "rows?cursor="+forged), 422, "VALIDATION_FAILED"))
	}

	require.Equal(d.t, []string{"limit"}, requireFault(d.t, "too many", d.step(run, "rows?limit=101"), 422, "VALIDATION_FAILED"))
	require.Equal(d.t, []string{"format"}, requireFault(d.t, "another format", d.step(run, "export?format=xml"), 422, "VALIDATION_FAILED"))
}

func stepAccess(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "lender", key.token("lender"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"word": "xylophone"}]}`).status)
	share(t, s, d.bearer, "datasets/"+d.path(), "borrower", "viewer")

	reader := d.by(key.token("borrower"))
	run, _ := reader.ran(stepOf(t, "SELECT word, repeat(word, 10000) AS words FROM orders"))
	addresses := []string{"rows", "export?format=csv", "export?format=ndjson", "export?format=parquet"}
	none := uuid.NewString()
	absent := call(t, http.MethodGet, s.url+"/query/runs/"+none+"/steps/0/rows", reader.bearer, "")
	require.Equal(t, http.StatusNotFound, absent.status)

	looksAbsent := func(who *filled, why string) {
		t.Helper()

		for _, address := range addresses {
			got := who.step(run, address)
			require.Equal(t, http.StatusNotFound, got.status, "%s: %s", why, address)
			require.Equal(t, absent.body, strings.ReplaceAll(got.body, run, none), "%s: %s", why, address)
		}
	}
	looksThere := func(why string) {
		t.Helper()

		for _, address := range addresses {
			require.Equal(t, http.StatusOK, reader.step(run, address).status, "%s: %s", why, address)
		}
	}

	looksThere("the asker")
	looksAbsent(d, "the owner of the data, who did not ask")
	looksAbsent(d.by(key.token("nobody")), "anybody else")

	for _, index := range []string{"1", "-1", "x", "99999999999", "1e0", "00"} {
		got := call(t, http.MethodGet, s.url+"/query/runs/"+run+"/steps/"+index+"/rows", reader.bearer, "")
		require.Equal(t, http.StatusNotFound, got.status, index)
	}

	unshare(t, s, d.bearer, "datasets/"+d.path(), "borrower")
	looksAbsent(reader, "a former viewer")
	share(t, s, d.bearer, "datasets/"+d.path(), "borrower", "viewer")
	looksThere("a viewer again")

	gone := call(t, http.MethodDelete, s.url+"/query/runs/"+run, reader.bearer, "")
	require.Equal(t, http.StatusNoContent, gone.status, gone.body)
	looksAbsent(reader, "the run is deleted")

	run, _ = reader.ran(stepOf(t, "SELECT word, repeat(word, 10000) AS words FROM orders"))
	looksThere("another run")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)
	looksAbsent(reader, "the dataset is deleted")
}

// stepWithoutResult checks that a step can be read as soon as its rows are stored, regardless of how the run ends.
func stepWithoutResult(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "waiter", key.token("waiter"))
	run := d.accept("assistant", `{"steps": [{"instruction": "one", "queries": ["SELECT 1 AS n"]}, {"instruction": "wait"}], "pause": 3000}`)

	await(t, "the first step is there", func() bool {
		got := d.step(run.RunID, "rows")
		require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, got.status, got.body)

		return got.status == http.StatusOK
	})

	require.Equal(t, http.StatusOK, call(t, http.MethodPost, s.url+"/query/runs/"+run.RunID+"/cancel", d.bearer, "").status)

	_, rows := d.leaf(run.RunID, 25)
	require.Equal(t, []string{`{"n":1,"__metadata":{"score":1}}`}, rows)
	require.Equal(t, "n\n1\n", d.stepFile(run.RunID, "csv", "text/csv"))

	empty, _ := d.ran(stepOf(t, "SELECT 1 AS n, DATE '2026-01-01' AS day WHERE false"))
	columns, rows := d.leaf(empty, 25)
	require.Equal(t, []struct{ Name, Type string }{{"n", "integer"}, {"day", "date"}}, columns)
	require.Empty(t, rows)
	require.Equal(t, "n,day\n", d.stepFile(empty, "csv", "text/csv"))
	require.Empty(t, d.stepFile(empty, "ndjson", "application/x-ndjson"))

	types, cells := readParquet(t, d.stepFile(empty, "parquet", "application/vnd.apache.parquet"))
	require.Equal(t, []string{"int32", "date32"}, types)
	require.Empty(t, cells)
}
