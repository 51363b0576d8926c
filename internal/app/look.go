package app

import (
	"sync"
	"time"
)

// lookAge is how long the result of a check is reused.
const lookAge = time.Second

// look caches the result of a check, so that the check runs at most once per second and never concurrently, however
// many callers there are.
type look struct {
	mu    sync.Mutex
	at    time.Time
	found error
}

// recent returns the result of the last check if it is younger than lookAge, and runs the check otherwise. Concurrent
// callers wait and get the same result.
func (l *look) recent(see func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.at.IsZero() || time.Since(l.at) >= lookAge {
		l.found = see()
		l.at = time.Now()
	}

	return l.found
}
