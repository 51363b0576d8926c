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

	// One of them is broken, so neither is loaded.
	failed := d.load("", "n\n4\n", "\x1f\x8b\x08 this is no gzip")
	require.Equal(t, "failed", failed.Status)
	require.NotNil(t, failed.Error)
	require.Empty(t, failed.SnapshotID)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)
	require.Len(t, d.snapshots(), 1)

	// Without the broken one the other can be.
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

	// Who only looks binds nothing: the file can still go elsewhere.
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

	// The data file knows it too, so that each of its rows has a number.
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

	// A few are dirt, many are a misunderstanding.
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
		require.JSONEq(t, absent, d.call(method, "/ingestions/"+uuid.NewString()+action, "").body)
		require.JSONEq(t, absent, newFilled(t, s, "failer", d.bearer).call(method, "/ingestions/"+failed.ID+action, "").body, "it is another dataset's")
	}
}

func ingestCancelQueued(t *testing.T, s *service, key *signer) {
	t.Helper()

	idle := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_OIDC_ISSUER="+s.realm.issuer())
	d := newFilled(t, idle, "canceller", key.token("canceller"))
	queued := d.accepted(d.create(uploadFiles(t, idle, d.bearer, "n\n1\n"), ""))
	require.Equal(t, "queued", queued.Status)
	require.Equal(t, progress{Phase: "queued", BytesTotal: 4}, queued.Progress)
	require.Nil(t, queued.StartedAt)

	for range 2 {
		var cancelled ingestion

		answer := d.call(http.MethodPost, "/ingestions/"+queued.ID+"/cancel", "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &cancelled)
		require.Equal(t, "cancelled", cancelled.Status)
		require.Nil(t, cancelled.Error)
		require.NotNil(t, cancelled.FinishedAt)
		require.Equal(t, cancelled, d.get(queued.ID))
	}

	again := d.accepted(d.call(http.MethodPost, "/ingestions/"+queued.ID+"/retry", ""))
	require.Equal(t, "queued", again.Status)
	require.Nil(t, again.FinishedAt)

	second := d.call(http.MethodPost, "/ingestions/"+queued.ID+"/retry", "")
	require.Equal(t, http.StatusUnprocessableEntity, second.status)
	require.JSONEq(t, plainFault("INVALID_STATE", notReady), second.body)

	// Another replica has workers.
	idle.stop()
	idle.settings = append(idle.settings, "QUERN_INGEST_WORKERS=1")
	idle.restart()
	require.Equal(t, "completed", d.wait(queued.ID).Status)
	require.Equal(t, numbers(1), d.table().rows)
}

// largeFile takes a while to be read.
func largeFile(rows int) string {
	var content strings.Builder

	content.WriteString("n,name,price,day\n")

	for n := range rows {
		fmt.Fprintf(&content, "%d,name of %d,%d.25,2026-11-15\n", n, n, n)
	}

	return content.String()
}

// uploadLarge uploads a file of several parts.
func uploadLarge(t *testing.T, s *service, bearer, content string) (sessionID string) {
	t.Helper()

	session := prepare(t, s, bearer, int64(len(content)))

	for _, part := range session.Files[0].PresignedURLs {
		require.Equal(t, http.StatusOK, put(t, part.URL, content[:part.PartSize]).status)
		content = content[part.PartSize:]
	}

	session.requireFinished(t, session.finish(t, s, bearer, 0), 0, "completed")

	return session.SessionID
}

func ingestCancelRunning(t *testing.T, s *service, key *signer) {
	t.Helper()

	const rows = 500_000

	d := newFilled(t, s, "stopper", key.token("stopper"))
	content := largeFile(rows)
	running := d.accepted(d.create(uploadLarge(t, s, d.bearer, content), ""))

	await(t, "it runs", func() bool { return d.get(running.ID).Status == "running" })

	answer := d.call(http.MethodPost, "/ingestions/"+running.ID+"/cancel", "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, "cancelled", d.get(running.ID).Status)

	// Whatever was being done for it comes to nothing.
	answer = d.post(`{"data": [{"n": -1}]}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, 1, d.describe().RowCount)
	require.Len(t, d.snapshots(), 1)

	again := d.accepted(d.call(http.MethodPost, "/ingestions/"+running.ID+"/retry", ""))
	require.Equal(t, running.ID, again.ID)

	phases := map[string]bool{}

	var done ingestion

	await(t, "it has ended", func() bool {
		done = d.get(running.ID)
		phases[done.Progress.Phase] = true

		return done.ended()
	})
	require.Equal(t, "completed", done.Status, "%+v", done.Error)
	require.EqualValues(t, rows, done.Progress.RowsDone)
	require.EqualValues(t, len(content), done.Progress.BytesDone)
	require.Contains(t, phases, "converting")
	require.Equal(t, rows+1, d.describe().RowCount)
	require.Len(t, d.snapshots(), 2)
}

func ingestTwice(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "doubler", key.token("doubler"))
	session := uploadFiles(t, s, d.bearer, "n\n1\n")
	first := d.wait(d.accepted(d.create(session, "")).ID)
	require.Equal(t, "completed", first.Status)

	second := d.wait(d.accepted(d.create(session, "")).ID)
	require.Equal(t, "waiting", second.Status, "its rows would be there twice")
	require.Equal(t, numbers(1), d.table().rows)

	third := d.wait(d.accepted(d.create(session, `"accept": ["loadedBefore"]`)).ID)
	require.Equal(t, "completed", third.Status)
	require.Equal(t, numbers(1, 1), d.table().rows)

	replaced := d.wait(d.accepted(d.create(session, `"mode": "replace"`)).ID)
	require.Equal(t, "completed", replaced.Status, "what was there goes")
	require.Equal(t, numbers(1), d.table().rows)

	cleared := d.call(http.MethodPost, "/clear", "")
	require.Equal(t, http.StatusOK, cleared.status, cleared.body)
	require.Equal(t, "completed", d.wait(d.accepted(d.create(session, "")).ID).Status, "and after a clear nothing is there")
}

func ingestByEditor(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "lender", key.token("lender"))
	editor, viewer := key.token("borrower"), key.token("watcher")

	for _, bearer := range []string{editor, viewer} {
		require.Equal(t, http.StatusOK, me(t, s, bearer).status)
	}

	share(t, s, d.bearer, "datasets/"+d.path(), "borrower", "editor")
	share(t, s, d.bearer, "datasets/"+d.path(), "watcher", "viewer")

	session := uploadFiles(t, s, editor, "n\n1\n")
	require.JSONEq(t, absent, d.create(session, "").body, "it is the editor's")

	byEditor := &filled{t, s, editor, d.owner, d.namespace, d.name}
	made := byEditor.accepted(byEditor.create(session, ""))
	require.Equal(t, "completed", d.wait(made.ID).Status)
	require.Equal(t, http.StatusOK, byEditor.post(`{"data": [{"n": 2}]}`).status)
	require.Equal(t, numbers(1, 2), byEditor.table().rows)

	byViewer := &filled{t, s, viewer, d.owner, d.namespace, d.name}
	require.Equal(t, made.ID, byViewer.get(made.ID).ID)
	require.JSONEq(t, lacksRole("editor", "viewer"), byViewer.create(uploadFiles(t, s, viewer, "n\n3\n"), "").body)
	require.JSONEq(t, lacksRole("editor", "viewer"), byViewer.post(rowsBody).body)
	require.JSONEq(t, lacksRole("owner", "editor"), byEditor.call(http.MethodPost, "/snapshots/"+d.snapshots()[1].SnapshotID+"/restore", "").body)

	// What is bound stays with the dataset when the editor is one no longer.
	unshare(t, s, d.bearer, "datasets/"+d.path(), "borrower")
	require.JSONEq(t, absent, byEditor.call(http.MethodGet, "/ingestions/"+made.ID, "").body)
}

func ingestRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "refused", key.token("refused"))
	requireRefusal := func(what string, status int, code string, answer *answer) {
		t.Helper()
		requireFault(t, what, answer, status, code)
	}

	requireRefusal("no such session", 404, "NOT_FOUND", d.create(uuid.NewString(), ""))
	requireRefusal("another's session", 404, "NOT_FOUND", d.create(uploadFiles(t, s, key.token("somebody"), "n\n1\n"), ""))
	requireRefusal("no such dataset", 404, "NOT_FOUND", call(t, http.MethodPost, d.url()+"-too/ingestions", d.bearer, `{"sessionId": "`+uuid.NewString()+`"}`))
	requireRefusal("no uuid", 422, "VALIDATION_FAILED", d.create("x", ""))

	open := prepare(t, s, d.bearer, 4, 4)
	requireRefusal("nothing is completed", 422, "INVALID_STATE", d.create(open.SessionID, ""))

	for _, file := range open.Files {
		require.Equal(t, http.StatusOK, put(t, file.PresignedURLs[0].URL, "n\n1\n").status)
	}

	open.requireFinished(t, open.finish(t, s, d.bearer, 0), 0, "preparing")
	requireRefusal("this one is not completed", 422, "INVALID_STATE", d.create(open.SessionID, fmt.Sprintf(`"fileIds": [%q]`, open.Files[1].FileID)))
	requireRefusal("no such file", 404, "NOT_FOUND", d.create(open.SessionID, fmt.Sprintf(`"fileIds": [%q]`, uuid.NewString())))

	for _, more := range []string{
		`"mode": "merge"`, `"fileIds": ["x"]`, `"options": {"skipRows": -1}`, `"options": {"delimiter": ""}`, `"options": []`, `"dryRun": "yes"`, `"options": {"types": {"n": 1}}`,
	} {
		requireRefusal(more, 422, "VALIDATION_FAILED", d.create(open.SessionID, more))
	}

	loaded := d.wait(d.accepted(d.create(open.SessionID, "")).ID)
	require.Equal(t, []string{open.Files[0].FileID}, loaded.FileIDs, "what is completed, of a session that is not")

	other := newFilled(t, s, "refused", d.bearer)
	requireRefusal("bound to another dataset", 422, "INVALID_STATE", other.create(open.SessionID, ""))

	aborted := prepare(t, s, d.bearer, 4)
	require.Equal(t, http.StatusOK, call(t, http.MethodPost, s.url+"/file-upload/"+aborted.SessionID+"/abort", d.bearer, "").status)
	requireRefusal("aborted", 422, "INVALID_STATE", d.create(aborted.SessionID, ""))

	// A session with a bound file can still be aborted, but not that file.
	abort := call(t, http.MethodPost, s.url+"/file-upload/"+open.SessionID+"/abort", d.bearer, "")
	require.Equal(t, http.StatusOK, abort.status, abort.body)
	require.Contains(t, s.place.objects(), open.Files[0].Key)
}

func ingestRepeated(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "again", key.token("again"))
	session := uploadFiles(t, s, d.bearer, "n\n1\n")
	header := "Idempotency-Key: " + uuid.NewString()

	ids := map[string]bool{}

	for _, answer := range atOnce(t, 8, func(int) *http.Request {
		return newRequest(t, http.MethodPost, d.url()+"/ingestions", d.bearer, fmt.Sprintf(`{"sessionId": %q}`, session), header)
	}) {
		if answer.status != http.StatusConflict { // the first is still at it
			ids[d.accepted(answer).ID] = true
		}
	}

	require.Len(t, ids, 1)

	again := d.accepted(d.create(session, "", header))
	require.Contains(t, ids, again.ID)
	require.Equal(t, "completed", d.wait(again.ID).Status)
	require.Contains(t, ids, d.accepted(d.create(session, "", header)).ID, "also when it has ended")
	require.Equal(t, numbers(1), d.table().rows)

	other := d.create(session, `"mode": "replace"`, header)
	require.Equal(t, []string{"Idempotency-Key"}, requireFault(t, "another body", other, http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

	elsewhere := newFilled(t, s, "again", d.bearer)
	requireFault(t, "another dataset", elsewhere.create(session, "", header), http.StatusUnprocessableEntity, "VALIDATION_FAILED")

	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var (
			bound    uuid.UUID
			reserved bool
		)

		require.NoError(t, connection.QueryRow(ctx, `SELECT coalesce(bound_ingestion, '00000000-0000-0000-0000-000000000000'), reserved_until IS NOT NULL OR remove_at IS NOT NULL
			FROM upload_files WHERE session_id = $1`, session).Scan(&bound, &reserved))
		require.Equal(t, again.ID, bound.String(), "the file belongs to the dataset")
		require.False(t, reserved)
	})
}

func ingestPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "turner", key.token("turner"))

	var ids []string
	for n := range 3 {
		ids = append(ids, d.loaded("", fmt.Sprintf("n\n%d\n", n)).ID)
	}

	walk := func(list, member string) (found []string) {
		for cursor := ""; ; {
			var page struct {
				Data       []map[string]any
				NextCursor string
			}

			answer := d.call(http.MethodGet, list+"?limit=1"+cursor, "")
			require.Equal(t, http.StatusOK, answer.status, answer.body)
			answer.json(t, &page)

			for _, item := range page.Data {
				found = append(found, fmt.Sprint(item[member]))
			}

			if page.NextCursor == "" {
				return found
			}

			cursor = "&cursor=" + page.NextCursor
		}
	}

	require.Equal(t, []string{ids[2], ids[1], ids[0]}, walk("/ingestions", "id"))
	require.Equal(t, []string{"3", "2", "1"}, walk("/snapshots", "rowCount"))

	for _, list := range []string{"/ingestions", "/snapshots"} {
		for query, field := range map[string]string{"?cursor=nonsense": "cursor", "?limit=0": "limit", "?limit=101": "limit"} {
			require.Equal(t, []string{field}, requireFault(t, query, d.call(http.MethodGet, list+query, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))
		}
	}
}

func ingestRestore(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "undoer", key.token("undoer"))
	d.loaded("", "n\n1\n")
	d.loaded(`"mode": "replace"`, "m\nx\n")

	cleared := d.call(http.MethodPost, "/clear", "")
	require.Equal(t, http.StatusOK, cleared.status, cleared.body)
	require.Empty(t, d.table().rows)

	restore := func(id string) *answer { return d.call(http.MethodPost, "/snapshots/"+id+"/restore", "") }
	list := d.snapshots()
	require.Len(t, list, 3)

	var made snapshot

	answer := restore(list[2].SnapshotID)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &made)
	require.Equal(t, snapshot{SnapshotID: made.SnapshotID, Operation: "restore", RowCount: 1, Current: true}, made)
	require.Equal(t, made, d.snapshots()[0])
	require.Equal(t, tableContents{[]tableColumn{{"n", "bigint"}}, numbers(1)}, d.table())

	// It can be undone, and rows can be added to it.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2}]}`).status)
	require.Equal(t, numbers(1, 2), d.table().rows)
	require.Equal(t, http.StatusOK, restore(list[1].SnapshotID).status)
	require.Equal(t, tableContents{[]tableColumn{{"m", "varchar"}}, [][]any{{"x"}}}, d.table())
	require.Equal(t, http.StatusOK, restore(list[0].SnapshotID).status)
	require.Empty(t, d.table().rows)

	other := newFilled(t, s, "undoer", d.bearer)
	require.JSONEq(t, absent, restore(uuid.NewString()).body)
	require.JSONEq(t, absent, other.call(http.MethodPost, "/snapshots/"+list[2].SnapshotID+"/restore", "").body, "it is another dataset's")
}

func ingestCleared(t *testing.T, s *service, key *signer) {
	t.Helper()

	idle := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_OIDC_ISSUER="+s.realm.issuer())

	for name, change := range map[string]func(*filled){
		"clear": func(d *filled) { require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status) },
		"restore": func(d *filled) {
			require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/snapshots/"+d.snapshots()[0].SnapshotID+"/restore", "").status)
		},
	} {
		d := newFilled(t, idle, "clearer", key.token("clearer"))
		require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
		queued, second := d.accepted(d.create(uploadFiles(t, idle, d.bearer, "n\n1\n"), "")), d.accepted(d.create(uploadFiles(t, idle, d.bearer, "n\n2\n"), ""))
		require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/ingestions/"+second.ID+"/cancel", "").status)

		change(d)

		before := d.table().rows
		retry := d.call(http.MethodPost, "/ingestions/"+second.ID+"/retry", "")
		require.Equal(t, http.StatusConflict, retry.status, name)
		require.JSONEq(t, plainFault("CONFLICT", wasCleared), retry.body)

		idle.stop()
		idle.settings = append(idle.settings, "QUERN_INGEST_WORKERS=1")
		idle.restart()

		ended := d.wait(queued.ID)
		require.Equal(t, "failed", ended.Status, name)
		require.Equal(t, "CONFLICT", ended.Error.Code)
		require.Equal(t, wasCleared, ended.Error.Message)
		require.Equal(t, before, d.table().rows)

		idle.stop()
		idle.settings = append(idle.settings, "QUERN_INGEST_WORKERS=0")
		idle.restart()
	}
}

func ingestMoves(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "mover", key.token("mover"))
	first := d.loaded("", "n\n1\n")

	renamed := d.call(http.MethodPatch, "", `{"name": "renamed"}`)
	require.Equal(t, http.StatusOK, renamed.status, renamed.body)
	require.JSONEq(t, absent, d.call(http.MethodGet, "/ingestions/"+first.ID, "").body)
	require.JSONEq(t, absent, d.post(rowsBody).body)

	d.name = "renamed"
	require.Equal(t, numbers(1), d.table().rows)
	require.Equal(t, first.ID, d.get(first.ID).ID)
	d.loaded("", "n\n2\n")
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 3}]}`).status)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)

	require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)
	require.JSONEq(t, absent, d.post(rowsBody).body)
	require.JSONEq(t, absent, d.call(http.MethodGet, "/snapshots", "").body)

	// A new one of that name has nothing of the old one.
	next := call(t, http.MethodPost, s.url+"/ingest/new/"+d.namespace+"/renamed", d.bearer, "")
	require.Equal(t, http.StatusCreated, next.status, next.body)
	require.Empty(t, d.snapshots())
	require.JSONEq(t, absent, d.call(http.MethodGet, "/ingestions/"+first.ID, "").body)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"other": "x"}]}`).status)
	require.Equal(t, [][]any{{"x"}}, d.table().rows)
	require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"name": "next"}`).status)

	s.quernd("dataset", "restore", d.path())
	require.Equal(t, numbers(1, 2, 3), d.table().rows)
	require.Len(t, d.snapshots(), 3)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 4}]}`).status)
	require.Equal(t, numbers(1, 2, 3, 4), d.table().rows)
}

func ingestTransfer(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "testator", key.token("testator"))
	first, failed := d.loaded("", "n\n1\n"), d.load("", "PAR1 and no more")
	list := d.snapshots()

	heir := key.token("heir")
	require.Equal(t, http.StatusOK, me(t, s, heir).status)
	s.quernd("dataset", "transfer", d.path(), "heir")
	require.JSONEq(t, absent, d.call(http.MethodGet, "/snapshots", "").body)

	d.owner, d.bearer = "heir", heir
	require.Equal(t, numbers(1), d.table().rows)
	require.Equal(t, list, d.snapshots())
	require.Equal(t, first.SnapshotID, d.get(first.ID).SnapshotID)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2}]}`).status)
	d.loaded("", "n\n3\n")
	require.Equal(t, numbers(1, 2, 3), d.table().rows)

	require.Equal(t, failed.Error, d.get(failed.ID).Error)
	require.JSONEq(t, plainFault("CONFLICT", wasCleared), d.call(http.MethodPost, "/ingestions/"+failed.ID+"/retry", "").body)

	restored := d.call(http.MethodPost, "/snapshots/"+list[0].SnapshotID+"/restore", "")
	require.Equal(t, http.StatusOK, restored.status, restored.body)
	require.Equal(t, numbers(1), d.table().rows)
}

// While something is being loaded a dataset cannot be handed over.
func ingestTransferBusy(t *testing.T, s *service, key *signer) {
	t.Helper()

	idle := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_OIDC_ISSUER="+s.realm.issuer())
	heir := key.token("next")
	require.Equal(t, http.StatusOK, me(t, idle, heir).status)

	d := newFilled(t, idle, "busy", key.token("busy"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	queued := d.accepted(d.create(uploadFiles(t, idle, d.bearer, "n\n2\n"), ""))

	_, err := idle.command("dataset", "transfer", d.path(), "next")
	require.EqualError(t, err, "quernd: An ingestion of the dataset has not ended. Restore the dataset, wait or cancel it, and transfer again.")
	idle.quernd("dataset", "restore", d.path())
	require.Equal(t, numbers(1), d.table().rows)
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/ingestions/"+queued.ID+"/cancel", "").status)
	idle.quernd("dataset", "transfer", d.path(), "next")

	d.owner, d.bearer = "next", heir
	require.Equal(t, numbers(1), d.table().rows)
	require.Equal(t, "cancelled", d.get(queued.ID).Status)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 3}]}`).status)
	require.Equal(t, numbers(1, 3), d.table().rows)
}

// ingestGone: when a dataset is gone for good, nothing of it is left, whoever it came from.
func ingestGone(t *testing.T, s *service, key *signer) {
	t.Helper()

	brief := start(t, "QUERN_DELETE_GRACE=1s", "QUERN_OIDC_ISSUER="+s.realm.issuer())
	editor, heir := key.token("gone-editor"), key.token("gone-heir")

	for _, bearer := range []string{editor, heir} {
		require.Equal(t, http.StatusOK, me(t, brief, bearer).status)
	}

	d := newFilled(t, brief, "gone", key.token("gone"))
	share(t, brief, d.bearer, "datasets/"+d.path(), "gone-editor", "editor")

	byEditor := &filled{t, brief, editor, d.owner, d.namespace, d.name}
	byEditor.loaded("", "n\n1\n")
	d.loaded("", "n\n2\n")
	d.loaded(`"options": {"types": {"n": "bigint"}}`, "n\n3\n4\n5\n6\n7\n8\n9\nmany\n10\n11\n12\n")
	brief.quernd("dataset", "transfer", d.path(), "gone-heir")

	d.owner, d.bearer = "gone-heir", heir
	require.Len(t, d.table().rows, 12)
	require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)

	await(t, "nothing is left", func() bool {
		brief.stop()
		brief.cleanAtStart()
		brief.restart()
		brief.awaitJob("ingest.clean")
		brief.awaitJob("upload.clean")

		objects := brief.place.objects()
		delete(objects, "deployment")

		return len(objects) == 0
	})
	withDatabase(t, brief.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, table := range []string{"lake_tables", "lake_files", "lake_snapshots", "lake_schemas", "lake_parts", "iceberg_tables", "ingestions", "ingestion_files", "set_aside_rows"} {
			var count int

			require.NoError(t, connection.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&count))
			require.Zero(t, count, table)
		}
	})

	_, err := brief.command("dataset", "restore", d.path())
	require.ErrorContains(t, err, "can be restored")
}

func ingestUnseen(t *testing.T, s *service, key *signer) {
	t.Helper()

	victim := newFilled(t, s, "victim", key.token("victim"))
	made := victim.loaded("", "n\n1\n")
	session := uploadFiles(t, s, key.token("snooper"), "n\n1\n")

	for _, ask := range []func(path string) *answer{
		func(path string) *answer {
			return call(t, http.MethodGet, path+"/ingestions", key.token("snooper"), "")
		},
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/ingestions", key.token("snooper"), `{"sessionId": "`+session+`"}`)
		},
		func(path string) *answer {
			return call(t, http.MethodGet, path+"/ingestions/"+made.ID, key.token("snooper"), "")
		},
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/ingestions/"+made.ID+"/retry", key.token("snooper"), "")
		},
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/ingestions/"+made.ID+"/cancel", key.token("snooper"), "")
		},
		func(path string) *answer { return call(t, http.MethodGet, path+"/snapshots", key.token("snooper"), "") },
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/snapshots/"+made.SnapshotID+"/restore", key.token("snooper"), "")
		},
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/rows", key.token("snooper"), rowsBody)
		},
		func(path string) *answer {
			return call(t, http.MethodPost, path+"/rows", key.token("snooper"), "{ this is not read")
		},
	} {
		there, missing := ask(victim.url()), ask(victim.url()+"-too")
		require.Equal(t, http.StatusNotFound, there.status, there.body)
		require.Equal(t, missing.body, there.body)
		require.Len(t, there.header, len(missing.header))
	}
}
