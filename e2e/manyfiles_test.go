package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestManyFilesKillLoop loads many files with one ingestion on two replicas while processes die or freeze at random. The rows and types must be those of a model,
// exactly once, and a process that dies must not cost more than the file that it was reading: the files that are read again are counted.
func TestManyFilesKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	m := newManyFiles(t)
	m.addUp()

	for round := range loops(5) {
		kill.Round(t)
		m.round(round + 1)
	}

	m.requireClean()
}

// manyFiles is the state of the test. Each replica has its own way to the object store.
type manyFiles struct {
	loadLoop

	stores  []*proxy
	into    *filled
	content []manyFile // of all files that were loaded
	cost    int        // files that the interruptions of the round may cost
}

func newManyFiles(t *testing.T) *manyFiles {
	t.Helper()

	m := &manyFiles{loadLoop: loadLoop{t: t, killed: map[string]int{}}}

	for n := range 2 {
		store, settings := newStoreProxy(t)
		// Each replica reads one file at a time, so it can be interrupted in one.
		settings = append(settings, "QUERN_INGEST_SPREAD_ABOVE=1", "QUERN_INGEST_WORKERS=1", "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000")

		if n > 0 {
			first := m.replicas[0]
			settings = slices.Concat(first.place.settings(), settings, []string{"QUERN_DATABASE_URL=" + first.databaseURL, "QUERN_OIDC_ISSUER=" + first.realm.issuer()})
		}

		m.replicas, m.stores = append(m.replicas, start(t, settings...)), append(m.stores, store)
	}

	one := m.replicas[0]
	m.bearer = value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))
	m.into = newFilled(t, one, "ada", m.bearer)

	return m
}

// manyFile is a file with its rows as they are loaded.
type manyFile struct {
	text  string
	rows  [][]any
	aside int64
}

// manyColumns are the columns of all files together, in the order in which they first occur.
func manyColumns() []tableColumn {
	return []tableColumn{
		{"n", "bigint"}, {"v", "double"}, {"at", "timestamp"}, {"late", "bigint"}, {"never", "varchar"}, {"x0", "varchar"}, {"x1", "varchar"}, {"x2", "varchar"},
	}
}

// newManyFile returns the n-th of count files. Each has only some of the columns, and the joined types differ from the types of most files.
func newManyFile(n, count, round, rows int) manyFile {
	var (
		made manyFile
		text strings.Builder
		own  = n % 3 // of the columns x0 to x2
	)

	fmt.Fprintf(&text, "n,v,at,late,never,x%d\n", own)

	for row := range rows {
		id := int64(round*1_000_000 + n*1000 + row)
		v, at, late := strconv.Itoa(row), "2026-11-15", ""
		want := []any{id, float64(row), "2026-11-15 00:00:00.000000", nil, nil, nil, nil, nil}

		if n%2 == 1 {
			v, want[1] = fmt.Sprintf("%d.5", row), float64(row)+0.5
			at, want[2] = "2026-11-15 10:11:12", "2026-11-15 10:11:12.000000"
		}

		if n == count-1 {
			late, want[3] = strconv.Itoa(row), int64(row)
		}

		want[5+own] = fmt.Sprintf("text %d", row)

		if n%10 == 4 && row == rows/2 {
			fmt.Fprintf(&text, "none,%s,%s,%s,,text\n", v, at, late)
			made.aside++
		}

		fmt.Fprintf(&text, "%d,%s,%s,%s,,text %d\n", id, v, at, late, row)
		made.rows = append(made.rows, want)
	}

	made.text = text.String()

	return made
}

// upload uploads new files and returns their session.
func (m *manyFiles) upload(round int) (session string, files []manyFile) {
	m.t.Helper()

	count := max(loops(100), 12)

	var texts []string

	for n := range count {
		files = append(files, newManyFile(n, count, round, 50))
		texts = append(texts, files[n].text)
	}

	return uploadFiles(m.t, m.replicas[0], m.bearer, texts...), files
}

// begin creates the ingestion of the files.
func (m *manyFiles) begin(session string, files []manyFile) (id string) {
	m.t.Helper()

	m.content = append(m.content, files...)

	return m.into.accepted(m.into.create(session, `"accept": ["all"], "options": {"types": {"n": "bigint"}}`)).ID
}

// addUp loads files without any interruption and watches the progress, which must add up. Each file is read twice: it is inspected and then converted.
func (m *manyFiles) addUp() {
	m.t.Helper()

	session, files := m.upload(0)
	before := m.reads(session)
	id := m.begin(session, files)
	phases := []string{"queued", "inspecting", "converting", "committing", "done"}

	var (
		last, found ingestion
		seen        []string
	)

	await(m.t, "the files are loaded", func() bool {
		found = m.into.get(id)
		if last.Progress.Phase == found.Progress.Phase {
			require.GreaterOrEqual(m.t, found.Progress.BytesDone, last.Progress.BytesDone)
			require.GreaterOrEqual(m.t, found.Progress.RowsDone, last.Progress.RowsDone)
		} else {
			seen = append(seen, found.Progress.Phase)
		}

		require.LessOrEqual(m.t, found.Progress.BytesDone, found.Progress.BytesTotal)

		last = found

		return found.ended()
	})
	require.Equal(m.t, "completed", found.Status, "%+v", found.Error)
	require.Subset(m.t, phases, seen)
	m.requireLoaded(id, files)
	require.Equal(m.t, 2*len(files), m.reads(session)-before)
	m.requireRows()
	m.requireOrder(id)
}

// round loads files while processes die.
func (m *manyFiles) round(round int) {
	m.t.Helper()

	session, files := m.upload(round)
	before := m.reads(session)
	m.cost = 0
	id := m.begin(session, files)

	dying, enough := context.WithCancel(m.t.Context())

	var killing sync.WaitGroup

	killing.Go(func() { m.interrupt(dying) })

	awaitFor(m.t, longEnough, "the files are loaded", func() bool {
		var found ingestion

		answer, _ := try(newRequest(m.t, http.MethodGet, m.replicas[rand.N(2)].url+"/data/"+m.into.path()+"/ingestions/"+id, m.bearer, ""))
		if answer == nil || answer.status != http.StatusOK {
			return false
		}

		answer.json(m.t, &found)
		require.Nil(m.t, found.Error)

		return found.ended()
	})
	enough()
	killing.Wait()

	m.requireLoaded(id, files)

	again := m.reads(session) - before - 2*len(files)
	m.t.Logf("%d files, %d read again, at most %d expected; killed: %v", len(files), again, m.cost, m.killed)
	require.GreaterOrEqual(m.t, again, 0)
	require.LessOrEqual(m.t, again, m.cost)
	m.requireRows()
	m.requireOrder(id)
}

// interruptions is how many processes die in a round that does not run in full.
const interruptions = 3

// interrupt ends processes at random, and counts the files that may be read again because of it.
func (m *manyFiles) interrupt(dying context.Context) {
	for n := 0; full() || n < interruptions; n++ {
		select {
		case <-dying.Done():
			return
		case <-time.After(rand.N(1500 * time.Millisecond)):
		}

		at := rand.N(len(m.replicas))
		victim := m.replicas[at]

		switch rand.N(6) {
		case 0:
			m.killed["server"]++
			m.cost++
			victim.kill()
			victim.restart()
		case 1, 2:
			m.killWriter(dying, at)
		case 3:
			for _, child := range childrenOf(victim.process.Process.Pid) {
				if kill.ID(m.t, child) == nil {
					m.killed["child"]++
					m.cost++
				}
			}
		case 4:
			m.killed["leases"]++
			m.cost += len(m.replicas)
			m.expire("")
		case 5:
			m.freeze(dying, victim)
		}

		m.expire(" WHERE until < now() + interval '4 seconds'") // those of processes that died a while ago; others are renewed every five seconds
	}
}

// killWriter ends a replica when it writes a data file, before or after the object store has it.
func (m *manyFiles) killWriter(dying context.Context, at int) {
	victim, store := m.replicas[at], m.stores[at]
	process := victim.process.Process
	store.set(behaviour{early: rand.N(2) == 0, cut: func() { _ = kill.Process(m.t, process) }, cuts: func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".parquet")
	}})

	select {
	case <-victim.exited:
		m.killed["writer"]++
		m.cost++
	case <-time.After(2 * time.Second): // it wrote none
	case <-dying.Done():
	}

	store.set(behaviour{})

	if !victim.running() {
		victim.restart()
	}
}

// freeze stops a replica in the middle of its work, and lets it go on when the other replica may have its files.
func (m *manyFiles) freeze(dying context.Context, victim *service) {
	process, _ := victim.current()
	require.NoError(m.t, process.Process.Signal(syscall.SIGSTOP))

	m.killed["frozen"]++
	m.cost += len(m.replicas)
	m.expire("")

	select {
	case <-time.After(rand.N(4 * time.Second)):
	case <-dying.Done():
	}

	require.NoError(m.t, process.Process.Signal(syscall.SIGCONT))
}

// expire makes leases expire early.
func (m *manyFiles) expire(which string) {
	withDatabase(m.t, m.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second'`+which)
		require.NoError(m.t, err)
	})
}

// reads returns how often the files of a session were read from the object store.
func (m *manyFiles) reads(session string) (count int) {
	m.t.Helper()

	for _, file := range m.keys(session) {
		for _, store := range m.stores {
			count += store.requests(file)
		}
	}

	return count
}

func (m *manyFiles) keys(session string) (keys []string) {
	m.t.Helper()
	withDatabase(m.t, m.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `SELECT object_key FROM upload_files WHERE session_id = $1`, session)
		require.NoError(m.t, err)

		keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(m.t, err)
	})

	return keys
}

// requireLoaded checks what the service says about an ingestion of these files.
func (m *manyFiles) requireLoaded(id string, files []manyFile) {
	m.t.Helper()

	var rows, aside int64

	for _, f := range files {
		rows += int64(len(f.rows))
		aside += f.aside
	}

	done := m.into.get(id)
	require.Equal(m.t, "completed", done.Status, "%+v", done.Error)
	require.Equal(m.t, rows, done.Progress.RowsDone)
	require.Equal(m.t, aside, done.Progress.RowsSetAside)
	require.Len(m.t, done.SetAside, int(aside))
	require.Equal(m.t, done.Progress.BytesTotal, done.Progress.BytesDone)

	for _, row := range done.SetAside {
		require.EqualValues(m.t, 26, row.Row)
		require.Contains(m.t, row.Reason, `"none" is not a bigint`)
	}
}

// requireRows checks that the dataset has the rows of the model, each exactly once, with one snapshot for each ingestion.
func (m *manyFiles) requireRows() {
	m.t.Helper()

	var rows [][]any
	for _, f := range m.content {
		rows = append(rows, f.rows...)
	}

	found := m.into.table()
	require.Equal(m.t, manyColumns(), found.columns)
	require.Equal(m.t, sorted(rows), found.rows)
}

// requireOrder checks that the data files have the order of the files, whichever was converted first.
func (m *manyFiles) requireOrder(ingestion string) {
	m.t.Helper()
	withDatabase(m.t, m.replicas[0].databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `
			SELECT f.position FROM lake_files l JOIN ingestion_files f ON f.ingestion_id = l.ingestion_id AND f.file_id = l.source_id
			WHERE l.ingestion_id = $1 AND l.state = 'committed' ORDER BY l.id`, ingestion)
		require.NoError(m.t, err)

		positions, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(m.t, err)
		require.True(m.t, slices.IsSorted(positions), "%v", positions)
		require.NotEmpty(m.t, positions)
	})
}

// TestManyFilesFair lets one account load very many files before another one loads a few. The other one must not wait for all of them.
func TestManyFilesFair(t *testing.T) {
	t.Parallel()

	idle := start(t, "QUERN_INGEST_WORKERS=0", "QUERN_INGEST_SPREAD_ABOVE=1", "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000")
	key := idle.newKey()
	many, few := newFilled(t, idle, "ada", key.token("ada")), newFilled(t, idle, "bob", key.token("bob"))

	var n int

	// load creates an ingestion of files with different rows.
	load := func(into *filled, files int) (id string) {
		var texts []string

		for range files {
			n++
			texts = append(texts, fmt.Sprintf("n\n%d\n", n))
		}

		return into.accepted(into.create(uploadFiles(t, idle, into.bearer, texts...), "")).ID
	}

	var ids []string

	for range loops(300) {
		ids = append(ids, load(many, 1))
	}

	for range max(loops(50)/5, 3) {
		ids = append(ids, load(many, min(loops(200), 100)))
	}

	alone, two := load(few, 1), load(few, 2)

	idle.stop()
	idle.settings = append(idle.settings, "QUERN_INGEST_WORKERS=1")
	idle.restart()

	require.Equal(t, "completed", few.wait(alone).Status)
	require.Equal(t, "completed", few.wait(two).Status)

	first, spread := *few.get(alone).FinishedAt, *few.get(two).FinishedAt

	var before, beforeSpread int

	for _, id := range ids {
		found := many.get(id)

		if full() {
			found = many.wait(id)
			require.Equal(t, "completed", found.Status, "%+v", found.Error)
		}

		switch files := len(found.Filenames); {
		case found.FinishedAt == nil:
		case files == 1 && found.FinishedAt.Before(first):
			before++
		case files > 1 && found.FinishedAt.Before(spread):
			beforeSpread++
		}
	}

	t.Logf("%d ingestions; %d of one file were loaded before the other account's, %d of many", len(ids), before, beforeSpread)
	require.LessOrEqual(t, before, 5, "few go first")
	require.Zero(t, beforeSpread, "files take turns")
}
