//go:build soak

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// alarm is a real fault and the alerts that it causes.
type alarm struct {
	alerts []string
	// cause starts services. It returns the services to watch, a function that begins the fault, and one that ends it.
	cause func(t *testing.T) (watched []*service, begin, end func())
}

// TestAlertsFire causes real faults of real services that a real Prometheus scrapes. Each alert must be quiet before its fault, fire
// while it lasts, and end after it. The rules are the shipped ones with their thresholds. Only their times are shorter: a minute lasts a
// second, a range is 10 to 60 seconds, and the rules are evaluated every second.
func TestAlertsFire(t *testing.T) { //nolint:paralleltest,tparallel // nothing else runs beside it
	content, err := os.ReadFile(rulesPath)
	require.NoError(t, err)

	rules := hastened(t, string(content))

	for name, one := range map[string]alarm{
		"a replica dies":                   {[]string{"QuernDown"}, replicaDies},
		"the database is down":             {[]string{"QuernNotReady", "QuernErrorBudgetBurn"}, databaseIsDown},
		"the store is down":                {[]string{"QuernDegraded", "QuernStoreFailing"}, storeIsDown},
		"every slot is taken":              {[]string{"QuernStatementsRefused"}, slotsAreTaken},
		"statements are slow":              {[]string{"QuernStatementsSlow"}, statementsAreSlow},
		"the database is slow":             {[]string{"QuernPoolExhausted", "QuernReadsSlow"}, databaseIsSlow},
		"sealed processes are killed":      {[]string{"QuernSandboxDying"}, childrenDie},
		"the disk is full":                 {[]string{"QuernDiskFull"}, diskIsFull},
		"a worker stands still":            {[]string{"QuernLeasesLost"}, workerStandsStill},
		"questions are slow":               {[]string{"QuernQuestionsSlow"}, questionsAreSlow},
		"nobody works on the queue of run": {[]string{"QuernQueueStuck"}, nobodyWorks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			watched, begin, end := one.cause(t)
			p := newPrometheus(t, rules, time.Second, watched...)

			time.Sleep(5 * time.Second)

			for _, alert := range one.alerts {
				require.False(t, p.firing(alert), "%s fires without a fault", alert)
			}

			began := time.Now()

			begin()

			for _, alert := range one.alerts {
				longest := 2 * time.Minute
				if alert == "QuernQueueStuck" {
					longest = 7 * time.Minute // its threshold is five minutes
				}

				awaitFor(t, longest, alert+" fires", func() bool { return p.firing(alert) })
				t.Logf("%s fired after %.0f s", alert, time.Since(began).Seconds())
			}

			end()

			for _, alert := range one.alerts {
				awaitFor(t, 3*time.Minute, alert+" ends", func() bool { return !p.firing(alert) })
			}
		})
	}
}

// hastened returns the shipped rules with shorter times.
func hastened(t *testing.T, rules string) string {
	t.Helper()

	seconds := func(text string) int {
		long, err := time.ParseDuration(strings.Replace(text, "3d", "72h", 1))
		require.NoError(t, err)

		return int(long.Minutes())
	}

	rules = regexp.MustCompile(`\[\w+\]`).ReplaceAllStringFunc(rules, func(found string) string {
		return "[" + strconv.Itoa(min(60, max(10, seconds(strings.Trim(found, "[]"))))) + "s]"
	})
	rules = regexp.MustCompile(`for: \w+`).ReplaceAllStringFunc(rules, func(found string) string {
		return fmt.Sprintf("for: %ds", seconds(strings.TrimPrefix(found, "for: ")))
	})

	return strings.Replace(rules, "interval: 30s", "interval: 1s", 1)
}

func nothing() {}

func replicaDies(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	one := start(t)
	two := another(t, one)

	return []*service{one, two}, two.kill, two.restart
}

// behindToxiproxy starts a service whose database is behind toxiproxy.
func behindToxiproxy(t *testing.T, settings ...string) (*service, *toxiproxy) {
	t.Helper()

	toxic, database := newToxiproxy(t), migratedDatabase(t)
	host := hostOf(t, database)
	s := start(t, append(settings, "QUERN_DATABASE_URL="+strings.Replace(database, "@"+host+"/", "@"+toxic.between("database", host)+"/", 1))...)
	s.databaseURL = database

	return s, toxic
}

func databaseIsDown(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s, toxic := behindToxiproxy(t, "QUERN_DATABASE_ACQUIRE_TIMEOUT=1s")
	bearer := s.newKey().token("ada")
	stop := during(t, 2, func(ctx context.Context) {
		_, _ = try(newRequest(t, http.MethodGet, s.url+"/user/me", bearer, ""))
		waitFor(ctx, 100*time.Millisecond)
	})

	return []*service{s}, func() { toxic.call(http.MethodPost, "/proxies/database", `{"enabled": false}`) }, func() {
		stop()
		toxic.call(http.MethodPost, "/proxies/database", `{"enabled": true}`)
	}
}

func storeIsDown(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_S3_TIMEOUT=1s")...)
	bearer := s.newKey().token("ada")
	stop := during(t, 1, func(ctx context.Context) {
		_, _ = try(newRequest(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(1)))
		waitFor(ctx, 300*time.Millisecond)
	})

	return []*service{s}, func() { between.set(behaviour{refuse: true}) }, func() {
		stop()
		between.set(behaviour{})
	}
}

func slotsAreTaken(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s := start(t, "QUERN_QUERY_MAX_RUNNING=1", "QUERN_QUERY_MAX_WAITING=0", "QUERN_QUERY_TIMEOUT=20s")
	key := s.newKey()
	one, two := newFilled(t, s, "ada", key.token("ada")), newFilled(t, s, "bob", key.token("bob"))

	var stopOne, stopTwo func()

	ask := func(d *filled) func(context.Context) {
		return func(ctx context.Context) {
			_, _ = try(d.question(endless, "").WithContext(ctx))
			waitFor(ctx, time.Second)
		}
	}

	return []*service{s}, func() { stopOne, stopTwo = during(t, 1, ask(one)), during(t, 2, ask(two)) }, func() {
		stopOne()
		stopTwo()
	}
}

func statementsAreSlow(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s := start(t, "QUERN_QUERY_TIMEOUT=6s", "QUERN_QUERY_MAX_RUNNING=4")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	var stop func()

	return []*service{s}, func() { stop = during(t, 2, func(context.Context) { _, _ = try(d.question(endless, "")) }) }, func() { stop() }
}

func databaseIsSlow(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s, toxic := behindToxiproxy(t, "QUERN_DATABASE_MAX_CONNS=2")
	bearer := s.newKey().token("ada")
	stop := during(t, 8, func(ctx context.Context) {
		_, _ = try(newRequest(t, http.MethodGet, s.url+"/schema/datasets/all", bearer, ""))
		waitFor(ctx, 200*time.Millisecond)
	})

	return []*service{s}, func() {
			toxic.call(http.MethodPost, "/proxies/database/toxics", `{"name": "fault", "type": "latency", "attributes": {"latency": 200}}`)
		}, func() {
			stop()
			toxic.call(http.MethodDelete, "/proxies/database/toxics/fault", "")
		}
}

func childrenDie(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	var stop func()

	return []*service{s}, func() {
		stop = during(t, 1, func(ctx context.Context) {
			asking, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()

			go func() {
				waitFor(asking, time.Second)

				for _, child := range s.busy() {
					_ = syscall.Kill(child, syscall.SIGKILL)
				}
			}()

			_, _ = try(d.question(endless, "").WithContext(asking))
		})
	}, func() { stop() }
}

func diskIsFull(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()
	require.Zero(t, os.Geteuid(), "only root may mount a small disk")

	disk := mounted(t, false)
	s := start(t, "QUERN_SANDBOX_DIR="+filepath.Join(disk.path, "work"), "QUERN_SANDBOX_RESERVE_BYTES=8MiB", "QUERN_SANDBOX_RESERVE_FILES=200")

	return []*service{s}, disk.fill, disk.clear
}

// workerStandsStill halts a worker that answers questions, for longer than its leases last.
func workerStandsStill(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	settings := []string{scripted, "QUERN_RUN_MAX_PER_USER=100"}
	one := start(t, append(settings, "QUERN_RUN_WORKERS=0")...)
	worker := another(t, one, settings...)
	d := newFilled(t, one, "ada", one.newKey().token("ada"))

	return []*service{one, worker}, func() {
		for range 8 {
			d.accept("assistant", `{"pause": 60000, "steps": [{"instruction": "wait"}], "response": "Late."}`)
		}

		await(t, "the worker has all runs", func() bool { return one.count(`SELECT count(*) FROM leases`) >= 8 })

		process, _ := worker.current()
		require.NoError(t, process.Process.Signal(syscall.SIGSTOP))
		another(t, one, settings...) // takes over
		time.Sleep(20 * time.Second)
		require.NoError(t, process.Process.Signal(syscall.SIGCONT))
	}, nothing
}

func questionsAreSlow(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s := start(t, scripted, "QUERN_RUN_MAX_PER_USER=100", "QUERN_RUN_WORKERS=40")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	return []*service{s}, func() {
		for range 15 {
			d.accept("assistant", `{"pause": 65000, "steps": [{"instruction": "wait"}], "response": "Late."}`)
			time.Sleep(2 * time.Second)
		}
	}, nothing
}

func nobodyWorks(t *testing.T) (watched []*service, begin, end func()) {
	t.Helper()

	s := start(t, scripted, "QUERN_RUN_WORKERS=0")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	return []*service{s}, func() { d.accept("assistant", `{"response": "Late."}`) },
		func() { another(t, s, scripted) }
}
