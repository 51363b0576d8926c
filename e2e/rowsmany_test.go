package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// sentMerge is a merge of a key that several clients write.
type sentMerge struct {
	name        string
	begun, done time.Time
}

// TestManyMerges sends 100 merges to one table by clients that do not wait for each other. All are acknowledged and stored,
// and they are committed in groups.
func TestManyMerges(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1h")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	const (
		clients, each = 20, 5
		shared        = 5000 // a key that some of them write too
	)

	var (
		merging sync.WaitGroup
		mu      sync.Mutex
		common  []sentMerge
		model   = map[int]string{}
		lines   = []string{"n,name"}
	)

	for n := range clients * 10 {
		model[n], lines = "old", append(lines, strconv.Itoa(n)+",old")
	}

	d.named("", "a.csv", strings.Join(lines, "\n")+"\n")

	before, begun := len(d.snapshots()), time.Now()

	for client := range clients {
		merging.Go(func() {
			for round := range each {
				// A row of the table, a row that the client wrote in its last round, and a new one.
				name, changed, added := fmt.Sprintf("%d of %d", round, client), client*10+round, 1000+client*10+round
				body := fmt.Sprintf(`{"n": %d, "name": %q}, {"n": %d, "name": %q}`, changed, name, added, name)

				if round > 0 {
					body += fmt.Sprintf(`, {"n": %d, "name": %q}`, added-1, name)
				}

				if client%10 == 0 {
					body += fmt.Sprintf(`, {"n": %d, "name": %q}`, shared, name)
				}

				sent := sentMerge{name: name, begun: time.Now()}
				answer := d.merged(`{"data": [` + body + `]}`)
				sent.done = time.Now()

				if answer.status != http.StatusOK {
					t.Errorf("%s: %d %s", name, answer.status, answer.body)
				}

				mu.Lock()

				model[changed], model[added] = name, name
				if round > 0 {
					model[added-1] = name
				}

				if client%10 == 0 {
					common = append(common, sent)
				}

				mu.Unlock()
			}
		})
	}

	merging.Wait()

	took, snapshots := time.Since(begun), len(d.snapshots())-before
	t.Logf("%d merges: %v, %d snapshots", clients*each, took.Round(10*time.Millisecond), snapshots)

	rows := d.result(`SELECT n, name FROM orders LIMIT 10000`, "").Data
	require.Len(t, rows, len(model)+1)

	for _, row := range rows {
		number, _ := row["n"].(float64)
		name, _ := row["name"].(string)

		if number != shared {
			require.Equal(t, model[int(number)], name, "%v", number)

			continue
		}

		requireLast(t, common, name)
	}

	require.LessOrEqual(t, snapshots, clients*each/2)
	mergeNew(t, d, clients)
}

// merged merges rows. On a slow machine the service may not know the outcome yet, and says so. Then the request is repeated.
func (d *filled) merged(body string) (last *answer) {
	d.t.Helper()

	once := "Idempotency-Key: " + uuid.NewString()

	for range 10 {
		if last = d.merge("n", body, once); last.status != http.StatusServiceUnavailable && last.status != http.StatusConflict {
			break
		}

		time.Sleep(500 * time.Millisecond)
	}

	return last
}

// mergeNew merges keys that no file of the table can have, so that no file is compared.
func mergeNew(t *testing.T, d *filled, clients int) {
	t.Helper()

	var (
		merging sync.WaitGroup
		before  = len(d.snapshots())
	)

	for n := range clients {
		merging.Go(func() {
			if answer := d.merged(fmt.Sprintf(`{"data": [{"n": %d}]}`, 1_000_000+n)); answer.status != http.StatusOK {
				t.Errorf("%d %s", answer.status, answer.body)
			}
		})
	}

	merging.Wait()

	snapshots := len(d.snapshots()) - before
	t.Logf("%d merges of new keys: %d snapshots", clients, snapshots)
	require.Less(t, snapshots, clients)

	found := d.result(`SELECT count(*) AS "all", count(DISTINCT n) AS different FROM orders WHERE n >= 1000000`, "").Data
	require.Equal(t, [][]any{{float64(clients), float64(clients)}}, values(found, "all", "different"))
}

// requireLast requires that the named merge can be the last one: none began after it was acknowledged.
func requireLast(t *testing.T, sent []sentMerge, name string) {
	t.Helper()

	var last *sentMerge

	for n := range sent {
		if sent[n].name == name {
			last = &sent[n]
		}
	}

	require.NotNil(t, last, name)

	for _, other := range sent {
		require.False(t, other.begun.After(last.done), "%s was acknowledged before %s began", name, other.name)
	}
}
