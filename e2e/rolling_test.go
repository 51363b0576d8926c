//go:build soak

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// rolling replaces the processes of a soak by those of another version, while its users work.
type rolling struct {
	*soak

	pause     time.Duration // after each step
	followers []follower
	table     strings.Builder
}

// follower is a user who follows the events after a position.
type follower struct {
	*watcher

	u    *soakUser
	from int64
}

// TestRollingUpgrade upgrades an installation of an earlier commit to this version under load: it migrates while the old replicas serve, kills
// a migration in the middle, and replaces one replica after the other. Then it replaces them once more, by the same version. ROLLING_FROM is the
// commit (default: the one before the newest migration), ROLLING_TIME is the time between the steps together (default: 90 s).
//
// The test checks these rules. Every request succeeds, or gets a status with a Retry-After. The dataset has every acknowledged row once. No
// stream loses or repeats an event. No run and no load fails. At the end, quernd fsck finds no difference between store and database.
func TestRollingUpgrade(t *testing.T) { //nolint:paralleltest // it takes the machine for itself
	length := 90 * time.Second
	if given := os.Getenv("ROLLING_TIME"); given != "" {
		var err error

		length, err = time.ParseDuration(given)
		require.NoError(t, err, "ROLLING_TIME")
	}

	commit := earlier(t)
	old, database := builtAt(t, commit), createDatabase(t)
	migrateWith(t, old, database)

	r := &rolling{soak: newSoak(t, rand.Uint64(), database, "QUERN_TEST_PROGRAM="+old, "QUERN_DRAIN_DELAY=3s"), pause: length / 5}
	before := r.schema()

	r.settle()
	r.heal("start", time.Now())

	for i := 0; i < len(r.people); i += 10 { // these have an API token, which does not expire
		w := watchEvents(t, r.people[i].bearer(), "", &service{url: r.front})
		r.followers = append(r.followers, follower{w, r.people[i], w.position()})
	}

	working, enough := context.WithCancel(t.Context())
	defer enough()

	var users sync.WaitGroup

	for _, u := range r.people {
		users.Go(func() { u.work(working) })
	}

	users.Go(func() { // so that each moment without service shows
		for ; working.Err() == nil; waitFor(working, 50*time.Millisecond) {
			r.people[0].once(http.MethodGet, "/user/me", "")
		}
	})

	r.times.next()

	pairs := [][]*service{{r.apis[0], r.workers[0]}, {r.apis[1], r.workers[1]}}

	r.step("N-1", func() {})
	r.step("migration, killed", func() { killedInTheMiddle(t, database) })
	require.Equal(t, before, r.schema())
	r.step("migration, during a backup", func() { migrateDuringBackup(t, database) })
	t.Logf("N-1 is %.12s with schema %d, the schema of this version is %d", commit, before, r.schema())
	r.step("half replaced by N", func() { r.replace(binary(), pairs[0]...) })
	r.step("all replaced by N", func() { r.replace(binary(), pairs[1]...) })
	r.step("replaced by N again", func() { r.replace(binary(), slices.Concat(pairs...)...) })
	r.step("end", func() {
		enough()
		users.Wait()
		r.requireKept()
	})

	require.Zero(t, r.apis[0].count(`SELECT count(*) FROM runs WHERE error_code IN ('INTERNAL', 'UNAVAILABLE', 'TIMEOUT')`))

	for _, one := range r.followers {
		r.requireNotices(one)
	}

	r.print()
	r.requireClean()
}

func (r *rolling) schema() int {
	return r.apis[0].count(`SELECT max(version_id) FROM goose_db_version`)
}

// promised matches what a user may meet during an upgrade: success, the answers about data that the user may not see, and answers that say
// when to repeat the request. A run ends, but not because of the upgrade.
var promised = regexp.MustCompile(`^(2\d\d|404|422|409|429|503|JSON-RPC error to repeat|run completed.*|run failed.*(NOT_FOUND|FORBIDDEN|QUERY_INVALID))$`)

// step does something, waits under load, and checks how the requests were answered meanwhile.
func (r *rolling) step(name string, do func()) {
	r.t.Helper()

	began := time.Now()

	do()

	if name != "end" {
		time.Sleep(r.pause)
	}

	counts, gap := r.times.next()
	fmt.Fprintf(&r.table, "%-27s %6.0f %8.2f  %v\n", name, time.Since(began).Seconds(), gap.Seconds(), counts)
	r.t.Logf("%s: %.0f s, longest gap %.2f s, %v", name, time.Since(began).Seconds(), gap.Seconds(), counts)

	for what, times := range counts {
		if !promised.MatchString(what) {
			r.t.Errorf("%s: %d times %q", name, times, what)
		}
	}
}

// replace stops processes as a supervisor does, and starts another build in their place.
func (r *rolling) replace(program string, list ...*service) {
	r.t.Helper()

	for _, one := range list {
		began := time.Now()

		one.stop()

		stopped := time.Since(began)
		one.settings = append(one.settings, "QUERN_TEST_PROGRAM="+program)

		one.restart()
		r.t.Logf("%s: stopped after %.1f s, ready again %.1f s later", one.root, stopped.Seconds(), (time.Since(began) - stopped).Seconds())
	}
}

// killedInTheMiddle kills a migration that has changed tables and is about to record it.
func killedInTheMiddle(t *testing.T, database string) {
	t.Helper()
	withDatabase(t, database, func(ctx context.Context, connection *pgx.Conn) {
		tx, err := connection.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, `LOCK TABLE goose_db_version IN SHARE MODE`)
		require.NoError(t, err)

		migration := migrating(t, database)

		await(t, "the migration is in the middle", func() (waits bool) {
			require.NoError(t, tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'goose_db_version'::regclass AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waits))

			return waits
		})
		require.NoError(t, kill.Process(t, migration.Process))
		require.Error(t, migration.Wait())
		require.NoError(t, tx.Rollback(ctx))
	})
}

// migrateDuringBackup migrates while a transaction uses all tables, as pg_dump does.
func migrateDuringBackup(t *testing.T, database string) {
	t.Helper()
	withDatabase(t, database, func(ctx context.Context, connection *pgx.Conn) {
		tx, err := connection.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, `DO $$ BEGIN
			EXECUTE (SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ') || ' IN ACCESS SHARE MODE' FROM pg_class
				WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace);
		END $$`)
		require.NoError(t, err)

		migration := migrating(t, database)

		time.Sleep(10 * time.Second)
		require.NoError(t, tx.Rollback(ctx))
		require.NoError(t, migration.Wait(), migration.Stderr)
		t.Logf("the migration printed:\n%s", migration.Stdout)
	})
}

// migrating starts the migration of this version.
func migrating(t *testing.T, database string) *exec.Cmd {
	t.Helper()

	command := exec.Command(binary(), "migrate", "--grant", servingRole)
	command.Env = []string{"QUERN_DATABASE_URL=" + database}
	command.Stdout, command.Stderr = &output{}, &output{}
	require.NoError(t, command.Start())

	return command
}

// requireNotices checks that a follower got each event once and in order, as pages of the same events have them.
func (r *rolling) requireNotices(f follower) {
	r.t.Helper()

	var stored []string

	for after := f.from; ; {
		var page struct {
			Data        []notice
			LastEventID int64 `json:",string"`
		}

		answer := f.u.until(http.MethodGet, "/events?limit=100", "", "Last-Event-ID: "+strconv.FormatInt(after, 10))
		require.Equal(r.t, http.StatusOK, answer.status, answer.body)
		answer.json(r.t, &page)

		if len(page.Data) == 0 {
			break
		}

		stored = append(stored, f.own(page.Data)...)
		after = page.LastEventID
	}

	await(r.t, "the last event has arrived", func() bool { return len(f.own(f.events())) >= len(stored) })
	f.end()

	require.Equal(r.t, stored, f.own(f.events()), "the events of %s", f.u.name)
	require.Greater(r.t, f.opened, 3, "the stream of %s was not interrupted by every replacement", f.u.name)
	r.t.Logf("%s got %d events over %d connections, each once and in order", f.u.name, len(stored), f.opened)
}

// own returns the ids of the events of the user's own datasets and runs. What others share belongs to a stream only from then on.
func (f follower) own(list []notice) (ids []string) {
	for _, one := range list {
		if one.seq == 0 || one.seq > f.from {
			if one.Data.Username == f.u.name || one.Data.RunID != "" {
				ids = append(ids, one.ID)
			}
		}
	}

	return ids
}

// print prints what was measured.
func (r *rolling) print() {
	r.t.Helper()
	fmt.Fprintf(&r.table, "\n%-16s %7s %9s %9s %9s  (seconds, repetitions included)\n", "operation", "count", "p50", "p99", "max")

	for _, name := range slices.Sorted(maps.Keys(r.times.took)) {
		all := r.times.took[name].all
		fmt.Fprintf(&r.table, "%-16s %7d %9.2f %9.2f %9.2f\n", name, len(all), percentile(all, 50).Seconds(), percentile(all, 99).Seconds(), percentile(all, 100).Seconds())
	}

	r.t.Logf("\n%-27s %6s %8s  answers by status (seconds; gap: longest time without a request that succeeded)\n%s", "step", "took", "gap", r.table.String())
}

// earlier returns the commit from which the test upgrades.
func earlier(t *testing.T) string {
	t.Helper()

	from := os.Getenv("ROLLING_FROM")
	if from == "" {
		files, err := filepath.Glob("../internal/postgres/migrations/*.sql")
		require.NoError(t, err)

		from = "HEAD" // if the newest migration is not committed
		if added := git(t, "log", "-1", "--diff-filter=A", "--format=%H", "--", slices.Max(files)); added != "" {
			from = added + "^"
		}
	}

	return git(t, "rev-parse", "--verify", from+"^{commit}")
}

// builtAt returns the path of quernd, with its engine beside it, as they were at a commit. They are built once.
func builtAt(t *testing.T, commit string) string {
	t.Helper()

	folder := filepath.Join(toolsFolder(t), "quernd-"+commit)
	program := filepath.Join(folder, "quernd")

	if _, err := os.Stat(program); err == nil {
		return program
	}

	tree := filepath.Join(t.TempDir(), "tree")
	git(t, "worktree", "add", "--detach", tree, commit)

	defer git(t, "worktree", "remove", "--force", tree)

	made := folder + ".new"
	require.NoError(t, os.RemoveAll(made))

	for name, cgo := range map[string]string{"quernd": "0", "quern-engine": "1"} {
		build := exec.Command("go", "build", "-trimpath", "-tags", "scripted", "-o", filepath.Join(made, name), "./cmd/"+name)
		build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED="+cgo)

		said, err := build.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}

	require.NoError(t, os.Rename(made, folder))

	return program
}

func git(t *testing.T, arguments ...string) string {
	t.Helper()

	printed, err := exec.Command("git", arguments...).CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(arguments, " "), printed)

	return strings.TrimSpace(string(printed))
}
