package e2e

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// TestAttachedKillLoop refreshes on two replicas while processes die and the table changes.
func TestAttachedKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	c, table := newTableCatalog(t), "k.orders"
	both := []string{"QUERN_SOURCE_KEY=" + strings.Repeat("the key of both ", 4), c.hosts()}
	one := start(t, both...)
	two := another(t, one, both...)
	bearer := value(t, call(t, http.MethodPost, one.url+"/user/tokens", one.newKey().token("ada"), `{"name": "loader"}`))

	c.do("create", map[string]any{"table": table, "columns": numberedColumns})

	a := attach(t, one, c, "ada", bearer, one.connectCatalog(t, bearer, c, nil), table)
	l := &sourceLoop{loadLoop: &loadLoop{t: t, replicas: []*service{one, two}, killed: map[string]int{}}}

	dying, enough := context.WithCancel(t.Context())

	var killing sync.WaitGroup

	killing.Go(func() {
		for {
			select {
			case <-dying.Done():
				return
			case <-time.After(rand.N(3 * time.Second)):
				victim := l.replicas[rand.N(2)]
				l.killed["server"]++
				victim.kill()
				victim.restart()
			}
		}
	})

	random, next := rand.New(rand.NewPCG(7, 8)), 1

	for range loops(200) {
		kill.Round(t)
		a.change(random, &next)
		l.tryRun(a.sourceOf)
		time.Sleep(rand.N(2 * time.Second))
	}

	enough()
	killing.Wait()

	awaitFor(t, longEnough, "the last run has ended", func() bool { last := a.get().LastRun; return last == nil || last.FinishedAt != "" })

	if a.get().Status == "stopped" {
		a.set(true)
	}

	answer := a.begin()
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)

	var run sourceRun

	answer.json(t, &run)
	awaitFor(t, longEnough, "the run has ended", func() bool { last := a.get().LastRun; return last.ID == run.ID && last.FinishedAt != "" })
	a.requireSame(*a.get().LastRun)
	t.Logf("%d runs asked for, %d snapshots, killed: %v", l.runs, len(a.filled.snapshots()), l.killed)
}
