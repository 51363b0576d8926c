package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestIngestKillLoop loads files and rows on two replicas while processes die at random: either replica, at any moment or while
// it stores or commits, and the sealed processes that read the files. Leases expire early. Clients repeat requests whose result
// they do not know, or never repeat. Acknowledged rows must exist exactly once. Of other requests either all rows or none must
// exist.
func TestIngestKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	one := start(t, append(settings, "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000")...)
	two := start(t, slices.Concat(one.place.settings(), []string{"QUERN_DATABASE_URL=" + one.databaseURL, "QUERN_OIDC_ISSUER=" + one.realm.issuer()})...)
	l := &loadLoop{t: t, store: store, replicas: []*service{one, two}, killed: map[string]int{}}
	// An API token outlives the loop and does not need the issuer.
	l.bearer = value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))

	for range 8 {
		l.datasets = append(l.datasets, newFilled(t, one, "ada", l.bearer))
	}

	for i := range loops(200) {
		l.loads = append(l.loads, l.newLoad(i))
	}

	l.runAll()
	l.requireExact()
	l.requireClean()
}

// loadLoop is the state of the test.
type loadLoop struct {
	t        *testing.T
	store    *proxy // in front of the first replica
	replicas []*service
	bearer   string
	datasets []*filled
	loads    []*loadOf
	killed   map[string]int
}

// loadOf is one attempt to load rows into a dataset.
type loadOf struct {
	*loadLoop

	into         *filled
	body         string // of the request
	address      string // below the address of the dataset
	key          string // idempotency key; empty if the client never repeats
	values       []int64
	acknowledged bool // the client got an answer that its rows are stored, or will be
	done         bool // the rows are stored
	failed       bool // its ingestion has failed
	ingestion    string
	retried      int
	failure      string // why the load can never succeed

	stored, aside int64 // rows, as the client was told
}

// runAll runs all loads, eight at a time, while processes are killed.
func (l *loadLoop) runAll() {
	dying, enough := context.WithCancel(l.t.Context())

	var killing, loading sync.WaitGroup

	killing.Go(func() { l.kill(dying) })

	queue := make(chan *loadOf)

	for range 8 {
		loading.Go(func() {
			for load := range queue {
				load.run()
			}
		})
	}

	for _, load := range l.loads {
		queue <- load
	}

	close(queue)
	loading.Wait()
	enough()
	killing.Wait()
}

func (l *loadLoop) newLoad(i int) *loadOf {
	l.t.Helper()

	load := &loadOf{loadLoop: l, into: l.datasets[i%len(l.datasets)]}
	if i%7 != 6 {
		load.key = uuid.NewString()
	}

	var lines []string

	for n := range int64(1 + i%50) {
		load.values = append(load.values, int64(i)*1000+n)
		lines = append(lines, strconv.FormatInt(int64(i)*1000+n, 10))
	}

	if i%3 == 2 {
		load.address, load.body = "/rows", `{"data": [{"n": `+strings.Join(lines, `}, {"n": `)+`}]}`

		return load
	}

	half := len(lines) / 2
	files := []string{"n\n" + strings.Join(lines[half:], "\n") + "\n"}

	if half > 0 {
		files = append(files, "n\n"+strings.Join(lines[:half], "\n")+"\n")
	}

	load.address = "/ingestions"
	load.body = fmt.Sprintf(`{"sessionId": %q}`, uploadFiles(l.t, l.replicas[0], l.bearer, files...))

	return load
}

// longEnough is how long a client repeats. The work of a dead process is taken over only after its lease expired, and processes
// die again and again.
const longEnough = 10 * patience

// run repeats the request until the client knows the result, and then until the files are loaded. The death of a process is not a
// reason to give up.
func (l *loadOf) run() {
	kill.Round(l.t)

	for deadline := time.Now().Add(longEnough); time.Now().Before(deadline); time.Sleep(rand.N(500 * time.Millisecond)) {
		var answer *answer

		switch {
		case l.ingestion == "":
			answer = l.ask(http.MethodPost, l.address, l.body)
		case l.failed:
			answer = l.ask(http.MethodPost, l.address+"/"+l.ingestion+"/retry", "")
		default:
			answer = l.ask(http.MethodGet, l.address+"/"+l.ingestion, "")
		}

		l.learn(answer)

		if l.done || l.failure != "" || (l.key == "" && !l.acknowledged) {
			return
		}
	}

	l.failure = "no end for a long time"
}

// learn evaluates an answer, which is nil if none arrived.
func (l *loadOf) learn(answer *answer) {
	switch {
	case answer == nil, answer.status >= http.StatusInternalServerError, answer.status == http.StatusConflict:
		return // the request is repeated
	case l.address == "/rows" && answer.status == http.StatusOK:
		l.acknowledged, l.done = true, true

		var kept keptRows
		if err := json.Unmarshal([]byte(answer.body), &kept); err != nil {
			l.failure = err.Error()
		}

		l.stored, l.aside = kept.Indexed, kept.RowsSetAside

		return
	case answer.status != http.StatusOK && answer.status != http.StatusAccepted:
		l.failure = answer.body

		return
	}

	var state ingestion
	if err := json.Unmarshal([]byte(answer.body), &state); err != nil {
		l.failure = err.Error()

		return
	}

	l.acknowledged, l.ingestion, l.failed, l.done = true, state.ID, state.Status == "failed", state.Status == "completed"
	l.stored, l.aside = state.Progress.RowsDone, state.Progress.RowsSetAside

	if l.failed {
		l.retried++

		if !slices.Contains([]string{"INTERNAL", "UNAVAILABLE"}, state.Error.Code) {
			l.failure = answer.body
		}
	}
}

// ask sends the request to a random replica. It returns nil if no answer arrived.
func (l *loadOf) ask(method, address, body string) *answer {
	replica := l.replicas[rand.N(len(l.replicas))]

	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()

	request := newRequest(l.t, method, replica.url+"/data/"+l.into.path()+address, l.bearer, body).WithContext(ctx)
	if l.key != "" && body != "" {
		request.Header.Set("Idempotency-Key", l.key)
	}

	answer, _ := try(request)

	return answer
}

// kill ends a random process, repeatedly.
func (l *loadLoop) kill(dying context.Context) {
	for {
		select {
		case <-dying.Done():
			return
		case <-time.After(rand.N(2 * time.Second)):
		}

		victim := l.replicas[rand.N(len(l.replicas))]

		switch way := rand.N(8); way {
		case 0, 1:
			l.killed["server"]++
			victim.kill()
			victim.restart()
		case 2, 3, 4:
			what := []string{".parquet", ".avro", ".metadata.json"}[way-2]
			l.killAt(dying, what)
		case 5, 6:
			for _, child := range childrenOf(victim.process.Process.Pid) {
				if kill.ID(l.t, child) == nil {
					l.killed["child"]++
				}
			}
		case 7:
			l.killed["leases"]++
			withDatabase(l.t, l.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
				_, err := connection.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second'`)
				require.NoError(l.t, err)
			})
		}
	}
}

// killAt ends the first replica when it writes an object with this suffix, before or after the object store has it.
func (l *loadLoop) killAt(dying context.Context, suffix string) {
	first := l.replicas[0]
	process := first.process.Process
	l.store.set(behaviour{early: rand.N(2) == 0, cut: func() { _ = kill.Process(l.t, process) }, cuts: func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, suffix)
	}})

	select {
	case <-first.exited:
		l.killed[suffix]++
	case <-time.After(5 * time.Second): // no such object was written
	case <-dying.Done():
	}

	l.store.set(behaviour{})

	if !first.running() {
		first.restart()
	}
}

// childrenOf returns the children of a process.
func childrenOf(parent int) (children []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		stat, _ := os.ReadFile(path) // the process may have ended
		_, after, _ := strings.Cut(string(stat), ") ")

		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			children = append(children, child)
		}
	}

	return children
}

// requireExact checks that every dataset has exactly the expected rows.
func (l *loadLoop) requireExact() {
	l.t.Helper()

	var acknowledged, retried, unknown, there int

	// Ingestions that no client waits for must end too, and no job may be repeated endlessly.
	await(l.t, "all has ended", func() (ended bool) {
		withDatabase(l.t, l.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(l.t, connection.QueryRow(ctx, `
				SELECT NOT EXISTS (SELECT FROM ingestions WHERE status IN ('queued', 'running')) AND NOT EXISTS (SELECT FROM leases)`).Scan(&ended))
		})

		return ended
	})

	for _, d := range l.datasets {
		count := map[int64]int{}
		for _, row := range d.table().rows {
			count[number(row)]++
		}

		for _, load := range l.loads {
			if load.into != d {
				continue
			}

			times := map[int]int{}
			for _, n := range load.values {
				times[count[n]]++
				delete(count, n)
			}

			if load.acknowledged {
				acknowledged++
				require.Equal(l.t, map[int]int{1: len(load.values)}, times, "acknowledged: %s %s", load.address, load.body)
			} else {
				unknown++
				there += times[1] / len(load.values)
				require.Len(l.t, times, 1, "in part: %s %s", load.address, load.body)
				require.Zero(l.t, times[2], "twice: %s %s", load.address, load.body)
			}
		}

		require.Empty(l.t, count, "rows that nobody sent, or that are there twice")
	}

	for _, load := range l.loads {
		require.Empty(l.t, load.failure, "%s %s", load.address, load.body)
		require.Equal(l.t, load.acknowledged, load.done)

		retried += load.retried
	}

	l.t.Logf("%d acknowledged (%d tries more), %d not, of which %d are there; killed: %v", acknowledged, retried, unknown, there, l.killed)
}

// requireClean checks that the object store has exactly the objects that rows know, after cleanup has removed what was left
// behind.
func (l *loadLoop) requireClean() {
	l.t.Helper()

	one, two := l.replicas[0], l.replicas[1]
	two.stop()
	one.stop()
	withDatabase(l.t, one.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE lake_files SET remove_at = now() - interval '1 second' WHERE remove_at IS NOT NULL`)
		require.NoError(l.t, err)
	})
	one.cleanAtStart()
	one.restart()

	known := func() (keys []string, due int) {
		withDatabase(l.t, one.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			rows, err := connection.Query(ctx, `SELECT object_key FROM lake_files`)
			require.NoError(l.t, err)

			keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(l.t, err)
			require.NoError(l.t, connection.QueryRow(ctx, `SELECT count(*) FROM lake_files WHERE remove_at < now()`).Scan(&due))
		})

		return keys, due
	}

	await(l.t, "what was left behind is removed", func() bool {
		_, due := known()

		return due == 0
	})
	require.Equal(l.t, "0 lost, 0 orphans\n", one.quernd("fsck"), "today's are not judged while somebody may be at them")
	one.stop()

	removed := one.quernd("fsck", "--age", "0s", "--delete")
	l.t.Logf("fsck: %s", removed[strings.LastIndex(strings.TrimSpace(removed), "\n")+1:])
	require.Contains(l.t, removed, "0 lost, ")
	require.Equal(l.t, "0 lost, 0 orphans\n", one.quernd("fsck", "--age", "0s"))

	keys, _ := known()
	for key := range one.place.objects() {
		if strings.HasPrefix(key, "lake/") {
			require.Contains(l.t, keys, key, "no row knows it")
		}
	}

	require.Empty(l.t, one.place.uploads())
}
