package server

import (
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"quern.dev/quern/internal/fault"
)

// limiter limits the request rate of each caller on this replica. A nil limiter allows every request.
type limiter struct {
	rate    rate.Limit
	burst   int
	callers *lru.Cache[uuid.UUID, *rate.Limiter]
}

// rememberedCallers is the number of buckets that are kept. The least recently used bucket is full again when it is
// evicted.
const rememberedCallers = 100_000

func newLimiter(perSecond float64, burst int) *limiter {
	if perSecond <= 0 {
		return nil
	}

	callers, err := lru.New[uuid.UUID, *rate.Limiter](rememberedCallers)
	if err != nil {
		panic(err) // fails only for a size below 1
	}

	return &limiter{rate: rate.Limit(perSecond), burst: max(1, burst), callers: callers}
}

func (l *limiter) allow(caller uuid.UUID) error {
	if l == nil {
		return nil
	}

	bucket := rate.NewLimiter(l.rate, l.burst)
	if previous, found, _ := l.callers.PeekOrAdd(caller, bucket); found {
		bucket = previous
		l.callers.Get(caller) // marks it as used
	}

	reservation := bucket.Reserve()
	if wait := reservation.Delay(); wait > 0 {
		reservation.Cancel()

		e := fault.New(fault.RateLimited, "Too many requests. Wait for the time in Retry-After.")
		e.RetryAfter = wait.Round(time.Millisecond)

		return e
	}

	return nil
}
