package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestKeyKillLoop loads rows with the same keys on two replicas while processes die as in TestIngestKillLoop. Every row that was sent is stored or set
// aside, no key is there twice, and every key is there.
func TestKeyKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	one := start(t, append(settings, "QUERN_UPLOAD_MAX_OPEN_SESSIONS=1000", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	two := start(t, slices.Concat(one.place.settings(), []string{"QUERN_DATABASE_URL=" + one.databaseURL, "QUERN_OIDC_ISSUER=" + one.realm.issuer(), "QUERN_MAINTENANCE_INTERVAL=1s"})...)
	l := &loadLoop{t: t, store: store, replicas: []*service{one, two}, killed: map[string]int{}}
	l.bearer = value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))

	for range 2 {
		d := newFilled(t, one, "ada", l.bearer)
		d.declared(`{"columns": ["n"]}`)
		l.datasets = append(l.datasets, d)
	}

	for i := range loops(200) {
		l.loads = append(l.loads, l.newKeyed(i))
	}

	l.runAll()

	for _, d := range l.datasets {
		l.requireKeyed(d)
	}

	t.Logf("%d loads; killed: %v", len(l.loads), l.killed)
	l.requireClean()
}

// newKeyed returns a load of rows whose keys other loads have too.
func (l *loadLoop) newKeyed(i int) *loadOf {
	l.t.Helper()

	load := &loadOf{loadLoop: l, into: l.datasets[i%len(l.datasets)], key: uuid.NewString()}

	var lines []string

	for range 5 + rand.N(20) {
		n := rand.Int64N(60)
		load.values, lines = append(load.values, n), append(lines, strconv.FormatInt(n, 10))
	}

	if i%3 == 2 {
		load.address, load.body = "/rows", `{"data": [{"n": `+strings.Join(lines, `}, {"n": `)+`}]}`

		return load
	}

	half := len(lines) / 2
	load.address = "/ingestions"
	load.body = fmt.Sprintf(`{"sessionId": %q, "accept": ["all"]}`, uploadFiles(l.t, l.replicas[0], l.bearer, "n\n"+strings.Join(lines[:half], "\n")+"\n", "n\n"+strings.Join(lines[half:], "\n")+"\n"))

	return load
}

// requireKeyed compares the rows of a dataset with what its loads sent and were told.
func (l *loadLoop) requireKeyed(d *filled) {
	l.t.Helper()

	var sent, stored, aside int64

	want, found := map[int64]bool{}, map[int64]bool{}

	for _, load := range l.loads {
		if load.into != d {
			continue
		}

		require.Empty(l.t, load.failure, "%s %s", load.address, load.body)
		require.Equal(l.t, int64(len(load.values)), load.stored+load.aside, "%s %s", load.address, load.body)
		sent, stored, aside = sent+int64(len(load.values)), stored+load.stored, aside+load.aside

		for _, n := range load.values {
			want[n] = true
		}
	}

	for _, row := range d.table().rows {
		require.False(l.t, found[number(row)], "the key %d is there twice", number(row))
		found[number(row)] = true
	}

	require.Equal(l.t, want, found)
	require.Equal(l.t, int64(len(found)), stored)
	l.t.Logf("%d rows sent, %d stored, %d set aside", sent, stored, aside)
}

// TestKeyDeclaredMeanwhile declares a key while rows are loaded on two replicas, at different moments. Either no row violates the key from then on, or the
// key is refused because of rows that are there.
func TestKeyDeclaredMeanwhile(t *testing.T) {
	t.Parallel()

	one := start(t, "QUERN_MAINTENANCE_INTERVAL=1h")
	two := another(t, one, "QUERN_MAINTENANCE_INTERVAL=1h")
	bearer := one.newKey().token("ada")
	outcomes := map[int]int{}

	for range rounds(60) {
		d := newFilled(t, one, "ada", bearer)
		d.stored(`{"data": [{"n": 0}]}`)
		outcomes[declareMeanwhile(t, d, two)]++
	}

	t.Logf("declared: %d, refused: %d", outcomes[http.StatusOK], outcomes[http.StatusConflict])
}

func declareMeanwhile(t *testing.T, d *filled, second *service) (status int) {
	t.Helper()

	var (
		working      sync.WaitGroup
		mu           sync.Mutex
		stored, sent = int64(1), int64(1)
	)

	const clients = 6

	for n := range clients {
		from := *d
		if n%2 == 1 {
			from.s = second
		}

		working.Go(func() {
			time.Sleep(rand.N(300 * time.Millisecond))

			// Each has a key of its own, and one that another client has too.
			answer := from.post(fmt.Sprintf(`{"data": [{"n": %d}, {"n": %d}]}`, 100+n, 1+n/2))
			if answer.status != http.StatusOK {
				t.Errorf("%d: %s", answer.status, answer.body)

				return
			}

			var done keptRows

			answer.json(t, &done)
			mu.Lock()
			defer mu.Unlock()

			stored, sent = stored+done.Indexed, sent+done.Indexed+done.RowsSetAside
		})
	}

	working.Go(func() {
		time.Sleep(rand.N(400 * time.Millisecond))

		status = d.declare(`{"columns": ["n"]}`).status
	})
	working.Wait()

	require.Equal(t, int64(1+2*clients), sent)

	rows := d.result(`SELECT count(*) AS "all", count(DISTINCT n) AS different FROM orders`, "").Data[0]
	require.InDelta(t, stored, rows["all"], 0)

	if status == http.StatusOK {
		require.Equal(t, rows["different"], rows["all"], "rows violate the key")
		require.Equal(t, "[n] setAside", d.key())
	} else {
		require.Equal(t, http.StatusConflict, status)
		require.NotEqual(t, rows["different"], rows["all"], "no row violates the key, but it was refused")
		require.Empty(t, d.key())
	}

	return status
}
