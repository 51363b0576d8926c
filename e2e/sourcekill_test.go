package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
	"quern.dev/quern/stack"
)

// TestSourceKillLoop runs sources on two replicas while processes die at random: either replica, at any moment or while it receives a file, and the sealed processes
// that read the files. Leases expire early. Files arrive all the time. In the end the dataset must have each file exactly once.
func TestSourceKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	web := newAddresses(t, "h2")
	both := []string{
		"QUERN_SOURCE_KEY=" + strings.Repeat("the key of both ", 4),
		"QUERN_SOURCE_HOSTS=" + web.host + "," + strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://"),
	}
	one := start(t, append(settings, both...)...)
	two := another(t, one, both...)
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))
	l := &sourceLoop{loadLoop: &loadLoop{t: t, store: store, replicas: []*service{one, two}, killed: map[string]int{}}}

	var paths []string
	for i := range loops(100) {
		paths = append(paths, fmt.Sprintf("%03d.csv", i))
	}

	// The first source keeps what it has loaded; the others follow their files.
	l.sources = append(l.sources, newSource(t, one, "ada", bearer, `, "accept": ["all"]`),
		newSource(t, one, "ada", bearer, `, "accept": ["all"], "changed": "replace", "deleted": "remove"`),
		newAddressSource(t, one, web, "ada", bearer, `, "accept": ["all"], "changed": "replace", "deleted": "remove"`, paths...))

	l.runAll(loops(100))

	for _, o := range l.sources {
		l.requireEnd(o)
	}

	t.Logf("%d files, %d changes and deletions, %d runs; killed: %v", l.files, l.changes, l.runs, l.killed)
}

// sourceLoop is the state of the test.
type sourceLoop struct {
	*loadLoop

	sources              []*sourceOf
	files, runs, changes int
}

// runAll adds files and runs the sources while processes are killed.
func (l *sourceLoop) runAll(files int) {
	dying, enough := context.WithCancel(l.t.Context())

	var killing sync.WaitGroup

	killing.Go(func() { l.kill(dying) })

	for i := range files {
		kill.Round(l.t)

		o := l.sources[i%len(l.sources)]
		o.put(fmt.Sprintf("%03d.csv", i), 1+i%5)

		l.files++

		if o != l.sources[0] {
			l.touch(o)
		}

		for _, o := range l.sources {
			l.tryRun(o)
		}

		time.Sleep(rand.N(500 * time.Millisecond))
	}

	enough()
	killing.Wait()
}

// touch changes or deletes files that were written before, and sometimes brings one back.
func (l *sourceLoop) touch(o *sourceOf) {
	for range rand.N(3) {
		paths := slices.Sorted(maps.Keys(o.files))
		path := paths[rand.N(len(paths))]

		switch kind := rand.N(3); {
		case kind == 0 && len(paths) > 3: // if no file is left, the source stops
			o.remove(path)

			o.gone = append(o.gone, path)
		case kind == 1 && len(o.gone) > 0:
			o.put(o.gone[rand.N(len(o.gone))], 1+rand.N(4))
		default:
			o.put(path, 1+rand.N(4))
		}

		l.changes++
	}
}

// tryRun asks a random replica to run a source. The answer may be lost, and a run may be in progress.
func (l *sourceLoop) tryRun(o *sourceOf) {
	replica := l.replicas[rand.N(len(l.replicas))]

	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()

	answer, _ := try(newRequest(l.t, http.MethodPost, replica.url+"/sources/"+o.id+"/run", o.bearer, "").WithContext(ctx))
	if answer != nil && answer.status == http.StatusAccepted {
		l.runs++
	}
}

// kill ends a random process, repeatedly.
func (l *sourceLoop) kill(dying context.Context) {
	for {
		select {
		case <-dying.Done():
			return
		case <-time.After(rand.N(2 * time.Second)):
		}

		victim := l.replicas[rand.N(len(l.replicas))]

		switch rand.N(6) {
		case 0, 1:
			l.killed["server"]++
			victim.kill()
			victim.restart()
		case 2, 3:
			l.killAt(dying, "") // any object: of an upload, or of a table
		case 4:
			for _, child := range childrenOf(victim.process.Process.Pid) {
				if kill.ID(l.t, child) == nil {
					l.killed["child"]++
				}
			}
		case 5:
			l.killed["leases"]++
			withDatabase(l.t, l.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
				_, err := connection.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second'`)
				require.NoError(l.t, err)
			})
		}
	}
}

// requireEnd runs a source until it has nothing more to do, and compares the dataset with the model.
func (l *sourceLoop) requireEnd(o *sourceOf) {
	l.t.Helper()

	awaitFor(l.t, longEnough, "the last run has ended", func() bool { last := o.get().LastRun; return last == nil || last.FinishedAt != "" })

	for range 10 {
		now := o.get()
		if now.Status == "stopped" { // a process that died may have failed an ingestion
			require.NotEmpty(l.t, now.IngestionID, now.Reason)

			answer := o.call(http.MethodPost, "/ingestions/"+now.IngestionID+"/retry", "")
			require.Equal(l.t, http.StatusAccepted, answer.status, answer.body)
			o.set(true)
		}

		answer := o.begin()
		require.Equal(l.t, http.StatusAccepted, answer.status, answer.body)

		var run sourceRun

		answer.json(l.t, &run)
		awaitFor(l.t, longEnough, "the run has ended", func() bool { last := o.get().LastRun; return last.ID == run.ID && last.FinishedAt != "" })

		if last := o.get().LastRun; last.Status == "completed" && last.Files == 0 {
			break
		}
	}

	last := o.get().LastRun
	require.Equal(l.t, "completed", last.Status, last.Reason)
	o.requireModel()

	if o != l.sources[0] {
		return // a file that has changed is counted more than once
	}

	withDatabase(l.t, o.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var files, rows, states int

		require.NoError(l.t, connection.QueryRow(ctx, `SELECT sum(files), sum(rows) FROM source_runs WHERE source_id = $1`, o.id).Scan(&files, &rows))
		require.NoError(l.t, connection.QueryRow(ctx, `SELECT count(*) FROM source_files WHERE source_id = $1 AND state = 'loaded'`, o.id).Scan(&states))
		require.Equal(l.t, states, files, "each file is counted once")
		require.Len(l.t, o.model, rows, "each row is counted once")
	})
}
