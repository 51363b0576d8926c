package e2e

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// newStoreProxy returns a proxy between the service and the object store. Presigned addresses do not go through it.
func newStoreProxy(t *testing.T) (between *proxy, settings []string) {
	t.Helper()

	endpoint := stack.Env(t, "QUERN_TEST_S3_ENDPOINT")
	between = newProxy(t, endpoint)

	return between, []string{"QUERN_S3_ENDPOINT=http://" + between.address, "QUERN_S3_PUBLIC_ENDPOINT=" + endpoint}
}

func TestStoreOutage(t *testing.T) {
	t.Parallel()

	const requestTimeout = 10 * time.Second

	for name, down := range map[string]behaviour{"refused": {refuse: true}, "silent": {blackhole: true}, "overloaded": {status: http.StatusServiceUnavailable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			between, settings := newStoreProxy(t)
			s := start(t, append(settings, "QUERN_S3_TIMEOUT=1s", "QUERN_REQUEST_TIMEOUT="+requestTimeout.String())...)
			key := s.newKey()
			bearer := key.token("outage")
			whole, many := prepare(t, s, bearer, 1), prepare(t, s, bearer, slices.Repeat([]int64{1}, 20)...)
			whole.Files[0].send(t, 1)

			repeated := func() *http.Request {
				return newRequest(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(1, 2), "Idempotency-Key: outage")
			}
			ask := func(what string, request *http.Request) *answer {
				began := time.Now()
				answer := send(t, request)
				require.Less(t, time.Since(began), requestTimeout, what)

				return answer
			}

			between.set(down)
			requireUnavailable(t, ask("prepare", repeated()))
			requireUnavailable(t, ask("finish", whole.finishRequest(t, s.url, bearer, 0)))
			requireUnavailable(t, ask("get", newRequest(t, http.MethodGet, s.url+"/file-upload/"+whole.SessionID, bearer, "")))
			require.Equal(t, map[string]int{"preparing": 2, "aborted": 1}, s.sessions(), "nothing is left open of what failed")

			// The work of the object store for an abort can wait.
			aborted := ask("abort", newRequest(t, http.MethodPost, s.url+"/file-upload/"+many.SessionID+"/abort", bearer, ""))
			require.Equal(t, http.StatusOK, aborted.status, aborted.body)
			require.Equal(t, http.StatusOK, me(t, s, bearer).status, "who needs no files is not concerned")
			await(t, "readiness says so", func() bool { return s.ready("degraded") })

			between.set(behaviour{})

			var session prepared

			again := send(t, repeated())
			require.Equal(t, http.StatusOK, again.status, again.body)
			again.json(t, &session)
			session.Files[1].send(t, 2)
			session.requireFinished(t, session.finish(t, s, bearer, 1), 1, "preparing")
			whole.requireFinished(t, whole.finish(t, s, bearer, 0), 0, "completed")
			await(t, "readiness says so", func() bool { return s.ready("ok") })
		})
	}

	t.Run("slow", func(t *testing.T) {
		t.Parallel()

		between, settings := newStoreProxy(t)
		s := start(t, append(settings, "QUERN_REQUEST_TIMEOUT="+requestTimeout.String())...)
		bearer := s.newKey().token("slow")
		many := prepare(t, s, bearer, slices.Repeat([]int64{1}, 100)...)
		many.Files[42].send(t, 1)

		between.set(behaviour{delay: requestTimeout / 50}) // delay of each call; a hundred calls in sequence would exceed the timeout

		answer := call(t, http.MethodGet, s.url+"/file-upload/"+many.SessionID, bearer, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)

		var state struct {
			Files []struct {
				FileID string
				Parts  []struct{ Size int64 }
			}
		}

		answer.json(t, &state)
		require.Len(t, state.Files, 100)

		for i, file := range state.Files {
			require.Equal(t, many.Files[i].FileID, file.FileID)
			require.Len(t, file.Parts, map[bool]int{true: 1}[i == 42])
		}
	})

	t.Run("from the start", func(t *testing.T) {
		t.Parallel()

		between, settings := newStoreProxy(t)
		between.set(behaviour{refuse: true})

		realm := newRealm(t)
		s := start(t, append(settings, "QUERN_OIDC_ISSUER="+realm.issuer())...)
		requireReady(t, s, "degraded")

		bearer := realm.importKey(t).token("outage")
		requireUnavailable(t, call(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(1)))

		between.set(behaviour{})
		prepare(t, s, bearer, 1)
		await(t, "readiness says so", func() bool { return s.ready("ok") })
	})

	t.Run("another deployment's place", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		object, err := s.place.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &s.place.bucket, Key: new(s.place.prefix + "deployment")})
		require.NoError(t, err)

		holder, err := io.ReadAll(object.Body)
		require.NoError(t, err)
		require.NoError(t, uuid.Validate(string(holder)))

		other := []string{"QUERN_DATABASE_URL=" + createDatabase(t)}
		migrate := exec.CommandContext(t.Context(), binary(), "migrate")
		migrate.Env = other
		written, err := migrate.CombinedOutput()
		require.NoError(t, err, string(written))

		serve := exec.CommandContext(t.Context(), binary(), "serve")
		serve.Env = slices.Concat(s.settings, other)
		written, err = serve.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(written), "belong to the deployment")
		require.Contains(t, string(written), string(holder))
	})
}

// ready reports whether the readiness of the service is this word.
func (s *service) ready(word string) bool {
	s.t.Helper()

	return strings.Contains(call(s.t, http.MethodGet, s.root+"/readyz", "", "").body, `"`+word+`"`)
}

// sessions returns the number of upload sessions by status.
func (s *service) sessions() map[string]int {
	s.t.Helper()

	count := map[string]int{}

	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var (
			status string
			number int
		)

		rows, err := connection.Query(ctx, `SELECT status, count(*) FROM upload_sessions GROUP BY status`)
		require.NoError(s.t, err)

		_, err = pgx.ForEachRow(rows, []any{&status, &number}, func() error {
			count[status] = number

			return nil
		})
		require.NoError(s.t, err)
	})

	return count
}
