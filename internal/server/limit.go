package server

import (
	"fmt"
	"math"
	"net/http"
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

// allow takes one request from the caller's bucket, and sets the headers that say how much is left.
func (l *limiter) allow(caller uuid.UUID, header http.Header) error {
	if l == nil {
		return nil
	}

	bucket := rate.NewLimiter(l.rate, l.burst)
	if previous, found, _ := l.callers.PeekOrAdd(caller, bucket); found {
		bucket = previous
		l.callers.Get(caller) // marks it as used
	}

	reservation := bucket.Reserve()
	wait := reservation.Delay()

	if wait > 0 {
		reservation.Cancel()
	}

	l.describe(bucket.Tokens(), header)

	if wait > 0 {
		e := fault.New(fault.RateLimited, "Too many requests. Wait for the time in Retry-After.")
		e.RetryAfter = wait.Round(time.Millisecond)

		return e
	}

	return nil
}

// describe sets the fields of draft-ietf-httpapi-ratelimit-headers: the size of a bucket with the time in which it fills,
// and what is left with the time until it is full.
func (l *limiter) describe(left float64, header http.Header) {
	left = max(0, math.Floor(left))
	seconds := func(requests float64) int { return int(math.Ceil(requests / float64(l.rate))) }

	header.Set("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=%d`, l.burst, seconds(float64(l.burst))))
	header.Set("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, int(left), seconds(float64(l.burst)-left)))
}
