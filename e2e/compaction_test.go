package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

const (
	rowsOfPost = 10
	withMisfit = "n,name\n1,a\nx,b\n3,c\n" // its second row is set aside
)

// postOf returns a body of rows whose numbers depend on the number of the post.
func postOf(post int) string {
	rows := make([]string, rowsOfPost)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"n": %d, "name": "post %d"}`, 1000+post*rowsOfPost+i, post)
	}

	return `{"data": [` + strings.Join(rows, ", ") + `]}`
}

// dataFiles returns the number of data files of the current snapshot.
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

// awaitCompacted waits until no compaction is due.
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

// requireSources checks that no posted row has a provenance, and that every other row has its file and row number.
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

// TestCompaction checks that compaction reduces the number of data files while clients write and read, and that they notice no
// other effect than speed.
func TestCompaction(t *testing.T) {
	t.Parallel()

	posts := loops(1000)
	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_SANDBOX_IDLE_PROCESSES=4")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	d.bearer = value(t, call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "compaction"}`))

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

	if full() { // `make bench NAME=compacted` measures this too
		d.requireAsQuick(posts)
	}
}

// requireAsQuick compares the time of a statement with that on the same rows in one file.
func (d *filled) requireAsQuick(posts int) {
	d.t.Helper()

	var rows strings.Builder

	rows.WriteString("n,name\n")

	for n := range posts * rowsOfPost {
		fmt.Fprintf(&rows, "%d,post %d\n", 1000+n, n/rowsOfPost)
	}

	one := d.beside("one", "")
	one.named("", "all.csv", rows.String())

	// Other tests use the machine too, so both statements alternate many times.
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

// TestCompactionKilled kills the process repeatedly during compaction.
func TestCompactionKilled(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_MAINTENANCE_INTERVAL=3s")...)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	d.bearer = value(t, call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "compaction"}`))
	d.named(`"options": {"types": {"n": "bigint"}}`, "first.csv", withMisfit)

	posts, killed := 0, map[string]int{}

	for range rounds(100) {
		kill.Round(t)

		process := s.process.Process
		way := []string{".parquet", "-m0.avro", ".metadata.json", "read"}[rand.N(4)]

		var posting sync.WaitGroup

		for range 9 {
			post := posts
			posts++

			posting.Go(func() { d.stored(postOf(post)) })
		}

		posting.Wait()
		// From now on only compaction and, after half a minute, a profile read or write files.
		store.set(behaviour{early: rand.N(2) == 0, cut: func() { _ = kill.Process(t, process) }, cuts: func(r *http.Request) bool {
			if way == "read" {
				return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".parquet")
			}

			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, way)
		}})

		select {
		case <-s.exited:
			killed[way]++
		case <-time.After(8 * time.Second): // compaction was finished before
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

// requireNothingLeft checks that everything that was left behind is removed, that nothing else is removed, and that every object
// has a row.
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
	// The object store may have received an object of a killed process after its row was deleted.
	s.t.Logf("fsck: %s", strings.TrimSpace(s.quernd("fsck", "--age", "0s", "--delete")))
	require.Equal(s.t, "0 lost, 0 orphans\n", s.quernd("fsck", "--age", "0s"))
	s.restart()
}
