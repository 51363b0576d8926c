//go:build soak

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
	"quern.dev/quern/stack"
)

const (
	soakUsers   = 50
	soakPause   = 12 * time.Second // longest pause of a user between two operations
	faultEvery  = 30 * time.Second
	faultLasts  = 10 * time.Second
	longestHelp = 30 * time.Second // recovery after a fault
	orderCount  = `SELECT "mark", count(*) AS n FROM "orders" GROUP BY "mark"`
	orderAsked  = "How many orders are there by mark?"
)

// soak is two replicas of each role behind a proxy, the users that work with them, and what the users know.
type soak struct {
	t       *testing.T
	random  *rand.Rand
	toxic   *toxiproxy
	apis    []*service
	workers []*service
	front   string // address of the API for users
	people  []*soakUser
	prober  *soakUser
	times   soakTimes
	series  soakSeries

	mutex    sync.Mutex
	phase    int // odd while a fault lasts, and until the service has recovered from it
	accepted int // questions
	cuts     int // streams that lost their connection
	healed   map[string][]time.Duration
}

// soakTrend is the shortest duration after which a trend says something: before it, pools and caches still fill.
const soakTrend = 20 * time.Minute

// TestSoak runs users and faults for SOAK_TIME (default: an hour). SOAK_SEED repeats the faults and the choices of an earlier run.
//
// The rules: no acknowledged row is lost or there twice, no answer has a row that the caller may not see, who may see a row gets it,
// events have no gaps, no answer has the status 500, the service has recovered from each fault after 30 seconds, memory, goroutines,
// connections, open files and disk do not grow, and at the end store and database agree.
func TestSoak(t *testing.T) { //nolint:paralleltest // it takes the machine for itself
	kill.Loop(t)

	length := time.Hour
	if given := os.Getenv("SOAK_TIME"); given != "" {
		var err error

		length, err = time.ParseDuration(given)
		require.NoError(t, err, "SOAK_TIME")
	}

	seed := rand.Uint64()
	if given := os.Getenv("SOAK_SEED"); given != "" {
		var err error

		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, "SOAK_SEED")
	}

	t.Logf("seed %d: %d users, each with a pause of at most %v between two operations, for %v; a fault every %v", seed, soakUsers, soakPause, length, faultEvery)

	k := newSoak(t, seed, migratedDatabase(t))
	k.settle()
	k.heal("start", time.Now())

	rules, err := os.ReadFile(rulesPath)
	require.NoError(t, err)

	watching := newPrometheus(t, string(rules), measureEvery, slices.Concat(k.apis, k.workers)...)
	working, enough := context.WithCancel(t.Context())
	defer enough()

	var users, measuring sync.WaitGroup

	for _, u := range k.people {
		users.Go(func() { u.work(working) })
	}

	measuring.Go(func() { k.measure(working) })

	began := time.Now()
	k.disturb(began.Add(length))
	enough()
	users.Wait()
	measuring.Wait()

	took := time.Since(began)

	watching.requirePanels(began)
	t.Logf("alerts that fired, with the shipped rules: %v", watching.fired(began))
	k.requireKept()
	k.report(took)

	if length >= soakTrend {
		k.requireFlat()
	}

	k.requireClean()
}

// newSoak starts all processes on a database. Everything that they talk to, and their users, are behind toxiproxy.
func newSoak(t *testing.T, seed uint64, database string, more ...string) *soak {
	t.Helper()

	k := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), toxic: newToxiproxy(t), healed: map[string][]time.Duration{}}
	m := newModel(t, func(said conversation) any {
		switch said.kind() {
		case "plan":
			return parts(part("Count the orders by mark"))
		case "answer":
			return "The orders are counted."
		default:
			return selects(orderCount)
		}
	})

	realm := common.realm(t)
	seen := realm.through(k.toxic.between("issuer", hostOf(t, realm.base)))
	settings := slices.Concat(m.settings(), more, []string{
		"QUERN_DATABASE_URL=" + strings.Replace(database, "@"+hostOf(t, database)+"/", "@"+k.toxic.between("database", hostOf(t, database))+"/", 1),
		"QUERN_S3_ENDPOINT=http://" + k.toxic.between("store", hostOf(t, stack.Env(t, "QUERN_TEST_S3_ENDPOINT"))),
		"QUERN_MODEL_HERE_URL=http://" + k.toxic.between("model", hostOf(t, m.server.URL)) + "/v1", "QUERN_MODEL_HERE_TIMEOUT=10s",
		"QUERN_OIDC_ISSUER=" + seen.issuer(), "QUERN_OIDC_KEYS_REFRESH=10s", "QUERN_CACHE_MAX_BYTES=64MiB", "QUERN_MAINTENANCE_WORKERS=1",
		"QUERN_INGEST_SPREAD_ABOVE=1", // several files are always spread over the workers
		// These are the defaults of the service, which are shorter than those of other tests.
		"QUERN_OIDC_TIMEOUT=5s", "QUERN_QUERY_WAIT_TIMEOUT=5s", "QUERN_DATABASE_ACQUIRE_TIMEOUT=2s", "QUERN_S3_TIMEOUT=5s", "QUERN_REQUEST_TIMEOUT=30s",
	})
	noWork := []string{
		"QUERN_RUN_WORKERS=0", "QUERN_INGEST_WORKERS=0", "QUERN_JOB_WORKERS=0", "QUERN_MAINTENANCE_WORKERS=0", "QUERN_EXPORT_WORKERS=0", "QUERN_WEBHOOK_SENDERS=0",
	}

	for i := range 4 {
		own := append(slices.Clone(settings), fmt.Sprintf("QUERN_SANDBOX_DIR=%s/%d", t.TempDir(), i)) // kept when the process is started again
		if i > 0 {
			own = append(own, "QUERN_S3_PREFIX="+k.apis[0].place.prefix, "QUERN_SECRET="+setting(k.apis[0].settings, "QUERN_SECRET"))
		}

		if i < 2 {
			k.apis = append(k.apis, start(t, append(own, noWork...)...))
			k.apis[i].databaseURL = database
		} else {
			k.workers = append(k.workers, start(t, own...))
			k.workers[i-2].databaseURL = database
		}
	}

	k.front = "http://" + k.toxic.between("front", newBalancer(t, k.apis).address) + "/api/v1"
	key := &signer{realm: seen, key: realm.shared.key, keyID: realm.shared.id}

	for i := range soakUsers {
		k.people = append(k.people, newSoakUser(k, key, i, seed))
	}

	k.prober = newSoakUser(k, key, soakUsers, seed)
	k.prober.wait = 10 * time.Second

	return k
}

func hostOf(t *testing.T, address string) string {
	t.Helper()

	parsed, err := url.Parse(address)
	require.NoError(t, err)

	return parsed.Host
}

// services returns all processes by name. The first of each role is never killed, so that its memory can be followed to the end.
func (k *soak) services() map[string]*service {
	return map[string]*service{"api 1": k.apis[0], "api 2": k.apis[1], "worker 1": k.workers[0], "worker 2": k.workers[1]}
}

// settle creates the datasets of all users, eight at a time.
func (k *soak) settle() {
	k.t.Helper()

	var settling sync.WaitGroup

	everybody := append(slices.Clone(k.people), k.prober)
	for first := range 8 {
		settling.Go(func() {
			for i := first; i < len(everybody); i += 8 {
				everybody[i].settle()
			}
		})
	}

	settling.Wait()
	require.False(k.t, k.t.Failed())
}

// disturb causes a fault every 30 seconds until the end. Every kind of fault comes once before one comes again.
func (k *soak) disturb(end time.Time) {
	k.t.Helper()

	for left := []soakFault(nil); time.Until(end) > faultEvery; {
		if len(left) == 0 {
			left = k.faults()
			k.random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}

		one := left[0]
		left = left[1:]
		began := time.Now()

		k.nextPhase()
		k.heal(one.name, one.happen())
		k.nextPhase()

		// Operations are also measured without a fault.
		time.Sleep(max(time.Until(began.Add(faultEvery)), faultEvery/6))
	}

	time.Sleep(time.Until(end))
}

// heal waits until everything works, and records how long this took since the end of a fault.
func (k *soak) heal(name string, since time.Time) {
	k.t.Helper()

	const longest = 3 * time.Minute

	why := k.prober.probe()
	for ; why != "" && time.Since(since) < longest; why = k.prober.probe() {
		time.Sleep(200 * time.Millisecond)
	}

	took := time.Since(since)
	k.t.Logf("%s %-20s recovered after %.1f s", time.Now().Format(time.TimeOnly), name, took.Seconds())

	k.mutex.Lock()
	k.healed[name] = append(k.healed[name], took)
	k.mutex.Unlock()

	if took > longestHelp && name != "start" {
		k.t.Errorf("recovery after %q took %v: %s", name, took.Round(time.Second), why)
	}
}

func (k *soak) nextPhase() {
	k.mutex.Lock()
	defer k.mutex.Unlock()

	k.phase++
}

// timed does something and records how long it took.
func (k *soak) timed(name string, do func()) {
	phase := func() int {
		k.mutex.Lock()
		defer k.mutex.Unlock()

		return k.phase
	}

	began, before := time.Now(), phase()

	do()
	k.times.add(name, time.Since(began), before%2 == 1 || phase() != before)
}

// awaitEnd waits until nothing is in progress.
func (k *soak) awaitEnd() {
	k.t.Helper()

	one := k.apis[0]
	awaitFor(k.t, 5*time.Minute, "all work has ended", func() bool {
		return one.count(`SELECT (SELECT count(*) FROM ingestions WHERE status IN ('queued', 'running')) + (SELECT count(*) FROM runs WHERE status = 'running')`) == 0
	})
}

// requireKept checks that all work ends, and that what was acknowledged is there.
func (k *soak) requireKept() {
	k.t.Helper()
	k.awaitEnd()

	for _, one := range k.workers {
		one.stop() // maintenance would create snapshots while the tables are read
	}

	k.requireRows()

	for _, one := range k.workers {
		one.restart()
	}

	k.requireEvents()
}

// requireRows compares all tables, as another implementation of Iceberg reads them, with what the users know.
func (k *soak) requireRows() {
	k.t.Helper()

	acknowledged, unknown, appeared := 0, 0, 0

	for _, u := range append(slices.Clone(k.people), k.prober) {
		found := map[int64]int{}
		for _, row := range u.dataset("orders").table().rows {
			found[number(row)]++
		}

		for id := range u.acknowledged {
			if found[id] != 1 {
				k.t.Errorf("the acknowledged row %d of %s is there %d times", id, u.name, found[id])
			}

			delete(found, id)
		}

		for id := range u.unknown {
			appeared += found[id]
			if found[id] > 1 {
				k.t.Errorf("the row %d of %s, which nobody acknowledged, is there %d times", id, u.name, found[id])
			}

			delete(found, id)
		}

		require.Empty(k.t, found, "rows of %s that nobody sent", u.name)

		acknowledged += len(u.acknowledged)
		unknown += len(u.unknown)

		versions := map[int64]int64{}

		for _, row := range u.dataset("ledger").table().rows {
			_, twice := versions[number(row)]
			require.False(k.t, twice, "row %d of the ledger of %s is there twice", number(row), u.name)

			versions[number(row)], _ = row[1].(int64)
		}

		require.Equal(k.t, u.ledger, versions, "the ledger of %s", u.name)
	}

	k.t.Logf("%d rows acknowledged, all there once; %d rows without an answer, %d of them there", acknowledged, unknown, appeared)
}

// requireEvents checks the runs: each question is there once, and its events have no gaps.
func (k *soak) requireEvents() {
	k.t.Helper()

	one := k.apis[0]
	require.Zero(k.t, one.count(`
		SELECT count(*) FROM runs r WHERE last_seq <> (SELECT count(*) FROM run_events e WHERE e.run_id = r.id)
			OR last_seq <> (SELECT max(seq) FROM run_events e WHERE e.run_id = r.id)`), "runs whose events have gaps")
	require.Equal(k.t, k.accepted, one.count(`SELECT count(*) FROM runs r JOIN accounts a ON a.id = r.account_id WHERE a.username <> $1`, k.prober.name), "a question is there twice, or lost")
	k.t.Logf("%d questions, each there once with all of its events; %d streams lost their connection and continued", k.accepted, k.cuts)
}

// requireClean checks that store and database agree, after the uploads that the prober gave up are aborted.
func (k *soak) requireClean() {
	k.t.Helper()

	one := k.apis[0]
	for _, id := range one.texts(`SELECT id::text FROM upload_sessions WHERE status = 'preparing'`) {
		aborted := call(k.t, http.MethodPost, one.url+"/file-upload/"+id+"/abort", k.prober.bearer(), "")
		require.Equal(k.t, http.StatusOK, aborted.status, aborted.body)
	}

	await(k.t, "no upload is open in the store", func() bool { return len(one.place.uploads()) == 0 })
	k.apis[0].stop()
	k.apis[1].stop()
	(&loadLoop{t: k.t, replicas: k.workers}).requireClean()
	k.t.Log("fsck: 0 lost, 0 orphans")
}

// sizes returns the size of the database, and of the objects in the store.
func (k *soak) sizes() (database, store int64) {
	k.t.Helper()
	withDatabase(k.t, k.apis[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(k.t, connection.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&database))
	})

	for _, size := range k.apis[0].place.objects() {
		store += size
	}

	return database, store
}

// folderSize returns the size of the files in a folder that is in use.
func folderSize(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil { // the file may be gone
				size += info.Size()
			}
		}

		return nil
	})

	return size
}

// isReady reports whether a process says that it and all that it needs work.
func isReady(ctx context.Context, s *service) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()

	answer, err := try(newRequest(s.t, http.MethodGet, s.root+"/readyz", "", "").WithContext(ctx))

	return err == nil && answer.status == http.StatusOK && strings.Contains(answer.body, `"ok"`)
}
