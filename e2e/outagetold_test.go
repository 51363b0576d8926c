package e2e

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestOutageTold checks that the log of an outage of the database has a few lines and one line at its end, and that readiness
// names the database.
func TestOutageTold(t *testing.T) {
	t.Parallel()

	database := newPostgres(t)
	s := database.serve(t)
	before := len(s.log())
	database.run("down")

	requireUnready(t, s)
	await(t, "the queue has failed", func() bool { return strings.Contains(s.log()[before:], "Error fetching jobs") })

	// The object store is checked every ten seconds. It must not be reported as the cause.
	await(t, "database and store were compared", func() bool { return strings.Contains(s.log()[before:], "could not be compared") })

	detail := call(t, http.MethodGet, s.admin+"/readyz", "", "").body
	require.Regexp(t, `"name":"database","required":true,"ok":false,"problem":"it cannot be reached: [^"]*QUERN_DATABASE_URL`, detail)
	require.Contains(t, detail, `"name":"object store","required":false,"ok":true`)

	log := s.log()[before:]
	fetching := strings.Count(log, "Error fetching jobs")
	t.Logf("%d lines of the queue that fails to fetch", fetching)
	require.LessOrEqual(t, fetching, 6, "a line for each cause: it shuts down, it is gone, it refuses")

	warnings := regexp.MustCompile(`"level":"(WARN|ERROR)","msg":"([^"]+)"`).FindAllStringSubmatch(log, -1)
	require.LessOrEqual(t, len(warnings), 60, "%v", warnings)

	database.run("up")
	await(t, "readiness says so", func() bool { return s.ready("ok") })
	await(t, "it is over", func() bool {
		return regexp.MustCompile(`"a repeated error has stopped","message":"[^"]+","duration":"[\d.]+m?s","left_out":\d+`).MatchString(s.log()[before:])
	})
}

// TestStartNamesWhatIsWrong checks that quernd does not start with settings that the database or the object store refuses, and
// names the setting to correct.
func TestStartNamesWhatIsWrong(t *testing.T) {
	t.Parallel()

	address, err := url.Parse(migratedDatabase(t))
	require.NoError(t, err)

	changed := func(change func(u *url.URL)) string {
		other := *address
		change(&other)

		return "QUERN_DATABASE_URL=" + other.String()
	}

	place := newPlace(t)

	for name, test := range map[string]struct {
		setting string
		says    []string
	}{
		"password":       {changed(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wr0ng-password") }), []string{"refuses the role or its password", "QUERN_DATABASE_URL"}},
		"no database":    {changed(func(u *url.URL) { u.Path = "/nowhere" }), []string{"the database does not exist", "QUERN_DATABASE_URL"}},
		"no address":     {"QUERN_DATABASE_URL=://leaked", []string{"QUERN_DATABASE_URL"}},
		"bucket":         {"QUERN_S3_BUCKET=nowhere-at-all", []string{"the bucket does not exist", "QUERN_S3_BUCKET"}},
		"secret key":     {"QUERN_S3_SECRET_KEY=wr0ng-password", []string{"the signature", "QUERN_S3_SECRET_KEY"}},
		"access key":     {"QUERN_S3_ACCESS_KEY=wr0ng-password", []string{"does not know the key", "QUERN_S3_ACCESS_KEY"}},
		"listen address": {"QUERN_LISTEN_ADDR=192.0.2.1:1", []string{"QUERN_LISTEN_ADDR"}},
		"authorities":    {"QUERN_S3_CA_FILE=/nowhere.pem", []string{"QUERN_S3_CA_FILE cannot be read"}},
		"memory":         {"QUERN_QUERY_MEMORY=1KiB", []string{"QUERN_QUERY_MEMORY must be at least 16MiB"}},
		"engine":         {"QUERN_SANDBOX_ENGINE=/nowhere", []string{"QUERN_SANDBOX_ENGINE", "/nowhere: no such file"}},
		"origins":        {"QUERN_CORS_ORIGINS=*", []string{"QUERN_CORS_ORIGINS must be"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			serve := exec.CommandContext(ctx, binary(), "serve")
			serve.Env = slices.Concat(unstarted(t), place.settings(), []string{
				"QUERN_DATABASE_URL=" + address.String(), "QUERN_SANDBOX_DIR=" + t.TempDir(), test.setting,
			})
			written, err := serve.CombinedOutput()
			require.Error(t, err)

			for _, words := range test.says {
				require.Contains(t, string(written), words)
			}

			require.NotContains(t, string(written), "wr0ng-password")
			require.NotContains(t, string(written), password(t, address.String()))
		})
	}
}

// TestOutdatedReplicaStops checks that a replica that is not compatible with a newer schema ends by itself, and logs the reason.
func TestOutdatedReplicaStops(t *testing.T) {
	t.Parallel()

	s := start(t)

	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE schema_state SET compatible_from = 1000000`)
		require.NoError(t, err)
	})
	await(t, "the replica stops", func() bool { return !s.running() })
	require.False(t, s.process.ProcessState.Success())
	require.Contains(t, s.log(), "no longer works with this program: install a newer release")
	require.Contains(t, s.log(), "stopped")
}

// TestDrainClosesConnections checks that an answer closes its connection while the replica is draining, so that the next request
// goes to another replica.
func TestDrainClosesConnections(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_DRAIN_DELAY=30s")
	client := &http.Client{Transport: &http.Transport{}}
	closes := func() bool {
		answer, err := client.Do(newRequest(t, http.MethodGet, s.root+"/healthz", "", ""))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)

		return answer.Close
	}

	require.False(t, closes())
	s.terminate(t)
	await(t, "readiness says no", func() bool { return readiness(t, s) == http.StatusServiceUnavailable })
	require.True(t, closes())
	s.kill()
}
