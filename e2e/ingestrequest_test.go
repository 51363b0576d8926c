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
	require.JSONEq(t, noSession, d.create(session, "").body, "it is the editor's")

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

	// A bound file stays with the dataset when the editor loses access.
	unshare(t, s, d.bearer, "datasets/"+d.path(), "borrower")
	requireAbsent(t, byEditor.call(http.MethodGet, "/ingestions/"+made.ID, ""))
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

	// A session with a bound file can still be aborted, but the bound file is kept.
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
		if answer.status != http.StatusConflict { // 409 if the first request is still in progress
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
		require.Equal(t, missing.body, strings.ReplaceAll(there.body, victim.path(), victim.path()+"-too"))
		require.Len(t, there.header, len(missing.header))
	}
}
