package main

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
)

const (
	followOpening = 20 // streams that are opened at once
	followTimeout = time.Minute
	followLast    = time.Second // before the end: what is written then need not reach all
)

// followers are open streams, and what they saw when.
type followers struct {
	service *service
	client  *http.Client
	group   *errgroup.Group
	ctx     context.Context //nolint:containedctx // it ends with the streams
	cancel  context.CancelFunc

	each         map[uuid.UUID]int // followers of a run
	since, until time.Time         // when all were open

	mu   sync.Mutex
	seen map[occurrence][]time.Time
}

// occurrence is an event of a run.
type occurrence struct {
	run uuid.UUID
	seq int64
}

func newFollowers(ctx context.Context, s *service) *followers {
	f := &followers{service: s, client: &http.Client{Transport: &http.Transport{}}, each: map[uuid.UUID]int{}, seen: map[occurrence][]time.Time{}}
	ctx, f.cancel = context.WithCancel(ctx)
	f.group, f.ctx = errgroup.WithContext(ctx)

	return f
}

// open opens so many streams more, of these runs in turn, and returns when all have their first event.
func (f *followers) open(runs []watched, count int) error {
	opening, begun := make(chan struct{}, followOpening), make(chan struct{}, count)

	for i := range count {
		run := runs[i%len(runs)]
		f.each[run.id]++

		request, err := f.service.request(f.ctx, run.user, http.MethodGet, "/query/runs/"+run.id.String()+"/events", nil)
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

// follow goes on until close.
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

// close ends all streams. What they saw stays.
func (f *followers) close() error {
	if f.until.IsZero() {
		f.until = time.Now()
	}

	f.cancel()
	err := f.group.Wait()
	f.client.CloseIdleConnections()

	return err
}

// lateness is how long events took from the moment at which they were written until all followers of their run had
// them, of those that were written when all were open.
func (f *followers) lateness(ctx context.Context) (loaded, error) {
	var (
		took []time.Duration
		what occurrence
		at   time.Time
	)

	err := f.service.scan(ctx, `SELECT run_id, seq, at FROM run_events`, func(row pgx.CollectableRow) error {
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

	return loaded{took: took}, err
}
