//go:build trino

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

const (
	// outageTimeout is how long the service waits for one answer of the coordinator.
	outageTimeout = 6 * time.Second

	// outageRows makes a join of three times the dataset take seconds on two processors.
	outageRows = 700

	// manyRows is a statement with a result of many pages.
	manyRows = "SELECT a.id AS x, b.id AS y FROM orders a, orders b ORDER BY x, y LIMIT 100000"
)

// isActive are the states of a statement that uses the cluster.
func isActive() []string { return []string{"QUEUED", "PLANNING", "STARTING", "RUNNING", "FINISHING"} }

// clusterOutage is a service and a cluster whose parts the test stops.
type clusterOutage struct {
	*cluster

	between      *proxy  // between the service and the coordinator
	there, here  *filled // the datasets of two users, on Trino and on DuckDB
	alsoThere    *filled // the dataset of a third user, on Trino
	joined, full string  // statements that take long: the first one ends with joinedCount, the other does not end
	joinedCount  float64
}

func newClusterOutage(t *testing.T) *clusterOutage {
	t.Helper()

	between := newProxy(t, stack.Env(t, "QUERN_TEST_TRINO_URL"))
	o := &clusterOutage{between: between, cluster: startOnTrino(t, "QUERN_TRINO_URL=http://"+between.address, "QUERN_TRINO_TIMEOUT="+outageTimeout.String(),
		"QUERN_QUERY_MAX_RUNNING=2", "QUERN_QUERY_TIMEOUT=50s")}
	key := o.s.newKey()

	var rows []string
	for n := range outageRows {
		rows = append(rows, fmt.Sprintf(`{"id": %d}`, n))
	}

	for name, d := range map[string]**filled{"ada": &o.there, "eve": &o.alsoThere, "bob": &o.here} {
		*d = newFilled(t, o.s, name, key.token(name))
		(*d).stored(`{"data": [` + strings.Join(rows, ", ") + `]}`)
	}

	o.on("trino", o.there, o.alsoThere)

	o.joined, o.joinedCount = "SELECT count(*) AS n FROM orders a, orders b, orders c WHERE a.id + b.id * c.id >= 0", outageRows*outageRows*outageRows
	o.full = "SELECT count(*) AS n FROM orders a, orders b, orders c, orders d WHERE a.id * b.id + c.id * d.id = -1"

	require.Equal(t, "trino", o.there.result("SELECT count(*) AS n FROM orders", "").Metadata.Engine)

	return o
}

// requireDown checks that what needs Trino says that it is not available, in time, and that everything else works.
func (o *clusterOutage) requireDown(within time.Duration) {
	o.t.Helper()

	began := time.Now()
	refused := o.there.ask("SELECT count(*) AS n FROM orders", "")
	requireUnavailable(o.t, refused)
	require.Contains(o.t, refused.body, "Trino, the engine that reads this dataset, is not available.")
	require.Less(o.t, time.Since(began), within)

	requireUnavailable(o.t, o.there.call(http.MethodGet, "/export?format=ndjson", ""))
	o.requireUnharmed()
}

// requireUnharmed checks what does not need the cluster, also for a dataset on it.
func (o *clusterOutage) requireUnharmed() {
	o.t.Helper()
	require.Equal(o.t, [][]any{{float64(outageRows)}}, o.here.result("SELECT count(*) AS n FROM orders", "").rows())
	require.Equal(o.t, [][]any{{1.0}}, o.there.result("SELECT 1 AS n", "").rows())
	require.NotEmpty(o.t, o.there.result("SHOW TABLES", "").Data)
	require.Equal(o.t, http.StatusOK, o.there.call(http.MethodGet, "/rows?limit=2", "").status)
	require.Equal(o.t, http.StatusOK, o.there.call(http.MethodGet, "", "").status)
	require.Equal(o.t, http.StatusOK, o.there.call(http.MethodPost, "/rows?mode=merge&key=id&dryRun=true", `{"data": [{"id": 1}]}`).status)
	require.True(o.t, o.s.ready("ok"))
}

// awaitUp waits until statements run on the cluster again.
func (o *clusterOutage) awaitUp() {
	o.t.Helper()
	awaitFor(o.t, 2*patience, "the cluster runs statements", func() bool { return o.there.ask("SELECT count(*) AS n FROM orders", "").status == http.StatusOK })
}

// awaitIdle waits until no statement uses the cluster.
func (o *clusterOutage) awaitIdle() {
	o.t.Helper()
	await(o.t, "no statement uses the cluster", func() bool { return o.seen(o.there, isActive()...)+o.seen(o.alsoThere, isActive()...) == 0 })
}

// begin sends a statement and returns its answer later, or an error if the answer breaks off. It waits until Trino runs the statement.
func (o *clusterOutage) begin(statement string) func() (*answer, error) {
	o.t.Helper()
	o.awaitIdle()

	var (
		question = o.there.question(statement, "")
		found    *answer
		err      error
		asking   sync.WaitGroup
		before   = o.seen(o.there, "FINISHED", "FAILED")
	)

	asking.Go(func() { found, err = try(question) })
	await(o.t, "Trino runs the statement", func() bool { return o.seen(o.there, "RUNNING", "FINISHING", "FINISHED", "FAILED") > before })

	return func() (*answer, error) {
		asking.Wait()

		return found, err
	}
}

// TestTrinoOutage stops parts of the cluster, so no other test may use it at the same time: those run in parallel, after this one.
func TestTrinoOutage(t *testing.T) { //nolint:paralleltest // as above
	o := newClusterOutage(t)
	t.Cleanup(o.up) // for the other tests

	for name, down := range map[string]behaviour{"refused": {refuse: true}, "busy": {status: http.StatusServiceUnavailable}, "broken": {status: http.StatusInternalServerError}, "silent": {blackhole: true}} {
		t.Log(name)
		o.between.set(down)
		o.requireDown(outageTimeout + 5*time.Second)
		o.between.set(behaviour{})
		require.Equal(t, http.StatusOK, o.there.ask("SELECT count(*) AS n FROM orders", "").status, "it is used at once when it is back")
	}

	o.slow()
	o.manyWait()
	o.later()
	o.hangs()
	o.serviceKilled()
	o.workerKilled()
	o.coordinatorKilled()
}

// slow checks that statements succeed although the coordinator delays each answer.
func (o *clusterOutage) slow() {
	o.between.set(behaviour{delay: outageTimeout / 10})
	require.Equal(o.t, [][]any{{float64(outageRows)}}, o.there.result("SELECT count(*) AS n FROM orders", "").rows())
	o.between.set(behaviour{delay: 2 * outageTimeout})
	o.requireDown(outageTimeout + 5*time.Second)
	o.between.set(behaviour{})
	o.awaitIdle()
}

// manyWait checks that statements that wait for a cluster without answers do not take the slots of the others.
func (o *clusterOutage) manyWait() {
	o.between.set(behaviour{blackhole: true})

	const each = 2 // two users may have all slots of the sealed processes

	var (
		waiting sync.WaitGroup
		ended   atomic.Int64
	)

	for range each {
		for _, d := range []*filled{o.there, o.alsoThere} {
			question := d.question("SELECT count(*) AS n FROM orders", "")

			waiting.Go(func() {
				answer, err := try(question)
				if ended.Add(1); err != nil || answer.status != http.StatusServiceUnavailable {
					o.t.Errorf("%+v %v", answer, err)
				}
			})
		}
	}

	await(o.t, "they wait for the cluster", func() bool { return o.s.gauge("quern_query_trino") == 2*each })
	require.Equal(o.t, [][]any{{float64(outageRows)}}, o.here.result("SELECT count(*) AS n FROM orders", "").rows())
	require.Zero(o.t, ended.Load(), "they still wait")
	waiting.Wait()

	o.between.set(behaviour{})
	require.Zero(o.t, o.s.gauge("quern_query_trino"))
}

// later checks that a long statement waits for a cluster that is down.
func (o *clusterOutage) later() {
	o.between.set(behaviour{refuse: true})

	asked := func() int {
		requests, connections := o.between.record()

		return len(requests) + connections
	}
	before := asked()
	long := o.there.start("SELECT id FROM orders", "")

	await(o.t, "it was tried", func() bool { return asked() > before })
	o.between.set(behaviour{})
	long.await("completed")
	require.EqualValues(o.t, outageRows, long.pieces().Data[0].Rows)
}

// hangs suspends the coordinator while two statements run. The client of one of them leaves.
func (o *clusterOutage) hangs() {
	answered := o.begin(o.full)

	ctx, leave := context.WithCancel(o.t.Context())
	given := make(chan error, 1)
	question := o.alsoThere.question(o.full, "").WithContext(ctx)

	go func() {
		_, err := try(question)
		given <- err
	}()

	await(o.t, "both run", func() bool { return o.seen(o.alsoThere, "RUNNING") > 0 })

	o.signal("trino", syscall.SIGSTOP)
	leave()
	require.Error(o.t, <-given)

	answer, err := answered()
	require.NoError(o.t, err)
	requireUnavailable(o.t, answer)
	o.requireDown(outageTimeout + 5*time.Second)

	o.signal("trino", syscall.SIGCONT)
	o.awaitUp()
	o.awaitIdle()
}

// serviceKilled checks that the cluster ends a statement at its time limit after the service has died.
func (o *clusterOutage) serviceKilled() {
	answered := o.begin(o.full)
	o.s.kill()

	_, err := answered()
	require.Error(o.t, err)
	o.s.restart()
	o.awaitUp()
	o.awaitIdle()
}

// workerKilled kills the worker while statements run.
func (o *clusterOutage) workerKilled() {
	outcomes := map[int]int{}

	for range loops(10) {
		for _, statement := range []string{o.joined, manyRows} {
			answered := o.begin(statement)

			pause(time.Second)
			o.signal("trino-worker", syscall.SIGKILL)

			answer, err := answered()
			if err == nil { // else the answer broke off
				outcomes[answer.status]++

				o.requireRightOrDown(answer)
			}

			o.requireDown(45 * time.Second)
			o.up()
			o.awaitUp()
		}
	}

	o.t.Logf("statements whose worker was killed, by status: %v", outcomes)
	require.NotZero(o.t, outcomes[http.StatusServiceUnavailable])
}

// requireRightOrDown checks that a statement has all its rows, or says that Trino is not available.
func (o *clusterOutage) requireRightOrDown(answer *answer) {
	o.t.Helper()

	if answer.status != http.StatusOK {
		requireUnavailable(o.t, answer)

		return
	}

	found := o.there.resultOf(answer)
	if len(found.Data) == 1 {
		require.Equal(o.t, [][]any{{o.joinedCount}}, found.rows())

		return
	}

	require.Len(o.t, found.Data, 100_000)

	for i, row := range found.rows() {
		require.Equal(o.t, []any{float64(i / outageRows), float64(i % outageRows)}, row)
	}
}

func (o *clusterOutage) coordinatorKilled() {
	answered := o.begin(o.joined)
	o.signal("trino", syscall.SIGKILL)

	answer, err := answered()
	require.NoError(o.t, err)
	requireUnavailable(o.t, answer)
	o.requireDown(outageTimeout + 5*time.Second)

	o.up()
	o.create()
	o.awaitUp()
	require.Equal(o.t, [][]any{{float64(outageRows * outageRows)}}, o.there.result("SELECT count(*) AS n FROM orders a, orders b", "").rows())
}

// signal sends a signal to a process of the cluster and its children.
func (o *clusterOutage) signal(name string, signal syscall.Signal) {
	o.t.Helper()

	content, err := os.ReadFile(filepath.Join(stack.Dir(), name+".pid"))
	require.NoError(o.t, err)

	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(o.t, err)
	require.NoError(o.t, syscall.Kill(-pid, signal))

	if signal == syscall.SIGSTOP {
		o.t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGCONT) }) // also if the test fails meanwhile
	}
}

// up starts what is missing of the cluster.
func (o *clusterOutage) up() {
	o.t.Helper()

	command := exec.CommandContext(context.WithoutCancel(o.t.Context()), "../stack/trino", "up") // also when the test has ended
	printed, err := command.CombinedOutput()
	require.NoError(o.t, err, string(printed))
}
