package agent

import (
	"context"
	"encoding/json"
	"sync"
)

// teller writes each event once, whoever began the run. Steps that are done at the same time tell at the same time, each
// of itself.
type teller struct {
	log    Log
	mu     sync.Mutex
	counts map[told]int
}

type told struct {
	kind  Kind
	index int
}

func tellerOf(log Log) *teller {
	t := &teller{log: log, counts: map[told]int{}}
	for _, e := range log.Before() {
		t.counts[told{e.Kind, e.Index}]++
	}

	return t
}

// said is how often such an event was written.
func (t *teller) said(kind Kind, index int) int {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.counts[told{kind, index}]
}

func (t *teller) say(ctx context.Context, kind Kind, index int, body any) error {
	return t.sayTimes(ctx, kind, index, 1, body)
}

// sayTimes writes an event of which there are several, unless so many are written.
func (t *teller) sayTimes(ctx context.Context, kind Kind, index, times int, body any) error {
	if t.said(kind, index) >= times {
		return nil
	}

	content, err := json.Marshal(body)
	if err != nil {
		return err
	}

	if err := t.log.Write(ctx, Event{Kind: kind, Index: index, Body: content}); err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	t.counts[told{kind, index}]++

	return nil
}
