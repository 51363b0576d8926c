package e2e

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestShutdown(t *testing.T) {
	t.Parallel()

	t.Run("a request under way ends well", func(t *testing.T) {
		t.Parallel()

		s := start(t, "QUERN_DRAIN_DELAY=2s")
		slow := s.slowRequest(t)

		signalled := time.Now()
		s.terminate(t)
		await(t, "readiness says no", func() bool { return readiness(t, s) == http.StatusServiceUnavailable })
		require.Less(t, time.Since(signalled), time.Second)
		require.Equal(t, http.StatusOK, me(t, s, slow.token).status, "load balancers need a moment to leave")

		await(t, "new connections are refused", func() bool { return !connects(s) })
		require.GreaterOrEqual(t, time.Since(signalled), 2*time.Second)
		require.True(t, s.running(), "the slow request is not done")

		slow.release()
		require.Equal(t, http.StatusCreated, (<-slow.answered).status)
		requireExit(t, s, 2*time.Second)
		require.True(t, s.process.ProcessState.Success(), s.process.ProcessState.String())
	})

	for name, notify := range map[string]string{"polling": "false", "notified": "true"} {
		t.Run("a clean stop is no error, "+name, func(t *testing.T) {
			t.Parallel()

			s := start(t, "QUERN_JOB_NOTIFY="+notify)

			// Stop at different times after the start, so that jobs are interrupted at different points.
			for range rounds(60) {
				pause(1200 * time.Millisecond)
				s.stop()
				s.restart()
			}

			s.stop()

			for line := range strings.Lines(s.log()) {
				// On a very busy machine River may not get a connection in time. This is not caused by the stop.
				if !strings.Contains(line, "leadership.attemptElect timed out") {
					require.NotContains(t, line, `"level":"ERROR"`)
				}
			}
		})
	}

	t.Run("a request that does not end is left behind", func(t *testing.T) {
		t.Parallel()

		s := start(t, "QUERN_SHUTDOWN_TIMEOUT=1s", "QUERN_DATABASE_LOCK_TIMEOUT=1m", "QUERN_DATABASE_QUERY_TIMEOUT=1m")
		s.slowRequest(t)
		s.terminate(t)
		requireExit(t, s, 5*time.Second)
	})

	t.Run("a stream of events ends at once", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		stream := watchEvents(t, s.realm.password("ada"), "", s)

		s.terminate(t)
		requireExit(t, s, 5*time.Second)
		require.NotContains(t, s.log(), "requests did not finish in time")
		stream.end()
	})

	t.Run("a second signal ends at once", func(t *testing.T) {
		t.Parallel()

		s := start(t, "QUERN_DRAIN_DELAY=1m")
		s.slowRequest(t)
		s.terminate(t)
		await(t, "readiness says no", func() bool { return readiness(t, s) == http.StatusServiceUnavailable })
		s.terminate(t)
		requireExit(t, s, time.Second)
	})
}

// slowRequest is a request that waits for a lock that the test holds.
type slowRequest struct {
	token    string
	answered chan *answer // receives nil if no answer arrived
	release  func()
}

func (s *service) slowRequest(t *testing.T) slowRequest {
	t.Helper()

	var made *answer

	// If the pool has only one connection, the service may still use it to start.
	await(t, "there is a token", func() bool {
		made = call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name":"caller"}`)

		return made.status != http.StatusServiceUnavailable
	})

	token := value(t, made)
	slow := slowRequest{token: token, answered: make(chan *answer, 1)}

	connection, err := pgx.Connect(t.Context(), s.databaseURL)
	require.NoError(t, err)

	slow.release = func() { _ = connection.Close(context.Background()) }
	t.Cleanup(slow.release)

	_, err = connection.Exec(t.Context(), `BEGIN; SELECT FROM accounts FOR UPDATE`)
	require.NoError(t, err)

	var waiting atomic.Bool

	request := newRequest(t, http.MethodPost, s.url+"/user/tokens", token, `{"name":"slow"}`)

	go func() {
		for {
			request.Body, _ = request.GetBody()
			answer, _ := try(request)

			// The service may use its only connection for other work at first.
			if waiting.Load() || answer == nil || answer.status != http.StatusServiceUnavailable {
				slow.answered <- answer

				return
			}
		}
	}()

	await(t, "the request waits for the lock", func() (waits bool) {
		withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(t, connection.QueryRow(ctx, `
				SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits))
		})

		return waits
	})
	waiting.Store(true)

	return slow
}

// terminate sends the stop signal and does not wait.
func (s *service) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, s.process.Process.Signal(syscall.SIGTERM))
}

func readiness(t *testing.T, s *service) int {
	t.Helper()

	return call(t, http.MethodGet, s.root+"/readyz", "", "").status
}

func connects(s *service) bool {
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.root, "http://"))
	if err != nil {
		return false
	}

	_ = connection.Close()

	return true
}

func requireExit(t *testing.T, s *service, within time.Duration) {
	t.Helper()

	began := time.Now()

	select {
	case <-s.exited:
		t.Logf("ended after %v", time.Since(began).Round(time.Millisecond))
	case <-time.After(patience):
	}

	require.Less(t, time.Since(began), within)
}
