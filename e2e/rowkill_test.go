package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
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

// TestRowKillLoop merges and deletes rows on two replicas while processes die as in TestIngestKillLoop: at any moment, while they
// write data files, manifests or metadata, and their sealed processes. Leases expire early, and files are compacted. Each client
// has keys of its own, repeats a request until it knows the outcome, and then knows exactly which rows there are.
func TestRowKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	store, settings := newStoreProxy(t)
	one := start(t, append(settings, "QUERN_MAINTENANCE_INTERVAL=1s")...)
	two := start(t, slices.Concat(one.place.settings(), []string{"QUERN_DATABASE_URL=" + one.databaseURL, "QUERN_OIDC_ISSUER=" + one.realm.issuer(), "QUERN_MAINTENANCE_INTERVAL=1s"})...)
	l := &loadLoop{t: t, store: store, replicas: []*service{one, two}, killed: map[string]int{}}
	l.bearer = value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "changer"}`))
	l.datasets = []*filled{newFilled(t, one, "ada", l.bearer)}

	const clients = 4

	var (
		killing, changing sync.WaitGroup
		all               [clients]*rowClient
		dying, enough     = context.WithCancel(t.Context())
	)

	killing.Go(func() { l.kill(dying) })

	for n := range all {
		all[n] = &rowClient{loadLoop: l, first: int64(n) * 1000, rows: map[int64]int{}}

		changing.Go(func() {
			for i := range loops(200) / clients {
				if all[n].failure == "" {
					all[n].change(i)
				}
			}
		})
	}

	changing.Wait()
	enough()
	killing.Wait()

	changes, want := 0, map[int64]int{}

	for _, c := range all {
		require.Empty(t, c.failure)

		changes += c.changes

		maps.Copy(want, c.rows)
	}

	await(t, "all has ended", func() (ended bool) {
		withDatabase(t, one.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(t, connection.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM ingestions WHERE status IN ('queued', 'running'))`).Scan(&ended))
		})

		return ended
	})

	found := map[int64]int{}

	for _, row := range l.datasets[0].table().rows {
		n := number(row)
		_, twice := found[n]
		require.False(t, twice, "row %d is there twice", n)

		version, _ := row[1].(int64)
		found[n] = int(version)
	}

	require.Equal(t, want, found)
	t.Logf("%d changes; killed: %v", changes, l.killed)
	l.requireClean()
}

// rowClient changes rows with keys of its own.
type rowClient struct {
	*loadLoop

	first   int64
	rows    map[int64]int // version by key
	changes int
	failure string
}

// change merges or deletes some rows and repeats the request until it has succeeded.
func (c *rowClient) change(version int) {
	var (
		keys          = map[int64]bool{}
		address, body string
		list          []string
	)

	for range 1 + rand.N(20) {
		keys[c.first+rand.Int64N(40)] = true
	}

	for n := range keys {
		list = append(list, strconv.FormatInt(n, 10))
	}

	if isDelete := rand.N(3) == 0; isDelete {
		address, body = "/rows/delete", fmt.Sprintf(`{"condition": "n IN (%s)"}`, strings.Join(list, ", "))
	} else {
		address = "/rows?mode=merge&key=n"

		for i, n := range list {
			list[i] = fmt.Sprintf(`{"n": %s, "version": %d}`, n, version)
		}

		body = `{"data": [` + strings.Join(list, ", ") + `]}`
	}

	kill.Round(c.t)

	if !c.succeed(address, body) {
		return
	}

	c.changes++

	for n := range keys {
		if delete(c.rows, n); address != "/rows/delete" {
			c.rows[n] = version
		}
	}
}

func (c *rowClient) succeed(address, body string) bool {
	key := uuid.NewString()

	for deadline := time.Now().Add(longEnough); time.Now().Before(deadline); time.Sleep(rand.N(500 * time.Millisecond)) {
		answer := c.send(key, address, body)

		switch {
		case answer == nil, answer.status >= http.StatusInternalServerError, answer.status == http.StatusConflict:
		case answer.status == http.StatusOK:
			return true
		case strings.Contains(answer.body, "INVALID_STATE"), strings.Contains(answer.body, "Send them again"):
		case strings.Contains(answer.body, "no rows yet"): // before the first merge
			return true
		default:
			c.failure = address + " " + body + ": " + answer.body

			return false
		}
	}

	c.failure = "no end for a long time: " + address + " " + body

	return false
}

func (c *rowClient) send(key, address, body string) *answer {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()

	replica := c.replicas[rand.N(len(c.replicas))]
	request := newRequest(c.t, http.MethodPost, replica.url+"/data/"+c.datasets[0].path()+address, c.bearer, body).WithContext(ctx)
	request.Header.Set("Idempotency-Key", key)

	answer, _ := try(request)

	return answer
}
