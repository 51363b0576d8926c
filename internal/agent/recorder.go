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

// record writes an event that occurs once.
func (r *recorder) record(ctx context.Context, kind Kind, index int, body any) error {
	return r.recordNth(ctx, kind, index, 1, body)
}

// recordNth writes the n-th event of a kind that can occur several times, counted from 1.
func (r *recorder) recordNth(ctx context.Context, kind Kind, index, n int, body any) error {
	if r.count(kind, index) >= n {
		return nil
	}

	content, err := json.Marshal(body)
	if err != nil {
		return err
	}

	if err := r.log.Write(ctx, Event{Kind: kind, Index: index, Body: content}); err != nil {
		return err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.counts[eventKey{kind, index}]++

	return nil
}
