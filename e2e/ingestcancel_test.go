package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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

	// The restarted replica has a worker.
	idle.stop()
	idle.settings = append(idle.settings, "QUERN_INGEST_WORKERS=1")
	idle.restart()
	require.Equal(t, "completed", d.wait(queued.ID).Status)
	require.Equal(t, numbers(1), d.table().rows)
}

// largeFile returns a file that takes a while to read.
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

	// The work that was in progress for it has no effect.
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
