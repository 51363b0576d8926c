package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func ingestFiles(t *testing.T, s *service, key *signer) {
	t.Helper()

	const content = "id,name,price,day,at,open,code\n1,nut,1.5,2026-11-15,2026-11-15 10:11:12,true,007\n2,bolt,,2026-11-16,2026-11-16 00:00:00,false,008\n"

	d := newFilled(t, s, "filer", key.token("filer"))
	require.Empty(t, d.snapshots())

	session := uploadFiles(t, s, d.bearer, content)
	made := d.accepted(d.create(session, ""))
	require.Equal(t, "append", made.Mode)
	require.Equal(t, session, made.SessionID)
	require.Len(t, made.FileIDs, 1)
	require.Equal(t, []string{"file 0"}, made.Filenames)
	require.EqualValues(t, len(content), made.Progress.BytesTotal)

	done := d.wait(made.ID)
	require.Equal(t, "completed", done.Status, "%+v", done.Error)
	require.Equal(t, progress{"done", int64(len(content)), int64(len(content)), 2, 0}, done.Progress)
	require.Equal(t, d.describe().SnapshotID, done.SnapshotID)
	require.Nil(t, done.Error)
	require.Nil(t, done.Preview)
	require.False(t, done.FinishedAt.Before(*done.StartedAt))
	require.False(t, done.StartedAt.Before(*done.CreatedAt))
	require.Equal(t, []snapshot{{SnapshotID: done.SnapshotID, Operation: "append", RowCount: 2, Current: true}}, d.snapshots())
	require.Equal(t, tableContents{
		[]tableColumn{{"id", "bigint"}, {"name", "varchar"}, {"price", "double"}, {"day", "date"}, {"at", "timestamp"}, {"open", "boolean"}, {"code", "varchar"}},
		[][]any{
			{int64(1), "nut", 1.5, "2026-11-15", "2026-11-15 10:11:12.000000", true, "007"},
			{int64(2), "bolt", nil, "2026-11-16", "2026-11-16 00:00:00.000000", false, "008"},
		},
	}, d.table())

	var list struct{ Data []ingestion }

	d.call(http.MethodGet, "/ingestions", "").json(t, &list)
	require.Equal(t, []ingestion{done}, list.Data)

	ended := d.call(http.MethodPost, "/ingestions/"+done.ID+"/retry", "")
	require.Equal(t, http.StatusUnprocessableEntity, ended.status)
	require.JSONEq(t, plainFault("INVALID_STATE", notReady), ended.body)

	ended = d.call(http.MethodPost, "/ingestions/"+done.ID+"/cancel", "")
	require.Equal(t, http.StatusUnprocessableEntity, ended.status)
	require.JSONEq(t, plainFault("INVALID_STATE", hasEnded), ended.body)
}

func ingestModes(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "moder", key.token("moder"))
	d.loaded("", "n\n1\n2\n")
	d.loaded(`"mode": "append"`, "n\n3\n")
	require.Equal(t, numbers(1, 2, 3), d.table().rows)

	replaced := d.loaded(`"mode": "replace"`, "n\n9\n")
	require.Equal(t, "replace", replaced.Mode)
	require.Equal(t, numbers(9), d.table().rows)

	answer := d.post(`{"data": [{"n": 10}]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, numbers(9, 10), d.table().rows)

	var operations []string
	for _, made := range d.snapshots() {
		operations = append(operations, fmt.Sprint(made.Operation, made.RowCount))
	}

	require.Equal(t, []string{"append2", "replace1", "append3", "append2"}, operations)
}

func ingestTogether(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "gatherer", key.token("gatherer"))
	both := d.loaded("", "n\n1\n", "n\n2\n3\n")
	require.EqualValues(t, 3, both.Progress.RowsDone)
	require.Len(t, both.FileIDs, 2)
	require.Len(t, d.snapshots(), 1)

	// One file is broken, so neither is loaded.
	failed := d.load("", "n\n4\n", "\x1f\x8b\x08 this is no gzip")
	require.Equal(t, "failed", failed.Status)
	require.NotNil(t, failed.Error)
	require.Empty(t, failed.SnapshotID)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)
	require.Len(t, d.snapshots(), 1)

	// Without the broken file the other one can be loaded.
	one := d.wait(d.accepted(d.create(failed.SessionID, fmt.Sprintf(`"fileIds": [%q]`, failed.FileIDs[0]))).ID)
	require.Equal(t, "completed", one.Status, "%+v", one.Error)
	require.Equal(t, failed.FileIDs[:1], one.FileIDs)
	require.Equal(t, numbers(1, 2, 3, 4), d.table().rows)
}

func ingestDryRun(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "looker", key.token("looker"))
	session := uploadFiles(t, s, d.bearer, "id,day\n1,01/02/2026\n2,03/04/2026\n")
	looked := d.wait(d.accepted(d.create(session, `"dryRun": true`)).ID)
	require.Equal(t, "completed", looked.Status, "%+v", looked.Error)
	require.True(t, looked.DryRun)
	require.Empty(t, looked.SnapshotID)
	require.NotNil(t, looked.Preview)
	require.Len(t, looked.Preview.Columns, 2)
	require.Equal(t, "id", looked.Preview.Columns[0].Name)
	require.Equal(t, "bigint", looked.Preview.Columns[0].Type)
	require.Len(t, looked.Preview.Rows, 2)
	require.EqualValues(t, 1, looked.Preview.Rows[0]["id"])

	doubts := fmt.Sprintf("%+v", looked.Preview.Doubts)
	require.Contains(t, doubts, "{Column:day Option:dateFormat")

	require.Empty(t, d.snapshots(), "nothing is loaded")
	require.Zero(t, d.describe().RowCount)

	settled := d.wait(d.accepted(d.create(session, `"dryRun": true, "options": {"dateFormat": "dd/mm/yyyy"}`)).ID)
	require.Equal(t, "date", settled.Preview.Columns[1].Type)
	require.Equal(t, "2026-02-01", settled.Preview.Rows[0]["day"])
	require.NotContains(t, fmt.Sprintf("%+v", settled.Preview.Doubts), "dateFormat")

	broken := d.load(`"dryRun": true`, "PAR1 but nothing more")
	require.Equal(t, "failed", broken.Status)
	require.Nil(t, broken.Preview)

	// A dry run does not bind the file: it can still be loaded into another dataset.
	other := newFilled(t, s, "looker", d.bearer)
	loaded := other.wait(other.accepted(other.create(session, "")).ID)
	require.Equal(t, "completed", loaded.Status, "%+v", loaded.Error)
	require.Empty(t, loaded.Warnings)
}

func ingestOptions(t *testing.T, s *service, key *signer) {
	t.Helper()

	for name, c := range map[string]struct {
		options, content string
		columns          []tableColumn
		rows             [][]any
	}{
		"a locale": {
			options: `{"delimiter": ";", "decimal": ",", "thousands": ".", "dateFormat": "dd.mm.yyyy"}`,
			content: "n;price;day\n1;1.234,5;15.11.2026\n",
			columns: []tableColumn{{"n", "bigint"}, {"price", "double"}, {"day", "date"}},
			rows:    [][]any{{int64(1), 1234.5, "2026-11-15"}},
		},
		"no header": {
			options: `{"header": false}`, content: "a,1\nb,2\n",
			columns: []tableColumn{{"column_1", "varchar"}, {"column_2", "bigint"}},
			rows:    [][]any{{"a", int64(1)}, {"b", int64(2)}},
		},
		"lines before the header": {
			options: `{"skipRows": 2}`, content: "made by\nsomebody\nn\n1\n",
			columns: []tableColumn{{"n", "bigint"}}, rows: numbers(1),
		},
		"texts that mean nothing": {
			options: `{"nullValues": ["none", "-"]}`, content: "n,m\n1,none\n-,2\n",
			columns: []tableColumn{{"n", "bigint"}, {"m", "bigint"}},
			rows:    [][]any{{int64(1), nil}, {nil, int64(2)}},
		},
		"types": {
			options: `{"types": {"n": "varchar", "price": "decimal(9,2)"}}`, content: "n,price\n1,2.5\n",
			columns: []tableColumn{{"n", "varchar"}, {"price", "decimal(9,2)"}},
			rows:    [][]any{{"1", "2.50"}},
		},
		"an encoding": {
			options: `{"encoding": "latin-1"}`, content: "name\nK\xf6ln\n",
			columns: []tableColumn{{"name", "varchar"}}, rows: [][]any{{"Köln"}},
		},
		"a quote": {
			options: `{"quote": "'"}`, content: "name,n\n'a,b',1\n",
			columns: []tableColumn{{"name", "varchar"}, {"n", "bigint"}}, rows: [][]any{{"a,b", int64(1)}},
		},
	} {
		d := newFilled(t, s, "chooser", key.token("chooser"))
		done := d.load(`"options": `+c.options, c.content)
		require.Equal(t, "completed", done.Status, "%s: %+v", name, done.Error)
		require.Equal(t, tableContents{c.columns, sorted(c.rows)}, d.table(), name)
	}

	d := newFilled(t, s, "chooser", key.token("chooser"))
	for options, code := range map[string]string{
		`{"types": {"absent": "bigint"}}`: "VALIDATION_FAILED", `{"types": {"n": "money"}}`: "VALIDATION_FAILED", `{"encoding": "klingon"}`: "VALIDATION_FAILED",
	} {
		refused := d.load(`"options": `+options, "n\n1\n")
		require.Equal(t, "failed", refused.Status, options)
		require.Equal(t, code, refused.Error.Code, options)
		require.NotEmpty(t, refused.Error.Message, options)
	}

	// A failure names the option that may let it succeed, for programs too.
	for content, want := range map[string][]string{
		"name\nK\xf6ln\n":                       {"windows-1252", "windows-1250", "shift_jis"},
		"n\x00a\x00m\x00e\x00\n\x00A\x00\n\x00": {"utf-16le", "utf-16be"},
	} {
		for _, more := range []string{`"dryRun": true`, ""} {
			failed := d.load(more, content)
			require.Equal(t, "failed", failed.Status, "%q", content)
			require.Equal(t, []ingestDoubt{{"encoding", "The encoding of the file is not known.", want}}, failed.Doubts)

			mended := d.load(`"mode": "replace", "options": {"encoding": "`+want[0]+`"}`, content)
			require.Equal(t, "completed", mended.Status, "%q: %+v", content, mended.Error)
		}
	}
}

func ingestSetAside(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "sorter", key.token("sorter"))

	var content strings.Builder

	content.WriteString("n,name\n")

	for n := range 100 {
		if n == 41 {
			content.WriteString("many,x\n")
		} else {
			fmt.Fprintf(&content, "%d,x\n", n)
		}
	}

	done := d.loaded(`"options": {"types": {"n": "bigint"}}`, content.String())
	require.EqualValues(t, 99, done.Progress.RowsDone)
	require.EqualValues(t, 1, done.Progress.RowsSetAside)
	require.Len(t, done.SetAside, 1)
	require.Equal(t, "file 0", done.SetAside[0].File)
	require.EqualValues(t, 42, done.SetAside[0].Row)
	require.Contains(t, done.SetAside[0].Reason, "n")
	require.Len(t, d.table().rows, 99)

	// The data file records the skipped row too, so that the row number of each of its rows can be computed.
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var (
			name    string
			skipped []int64
		)

		require.NoError(t, connection.QueryRow(ctx, `
			SELECT source_name, skipped FROM lake_files WHERE ingestion_id = $1 AND shape <> '' AND bounds <> '{}'`, done.ID).Scan(&name, &skipped))
		require.Equal(t, "file 0", name)
		require.Equal(t, []int64{42}, skipped)
	})

	// A few rows that do not fit are set aside. Many such rows mean that the file was misunderstood, so the ingestion fails.
	failed := d.load(`"mode": "replace", "options": {"types": {"name": "bigint"}}`, content.String())
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "VALIDATION_FAILED", failed.Error.Code)
	require.Contains(t, failed.Error.Message, "100 of 100 rows do not fit")
	require.EqualValues(t, 100, failed.Progress.RowsSetAside)
	require.Len(t, failed.SetAside, 100)
	require.Len(t, d.table().rows, 99)
}

func ingestFailing(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "failer", key.token("failer"))
	failed := d.load("", "PAR1 is how such a file begins, and how it does not end")
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "done", failed.Progress.Phase)
	require.NotNil(t, failed.FinishedAt)
	require.Equal(t, "VALIDATION_FAILED", failed.Error.Code)
	require.NotContains(t, failed.Error.Message, "/", "no paths")

	again := d.call(http.MethodPost, "/ingestions/"+failed.ID+"/retry", "")
	queued := d.accepted(again)
	require.Equal(t, failed.ID, queued.ID)
	require.Equal(t, failed.Error, d.wait(failed.ID).Error)

	cancel := d.call(http.MethodPost, "/ingestions/"+failed.ID+"/cancel", "")
	require.Equal(t, http.StatusUnprocessableEntity, cancel.status)
	require.JSONEq(t, plainFault("INVALID_STATE", hasEnded), cancel.body)
	require.Empty(t, d.snapshots())

	for _, action := range []string{"", "/retry", "/cancel"} {
		method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[action == ""]
		requireAbsent(t, d.call(method, "/ingestions/"+uuid.NewString()+action, ""))
		requireAbsent(t, newFilled(t, s, "failer", d.bearer).call(method, "/ingestions/"+failed.ID+action, ""), "it is another dataset's")
	}
}
