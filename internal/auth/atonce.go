package auth

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
)

// AtOnce bounds how much of one kind each account may have under way in this process, so that nobody takes what the others
// need. A nil AtOnce bounds nothing.
type AtOnce struct {
	most int
	what string // for the message

	mu       sync.Mutex
	underway map[uuid.UUID]int
}

// NewAtOnce returns a bound for what is called so.
func NewAtOnce(most int, what string) *AtOnce {
	return &AtOnce{most: most, what: what, underway: map[uuid.UUID]int{}}
}

// Begin counts one more, until end is called. RateLimited.
func (a *AtOnce) Begin(who Principal) (end func(), err error) {
	if a == nil {
		return func() {}, nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if a.underway[who.Account] >= a.most {
		e := fault.New(fault.RateLimited, fmt.Sprintf("You have %d %s already. Wait until one has ended.", a.most, a.what))
		e.RetryAfter = time.Second

		return nil, e
	}

	a.underway[who.Account]++

	return sync.OnceFunc(func() { a.end(who.Account) }), nil
}

func (a *AtOnce) end(account uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.underway[account]--; a.underway[account] == 0 {
		delete(a.underway, account)
	}
}
