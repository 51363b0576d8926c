package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// tableStep changes a table, by a post of rows or by an ingestion of files, and has the expected contents after it.
type tableStep struct {
	rows    string   // the body of a post, or
	files   []string // the files of an ingestion with
	options string   // the rest of its body
	want    tableContents
}

// tableStories returns the steps of three tables: appended rows of every type; columns that are added, missing and widened; and
// replaced rows.
func tableStories() map[string][]tableStep {
	return map[string][]tableStep{"appended": appendedTable(), "evolved": evolvedTable(), "replaced": replacedTable()}
}

func appendedTable() []tableStep {
	columns := []tableColumn{
		{"id", "bigint"},
		{"code", "varchar"},
		{"open", "boolean"},
		{"share", "double"},
		{"price", "decimal(9,2)"},
		{"day", "date"},
		{"at", "timestamp"},
		{"opens", "time"},
		{"more", "json"},
	}
	rows := [][]any{
		{int64(1), "007", true, 0.25, "12.50", "2026-11-15", "2026-11-15 10:11:12.500000", "08:30:00.000000", `{"a":[1,2]}`},
		{int64(-9007199254740993), "it's ä", false, -4096.125, "-0.05", "1899-12-31", "1899-12-31 23:59:59.000001", "23:59:59.999999", `[]`},
		{int64(3), nil, nil, nil, nil, nil, nil, nil, nil},
		{int64(4), "008", true, 1024.5, "9999999.99", "2000-02-29", "2000-02-29 00:00:00.000000", "00:00:00.000000", nil},
		{int64(4), "008", true, 1024.5, "9999999.99", "2000-02-29", "2000-02-29 00:00:00.000000", "00:00:00.000000", nil},
		{int64(5), "009", nil, 0.5, "1.00", nil, nil, nil, `{"b":null}`},
	}

	const first = `{"id":1,"code":"007","open":true,"share":0.25,"price":12.5,"day":"2026-11-15","at":"2026-11-15T10:11:12.5","opens":"08:30:00","more":{"a":[1,2]}}
{"id":-9007199254740993,"code":"it's ä","open":false,"share":-4096.125,"price":-0.05,"day":"1899-12-31","at":"1899-12-31T23:59:59.000001","opens":"23:59:59.999999","more":[]}
`

	return []tableStep{
		{
			files: []string{first}, options: `"options": {"types": {"price": "decimal(9,2)", "opens": "time"}}`,
			want: tableContents{columns, rows[:2]},
		},
		{
			rows: `{"data": [{"id": 3}]}`,
			want: tableContents{columns, rows[:3]},
		},
		{
			files: []string{
				"id,code,open,share,price,day,at,opens\n4,008,true,1024.5,9999999.99,2000-02-29,2000-02-29 00:00:00,00:00:00\n",
				"day,at,opens,id,code,open,share,price\n2000-02-29,2000-02-29 00:00:00,00:00:00,4,008,true,1024.5,9999999.99\n",
			},
			want: tableContents{columns, rows[:5]},
		},
		{
			rows: `{"data": [{"more": {"b": null}, "price": 1, "share": 0.5, "code": "009", "id": 5}]}`,
			want: tableContents{columns, rows},
		},
	}
}

func evolvedTable() []tableStep {
	id, page := tableColumn{"id", "bigint"}, tableColumn{"page", "varchar"}
	narrow, wide := tableColumn{"paid", "decimal(5,2)"}, tableColumn{"paid", "decimal(9,2)"}
	tags := tableColumn{"tags", "json"}

	return []tableStep{
		{
			rows: `{"data": [{"id": 1, "page": "/"}]}`,
			want: tableContents{[]tableColumn{id, page}, [][]any{{int64(1), "/"}}},
		},
		{ // adds a column
			files: []string{"id,page,paid\n2,/a,1.25\n"}, options: `"options": {"types": {"paid": "decimal(5,2)"}}`,
			want: tableContents{[]tableColumn{id, page, narrow}, [][]any{{int64(1), "/", nil}, {int64(2), "/a", "1.25"}}},
		},
		{ // omits a column and adds another one
			rows: `{"data": [{"id": 3, "tags": ["x"]}]}`,
			want: tableContents{[]tableColumn{id, page, narrow, tags}, [][]any{
				{int64(1), "/", nil, nil}, {int64(2), "/a", "1.25", nil}, {int64(3), nil, nil, `["x"]`},
			}},
		},
		{ // widens a column, also for values in older files
			files: []string{"id,paid\n4,1234567.75\n"}, options: `"options": {"types": {"paid": "decimal(9,2)"}}`,
			want: tableContents{[]tableColumn{id, page, wide, tags}, [][]any{
				{int64(1), "/", nil, nil}, {int64(2), "/a", "1.25", nil}, {int64(3), nil, nil, `["x"]`}, {int64(4), nil, "1234567.75", nil},
			}},
		},
	}
}

func replacedTable() []tableStep {
	item := tableColumn{"item", "varchar"}

	return []tableStep{
		{
			files: []string{"item,n\nnut,1\nbolt,2\n"},
			want:  tableContents{[]tableColumn{item, {"n", "bigint"}}, [][]any{{"nut", int64(1)}, {"bolt", int64(2)}}},
		},
		{ // a column with the same name and another type is a new column
			files: []string{"item,n,free\nnut,some,true\n"}, options: `"mode": "replace"`,
			want: tableContents{[]tableColumn{item, {"n", "varchar"}, {"free", "boolean"}}, [][]any{{"nut", "some", true}}},
		},
		{
			rows: `{"data": [{"item": "cog", "n": "none"}]}`,
			want: tableContents{[]tableColumn{item, {"n", "varchar"}, {"free", "boolean"}}, [][]any{{"nut", "some", true}, {"cog", "none", nil}}},
		},
		{ // returns to the first type
			files: []string{"n,item\n3,pin\n"}, options: `"mode": "replace"`,
			want: tableContents{[]tableColumn{{"n", "bigint"}, item}, [][]any{{int64(3), "pin"}}},
		},
	}
}

func TestTables(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("ada")

	for name, story := range tableStories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			table := newTable(t, s, bearer, name)
			for _, step := range story {
				table.do(step)
			}

			table.requireHistory(story)
		})
	}
}

// testTable is a dataset of ada whose rows a test knows.
type testTable struct {
	t             *testing.T
	s             *service
	bearer        string
	url           string
	account, name string // its name in the Iceberg catalog
}

func newTable(t *testing.T, s *service, bearer, dataset string) testTable {
	t.Helper()

	namespace := "n-" + uuid.NewString()
	answer := call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/"+dataset, bearer, "")
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	account, name := s.tableName("ada", namespace, dataset)

	return testTable{t, s, bearer, s.url + "/data/ada/" + namespace + "/" + dataset, account, name}
}

// do runs a step, and checks that the service and the independent reader report its contents.
func (d testTable) do(step tableStep) {
	d.t.Helper()

	if step.rows != "" {
		answer := call(d.t, http.MethodPost, d.url+"/rows", d.bearer, step.rows)
		require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	} else {
		d.ingest(uploadFiles(d.t, d.s, d.bearer, step.files...), step.options)
	}

	answer := call(d.t, http.MethodGet, d.url, d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	var report struct {
		Metadata struct {
			RowCount int
			Columns  []struct{ Name, Type string }
		}
	}

	answer.json(d.t, &report)
	require.Equal(d.t, len(step.want.rows), report.Metadata.RowCount)

	var columns []tableColumn
	for _, column := range report.Metadata.Columns {
		columns = append(columns, tableColumn{column.Name, column.Type})
	}

	require.Equal(d.t, step.want.columns, columns)

	want := tableContents{step.want.columns, sorted(step.want.rows)}
	require.Equal(d.t, want, readTable(d.t, d.s.databaseURL, d.account, d.name))
}

// ingest loads the files of an upload session into the dataset and waits for the end. more contains further members of the
// request.
func (d testTable) ingest(sessionID, more string) {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	answer := call(d.t, http.MethodPost, d.url+"/ingestions", d.bearer, fmt.Sprintf(`{"sessionId": %q%s}`, sessionID, more))
	require.Equal(d.t, http.StatusAccepted, answer.status, answer.body)

	var ingestion struct{ ID, Status string }

	answer.json(d.t, &ingestion)
	await(d.t, "the ingestion has ended", func() bool {
		answer = call(d.t, http.MethodGet, d.url+"/ingestions/"+ingestion.ID, d.bearer, "")
		answer.json(d.t, &ingestion)

		return ingestion.Status != "queued" && ingestion.Status != "running"
	})
	require.Equal(d.t, "completed", ingestion.Status, answer.body)
}

// uploadFiles uploads small files as one session.
func uploadFiles(t *testing.T, s *service, bearer string, contents ...string) (sessionID string) {
	t.Helper()

	var sizes []int64
	for _, content := range contents {
		sizes = append(sizes, int64(len(content)))
	}

	session := prepare(t, s, bearer, sizes...)

	for file, content := range contents {
		require.Equal(t, http.StatusOK, put(t, session.Files[file].PresignedURLs[0].URL, content).status)

		answer := session.finish(t, s, bearer, file)
		require.Equal(t, http.StatusOK, answer.status, answer.body)
	}

	return session.SessionID
}

// requireHistory checks that each step is one snapshot.
func (d testTable) requireHistory(story []tableStep) {
	d.t.Helper()

	answer := call(d.t, http.MethodGet, d.url+"/snapshots", d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	var list struct {
		Data []struct {
			RowCount  int
			Operation string
		}
	}

	answer.json(d.t, &list)
	require.Len(d.t, list.Data, len(story))
	slices.Reverse(list.Data)

	for i, step := range story {
		require.Equal(d.t, len(step.want.rows), list.Data[i].RowCount)
		require.Equal(d.t, strings.Contains(step.options, "replace"), list.Data[i].Operation == "replace")
	}
}
