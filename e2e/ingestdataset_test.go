package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

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

	// The restore can be undone, and rows can be appended after it.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2}]}`).status)
	require.Equal(t, numbers(1, 2), d.table().rows)
	require.Equal(t, http.StatusOK, restore(list[1].SnapshotID).status)
	require.Equal(t, tableContents{[]tableColumn{{"m", "varchar"}}, [][]any{{"x"}}}, d.table())
	require.Equal(t, http.StatusOK, restore(list[0].SnapshotID).status)
	require.Empty(t, d.table().rows)

	other := newFilled(t, s, "undoer", d.bearer)
	requireAbsent(t, restore(uuid.NewString()))
	requireAbsent(t, other.call(http.MethodPost, "/snapshots/"+list[2].SnapshotID+"/restore", ""), "it is another dataset's")
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
	requireAbsent(t, d.call(http.MethodGet, "/ingestions/"+first.ID, ""))
	requireAbsent(t, d.post(rowsBody))

	d.name = "renamed"
	require.Equal(t, numbers(1), d.table().rows)
	require.Equal(t, first.ID, d.get(first.ID).ID)
	d.loaded("", "n\n2\n")
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 3}]}`).status)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)

	require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)
	requireAbsent(t, d.post(rowsBody))
	requireAbsent(t, d.call(http.MethodGet, "/snapshots", ""))

	// A new dataset with the same name has nothing of the old one.
	next := call(t, http.MethodPost, s.url+"/ingest/new/"+d.namespace+"/renamed", d.bearer, "")
	require.Equal(t, http.StatusCreated, next.status, next.body)
	require.Empty(t, d.snapshots())
	requireAbsent(t, d.call(http.MethodGet, "/ingestions/"+first.ID, ""))
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
	requireAbsent(t, d.call(http.MethodGet, "/snapshots", ""))

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

// ingestTransferBusy checks that a dataset cannot be transferred while an ingestion is in progress.
func ingestTransferBusy(t *testing.T, s *service, key *signer) {
	t.Helper()

	idle := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_OIDC_ISSUER="+s.realm.issuer())
	heir := key.token("next")
	require.Equal(t, http.StatusOK, me(t, idle, heir).status)

	d := newFilled(t, idle, "busy", key.token("busy"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	queued := d.accepted(d.create(uploadFiles(t, idle, d.bearer, "n\n2\n"), ""))

	_, err := idle.command("dataset", "transfer", d.path(), "next")
	require.EqualError(t, err, "quernd: An ingestion of the dataset has not ended. If the dataset is deleted, restore it. Wait for the ingestion or cancel it, then transfer again.")
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

// ingestGone checks that nothing is left of a dataset after its grace period, regardless of who loaded it.
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
	require.Equal(t, http.StatusCreated, d.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "numbers"}`).status)
	d.mean(`{"row": "a number"}`)
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
		for _, table := range []string{
			"lake_tables", "lake_files", "lake_snapshots", "lake_schemas", "lake_parts", "iceberg_tables", "ingestions", "ingestion_files", "set_aside_rows", "document_chunks", "document_corrections", "document_pages", "document_records",
			"datasets", "definitions", "semantics", "dataset_search", "grants", "directory_grants",
		} {
			var count int

			require.NoError(t, connection.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&count))
			require.Zero(t, count, table)
		}
	})

	_, err := brief.command("dataset", "restore", d.path())
	require.ErrorContains(t, err, "can be restored")
}
