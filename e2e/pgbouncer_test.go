package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// behindPgBouncer lists the tests whose services reach the stack's PostgreSQL through PgBouncer in transaction mode. They cover
// every kind of work. With QUERN_TEST_PGBOUNCER_ALL=yes all tests do, see make e2e-pgbouncer.
var behindPgBouncer = []string{ //nolint:gochecknoglobals // never changed
	"TestPgBouncer", "TestScenarios", "TestCatalogScenarios", "TestUploadScenarios", "TestLinkScenarios", "TestAskStream", "TestResumeEverywhere",
	"TestRunsDeleted", "TestExportLater", "TestTables", "TestSearch", "TestProfileWhen", "TestGroupCommit", "TestFeedback", "TestRevokedMidRun",
	"TestIdempotency", "TestStreamOrder",
}

// throughPgBouncer returns the address of the database through PgBouncer, for the tests behind it.
func throughPgBouncer(t *testing.T, database string) (pooled string, is bool) {
	t.Helper()

	name, _, _ := strings.Cut(t.Name(), "/")
	isBehind := os.Getenv("QUERN_TEST_PGBOUNCER_ALL") == "yes" || slices.Contains(behindPgBouncer, name)
	server, err := url.Parse(stack.Env(t, "QUERN_TEST_DATABASE_URL"))
	require.NoError(t, err)

	// A test with its own PostgreSQL server, or with a proxy in front of it, keeps its address.
	if !isBehind || !strings.Contains(database, "@"+server.Host+"/") {
		return "", false
	}

	return strings.Replace(database, "@"+server.Host+"/", "@"+stack.Env(t, "QUERN_TEST_PGBOUNCER")+"/", 1), true
}

// TestPgBouncer checks that everything for which sessions, prepared statements or notifications might be needed works behind
// PgBouncer in transaction mode: jobs with their leases, locks, streams from another replica, and cancelling. Nothing may be left
// on the connections, which other clients use next.
func TestPgBouncer(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=100")
	require.Equal(t, "true", setting(s.settings, "QUERN_DATABASE_POOLER"))
	require.Contains(t, setting(s.settings, "QUERN_DATABASE_URL"), "@"+stack.Env(t, "QUERN_TEST_PGBOUNCER")+"/")

	two := another(t, s, scripted, "QUERN_RUN_MAX_PER_USER=100")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	// Several ingestions at a time: each job takes the lease of its ingestion and the lease for commits of the table.
	var loads sync.WaitGroup
	for n := range 4 {
		loads.Go(func() { d.loaded("", fmt.Sprintf("n\n%d\n", n)) })
	}

	loads.Wait()
	d.stored(`{"data": [{"n": 4}]}`)
	require.Len(t, d.table().rows, 5)

	// Runs start at the same time on one replica and are followed on the other. A lock on the account orders their starts.
	step := `{"instruction": "count", "queries": ["SELECT count(*) AS n FROM orders"]}`

	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			run := d.accept("assistant", `{"response": "Done.", "steps": [`+step+`]}`)
			events := follow(t, newRequest(t, http.MethodGet, two.url+"/query/runs/"+run.RunID+"/events", d.bearer, ""), 1000)

			if len(events) == 0 || !strings.Contains(events[len(events)-1].data, "Done.") {
				t.Errorf("the stream ends with %+v", events)
			}
		})
	}

	runs.Wait()

	// A run that would take a minute is cancelled on the other replica.
	long := d.accept("assistant", `{"pause": 60000, "response": "Late.", "steps": [`+step+`]}`)
	await(t, "the run is at work", func() bool { return d.statusOf(long.RunID) == "running" })
	cancelled := call(t, http.MethodPost, two.url+"/query/runs/"+long.RunID+"/cancel", d.bearer, "")
	require.Less(t, cancelled.status, http.StatusBadRequest, cancelled.body)
	await(t, "the run is cancelled", func() bool { return d.statusOf(long.RunID) == "cancelled" })

	require.Zero(t, s.count(`SELECT count(*) FROM river_job WHERE cardinality(errors) > 0`), "a job failed")
	await(t, "no lease is held for ever", func() bool { return s.count(`SELECT count(*) FROM leases`) == 0 })
	await(t, "no lock stays on a connection", func() bool {
		return s.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 0
	})

	for _, replica := range []*service{s, two} {
		require.NotRegexp(t, `SQLSTATE (22P02|26000|42P05|08P01)`, replica.log())
	}

	s.requireRights(t, "ok", "runs as the role "+servingRole)
	s.requirePastPooler(t)
}

// requirePastPooler checks that quernd refuses what does not work through a pooler.
func (s *service) requirePastPooler(t *testing.T) {
	t.Helper()

	for _, refused := range []struct {
		arguments []string
		setting   string
		says      string
	}{
		{[]string{"migrate"}, "", "QUERN_DATABASE_DIRECT_URL is required"},
		{[]string{"serve"}, "QUERN_JOB_NOTIFY=true", "QUERN_JOB_NOTIFY and QUERN_DATABASE_POOLER cannot both be true"},
		{[]string{"doctor"}, "QUERN_DATABASE_POOLER=false", "set QUERN_DATABASE_POOLER=true"},
	} {
		command := exec.CommandContext(t.Context(), binary(), refused.arguments...)
		command.Env = slices.Concat(s.settings, []string{"QUERN_SANDBOX_DIR=" + t.TempDir(), refused.setting})
		said, err := command.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), refused.says)
	}

	// Commands that need no lock work through the pooler too.
	list := exec.CommandContext(t.Context(), binary(), "user", "list")
	list.Env = s.settings
	said, err := list.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "ada")
}

func (d *filled) statusOf(run string) string {
	d.t.Helper()

	var now asked

	call(d.t, http.MethodGet, d.s.url+"/query/runs/"+run, d.bearer, "").json(d.t, &now)

	return now.Status
}
