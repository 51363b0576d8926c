package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// TestRoundTrip checks that loaded rows can be previewed, exported in each format, and loaded again without a change.
func TestRoundTrip(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"exported and loaded again":    exportAgain,
		"a preview, page by page":      previewPages,
		"a preview of some columns":    previewColumns,
		"a result in each form":        resultForms,
		"a result that is cut":         resultCut,
		"exports and previews refused": exportRefused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

// hardTexts returns texts that a text format can lose.
func hardTexts() []string {
	return []string{
		"", " ", " around ", "a,b;c|d\te", `"`, `""`, `say "hi"`, "'single'", "line\nbreak", "line\r\nbreak", "end\n", `back\slash\n`, "NULL", "null", "N/A", "-",
		"007", "-12.50", "1e5", "12345678901234567890", "2026-01-01", "10:11", "2026-01-01 10:11:12", "true", "NaN", "=1+1", "#", "é", "e\u0301", "\u2028", "\ufeffmark", "😀", "{\"a\": 1}", "[",
	}
}

// newHard creates a dataset with a column of each type, from two files and a post.
func newHard(t *testing.T, s *service, key *signer, owner string) *filled {
	t.Helper()

	d := newFilled(t, s, owner, key.token(owner))
	d.named("", "kinds.parquet", kindsFile(t))

	var rows []map[string]any
	for i, text := range hardTexts() {
		rows = append(rows, map[string]any{"n": 100 + i, "text": text})
	}

	content, err := json.Marshal(rows)
	require.NoError(t, err)

	d.named("", "texts.parquet", arrowRows(t, []arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String}}, string(content)))
	d.stored(`{"data": [
		{"n": 200, "flag": true, "big": -9223372036854775807, "real": 0.1, "money": 0.0000001, "whole": 12, "day": "2026-11-15", "at": "2026-11-15T10:11:12.131415", "clock": "00:00:00.000001", "text": "posted", "list": {"a": ["x", null, 1.5]}},
		{"n": 201, "real": -1e-300, "list": [[], {}]}
	]}`)

	return d
}

// texts returns the rows as texts, which can be compared even if they contain NaN.
func (c tableContents) texts() (rows []string) {
	for _, row := range c.rows {
		rows = append(rows, fmt.Sprintf("%#v", row))
	}

	slices.Sort(rows)

	return rows
}

func (d *filled) exported(format string) *answer {
	d.t.Helper()

	answer := d.call(http.MethodGet, "/export?format="+format, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	require.Equal(d.t, "attachment; filename=orders."+format, answer.header.Get("Content-Disposition"))

	return answer
}

func exportAgain(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newHard(t, s, key, "traveller")
	want := d.table()
	require.Equal(t, []tableColumn{
		{"n", "bigint"},
		{"flag", "boolean"},
		{"big", "bigint"},
		{"real", "double"},
		{"money", "decimal(38,10)"},
		{"whole", "decimal(20,0)"},
		{"day", "date"},
		{"at", "timestamp"},
		{"clock", "time"},
		{"text", "varchar"},
		{"list", "json"},
	}, want.columns)
	require.Len(t, want.rows, 5+len(hardTexts())+2)

	types := map[string]string{}
	for _, column := range want.columns {
		types[column.name] = column.kind
	}

	given, err := json.Marshal(types)
	require.NoError(t, err)

	for format, c := range map[string]struct{ media, options string }{
		"parquet": {"application/vnd.apache.parquet", `{}`},
		"csv":     {"text/csv", fmt.Sprintf(`{"header": true, "types": %s}`, given)},
		"ndjson":  {"application/x-ndjson", fmt.Sprintf(`{"types": %s}`, given)},
	} {
		exported := d.exported(format)
		require.Equal(t, c.media, exported.header.Get("Content-Type"))

		if format == "parquet" {
			columns, rows := readParquet(t, exported.body)
			require.Equal(t, []string{"int64", "bool", "int64", "float64", "decimal(38, 10)", "decimal(20, 0)", "date32", "timestamp[us]", "time64[us]", "utf8", "JSON"}, columns)
			require.Equal(t, want.texts(), tableContents{rows: rows}.texts(), "Parquet has the rows")
		}

		again := newFilled(t, s, d.owner, d.bearer)
		done := again.named(`"options": `+c.options, "again."+format, exported.body)
		require.Empty(t, done.SetAside, format)

		got := again.table()
		require.Equal(t, want.columns, got.columns, format)
		require.Equal(t, want.texts(), got.texts(), format)
	}

	require.Equal(t, d.exported("csv").body, d.call(http.MethodGet, "/export", "").body, "CSV unless another is named")
}

// readParquet returns the types and the rows of a file.
func readParquet(t *testing.T, content string) (types []string, rows [][]any) {
	t.Helper()

	opened, err := file.NewParquetReader(strings.NewReader(content))
	require.NoError(t, err)

	reader, err := pqarrow.NewFileReader(opened, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)

	table, err := reader.ReadTable(t.Context())
	require.NoError(t, err)

	defer table.Release()

	for i, field := range table.Schema().Fields() {
		types = append(types, arrowType(field))

		if opened.MetaData().Schema.Root().Field(i).LogicalType().String() == "JSON" {
			types[i] = "JSON"
		}
	}

	rows = make([][]any, table.NumRows())

	for column := range int(table.NumCols()) {
		row := 0

		for _, chunk := range table.Column(column).Data().Chunks() {
			for i := range chunk.Len() {
				rows[row] = append(rows[row], cell(chunk, i))
				row++
			}
		}
	}

	return types, rows
}

// cell is valueOf that also supports bytes.
func cell(values arrow.Array, row int) any {
	if bytes, isBinary := values.(*array.Binary); isBinary && bytes.IsValid(row) {
		return string(bytes.Value(row))
	}

	return valueOf(values, row)
}

// arrowType returns the name of a type as it is stored.
func arrowType(field arrow.Field) string {
	if extension, isExtension := field.Type.(arrow.ExtensionType); isExtension {
		return extension.StorageType().String()
	}

	if stamp, isStamp := field.Type.(*arrow.TimestampType); isStamp && stamp.TimeZone == "" {
		return "timestamp[" + stamp.Unit.String() + "]"
	}

	return field.Type.String()
}

// rawPage is one response of GET …/rows.
type rawPage struct {
	Columns    []struct{ Name, Type string }
	Data       []json.RawMessage
	NextCursor string
}

func (d *filled) page(query string) (page rawPage) {
	d.t.Helper()

	answer := d.call(http.MethodGet, "/rows?"+query, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &page)

	return page
}

func previewPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newHard(t, s, key, "leafer")

	var whole rawPage
	d.ask("FROM orders", "").json(t, &whole)
	require.Len(t, whole.Data, 5+len(hardTexts())+2)

	for _, limit := range []int{1, 7, 25, 100} {
		if limit == 1 && loops(10) == 1 {
			continue // this takes one request for each row
		}

		var (
			rows   []json.RawMessage
			cursor string
		)

		for {
			page := d.page(fmt.Sprintf("limit=%d%s", limit, cursor))
			require.LessOrEqual(t, len(page.Data), limit)
			require.Len(t, page.Columns, 11)

			rows = append(rows, page.Data...)

			if page.NextCursor == "" {
				break
			}

			cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
		}

		require.Equal(t, data(t, whole), data(t, rawPage{Data: rows}), "by %d: rows and where they come from, in their order", limit)
	}

	// Changes meanwhile do not affect a client that has begun to read.
	first := d.page("limit=30")
	d.stored(`{"data": [{"n": 300}]}`)

	second := d.page("limit=30&cursor=" + url.QueryEscape(first.NextCursor))
	require.Equal(t, data(t, whole), data(t, rawPage{Data: slices.Concat(first.Data, second.Data)}))
	require.Empty(t, second.NextCursor)

	d.named(`"mode": "replace"`, "new.csv", "n,other\n1,2\n")
	second = d.page("limit=30&cursor=" + url.QueryEscape(first.NextCursor))
	require.Equal(t, data(t, whole), data(t, rawPage{Data: slices.Concat(first.Data, second.Data)}))

	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	second = d.page("limit=30&cursor=" + url.QueryEscape(first.NextCursor))
	require.Equal(t, data(t, whole), data(t, rawPage{Data: slices.Concat(first.Data, second.Data)}))

	fresh := d.page("")
	require.Empty(t, fresh.Data)
	require.Empty(t, fresh.NextCursor)
	require.Len(t, fresh.Columns, 2, "an empty dataset has its columns")
}

func previewColumns(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "picker", key.token("picker"))
	d.named("", "a.csv", "id,name,more text\n1,a,x\n2,b,y\n")
	d.named("", "b.csv", "id,name,more text\n3,c,z\n")

	answer := d.call(http.MethodGet, "/rows?limit=2&columns=NAME,id", "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var page rawPage
	answer.json(t, &page)
	require.JSONEq(t, `[{"name": "a", "id": 1, "__metadata": {"score": 1, "source": {"file": "a.csv", "row": 1}}}, {"name": "b", "id": 2, "__metadata": {"score": 1, "source": {"file": "a.csv", "row": 2}}}]`, data(t, page))
	require.Equal(t, []struct{ Name, Type string }{{"name", "varchar"}, {"id", "bigint"}}, page.Columns)

	page = d.page("limit=2&columns=" + url.QueryEscape("more text") + "&cursor=" + url.QueryEscape(page.NextCursor))
	require.JSONEq(t, `[{"more text": "z", "__metadata": {"score": 1, "source": {"file": "b.csv", "row": 1}}}]`, data(t, page))
	require.Empty(t, page.NextCursor)

	require.Equal(t, []string{"columns"}, requireFault(t, "an unknown column", d.call(http.MethodGet, "/rows?columns=id,nam", ""), 422, "VALIDATION_FAILED"))
	require.Equal(t, []string{"limit"}, requireFault(t, "no rows", d.call(http.MethodGet, "/rows?limit=0", ""), 422, "VALIDATION_FAILED"))
	require.Equal(t, []string{"limit"}, requireFault(t, "too many", d.call(http.MethodGet, "/rows?limit=10001", ""), 422, "VALIDATION_FAILED"))
	require.Equal(t, []string{"cursor"}, requireFault(t, "no cursor of ours", d.call(http.MethodGet, "/rows?cursor=x", ""), 422, "VALIDATION_FAILED"))
}

func data(t *testing.T, page rawPage) string {
	t.Helper()

	text, err := json.Marshal(page.Data)
	require.NoError(t, err)

	return string(text)
}

const everyKind = `SELECT 1::INTEGER AS i, 9007199254740993 AS b, sum(2::BIGINT) AS h, 1.50::DECIMAL(10, 2) AS d, 'nan'::DOUBLE AS f, true AS t, 'a "b", c' AS s, '' AS e, NULL::VARCHAR AS n,
	DATE '2026-11-15' AS day, TIMESTAMP '2026-11-15 10:11:12.5' AS at, TIMESTAMPTZ '2026-11-15 10:11:12+02' AS z, TIME '10:11:12' AS c, INTERVAL 3 DAY AS v, 'abc'::BLOB AS x,
	[1, NULL] AS l, {'a': 1.5::DOUBLE} AS o, MAP {'k': 'v'} AS m, '{"j": 1}'::JSON AS j, '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID AS u`

func resultForms(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "former", key.token("former"))
	d.named("", "a.csv", "id,name\n1,a\n2,b\n")

	csv := d.ask(everyKind, "", "Accept: text/csv")
	requireResult(t, csv, "text/csv", 1)
	require.Equal(t, "i,b,h,d,f,t,s,e,n,day,at,z,c,v,x,l,o,m,j,u\n"+
		`1,9007199254740993,2,1.50,NaN,true,"a ""b"", c","",,2026-11-15,2026-11-15 10:11:12.5,2026-11-15 08:11:12+00,10:11:12,3 days,YWJj,"[1,null]","{""a"":1.5}","{""k"":""v""}","{""j"": 1}",6ba7b810-9dad-11d1-80b4-00c04fd430c8`+"\n", csv.body)

	wantTypes := []string{
		"int32", "int64", "decimal(38, 0)", "decimal(10, 2)", "float64", "bool", "utf8", "utf8", "utf8", "date32", "timestamp[us]", "timestamp[us, tz=UTC]", "time64[us]", "utf8", "binary",
	}

	parquet := d.ask(everyKind, "", "Accept: application/vnd.apache.parquet")
	requireResult(t, parquet, "application/vnd.apache.parquet", 1)

	types, rows := readParquet(t, parquet.body)
	require.Equal(t, wantTypes, types[:len(wantTypes)])
	require.Equal(t, "JSON", types[18])

	types[18] = "utf8" // Arrow stores JSON as text

	stream := d.ask(everyKind, "", "Accept: application/vnd.apache.arrow.stream")
	requireResult(t, stream, "application/vnd.apache.arrow.stream", 1)

	streamed, arrowRows := readArrow(t, stream.body)
	require.Equal(t, types, streamed)
	require.Equal(t, fmt.Sprint(rows), fmt.Sprint(arrowRows))
	require.Equal(t, "[1 9007199254740993 2 1.50 NaN true a \"b\", c  <nil> 2026-11-15 2026-11-15 10:11:12.500000 2026-11-15 08:11:12.000000 10:11:12.000000 3 days abc", strings.TrimSuffix(fmt.Sprint(rows[0][:15]), "]"))

	// Rows of a dataset, with their snapshot.
	for _, accept := range []string{"text/csv", "text/csv;q=0.9, application/json;q=0.1", "text/*", "image/png, text/csv"} {
		answer := d.ask("FROM orders ORDER BY id", "", "Accept: "+accept)
		info := requireResult(t, answer, "text/csv", 2)
		require.Equal(t, "id,name\n1,a\n2,b\n", answer.body, "without __metadata")
		require.Equal(t, []readSnapshot{{d.path(), d.describe().SnapshotID}}, info.Snapshots)
	}

	for _, accept := range []string{"", "*/*", "application/json", "application/*", "text/csv;q=0, */*"} {
		answer := d.ask("SELECT 1 AS n", "", "Accept: "+accept)
		require.Equal(t, http.StatusOK, answer.status)
		require.NotEqual(t, "text/csv", answer.header.Get("Content-Type"), accept)
		require.Empty(t, answer.header.Get("X-Quern-Result"), "JSON has it in the body")
	}

	for _, accept := range []string{"image/png", "application/x-ndjson", "text/html", "text/csv;q=0", "nonsense"} {
		answer := d.ask("SELECT 1 AS n", "", "Accept: "+accept)
		require.Equal(t, http.StatusNotAcceptable, answer.status, accept)
		require.JSONEq(t, plainFault("NOT_ACCEPTABLE", "Accept allows none of the formats of rows. Set it to application/json, application/vnd.apache.arrow.stream, text/csv or application/vnd.apache.parquet, or leave it out for JSON."), answer.body)
	}

	// An error is always JSON.
	refused := d.ask("SELECT nam FROM orders", "", "Accept: text/csv")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Equal(t, "application/json", refused.header.Get("Content-Type"))

	// A result without rows still has columns.
	require.Equal(t, "id,name\n", d.ask("FROM orders WHERE false", "", "Accept: text/csv").body)

	types, rows = readArrow(t, d.ask("FROM orders WHERE false", "", "Accept: application/vnd.apache.arrow.stream").body)
	require.Equal(t, []string{"int64", "utf8"}, types)
	require.Empty(t, rows)
}

type readSnapshot struct{ Dataset, SnapshotID string }

// resultInfo is the header of a result that is a file.
type resultInfo struct {
	Count       int
	Truncated   bool
	TruncatedBy string
	Snapshots   []readSnapshot
}

func requireResult(t *testing.T, answer *answer, media string, count int) (info resultInfo) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, media, answer.header.Get("Content-Type"))
	require.Equal(t, strconv.Itoa(len(answer.body)), answer.header.Get("Content-Length"))
	require.NoError(t, json.Unmarshal([]byte(answer.header.Get("X-Quern-Result")), &info))
	require.Equal(t, count, info.Count)

	return info
}

// readArrow returns the types and the rows of a stream.
func readArrow(t *testing.T, content string) (types []string, rows [][]any) {
	t.Helper()

	reader, err := ipc.NewReader(bytes.NewReader([]byte(content)))
	require.NoError(t, err)

	defer reader.Release()

	for _, field := range reader.Schema().Fields() {
		types = append(types, arrowType(field))
	}

	for reader.Next() {
		batch := reader.RecordBatch()

		for row := range int(batch.NumRows()) {
			values := make([]any, batch.NumCols())
			for column := range values {
				values[column] = cell(batch.Column(column), row)
			}

			rows = append(rows, values)
		}
	}

	require.NoError(t, reader.Err())

	return types, rows
}

func exportRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "nobody", key.token("nobody"))
	empty := d.call(http.MethodGet, "/export?format=csv", "")
	require.Equal(t, http.StatusUnprocessableEntity, empty.status)
	require.JSONEq(t, plainFault("INVALID_STATE", "The dataset has no rows yet."), empty.body)
	require.Empty(t, d.page("").Data)

	require.Equal(t, []string{"format"}, requireFault(t, "no such form", d.call(http.MethodGet, "/export?format=xlsx", ""), 422, "VALIDATION_FAILED"))

	for _, address := range []string{"/rows", "/export"} {
		requireFault(t, "no such dataset", call(t, http.MethodGet, d.url()+"-too"+address, d.bearer, ""), 404, "NOT_FOUND")
		requireFault(t, "another's", call(t, http.MethodGet, d.url()+address, key.token("else"), ""), 404, "NOT_FOUND")
	}

	// A cleared dataset has columns and no rows.
	d.stored(`{"data": [{"n": 1, "text": "a"}]}`)
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	require.Equal(t, "n,text\n", d.exported("csv").body)
	require.Empty(t, d.exported("ndjson").body)

	types, rows := readParquet(t, d.exported("parquet").body)
	require.Equal(t, []string{"int64", "utf8"}, types)
	require.Empty(t, rows)
}
