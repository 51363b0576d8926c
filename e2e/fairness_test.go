package e2e

import (
	"context"
	"fmt"
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
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"quern.dev/quern/e2e/kill"
)

// endless is a statement that runs until it is cancelled.
const endless = "SELECT count(*) FROM range(1000000000000) t(i) WHERE hash(i) = 1"

// gone reports whether a process has ended. Its parent may not have waited for it yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}

	_, after, _ := strings.Cut(string(stat), ") ")

	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

// busy returns the children of the service that have used the processor for a while.
func (s *service) busy() (children []int) {
	for _, child := range childrenOf(s.process.Process.Pid) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)) // the process may have ended
		_, after, _ := strings.Cut(string(stat), ") ")

		fields := strings.Fields(after)
		if len(fields) < 15 {
			continue
		}

		if ticks, _ := strconv.Atoi(fields[11]); ticks > 20 { // hundredths of a second; a start takes less
			children = append(children, child)
		}
	}

	return children
}

// awaitGone waits until all processes have ended, and returns the time since the given moment.
func awaitGone(t *testing.T, since time.Time, processes []int) time.Duration {
	t.Helper()

	await(t, "the processes end", func() bool { return len(slices.DeleteFunc(slices.Clone(processes), gone)) == 0 })

	return time.Since(since)
}

// gauge returns the value of a metric.
func (s *service) gauge(name string) int {
	s.t.Helper()

	for line := range strings.Lines(call(s.t, http.MethodGet, s.admin+"/metrics", "", "").body) {
		if text, is := strings.CutPrefix(line, name+" "); is {
			number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			require.NoError(s.t, err)

			return int(number)
		}
	}

	require.Fail(s.t, "no such metric", name)

	return 0
}

// newAsker returns a dataset in a new namespace, with an API token of its owner.
func newAsker(t *testing.T, s *service, key *signer, name string) *filled {
	t.Helper()

	return newFilled(t, s, name, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token(name), `{"name": "asker"}`)))
}

// TestChildrenDie checks that a server that is killed while statements run leaves no process behind.
func TestChildrenDie(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	const statements = 3

	s := start(t, fmt.Sprintf("QUERN_QUERY_MAX_RUNNING=%d", 2*statements), "QUERN_SANDBOX_IDLE_PROCESSES=2")
	d := newAsker(t, s, s.newKey(), "killer")

	for range max(2, loops(20)) {
		kill.Round(t)

		var asking sync.WaitGroup

		for range statements {
			question := d.question(endless, "")
			asking.Go(func() { _, _ = try(question) })
		}

		await(t, "all work", func() bool { return len(s.busy()) >= statements })

		children := childrenOf(s.process.Process.Pid)
		require.GreaterOrEqual(t, len(children), statements)

		killed := time.Now()
		s.kill()
		t.Logf("%d children, all gone %v after the kill", len(children), awaitGone(t, killed, children).Round(time.Millisecond))
		asking.Wait()
		s.restart()
		require.Equal(t, [][]any{{1.0}}, d.result("SELECT 1", "").rows())
	}
}

// TestCancel checks that a statement ends when its client disconnects and when its time is over.
func TestCancel(t *testing.T) { //nolint:tparallel // times are measured
	t.Parallel()

	s := start(t, "QUERN_QUERY_TIMEOUT=1m", "QUERN_QUERY_MAX_RUNNING=4", "QUERN_QUERY_WAIT_TIMEOUT=30s")
	d := newAsker(t, s, s.newKey(), "leaver")

	// leave sends a statement, closes the connection when the child works, and returns how long the child lives after that.
	leave := func(statement string, headers ...string) time.Duration {
		t.Helper()

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		left := make(chan struct{})
		question := d.question(statement, "", headers...).WithContext(ctx)

		go func() {
			defer close(left)

			_, _ = try(question)
		}()

		await(t, "it runs", func() bool { return len(s.busy()) == 1 })

		children, closed := s.busy(), time.Now()
		cancel()

		took := awaitGone(t, closed, children)
		<-left
		await(t, "its place is free", func() bool { return s.gauge("quern_query_running") == 0 })

		return took
	}

	t.Run("a client that leaves", func(t *testing.T) {
		for name, headers := range map[string][]string{"rows": nil, "a file": {"Accept: text/csv"}} {
			var took []time.Duration

			for try := range 5 {
				for range max(5, loops(20)) {
					took = append(took, leave(endless, headers...))
				}

				slices.Sort(took)
				t.Logf("%s: the child is gone after the close: p50 %v, longest %v, of %d", name, took[len(took)/2], took[len(took)-1], len(took))

				if took[len(took)/2] < 100*time.Millisecond {
					break
				}

				require.Less(t, try, 4, "the machine is busy, or it does take so long")
			}
		}
	})

	t.Run("a client that leaves the queue", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var asking sync.WaitGroup

		for range 3 {
			question := d.question(endless, "").WithContext(ctx)
			asking.Go(func() { _, _ = try(question) })
		}

		await(t, "one waits", func() bool { return s.gauge("quern_query_waiting") == 1 && len(s.busy()) == 2 })
		cancel()
		asking.Wait()
		await(t, "nobody waits or runs", func() bool { return s.gauge("quern_query_waiting") == 0 && s.gauge("quern_query_running") == 0 })
	})

	t.Run("a statement that takes too long", func(t *testing.T) {
		s.stop()
		s.settings = append(s.settings, "QUERN_QUERY_TIMEOUT=2s")
		s.restart()

		for name, headers := range map[string][]string{"rows": nil, "a file": {"Accept: application/vnd.apache.parquet"}} {
			began := time.Now()
			late := d.ask(endless, "", headers...)
			took := time.Since(began)
			requireFault(t, name, late, http.StatusGatewayTimeout, "TIMEOUT")
			t.Logf("%s: TIMEOUT after %v", name, took.Round(time.Millisecond))
			require.GreaterOrEqual(t, took, 2*time.Second)
			require.Less(t, took, 10*time.Second)
			await(t, "no child works", func() bool { return len(s.busy()) == 0 })
		}

		require.Equal(t, [][]any{{1.0}}, d.result("SELECT 1", "").rows())
	})
}

// TestFairness sends more statements than there are slots. Each returns its rows or is refused with Retry-After, no user takes
// all slots, and neither many statements nor memory-intensive ones use more memory than allowed.
func TestFairness(t *testing.T) { //nolint:tparallel // each part counts what the service does
	t.Parallel()

	const (
		places, queue, perUser = 8, 12, 4  // one user has at most half of the slots
		memory                 = 128 << 20 // bytes per statement
		bound                  = 512<<20 + places*(memory+128<<20)
	)

	// The memory-intensive statements use both cores until their time is over.
	longest, rows := "20s", "2000000" // on a busy machine the checks need ten seconds
	if full() {
		longest, rows = "30s", "8000000"
	}

	s := start(t, fmt.Sprintf("QUERN_QUERY_MAX_RUNNING=%d", places), fmt.Sprintf("QUERN_QUERY_MAX_WAITING=%d", queue), fmt.Sprintf("QUERN_QUERY_MAX_PER_USER=%d", perUser),
		"QUERN_QUERY_WAIT_TIMEOUT=2s", "QUERN_QUERY_TIMEOUT="+longest, fmt.Sprintf("QUERN_QUERY_MEMORY=%d", memory), "QUERN_QUERY_DISK=256MiB", "QUERN_QUERY_THREADS=2", "QUERN_SANDBOX_IDLE_PROCESSES=4")
	key := s.newKey()
	group := s.bounded(bound)

	var users []*filled
	for i := range 10 {
		users = append(users, newAsker(t, s, key, "user"+strconv.Itoa(i)))
	}

	measured := s.sample()

	t.Run("many at once", func(t *testing.T) {
		statement := "SELECT count(DISTINCT hash(i) % 100000) AS n FROM range(" + rows + ") t(i)"
		began := time.Now()
		answers := atOnce(t, 50, func(i int) *http.Request { return users[i%len(users)].question(statement, "") })
		took := time.Since(began)
		statuses := requireFair(t, answers)
		t.Logf("50 statements in %v: %v", took.Round(time.Millisecond), statuses)
		require.GreaterOrEqual(t, statuses[http.StatusOK], places)
		require.Equal(t, s.gauge("quern_query_refused_full_total"), statuses[http.StatusServiceUnavailable])
		require.Equal(t, s.gauge("quern_query_refused_user_total"), statuses[http.StatusTooManyRequests])
		require.Less(t, took, patience)
	})

	t.Run("many of one user", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var (
			asking  sync.WaitGroup
			refused = s.gauge("quern_query_refused_user_total")
			greedy  = make([]*answer, 2*perUser)
		)

		for i := range greedy {
			question := users[0].question(endless, "").WithContext(ctx)
			asking.Go(func() { greedy[i], _ = try(question) })
		}

		await(t, "some are refused", func() bool { return s.gauge("quern_query_refused_user_total") == refused+perUser })
		await(t, "the others run", func() bool { return s.gauge("quern_query_running") == perUser })
		require.Equal(t, [][]any{{1.0}}, users[1].result("SELECT 1", "").rows(), "there are places for others")
		require.Equal(t, http.StatusTooManyRequests, users[0].ask("SELECT 1", "").status)
		cancel()
		asking.Wait()

		statuses := requireFair(t, slices.DeleteFunc(greedy, func(a *answer) bool { return a == nil })) // running statements were cancelled and have no answer
		require.Equal(t, map[int]int{http.StatusTooManyRequests: perUser}, statuses)
		await(t, "its places are free", func() bool { return s.gauge("quern_query_running") == 0 })
		require.Equal(t, [][]any{{1.0}}, users[0].result("SELECT 1", "").rows())
	})

	t.Run("a full queue", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		var asking sync.WaitGroup

		for i := range places {
			question := users[i].question(endless, "").WithContext(ctx)
			asking.Go(func() { _, _ = try(question) })
		}

		await(t, "all places are taken", func() bool { return s.gauge("quern_query_running") == places })

		began := time.Now()
		answers := atOnce(t, 2*queue, func(i int) *http.Request { return users[i%len(users)].question("SELECT 1", "") })
		require.Equal(t, map[int]int{http.StatusServiceUnavailable: 2 * queue}, requireFair(t, answers))
		require.Less(t, time.Since(began), patience)
		cancel()
		asking.Wait()
		await(t, "the places are free", func() bool { return s.gauge("quern_query_running") == 0 && s.gauge("quern_query_waiting") == 0 })
	})

	t.Run("hungry ones", func(t *testing.T) {
		statements := []string{
			"SELECT count(*) FROM (SELECT md5(i::varchar) AS k, count(*) FROM range(30000000) t(i) GROUP BY k)",
			"SELECT * FROM (SELECT md5(i::varchar) AS k, i FROM range(30000000) t(i)) ORDER BY k DESC LIMIT 1 OFFSET 20000000",
			"SELECT len(list(md5(i::varchar))) FROM range(100000000) t(i)",
			"SELECT length(string_agg(repeat(md5(i::varchar), 100), '')) FROM range(10000000) t(i)",
			"SELECT length(repeat(repeat(repeat('x', 1000), 1000), 3000))",
			"SELECT count(*) FROM (SELECT DISTINCT md5((a.i * b.i)::varchar) FROM range(5000) a(i), range(5000) b(i))",
			"SELECT max(l) FROM (SELECT lag(md5(i::varchar)) OVER (ORDER BY md5(i::varchar)) AS l FROM range(20000000) t(i))",
			"SELECT 1 AS modest",
		}
		answers := atOnce(t, len(statements), func(i int) *http.Request { return users[i].question(statements[i], "") })

		for i, answer := range answers {
			t.Logf("%s: %d %.150s", statements[i], answer.status, answer.body)

			// A statement that fits on the disk is not refused; on a busy machine it may time out.
			if answer.status != http.StatusOK && answer.status != http.StatusGatewayTimeout {
				requireFault(t, statements[i], answer, http.StatusUnprocessableEntity, "LIMIT_EXCEEDED")
			}
		}

		require.Equal(t, http.StatusOK, answers[len(answers)-1].status)
		require.Equal(t, [][]any{{1.0}}, users[0].result("SELECT 1", "").rows())
	})

	most := measured()
	t.Logf("at most %d statements ran and %d waited; the service and its children had %d MiB resident at most, %d are allowed; in a group of its own: %t",
		most.running, most.waiting, most.resident>>20, int64(bound)>>20, group)
	require.Equal(t, places, most.running)
	require.Positive(t, most.waiting)
	require.LessOrEqual(t, most.resident, int64(bound))
	require.True(t, s.running())
}

// requireFair checks that each answer is a success or has Retry-After, and counts the answers by status.
func requireFair(t *testing.T, answers []*answer) (statuses map[int]int) {
	t.Helper()

	statuses = map[int]int{}

	for _, answer := range answers {
		statuses[answer.status]++

		if answer.status == http.StatusOK {
			continue
		}

		require.Contains(t, []int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, answer.status, answer.body)
		require.NotEmpty(t, answer.header.Get("Retry-After"))
	}

	return statuses
}

type most struct {
	running, waiting int
	resident         int64 // bytes
}

// sample measures the service until the returned function is called, which returns the maximum of each value.
func (s *service) sample() func() most {
	var (
		found   most
		enough  = make(chan struct{})
		looking sync.WaitGroup
	)

	looking.Go(func() {
		for {
			select {
			case <-enough:
				return
			case <-time.After(50 * time.Millisecond):
			}

			var resident int64
			for _, process := range append(childrenOf(s.process.Process.Pid), s.process.Process.Pid) {
				resident += residentOf(process)
			}

			found.resident = max(found.resident, resident)

			metrics, err := try(newRequest(s.t, http.MethodGet, s.admin+"/metrics", "", ""))
			if err != nil {
				continue
			}

			for line := range strings.Lines(metrics.body) {
				name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
				number, _ := strconv.Atoi(text)

				switch name {
				case "quern_query_running":
					found.running = max(found.running, number)
				case "quern_query_waiting":
					found.waiting = max(found.waiting, number)
				}
			}
		}
	})

	return func() most {
		close(enough)
		looking.Wait()

		return found
	}
}

// residentOf returns the resident memory of a process in bytes, including shared memory; 0 if the process has ended.
func residentOf(pid int) int64 {
	statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))

	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}

	pages, _ := strconv.ParseInt(fields[1], 10, 64)

	return pages * int64(os.Getpagesize())
}

// bounded puts the service and its children into a control group with a limit of memory, if the machine allows to create one.
// Processes that exceed the limit are killed.
func (s *service) bounded(bytes int64) bool {
	s.t.Helper()

	const mounted = "/sys/fs/cgroup"

	var system unix.Statfs_t
	if err := unix.Statfs(mounted, &system); err != nil || system.Type != unix.CGROUP2_SUPER_MAGIC {
		s.t.Logf("%s has no control groups of version 2: memory is only looked at", mounted)

		return false
	}

	groups, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(s.t, err)

	_, own, _ := strings.Cut(strings.TrimSpace(string(groups)), "0::")
	group := filepath.Join(mounted, own, "quern-test-"+uuid.NewString())

	if err := os.Mkdir(group, 0o700); err != nil {
		s.t.Logf("a control group cannot be made: %v: memory is only looked at", err)

		return false
	}

	// The group can be removed only when all processes in it have ended.
	s.t.Cleanup(func() {
		if s.running() {
			s.stop()
		}

		require.NoError(s.t, os.Remove(group))
	})

	if err := os.WriteFile(filepath.Join(group, "memory.max"), []byte(strconv.FormatInt(bytes, 10)), 0o600); err != nil {
		s.t.Logf("a control group has no bound of memory: %v: memory is only looked at", err)

		return false
	}

	for _, process := range append(childrenOf(s.process.Process.Pid), s.process.Process.Pid) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(process)), 0o600); err != nil {
			s.t.Logf("a process cannot be moved into a control group: %v: memory is only looked at", err)

			return false
		}
	}

	return true
}
