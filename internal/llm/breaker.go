package llm

import (
	"sync"
	"time"
)

const (
	breakAfter = 5                // attempts that failed in a row
	breakFor   = 15 * time.Second // then one is let through to see
	probeWait  = time.Second
)

// verdict is what an attempt says of the provider's health.
type verdict int

const (
	nothing verdict = iota
	healthy
	sick
)

// breaker keeps a provider that does not work from being asked by everybody, again and again.
type breaker struct {
	mutex   sync.Mutex
	failed  int // in a row
	until   time.Time
	probing bool
}

// allow says how long to stay away; zero means go, and report afterwards.
func (b *breaker) allow(now time.Time) time.Duration {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	switch {
	case b.failed < breakAfter:
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case b.probing:
		return probeWait
	default:
		b.probing = true

		return 0
	}
}

func (b *breaker) report(now time.Time, v verdict) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	b.probing = false

	switch v {
	case healthy:
		b.failed = 0
	case sick:
		if b.failed++; b.failed >= breakAfter {
			b.until = now.Add(breakFor)
		}
	case nothing:
	}
}
