package auth

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
)

// Concurrency limits how many operations of one kind each account may have in progress in this process, so that one
// account cannot use up what the others need. A nil Concurrency has no limit.
type Concurrency struct {
	most int
	what string // name of the operations, for the message

	mu         sync.Mutex
	inProgress map[uuid.UUID]int
}

// NewConcurrency returns a limit for the named operations.
func NewConcurrency(most int, what string) *Concurrency {
	return &Concurrency{most: most, what: what, inProgress: map[uuid.UUID]int{}}
}

// Begin counts one more operation, until end is called.
//
// Faults: RateLimited if the account is at its limit.
func (c *Concurrency) Begin(who Principal) (end func(), err error) {
	if c == nil {
		return func() {}, nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.inProgress[who.Account] >= c.most {
		e := fault.New(fault.RateLimited, fmt.Sprintf("You already have %d %s, which is the maximum. Wait for one to finish.", c.most, c.what))
		e.RetryAfter = time.Second

		return nil, e
	}

	c.inProgress[who.Account]++

	return sync.OnceFunc(func() { c.end(who.Account) }), nil
}

func (c *Concurrency) end(account uuid.UUID) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.inProgress[account]--; c.inProgress[account] == 0 {
		delete(c.inProgress, account)
	}
}
