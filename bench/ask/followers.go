package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/bench/rig"
)

const (
	followOpening = 20 // streams that are opened at once
	followTimeout = time.Minute
	followLast    = time.Second // before the end: events written in this time need not reach all followers
)

// followers are open streams, and the times at which they received events.
type followers struct {
	service *rig.Service
	client  *http.Client
	group   *errgroup.Group
	ctx     context.Context //nolint:containedctx // it ends with the streams
	cancel  context.CancelFunc

	each         map[uuid.UUID]int // number of followers of each run
	since, until time.Time         // the time in which all streams were open

	mu   sync.Mutex
	seen map[occurrence][]time.Time
}

// occurrence identifies an event of a run.
type occurrence struct {
	run uuid.UUID
	seq int64
}

func newFollowers(ctx context.Context, s *rig.Service) *followers {
	f := &followers{service: s, client: &http.Client{Transport: &http.Transport{}}, each: map[uuid.UUID]int{}, seen: map[occurrence][]time.Time{}}
	ctx, f.cancel = context.WithCancel(ctx)
	f.group, f.ctx = errgroup.WithContext(ctx)

	return f
}

// open opens count more streams, of these runs in turn, and returns when all have received their first event.
func (f *followers) open(runs []watched, count int) error {
	opening, begun := make(chan struct{}, followOpening), make(chan struct{}, count)

	for i := range count {
		run := runs[i%len(runs)]
		f.each[run.id]++

		request, err := f.service.Request(f.ctx, run.user, http.MethodGet, "/query/runs/"+run.id.String()+"/events", nil)
		if err != nil {
			return err
		}

		opening <- struct{}{}

		f.group.Go(func() error {
			begin := sync.OnceFunc(func() {
				begun <- struct{}{}
				<-opening
			})
			defer begin()

			return f.follow(request, run, begin)
		})
	}

	for range count {
		select {
		case <-begun:
		case <-f.ctx.Done():
			return errors.Join(f.ctx.Err(), f.close())
		case <-time.After(followTimeout):
			return errors.New("the streams do not begin")
		}
	}

	f.since = time.Now()

	return nil
}

// follow reads a stream until close.
func (f *followers) follow(request *http.Request, run watched, begin func()) error {
	err := follow(f.client, request, func(seq int64) {
		at := time.Now()

		begin()
		f.mu.Lock()
		defer f.mu.Unlock()

		f.seen[occurrence{run.id, seq}] = append(f.seen[occurrence{run.id, seq}], at)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}

	return fmt.Errorf("a stream ended: %w", err)
}

// close ends all streams. The recorded times remain.
func (f *followers) close() error {
	if f.until.IsZero() {
		f.until = time.Now()
	}

	f.cancel()
	err := f.group.Wait()
	f.client.CloseIdleConnections()

	return err
}

// lateness returns how long events took from the time at which they were written until all followers of their run had
// received them, for the events that were written while all streams were open.
func (f *followers) lateness(ctx context.Context) (rig.Loaded, error) {
	var (
		took []time.Duration
		what occurrence
		at   time.Time
	)

	err := f.service.Scan(ctx, `SELECT run_id, seq, at FROM run_events`, func(row pgx.CollectableRow) error {
		if err := row.Scan(&what.run, &what.seq, &at); err != nil {
			return err
		}

		if f.each[what.run] == 0 || at.Before(f.since) || at.After(f.until.Add(-followLast)) {
			return nil
		}

		times := f.seen[what]
		if len(times) != f.each[what.run] {
			return fmt.Errorf("event %d of run %s reached %d of %d followers", what.seq, what.run, len(times), f.each[what.run])
		}

		took = append(took, slices.MaxFunc(times, time.Time.Compare).Sub(at))

		return nil
	})
	if err == nil && len(took) == 0 {
		err = errors.New("no event was written")
	}

	slices.Sort(took)

	return rig.Loaded{Took: took}, err
}
