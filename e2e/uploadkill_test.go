package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestUploadKillLoop kills the process at the worst moments of prepare and finish. After a kill the client either repeats
// the requests whose result it does not know, or gives up.
func TestUploadKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000")...)
	k := &killer{
		service: s, t: t, store: store, front: newProxy(t, s.root), status: map[string]string{}, objects: map[string]int64{},
		// An API token outlives the loop and does not need the issuer.
		caller: value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name":"caller"}`)),
	}

	for i := range rounds(200) {
		kill.Round(t)

		size := int64(i + 1)
		ask := func(url string) *http.Request {
			return newRequest(t, http.MethodPost, url+"/file-upload/prepare", k.caller, prepareBody(size), fmt.Sprintf("Idempotency-Key: round-%d", i))
		}

		first := k.during(ask, i, isCreation)
		if i%7 == 6 && first == nil {
			continue // the client never returns
		}

		session := k.repeated(ask(s.url), first)
		k.status[session.SessionID] = "preparing"

		if i%7 == 5 {
			continue // the client never uploads the file
		}

		session.Files[0].send(t, size)

		finish := func(url string) *http.Request { return session.finishRequest(t, url, k.caller, 0) }
		for _, answer := range []*answer{k.during(finish, i+i/6, isCompletion), send(t, finish(s.url))} {
			if answer != nil {
				session.requireFinished(t, answer, 0, "completed")
			}
		}

		k.status[session.SessionID], k.objects[session.Files[0].Key] = "completed", size
	}

	for id, status := range k.status {
		require.Contains(t, call(t, http.MethodGet, s.url+"/file-upload/"+id, k.caller, "").body, `"sessionStatus":"`+status+`"`)
	}

	t.Logf("%d of %d calls were acknowledged before the kill", k.acknowledged, k.kills)
	k.requireClean()
}

// killer kills the service during requests.
type killer struct {
	*service

	t            *testing.T
	store, front *proxy
	caller       string

	kills, acknowledged int
	status              map[string]string // status by id of the sessions that the client knows
	objects             map[string]int64  // size by key of the finished files
}

func isCreation(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
}

func isCompletion(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// during kills the service before the object store has processed a request, after it has, after the service has answered, or some
// time after the request. Then it restarts the service. It returns nil if no answer arrived.
func (k *killer) during(ask func(url string) *http.Request, way int, atStore func(*http.Request) bool) (first *answer) {
	k.t.Helper()

	process := k.process.Process
	dying := behaviour{cut: func() { _ = kill.Process(k.t, process) }}

	switch way % 6 {
	case 0, 1:
		dying.cuts, dying.early = atStore, way%6 == 0
		k.store.set(dying)

		answer, err := try(ask(k.url))
		require.Error(k.t, err, "it dies before it can answer: %+v", answer)
		<-k.exited
	case 2:
		k.front.set(dying)

		_, err := try(ask("http://" + k.front.address + "/api/v1"))
		require.Error(k.t, err, "the proxy keeps the answer back")
		<-k.exited
	default:
		first = killAmid(k.service, ask(k.url), rand.N(50*time.Millisecond))
	}

	k.store.set(behaviour{})
	k.front.set(behaviour{})
	k.restart()

	k.kills++
	if first != nil {
		k.acknowledged++
	}

	return first
}

// repeated repeats a prepare and returns its session, which must equal that of the first answer if there was one.
func (k *killer) repeated(request *http.Request, first *answer) (session prepared) {
	k.t.Helper()

	again := send(k.t, request)
	require.Equal(k.t, http.StatusOK, again.status, again.body)
	again.json(k.t, &session)

	if first != nil {
		var before prepared

		require.Equal(k.t, http.StatusOK, first.status, first.body)
		first.json(k.t, &before)
		require.Equal(k.t, before.withoutURLs(), session.withoutURLs())
	}

	return session
}

// requireClean checks the object store after all open sessions have expired. It must contain the finished files, and otherwise
// only uploads that were started right before a kill and have no row. fsck removes these, and then nothing else may be left.
func (k *killer) requireClean() {
	k.t.Helper()
	k.stop()
	withDatabase(k.t, k.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			`UPDATE upload_sessions SET expires_at = now() - interval '1 second' WHERE status = 'preparing'`,
			// So that the cleanup job runs at the start, and not a minute after the last one that was killed.
			`DELETE FROM river_job`, `DELETE FROM river_leader`, `DELETE FROM leases`,
		} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(k.t, err, statement)
		}
	})
	k.restart()

	known := func() (ids []string, left int) {
		withDatabase(k.t, k.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			rows, err := connection.Query(ctx, `SELECT upload_id FROM upload_files`)
			require.NoError(k.t, err)

			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(k.t, err)
			require.NoError(k.t, connection.QueryRow(ctx, `SELECT count(*) FROM upload_files WHERE status <> 'completed' AND removed_at IS NULL`).Scan(&left))
		})

		return ids, left
	}

	// A session that expired in the same millisecond is removed a minute later.
	awaitFor(k.t, 2*patience, "files are removed", func() bool {
		_, left := known()

		return left == 0
	})

	ids, _ := known()

	objects := k.place.objects()
	delete(objects, "deployment")
	require.Equal(k.t, k.objects, objects)

	orphans := k.place.uploads()
	for id := range orphans {
		require.False(k.t, slices.Contains(ids, id), "a row knows the upload %s, and it is still there", id)
	}

	require.LessOrEqual(k.t, len(orphans), k.kills)
	require.Equal(k.t, "0 lost, 0 orphans\n", k.quernd("fsck"), "today's are not judged while somebody may be at them")
	k.stop() // now no upload is in progress

	removed := k.quernd("fsck", "--age", "0s", "--delete")
	k.t.Logf("fsck: %s", removed[strings.LastIndex(strings.TrimSpace(removed), "\n")+1:])
	require.Contains(k.t, removed, fmt.Sprintf("0 lost, %d orphans, removed\n", len(orphans)))
	require.Equal(k.t, "0 lost, 0 orphans\n", k.quernd("fsck", "--age", "0s"))
	require.Empty(k.t, k.place.uploads())

	objects = k.place.objects()
	delete(objects, "deployment")
	require.Equal(k.t, k.objects, objects)
}
