package agent

import (
	"context"
	"encoding/json"
	"sync"
)

// recorder writes each event once, even if another worker began the run. It is safe for concurrent use by steps that run
// at the same time; each step writes only its own events.
type recorder struct {
	log    Log
	mu     sync.Mutex
	counts map[eventKey]int // events that are in the log
}

type eventKey struct {
	kind  Kind
	index int // of the step
}

func newRecorder(log Log) *recorder {
	r := &recorder{log: log, counts: map[eventKey]int{}}
	for _, e := range log.Before() {
		r.counts[eventKey{e.Kind, e.Index}]++
	}

	return r
}

// count returns how many events of this kind were written for this step.
func (r *recorder) count(kind Kind, index int) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.counts[eventKey{kind, index}]
}

// occurrence is the n-th event of a kind for a step, counted from 1.
type occurrence struct {
	eventKey

	nth  int
	body any
}

// record writes an event that occurs once.
func (r *recorder) record(ctx context.Context, kind Kind, index int, body any) error {
	return r.recordAll(ctx, occurrence{eventKey{kind, index}, 1, body})
}

// recordAll writes events together, without those that are in the log.
func (r *recorder) recordAll(ctx context.Context, list ...occurrence) error {
	var events []Event

	for _, o := range list {
		if r.count(o.kind, o.index) >= o.nth {
			continue
		}

		content, err := json.Marshal(o.body)
		if err != nil {
			return err
		}

		events = append(events, Event{Kind: o.kind, Index: o.index, Body: content})
	}

	if len(events) == 0 {
		return nil
	}

	if err := r.log.Write(ctx, events...); err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	for _, e := range events {
		r.counts[eventKey{e.Kind, e.Index}]++
	}

	return nil
}
