package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	rowsOfPost = 10
	withMisfit = "n,name\n1,a\nx,b\n3,c\n" // its second row is set aside
)

// postOf is a body of rows whose numbers follow from that of the post.
func postOf(post int) string {
	rows := make([]string, rowsOfPost)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n": %d, "name": "post %d"}`, 1000+post*rowsOfPost+i, post)
	}

	return `{"data": [` + strings.Join(rows, ", ") + `]}`
}

// dataFiles is how many files the dataset has in force.
func (d *filled) dataFiles() (count int) {
	d.t.Helper()

	_, id := d.s.tableName(d.owner, d.namespace, d.name)
	withDatabase(d.t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(d.t, connection.QueryRow(ctx, `
			SELECT s.file_count FROM lake_tables t JOIN lake_snapshots s ON s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.id = t.snapshot_id
			WHERE t.dataset_id = $1`, id).Scan(&count))
	})

	return count
}

// awaitCompacted waits until nothing is left to be compacted.
func (d *filled) awaitCompacted() {
	d.t.Helper()

	_, id := d.s.tableName(d.owner, d.namespace, d.name)

	await(d.t, "files have become fewer", func() (done bool) {
		withDatabase(d.t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(d.t, connection.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM lake_upkeep WHERE dataset_id = $1 AND chore = 'compact')`, id).Scan(&done))
		})

		return done
	})
}

// requireSources: every row of a post has no source, every other one its file and number.
func (d *filled) requireSources(posts, files int) {
	d.t.Helper()

	found := d.result(`SELECT n, name FROM orders ORDER BY n, name LIMIT 100000`, "")
	require.Len(d.t, found.Data, posts*rowsOfPost+files*2)

	seen := map[string]int{}
	next := 0

	for _, row := range found.Data {
		n, _ := row["n"].(float64)
		metadata, _ := row["__metadata"].(map[string]any)

		if n >= 1000 {
			require.NotContains(d.t, metadata, "source")
			require.Equal(d.t, 1000+next, int(n), "all numbers, each once")

			next++

			continue
		}

		source, _ := metadata["source"].(map[string]any)
		require.Equal(d.t, row["n"], source["row"], "%v", row)

		name, _ := source["file"].(string)
		seen[name]++
	}

	require.Len(d.t, seen, files)

	for name, count := range seen {
		require.Equal(d.t, 2, count, name)
	}
}

// TestHousekeeping: files become fewer while others write and read, and nobody sees anything of it but that it is quicker.
func TestHousekeeping(t *testing.T) {
	t.Parallel()

	posts := loops(1000)
	s := start(t, "QUERN_UPKEEP_EVERY=1s", "QUERN_SANDBOX_READY=4")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	d.bearer = value(t, call(t, http.MethodPost, s.url+"/user/token", d.bearer, `{"name": "housekeeping"}`))

	d.named(`"options": {"types": {"n": "bigint"}}`, "first.csv", withMisfit)

	var (
		begun, acknowledged atomic.Int64
		asked               atomic.Int64
		posting, asking     sync.WaitGroup
		done                = make(chan struct{})
	)

	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}

				least := acknowledged.Load()
				found := d.result(`SELECT count(*) AS rows, count(DISTINCT n) AS numbers FROM orders WHERE n >= 1000`, "")
				most := begun.Load()

				count, _ := found.Data[0]["rows"].(float64)
				require.Zero(t, int(count)%rowsOfPost)
				require.LessOrEqual(t, int(least)*rowsOfPost, int(count))
				require.LessOrEqual(t, int(count), int(most)*rowsOfPost)
				require.Equal(t, found.Data[0]["rows"], found.Data[0]["numbers"])
				asked.Add(1)
			}
		})
	}

	for poster := range 4 {
		posting.Go(func() {
			for post := poster; post < posts; post += 4 {
				begun.Add(1)
				d.stored(postOf(post))
				acknowledged.Add(1)
			}
		})
	}

	posting.Wait()
	d.named(`"accept": ["loadedBefore"]`, "last.csv", withMisfit)
	close(done)
	asking.Wait()
	d.awaitCompacted()

	compactions := 0

	for _, one := range d.snapshots() {
		if one.Operation == "compact" {
			compactions++
		}
	}

	require.LessOrEqual(t, d.dataFiles(), 16)
	t.Logf("%d posts, %d answers, %d compactions, %d data files", posts, asked.Load(), compactions, d.dataFiles())
	require.Positive(t, compactions)
	require.Len(t, d.table().rows, posts*rowsOfPost+4)
	d.requireSources(posts, 2)

	if full() { // `make bench NAME=compacted` measures it too
		d.requireAsQuick(posts)
	}
}

// requireAsQuick compares with the same rows in one file.
func (d *filled) requireAsQuick(posts int) {
	d.t.Helper()

	var rows strings.Builder

	rows.WriteString("n,name\n")

	for n := range posts * rowsOfPost {
		fmt.Fprintf(&rows, "%d,post %d\n", 1000+n, n/rowsOfPost)
	}

	one := d.beside("one", "")
	one.named("", "all.csv", rows.String())

	// Others use the machine too, so there are many, one beside the other.
	const times = 100

	took := map[string][]time.Duration{}

	for range times {
		for _, name := range []string{"orders", "one"} {
			began := time.Now()
			d.result(`SELECT count(*) FROM `+name, "")
			took[name] = append(took[name], time.Since(began))
		}
	}

	middle := func(name string) time.Duration {
		slices.Sort(took[name])

		return took[name][times/2]
	}
	d.t.Logf("a count takes %v, in one file %v", middle("orders"), middle("one"))
	require.LessOrEqual(d.t, middle("orders"), middle("one")*13/10)
}

// TestHousekeepingKilled: the process dies in the middle of it, again and again.
func TestHousekeepingKilled(t *testing.T) {
	t.Parallel()

	store, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_UPKEEP_EVERY=3s")...)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	d.bearer = value(t, call(t, http.MethodPost, s.url+"/user/token", d.bearer, `{"name": "housekeeping"}`))
	d.named(`"options": {"types": {"n": "bigint"}}`, "first.csv", withMisfit)

	posts, killed := 0, map[string]int{}

	for range rounds(100) {
		process := s.process.Process
		way := []string{".parquet", "-m0.avro", ".metadata.json", "read"}[rand.N(4)]

		var posting sync.WaitGroup

		for range 9 {
			post := posts
			posts++

			posting.Go(func() { d.stored(postOf(post)) })
		}

		posting.Wait()
		// From now on nobody reads or writes files but those who compact.
		store.set(behaviour{early: rand.N(2) == 0, cut: func() { _ = process.Kill() }, cuts: func(r *http.Request) bool {
			if way == "read" {
				return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".parquet")
			}

			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, way)
		}})

		select {
		case <-s.exited:
			killed[way]++
		case <-time.After(8 * time.Second): // it was quicker
		}

		store.set(behaviour{})

		if s.running() {
			s.kill()

			killed["any time"]++
		}

		withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			for _, statement := range []string{`UPDATE leases SET until = now() - interval '1 second'`, `DELETE FROM river_leader`} {
				_, err := connection.Exec(ctx, statement)
				require.NoError(t, err)
			}
		})
		s.restart()

		found := d.result(`SELECT count(*) AS rows, count(DISTINCT n) AS numbers FROM orders WHERE n >= 1000`, "")
		require.EqualValues(t, posts*rowsOfPost, found.Data[0]["rows"])
		require.EqualValues(t, posts*rowsOfPost, found.Data[0]["numbers"])
	}

	d.awaitCompacted()
	require.LessOrEqual(t, d.dataFiles(), 16)
	require.Len(t, d.table().rows, posts*rowsOfPost+2)
	d.requireSources(posts, 1)
	t.Logf("%d posts, killed: %v, %d data files", posts, killed, d.dataFiles())
	s.requireNothingLeft()
	d.requireSources(posts, 1)
}

// requireNothingLeft: what was left behind goes, nothing else does, and no object is without a row.
func (s *service) requireNothingLeft() {
	s.t.Helper()
	s.stop()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE lake_files SET remove_at = now() - interval '1 second' WHERE remove_at IS NOT NULL`)
		require.NoError(s.t, err)
	})
	s.cleanAtStart()
	s.restart()
	await(s.t, "what was left behind is removed", func() bool {
		due := 0

		withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(s.t, connection.QueryRow(ctx, `SELECT count(*) FROM lake_files WHERE remove_at < now()`).Scan(&due))
		})

		return due == 0
	})
	require.Equal(s.t, "0 lost, 0 orphans\n", s.quernd("fsck"))
	s.stop()
	// Of a process that was killed the store may have got something after its row was gone.
	s.t.Logf("fsck: %s", strings.TrimSpace(s.quernd("fsck", "--age", "0s", "--delete")))
	require.Equal(s.t, "0 lost, 0 orphans\n", s.quernd("fsck", "--age", "0s"))
	s.restart()
}

// restoreTo goes back to a snapshot.
func (d *filled) restoreTo(snapshotID string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/snapshots/"+snapshotID+"/restore", "")
}

// dump writes the database to a file, and undump fills an empty one from it.
func dump(t *testing.T, databaseURL, path string) {
	t.Helper()

	printed, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--file", path, databaseURL).CombinedOutput()
	require.NoError(t, err, string(printed))
}

func undump(t *testing.T, databaseURL, path string) {
	t.Helper()

	printed, err := exec.CommandContext(t.Context(), "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", path, databaseURL).CombinedOutput()
	require.NoError(t, err, string(printed))
}

// TestRestoreOldDatabase: what was replaced by mistake comes back with one call. And if all of the database goes back to
// a backup, the store still has what it needs, whatever happened since.
func TestRestoreOldDatabase(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_UPKEEP_EVERY=1s", "QUERN_DELETE_GRACE=1h", "QUERN_SNAPSHOT_AGE=1h")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	// Replaced by mistake.
	d.stored(`{"data": [{"n": 1}, {"n": 2}]}`)
	good := d.describe().SnapshotID
	d.loaded(`"mode": "replace"`, "n\n7\n")
	mistake := d.describe().SnapshotID
	require.Equal(t, numbers(7), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(good).status)
	require.Equal(t, numbers(1, 2), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(mistake).status)
	require.Equal(t, numbers(7), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(good).status)

	// Datasets to which everything happens after the backup.
	datasets := map[string]*filled{"orders": d}
	for _, name := range []string{"quiet", "posted", "compacted", "replaced", "cleared", "deleted"} {
		datasets[name] = d.beside(name, `{"data": [{"n": 1}, {"n": 2}]}`)
	}

	for n := range 10 {
		datasets["compacted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
	}

	datasets["compacted"].awaitCompacted()

	before := map[string][]any{}
	for name := range datasets {
		before[name] = d.column(name)
	}

	backup := t.TempDir() + "/backup.sql"
	dump(t, s.databaseURL, backup)

	for round := range 2 {
		for n := range 10 {
			datasets["posted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
			datasets["compacted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
		}

		datasets["posted"].awaitCompacted()
		datasets["compacted"].awaitCompacted()
		datasets["replaced"].loaded(`"mode": "replace"`, "n\n7\n")
		require.Equal(t, http.StatusOK, datasets["cleared"].call(http.MethodPost, "/clear", "").status)

		if round == 0 {
			require.Equal(t, http.StatusNoContent, datasets["deleted"].call(http.MethodDelete, "", "").status)
		}

		s.forgetOld(func() bool {
			return len(datasets["posted"].snapshots()) == 1 && len(datasets["replaced"].snapshots()) == 1 && len(d.snapshots()) == 1
		})
	}

	require.Equal(t, http.StatusNotFound, d.restoreTo(mistake).status, "it is forgotten")
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))

	objects := len(s.place.objects())

	s.stop()

	// Back to the backup.
	restored := createDatabase(t)
	undump(t, restored, backup)

	s.databaseURL = restored
	s.settings = append(s.settings, "QUERN_DATABASE_URL="+restored)
	s.cleanAtStart()
	s.restart()

	for _, when := range []string{"at once", "after cleaning"} {
		for name, want := range before {
			require.Equal(t, want, d.column(name), "%s %s", name, when)
			require.Len(t, datasets[name].table().rows, len(want))
		}

		if when == "at once" {
			s.stop()
			s.cleanAtStart()
			s.restart()
			s.awaitJob("ingest.clean")
			s.awaitJob("upload.clean")
		}
	}

	require.Contains(t, s.quernd("fsck"), "0 lost, ")
	require.LessOrEqual(t, objects, len(s.place.objects()), "nothing was deleted")
	require.Equal(t, http.StatusOK, d.restoreTo(mistake).status)
	require.Equal(t, numbers(7), d.table().rows)
}

// forgetOld lets two hours go by for snapshots, and none for objects.
func (s *service) forgetOld(done func() bool) {
	s.t.Helper()
	s.stop()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			`UPDATE lake_snapshots SET committed_at = committed_at - interval '2 hours'`,
			`UPDATE lake_tables SET superseded_at = superseded_at - interval '2 hours'`,
		} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(s.t, err)
		}
	})
	s.cleanAtStart()
	s.restart()
	await(s.t, "old snapshots are forgotten", done)
}

// column is all numbers of a dataset, in order.
func (d *filled) column(name string) (cells []any) {
	d.t.Helper()

	for _, row := range d.result(`SELECT n FROM `+name+` ORDER BY n LIMIT 100000`, "").Data {
		cells = append(cells, row["n"])
	}

	return cells
}
