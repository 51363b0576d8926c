package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPoolNeverNested checks that statements that wait for the object store hold no connection of the database. One user runs
// more statements over an older snapshot, whose list of files is in the object store, than the pool has connections. The object
// store does not answer, and all other requests must still succeed.
func TestPoolNeverNested(t *testing.T) {
	t.Parallel()

	const connections, statements = 4, 8

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, fmt.Sprintf("QUERN_DATABASE_MAX_CONNS=%d", connections), fmt.Sprintf("QUERN_QUERY_MAX_RUNNING=%d", 2*statements), "QUERN_S3_TIMEOUT=20s")...)
	key := s.newKey()
	d := newAsker(t, s, key, "historian")
	other := value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("other"), `{"name": "other"}`))

	d.loaded("", "n\n1\n")
	old := fmt.Sprintf(`"asOf": %q`, d.committed()[0])
	d.loaded("", "n\n2\n")
	require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", old).rows())

	for name, down := range map[string]behaviour{"silent": {blackhole: true}, "slow": {delay: 10 * time.Second}} {
		dropCache(t, s)
		between.set(down)

		var (
			asking  sync.WaitGroup
			answers = make([]*answer, statements)
			before  = between.requests(".avro")
		)

		for i := range answers {
			question := d.question("FROM orders", old)
			asking.Go(func() { answers[i], _ = try(question) })
		}

		await(t, "the statements wait for the store", func() bool { return between.requests(".avro") >= before+statements })

		for range 20 {
			began := time.Now()
			require.Equal(t, http.StatusOK, me(t, s, other).status, name)
			require.Less(t, time.Since(began), 5*time.Second, name)
		}

		between.set(behaviour{})
		asking.Wait()

		for _, answer := range answers {
			require.NotNil(t, answer, name)
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, answer.status, answer.body)
		}

		require.Equal(t, [][]any{{1.0}}, d.result("FROM orders", old).rows(), name)
	}
}
