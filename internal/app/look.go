package app

import (
	"sync"
	"time"
)

// lookAge is how long a look is good for.
const lookAge = time.Second

// look remembers for a moment what was seen, so that however many ask, it is looked once a second and one at a time.
type look struct {
	mu    sync.Mutex
	at    time.Time
	found error
}

// recent returns what was seen last if that was a moment ago, and looks otherwise. Who asks meanwhile gets the same answer.
func (l *look) recent(see func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.at.IsZero() || time.Since(l.at) >= lookAge {
		l.found = see()
		l.at = time.Now()
	}

	return l.found
}
