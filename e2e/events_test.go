package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notice is an event of GET /events.
type notice struct {
	seq       int64
	ID, Type  string
	Timestamp time.Time
	Data      struct {
		Username, Namespace, Dataset, DatasetID, IngestionID, SnapshotID, Mode, Code, Grantee, Role, VerifiedID, RunID, Agent, SourceID string
		Connection, ConnectionID                                                                                                        string
		Rows, RowsSetAside                                                                                                              *int64
		Doubts                                                                                                                          []string
		Columns                                                                                                                         *struct{ Added, Removed, Retyped []string }
	}
}

// watcher follows GET /events. When its connection ends, it resumes at the next of its addresses.
type watcher struct {
	t      *testing.T
	mu     sync.Mutex
	got    []notice
	texts  []string
	last   int64
	opened int
	status int // of the answer that ended it
	stop   context.CancelFunc
	done   chan struct{}
}

// watchEvents begins to follow, and waits until the first stream is open.
func watchEvents(t *testing.T, bearer, query string, services ...*service) *watcher {
	t.Helper()

	ctx, stop := context.WithCancel(t.Context())
	w := &watcher{t: t, stop: stop, done: make(chan struct{})}

	go func() {
		defer close(w.done)

		for i := 0; ctx.Err() == nil; i++ {
			if !w.read(ctx, bearer, services[i%len(services)].url+"/events"+query) {
				return
			}
		}
	}()

	t.Cleanup(w.end)
	await(t, "the stream is open", func() bool { return w.position() > 0 || w.ended() })

	return w
}

func (w *watcher) end() {
	w.stop()
	<-w.done
}

func (w *watcher) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *watcher) position() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.last
}

// read reads one stream. It reports whether another one should be opened.
func (w *watcher) read(ctx context.Context, bearer, address string) bool {
	request := newRequest(w.t, http.MethodGet, address, bearer, "", "Accept: text/event-stream").WithContext(ctx)
	if last := w.position(); last > 0 {
		request.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		time.Sleep(20 * time.Millisecond)

		return true
	}

	defer func() { _ = response.Body.Close() }()

	if response.StatusCode != http.StatusOK {
		w.mu.Lock()
		defer w.mu.Unlock()

		w.status = response.StatusCode

		return response.StatusCode >= http.StatusInternalServerError
	}

	w.lines(bufio.NewScanner(response.Body))

	return true
}

func (w *watcher) lines(lines *bufio.Scanner) {
	w.mu.Lock()
	w.opened++
	w.mu.Unlock()

	var id int64

	for data := ""; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")

		switch name {
		case "id":
			id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			data = value
		case "":
			w.take(id, data)

			data = ""
		}
	}
}

func (w *watcher) take(id int64, data string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.last = max(w.last, id)

	if data == "" {
		return
	}

	one := notice{seq: id}
	if json.Unmarshal([]byte(data), &one) == nil {
		w.got, w.texts = append(w.got, one), append(w.texts, data)
	}
}

func (w *watcher) events() []notice {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Clone(w.got)
}

func (w *watcher) types() (list []string) {
	for _, e := range w.events() {
		list = append(list, e.Type)
	}

	return list
}

// awaits waits until the watcher has n events, and returns the last one.
func (w *watcher) awaits(n int) notice {
	w.t.Helper()

	deadline := time.Now().Add(patience)
	for len(w.events()) < n && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}

	require.Len(w.t, w.events(), n, "%v", w.types())

	return w.events()[n-1]
}

// TestEvents follows what happens to datasets and runs.
func TestEvents(t *testing.T) {
	t.Parallel()

	one := start(t, scripted, "QUERN_RUN_MAX_PER_USER=100")
	two := another(t, one, scripted, "QUERN_RUN_MAX_PER_USER=100")
	key := one.newKey()

	for name, test := range map[string]func(t *testing.T, one, two *service, key *signer){
		"types": eventTypes, "rights": eventRights, "resume": eventResume, "revoked": eventRevoked, "refused": eventRefused, "command line": eventCLI, "pages": eventPages,
		"of a namespace": eventNamespace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, one, two, key)
		})
	}
}

// eventTypes checks each type of event, in order, on two replicas.
func eventTypes(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "eva", key.token("eva"))
	here, there := watchEvents(t, d.bearer, "", one), watchEvents(t, d.bearer, "", two)
	loads := watchEvents(t, d.bearer, "?types=dataset.loaded,dataset.loadFailed&username=self&namespace="+d.namespace+"&datasetName=orders", two)

	first := d.loaded("", "id,region,marked\n1,north,heliotrope-1\n2,south,heliotrope-2\n")
	got := here.awaits(1)
	require.Equal(t, "dataset.loaded", got.Type)
	require.Equal(t, first.ID, got.Data.IngestionID)
	require.Equal(t, "eva/"+d.namespace+"/orders", got.Data.Username+"/"+got.Data.Namespace+"/"+got.Data.Dataset)
	require.Equal(t, int64(2), *got.Data.Rows)
	require.NotEmpty(t, got.Data.SnapshotID)

	require.Equal(t, http.StatusOK, d.post(`{"data": [{"id": 3, "region": "east", "marked": "heliotrope-3", "amount": 5}]}`).status)
	here.awaits(3)
	require.Equal(t, []string{"amount"}, here.events()[1].Data.Columns.Added)
	require.Empty(t, here.events()[2].Data.IngestionID, "posted rows have no ingestion that a client knows")

	failed := d.load("", "id,id\n\"heliotrope")
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, failed.ID, here.awaits(4).Data.IngestionID)
	require.NotEmpty(t, here.events()[3].Data.Code)

	waits := d.load("", "id,region,marked\n1,north,heliotrope-1\n2,south,heliotrope-2\n")
	require.Equal(t, "waiting", waits.Status)
	require.Contains(t, here.awaits(5).Data.Doubts, "loadedBefore")

	kept := d.verify(`{"question": "How many are in the north?", "query": "SELECT count(*) AS n FROM orders WHERE region = 'north'"}`)
	d.loaded(`"mode": "replace"`, "id,area\n1,heliotrope-1\n")
	here.awaits(7)
	require.Equal(t, "suspended", d.listVerified("")[0].Status)
	suspended := here.awaits(8)
	require.Equal(t, kept.ID, suspended.Data.VerifiedID)
	require.Equal(t, d.namespace, suspended.Data.Namespace)

	share(t, one, d.bearer, "datasets/"+d.path(), "finn", "viewer")
	unshare(t, one, d.bearer, "datasets/"+d.path(), "finn")
	share(t, one, d.bearer, "namespaces/eva/"+d.namespace, "@analysts", "editor")
	unshare(t, one, d.bearer, "namespaces/eva/"+d.namespace, "@analysts")
	here.awaits(12)

	shared := here.events()[8]
	require.Equal(t, "finn viewer", shared.Data.Grantee+" "+shared.Data.Role)

	run := d.answered(`{"response": "amaranthine", "steps": [{"instruction": "read", "queries": ["SELECT area FROM orders"]}]}`, "")
	require.Equal(t, run.RunID, here.awaits(13).Data.RunID)

	broken := d.accept("assistant", `{"steps": [{"instruction": "read", "queries": ["SELECT CAST(area AS INTEGER) AS n FROM orders"]}]}`)
	require.Equal(t, broken.RunID, here.awaits(14).Data.RunID)

	slow := d.accept("assistant", `{"pause": 60000, "response": "late"}`)
	require.Equal(t, http.StatusOK, call(t, http.MethodPost, one.url+"/query/runs/"+slow.RunID+"/cancel", d.bearer, "").status)
	here.awaits(15)

	asks := d.accept("assistant", strings.ReplaceAll(whichYear, "refunds", "orders"))
	require.Equal(t, asks.RunID, here.awaits(16).Data.RunID)

	require.Equal(t, []string{
		"dataset.loaded", "dataset.columnsChanged", "dataset.loaded", "dataset.loadFailed", "dataset.loadWaiting", "dataset.columnsChanged", "dataset.loaded",
		"verified.suspended", "dataset.shared", "dataset.unshared", "namespace.shared", "namespace.unshared",
		"run.completed", "run.failed", "run.cancelled", "run.waiting",
	}, here.types())

	there.awaits(16)
	require.Equal(t, here.texts, there.texts, "two replicas give the same bytes")
	require.Equal(t, []string{"dataset.loaded", "dataset.loaded", "dataset.loadFailed", "dataset.loaded"}, loads.types())

	for _, text := range here.texts {
		require.NotContains(t, text, "heliotrope", "an event has the value of a cell")
		require.NotContains(t, text, "amaranthine", "an event has an answer")
	}
}

// eventNamespace checks that the events of a namespace include those of datasets that the load itself creates, of merges and of
// deleted rows.
func eventNamespace(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "nora", key.token("nora"))
	inside := watchEvents(t, d.bearer, "?username=self&namespace="+d.namespace, two)

	fresh := *d
	fresh.name = "fresh"
	require.Equal(t, "failed", fresh.load("", "id,id\n\"1").Status)
	fresh.loaded("", "id,n\n1,1\n2,2\n")

	merged := *d
	merged.name = "merged"
	merged.loaded(`"mode": "merge", "key": ["id"]`, "id,n\n1,1\n2,2\n3,3\n")
	require.Equal(t, http.StatusOK, merged.call(http.MethodPost, "/rows?mode=merge&key=id", `{"data": [{"id": 1, "n": 5}]}`).status)
	require.Equal(t, int64(2), merged.deleteRows(`{"condition": "id < 3"}`).RowCount)
	require.Zero(t, merged.deleteRows(`{"condition": "id < 3"}`).RowCount, "there is no event of it")
	require.Zero(t, merged.deleteRows(`{"condition": "true", "dryRun": true}`).RowCount-1)
	merged.stored(`{"data": [{"id": 4, "n": 4}]}`)
	inside.awaits(6)

	var got []string

	for _, e := range inside.events() {
		got = append(got, e.Type+" "+e.Data.Dataset)
	}

	require.Equal(t, []string{"dataset.loadFailed fresh", "dataset.loaded fresh", "dataset.loaded merged", "dataset.loaded merged", "dataset.rowsDeleted merged", "dataset.loaded merged"}, got)
	require.Equal(t, int64(3), *inside.events()[2].Data.Rows)
	require.NotEmpty(t, inside.events()[2].Data.IngestionID)
	require.Equal(t, int64(1), *inside.events()[3].Data.Rows)
	require.Empty(t, inside.events()[3].Data.IngestionID)
	require.Equal(t, int64(2), *inside.events()[4].Data.Rows)
	require.NotEmpty(t, inside.events()[4].Data.SnapshotID)
}

// eventRights checks that nobody gets an event about what they may not see, and that everybody gets those of what they may see.
func eventRights(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "greta", key.token("greta"))
	hidden := d.beside("hidden", `{"data": [{"n": 1}]}`)
	hank, ivan := watchEvents(t, key.token("hank"), "", two), watchEvents(t, key.token("ivan"), "", one)
	owner := watchEvents(t, d.bearer, "", one)
	limited := watchEvents(t, restrictedToken(t, one, d.bearer, fmt.Sprintf(`{"username": "self", "namespace": %q, "dataset": "orders"}`, d.namespace)), "", one)

	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 1}]}`)
	share(t, one, d.bearer, "datasets/"+d.path(), "hank", "viewer")
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 2}]}`)
	postRows(t, one, d.bearer, hidden.path(), `{"data": [{"n": 2}]}`)
	d.answered(`{"response": "one"}`, "")
	owner.awaits(5)

	// What is shared while the stream is open comes at once, in order, from the share on.
	hank.awaits(2)
	require.Equal(t, []string{"dataset.shared", "dataset.loaded"}, hank.types())
	require.Equal(t, "greta", hank.events()[1].Data.Username)

	// Nobody hears with whom others share, and after the end of the share nothing comes.
	share(t, one, d.bearer, "datasets/"+d.path(), "ivan", "viewer")
	ivan.awaits(1)
	unshare(t, one, d.bearer, "datasets/"+d.path(), "hank")
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 3}]}`)
	ivan.awaits(2)
	owner.awaits(8)

	his := newFilled(t, one, "hank", key.token("hank"))
	postRows(t, one, his.bearer, his.path(), `{"data": [{"n": 1}]}`)
	require.Equal(t, "hank", hank.awaits(3).Data.Username, "his stream has passed what he may not see")

	share(t, one, d.bearer, "datasets/"+d.path(), "hank", "viewer")
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 4}]}`)
	hank.awaits(5)
	require.Equal(t, []string{"dataset.shared", "dataset.loaded", "dataset.loaded", "dataset.shared", "dataset.loaded"}, hank.types())

	// Groups.
	member := key.claims("jana")
	member["groups"] = []string{"analysts-of-greta"}
	grouped := watchEvents(t, key.sign(member), "", two)
	share(t, one, d.bearer, "namespaces/greta/"+d.namespace, "@analysts-of-greta", "viewer")
	postRows(t, one, d.bearer, hidden.path(), `{"data": [{"n": 5}]}`)
	grouped.awaits(2)
	require.Equal(t, []string{"namespace.shared", "dataset.loaded"}, grouped.types())

	// A restricted token hears of what it names, and neither of grants nor of the runs of others.
	limited.awaits(4)
	require.Equal(t, []string{"dataset.loaded", "dataset.loaded", "dataset.loaded", "dataset.loaded"}, limited.types())

	for _, e := range slices.Concat(hank.events(), ivan.events(), limited.events()) {
		require.Equal(t, "orders", e.Data.Dataset)
	}

	require.Equal(t, []string{"dataset.shared", "dataset.loaded", "dataset.loaded"}, ivan.types())
}

// eventResume writes from two replicas while one of them is killed again and again. Every watcher must get every event once, in order.
func eventResume(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "kira", key.token("kira"))
	three := another(t, one, scripted)
	all := []*watcher{watchEvents(t, d.bearer, "", three, two), watchEvents(t, d.bearer, "", two, three), watchEvents(t, d.bearer, "?types=dataset.loaded", three)}

	var writing sync.WaitGroup

	const writers, each = 4, 10

	for range writers {
		writing.Go(func() {
			for i := range each {
				answer := call(t, http.MethodPost, one.url+"/data/"+d.path()+"/rows", d.bearer, fmt.Sprintf(`{"data": [{"n": %d}]}`, i))
				if answer.status != http.StatusOK {
					t.Errorf("rows: %d %s", answer.status, answer.body)
				}
			}
		})
	}

	for range 3 {
		pause(time.Second)
		three.kill()
		three.restart()
	}

	writing.Wait()

	snapshots := len(d.snapshots()) // posted rows that were committed together have one event

	for _, w := range all {
		await(t, "all events", func() bool { return len(w.events()) >= snapshots })
	}

	pause(time.Second)

	for i, w := range all {
		events := w.events()
		require.Len(t, events, snapshots, "watcher %d, which opened %d streams", i, w.opened)

		seen, rows := map[string]bool{}, int64(0)

		for n, e := range events {
			require.False(t, seen[e.Data.SnapshotID], "twice")
			require.True(t, n == 0 || events[n-1].seq < e.seq, "out of order")

			seen[e.Data.SnapshotID] = true
			rows += *e.Data.Rows
		}

		require.Equal(t, int64(writers*each), rows)
	}

	require.Greater(t, all[0].opened, 1, "the replica that was killed had no stream")
}

// eventRevoked checks that a stream ends with its token and with its account, and gives nothing after that.
func eventRevoked(t *testing.T, one, two *service, key *signer) {
	t.Helper()

	d := newFilled(t, one, "liam", key.token("liam"))

	var made struct{ ID, Token string }

	call(t, http.MethodPost, one.url+"/user/tokens", d.bearer, `{"name": "watcher"}`).json(t, &made)

	w := watchEvents(t, made.Token, "", two)
	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 1}]}`)
	w.awaits(1)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, one.url+"/user/tokens/"+made.ID, d.bearer, "").status)

	revoked := time.Now()

	postRows(t, one, d.bearer, d.path(), `{"data": [{"n": 2}]}`)
	await(t, "the stream has ended", w.ended)
	t.Logf("the stream ended %v after the token", time.Since(revoked).Round(10*time.Millisecond))
	require.Equal(t, http.StatusUnauthorized, w.status)
	require.Len(t, w.events(), 1)
}

// eventRefused checks the requests that are refused.
func eventRefused(t *testing.T, one, _ *service, key *signer) {
	t.Helper()

	bearer := key.token("mona")
	d := newFilled(t, one, "nils", key.token("nils"))

	for query, status := range map[string]int{
		"?types=dataset.exploded":         http.StatusUnprocessableEntity,
		"?types=":                         http.StatusUnprocessableEntity,
		"?namespace=" + d.namespace:       http.StatusUnprocessableEntity,
		"?datasetName=orders":             http.StatusUnprocessableEntity,
		"?username=nils&namespace=nosuch": http.StatusNotFound,
		"?username=nils&namespace=" + d.namespace + "&datasetName=orders": http.StatusNotFound,
	} {
		require.Equal(t, status, call(t, http.MethodGet, one.url+"/events"+query, bearer, "").status, query)
	}

	old := strconv.FormatInt(time.Now().AddDate(0, 0, -8).UnixMicro(), 10)
	requireFault(t, "too old", call(t, http.MethodGet, one.url+"/events", bearer, "", "Last-Event-ID: "+old), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
}
