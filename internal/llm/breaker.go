package llm

import (
	"sync"
	"time"
)

const (
	breakAfter = 5                // consecutive failed attempts
	breakFor   = 15 * time.Second // after this time one attempt is allowed
	probeWait  = time.Second
)

// verdict is what an attempt shows about the health of the provider.
type verdict int

const (
	nothing verdict = iota
	healthy
	sick
)

// breaker stops requests to a provider that does not work.
type breaker struct {
	mutex   sync.Mutex
	failed  int // consecutive failures
	until   time.Time
	probing bool
}

// allow returns how long to wait before an attempt. Zero means that the attempt may be made; the caller must then call
// report.
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
