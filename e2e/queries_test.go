package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// TestQueries runs the statements of testdata/queries and compares the results with the files. A file has entries of this form:
//
//	== what the entry shows
//	> further members of the request, {2} is the time after snapshot 2 of the dataset history
//	the statement
//	----
//	the columns, the rows, and the number of rows with their datasets; or the status and the body
func TestQueries(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_QUERY_DEFAULT_ROWS=20", "QUERN_QUERY_MAX_ROWS=40", "QUERN_QUERY_MAX_BYTES=8KiB", "QUERN_QUERY_MAX_PER_USER=100", "QUERN_QUERY_WAIT_TIMEOUT=1m")
	key := s.newKey()
	shop := newShop(t, s, key)

	groups, err := filepath.Glob("testdata/queries/*.txt")
	require.NoError(t, err)

	for _, group := range groups {
		t.Run(strings.TrimSuffix(filepath.Base(group), ".txt"), func(t *testing.T) {
			t.Parallel()
			shop.play(t, group)
		})
	}
}

// shop is the data of the statements.
type shop struct {
	filled

	moments map[string]string // times by placeholder in requests
	labels  map[string]string // labels by snapshot id
}

const divider = "----\n"

// play runs the statements of a file.
func (d *shop) play(t *testing.T, path string) {
	t.Helper()

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	head, rest, _ := strings.Cut(string(content), "\n== ")
	written := []string{strings.TrimRight(head, "\n") + "\n"}

	for part := range strings.SplitSeq(rest, "\n== ") {
		question, want, _ := strings.Cut(strings.TrimRight(part, "\n")+"\n", divider)
		title, statement, _ := strings.Cut(question, "\n")
		more := ""

		if after, found := strings.CutPrefix(statement, "> "); found {
			more, statement, _ = strings.Cut(after, "\n")
		}

		got := d.answer(t, title, strings.TrimRight(statement, "\n"), more, strings.HasPrefix(filepath.Base(path), "metadata"))
		written = append(written, "\n== ", strings.TrimRight(question, "\n"), "\n", divider, got)

		if !*update {
			require.Equal(t, want, got, "%s: %s", title, statement)
		}
	}

	if *update {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(written, "")), 0o600))
	}
}

var score = regexp.MustCompile(`,?"__metadata":\{"score":1(,"source":\{"file":"[^"]*","row":\d+\})?\}\}$`)

// answer sends a statement and returns its result as text.
func (d *shop) answer(t *testing.T, title, statement, more string, marked bool) string {
	t.Helper()

	for moment, value := range d.moments {
		more = strings.ReplaceAll(more, "{"+moment+"}", value)
	}

	if more != "" {
		more = ", " + more
	}

	encoded, err := json.Marshal(statement)
	require.NoError(t, err)

	body := fmt.Sprintf(`"query": %s%s}`, encoded, more)
	for _, member := range []string{`"username": "ada"`, `"namespace": "shop"`} {
		if name, _, _ := strings.Cut(member, ":"); !strings.Contains(more, name+":") {
			body = member + ", " + body
		}
	}

	answer := call(t, http.MethodPost, d.s.url+"/query", d.bearer, "{"+body)
	if answer.status != http.StatusOK {
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, []byte(strings.TrimSpace(answer.body)), "", "  "), answer.body)

		return strconv.Itoa(answer.status) + "\n" + indented.String() + "\n"
	}

	return d.show(t, title, statement, answer, marked)
}

func (d *shop) show(t *testing.T, title, statement string, answer *answer, marked bool) string {
	t.Helper()

	var result struct {
		Columns  []struct{ Name, Type string }
		Data     []json.RawMessage
		Metadata struct {
			Count                              int
			Truncated                          bool
			TruncatedBy, ExecutedQuery, Engine string
			Snapshots                          []struct{ Dataset, SnapshotID string }
		}
	}

	answer.json(t, &result)
	require.Equal(t, statement, result.Metadata.ExecutedQuery, title)
	require.Equal(t, "duckdb", result.Metadata.Engine)
	require.Equal(t, len(result.Data), result.Metadata.Count, title)
	require.Equal(t, result.Metadata.TruncatedBy != "", result.Metadata.Truncated)

	var shown strings.Builder

	for i, column := range result.Columns {
		fmt.Fprintf(&shown, "%s%s %s", strings.Repeat(", ", min(i, 1)), column.Name, column.Type)
	}

	shown.WriteString("\n")

	for _, row := range result.Data {
		require.Regexp(t, score, string(row), title)

		if !marked {
			row = score.ReplaceAll(row, []byte("}"))
		}

		shown.Write(append(row, '\n'))
	}

	fmt.Fprintf(&shown, "%d rows", result.Metadata.Count)

	if result.Metadata.Truncated {
		fmt.Fprintf(&shown, ", truncated by %s", result.Metadata.TruncatedBy)
	}

	for i, read := range result.Metadata.Snapshots {
		fmt.Fprintf(&shown, "%s%s%s", []string{" of ", ", "}[min(i, 1)], read.Dataset, d.labels[read.SnapshotID])
	}

	return shown.String() + "\n"
}

// newShop creates the datasets of ada, and those of bob, who shares one of his.
func newShop(t *testing.T, s *service, key *signer) *shop {
	t.Helper()

	d := &shop{filled: filled{t, s, key.token("ada"), "ada", "shop", ""}, moments: map[string]string{}, labels: map[string]string{}}

	d.dataset("ada/shop/customers").named(`"options": {"types": {"credit": "decimal(10,2)"}}`, "customers.csv", customersFile)

	orders := d.dataset("ada/shop/orders")
	orders.named(`"options": {"types": {"total": "decimal(10,2)", "note": "varchar"}}`, "jan.csv", januaryFile, "feb.csv", februaryFile)
	d.moments["february"] = orders.committed()[0]
	done := orders.named(`"options": {"types": {"total": "decimal(14,2)"}}`, "mar.csv", marchFile)
	require.EqualValues(t, 1, done.Progress.RowsSetAside)
	orders.stored(`{"data": [{"id": 11, "customer": 5, "region": "west", "total": 1.10, "placed": "2026-04-01T00:00:00", "channel": "app"}]}`)

	d.dataset("ada/shop/products").named("", "products.ndjson", productsFile)
	d.dataset("ada/shop/kinds").named("", "kinds.parquet", kindsFile(t))
	d.dataset("ada/shop/Mixed.Case-Set").named("", "mixed.csv", "Größe,select,with space\n1,a,b\n")
	d.dataset("ada/shop/empty")
	d.dataset("ada/ware/stock").named("", "stock.csv", "sku,place,qty\nA-1,Wien,4\nA-1,Graz,6\nA-2,Wien,0\nC-9,Linz,3\n")

	cleared := d.dataset("ada/shop/cleared")
	cleared.stored(`{"data": [{"n": 1, "text": "a"}]}`)
	require.Equal(t, http.StatusOK, cleared.call(http.MethodPost, "/clear", "").status)

	d.history()

	bob := &shop{filled: filled{t, s, key.token("bob"), "bob", "sales", ""}}
	bob.dataset("bob/sales/targets").named("", "targets.csv", "region,year,target\nnorth,2026,100\nsouth,2026,200\neast,2026,50.5\nnorth,2025,80\n")
	bob.dataset("bob/sales/hidden").stored(`{"data": [{"secret": 1}]}`)
	bob.dataset("bob/private/targets").stored(`{"data": [{"secret": 2}]}`)
	share(t, s, bob.bearer, "datasets/bob/sales/targets", "ada", "viewer")

	return d
}

const (
	//nolint:gosmopolitan // people have names in every script
	customersFile = `id,name,country,joined,vip,credit
1,Ada Lovelace,GB,2024-02-29,true,1000.50
2,Björn Ångström,SE,2024-12-31,false,
3,"O'Neil, ""Tip""",US,2025-03-30,true,0.00
4,李小龍,CN,2025-10-26,,250.25
5,Zoë,,2026-01-01,false,-12.75
`
	januaryFile = `id,customer,region,total,placed,note
1,1,north,19.90,2026-01-05 09:30:00,first
2,2,south,5.00,2026-01-06 23:59:59.5,
3,1,north,oops,2026-01-07 00:00:00,does not fit
4,3,east,100.00,2026-01-31 12:00:00,"a ""quoted"", note"
`
	februaryFile = `id,customer,region,total,placed,note
5,4,west,7.25,2026-02-01 00:00:00,x
6,9,north,0.01,2026-02-14 10:10:10.123456,no such customer
7,2,,12.00,2026-02-28 23:00:00,
`
	marchFile = `id,customer,region,total,placed,note,channel
8,1,south,123456789012.34,2026-03-29 01:30:00,big,web
nine,1,south,1.00,2026-03-29 02:30:00,does not fit,web
10,3,east,-50.00,2026-03-29 03:30:00,refund,shop
`
	productsFile = `{"sku": "A-1", "price": 9.99, "stock": 10, "attributes": {"color": "red", "size": {"w": 2, "h": 3}, "tags": ["new", "sale"]}, "released": "2025-06-01"}
{"sku": "A-2", "price": 0.1, "stock": 9007199254740993, "attributes": {"color": "blue", "tags": []}, "released": "2025-06-02"}
{"sku": "B-1", "price": 1e300, "stock": -9007199254740993, "attributes": null, "released": null}
{"sku": "B-2", "price": null, "stock": null, "attributes": {"color": null, "size": {"w": 0.5, "h": 1e3}}, "released": "2024-12-31"}
`
)

// kindsFile returns a file with extreme values of each type.
func kindsFile(t *testing.T) string {
	t.Helper()

	return arrowRows(t, []arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "big", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "real", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "money", Type: &arrow.Decimal128Type{Precision: 38, Scale: 10}, Nullable: true},
		{Name: "whole", Type: &arrow.Decimal128Type{Precision: 20}, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
		{Name: "clock", Type: arrow.FixedWidthTypes.Time64us, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	}, `[
		{"n": 1, "flag": true, "big": "9223372036854775807", "real": "NaN", "money": "1234567890123456789012345678.0123456789", "whole": "99999999999999999999",
			"day": "0001-01-01", "at": "0001-01-01 00:00:00", "clock": "00:00:00", "text": "", "list": [1, null]},
		{"n": 2, "flag": false, "big": "9223372036854775806", "real": "+Inf", "money": "-0.0000000001", "whole": "-1",
			"day": "9999-12-31", "at": "9999-12-31 23:59:59.999999", "clock": "23:59:59.999999", "text": "a\nb\t\"c\"", "list": []},
		{"n": 3, "flag": null, "big": null, "real": null, "money": null, "whole": null, "day": null, "at": null, "clock": null, "text": null, "list": null},
		{"n": 4, "flag": true, "big": "-1", "real": "-Inf", "money": "0.1", "whole": "0", "day": "1970-01-01", "at": "2026-11-15 10:11:12.5", "clock": "12:30:00", "text": "007", "list": [9007199254740993]},
		{"n": 5, "flag": false, "big": "9007199254740993", "real": "5e-324", "money": "12345.6789", "whole": "9007199254740993", "day": "2024-02-29", "at": "1969-12-31 23:59:59", "clock": "01:02:03.04", "text": "ü😀", "list": [1]}
	]`)
}

// arrowRows returns a Parquet file with rows given as JSON.
func arrowRows(t *testing.T, fields []arrow.Field, rows string) string {
	t.Helper()

	schema := arrow.NewSchema(fields, nil)

	record, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	require.NoError(t, err)

	defer record.Release()

	var file bytes.Buffer

	writer, err := pqarrow.NewFileWriter(schema, &file, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, writer.Write(record))
	require.NoError(t, writer.Close())

	return file.String()
}

// history creates a dataset with five snapshots.
func (d *shop) history() {
	d.t.Helper()

	d.moments["0"] = time.Now().UTC().Format(time.RFC3339Nano)

	h := d.dataset("ada/shop/history")
	h.stored(`{"data": [{"n": 1}]}`)
	h.stored(`{"data": [{"n": 2, "later": "x"}]}`)
	h.named(`"mode": "replace"`, "other.csv", "n,other\n3,true\n")
	require.Equal(d.t, http.StatusOK, h.call(http.MethodPost, "/clear", "").status)

	restored := h.call(http.MethodPost, "/snapshots/"+h.snapshots()[2].SnapshotID+"/restore", "")
	require.Equal(d.t, http.StatusOK, restored.status, restored.body)

	list, moments := h.snapshots(), h.committed()
	require.Len(d.t, list, 5)

	for i := range list {
		number := len(list) - i
		d.moments[strconv.Itoa(number)] = moments[i]
		d.labels[list[i].SnapshotID] = fmt.Sprintf(" (%d)", number)
	}
}

// committed returns the times of the snapshots, newest first.
func (d *filled) committed() (moments []string) {
	d.t.Helper()

	var list struct {
		Data []struct{ CommittedAt string }
	}

	d.call(http.MethodGet, "/snapshots", "").json(d.t, &list)

	for _, made := range list.Data {
		moments = append(moments, made.CommittedAt)
	}

	return moments
}

// dataset creates an empty dataset of the shop's owner.
func (d *shop) dataset(path string) *filled {
	d.t.Helper()

	parts := strings.Split(path, "/")
	answer := call(d.t, http.MethodPost, d.s.url+"/ingest/new/"+parts[1]+"/"+parts[2], d.bearer, "")
	require.Equal(d.t, http.StatusCreated, answer.status, answer.body)

	return &filled{d.t, d.s, d.bearer, parts[0], parts[1], parts[2]}
}

func (d *filled) stored(body string) {
	d.t.Helper()

	answer := d.post(body)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
}

// named is loaded for files with names. files alternates names and contents.
func (d *filled) named(more string, files ...string) ingestion {
	d.t.Helper()

	var wanted []string
	for file := range slices.Chunk(files, 2) {
		wanted = append(wanted, fmt.Sprintf(`{"filename": %q, "size": %d}`, file[0], len(file[1])))
	}

	answer := call(d.t, http.MethodPost, d.s.url+"/file-upload/prepare", d.bearer, `{"filesToUpload": [`+strings.Join(wanted, ", ")+`]}`)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	var session prepared
	answer.json(d.t, &session)

	for i := range session.Files {
		require.Equal(d.t, http.StatusOK, put(d.t, session.Files[i].PresignedURLs[0].URL, files[2*i+1]).status)

		answer := session.finish(d.t, d.s, d.bearer, i)
		require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	}

	done := d.wait(d.accepted(d.create(session.SessionID, more)).ID)
	require.Equal(d.t, "completed", done.Status, "%+v", done.Error)

	return done
}
