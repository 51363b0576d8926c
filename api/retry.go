package api

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Retry sends requests and repeats those with a temporary failure: too many requests (429), a server or a system behind
// it that is not reachable (502, 503, 504), an earlier attempt that is still in progress (409), or a broken connection.
// It waits as long as Retry-After says, else longer each time.
//
// No operation is executed twice. Every POST has an Idempotency-Key, the same for all its attempts. Requests for which
// the service ignores the key, DELETE and the few operations in actsAgain, are repeated only if the response says that
// they were not begun (429).
type Retry struct {
	// HTTP sends the attempts; nil means http.DefaultClient.
	HTTP *http.Client
	// Attempts is the maximum number of times that a request is sent; 0 means 6, 1 means no repetition.
	Attempts int
	// Patience is the longest wait before an attempt. If the server requests a longer wait, its response is returned. 0
	// means 30 seconds.
	Patience time.Duration
	// Waiting is called before each wait, unless it is nil.
	Waiting func(reason string, wait time.Duration)

	prepare func(*http.Request) error
}

// Do sends a request until it succeeds or a repetition is not useful.
func (r *Retry) Do(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && request.Header.Get("Idempotency-Key") == "" {
		request.Header.Set("Idempotency-Key", uuid.NewString())
	}

	attempts := r.Attempts
	if attempts == 0 {
		attempts = 6
	}

	for attempt := 1; ; attempt++ {
		response, err := r.once(request)

		wait, reason := r.wait(request, response, err, attempt)
		if attempt == attempts || reason == "" || request.Body != nil && request.GetBody == nil {
			return response, err
		}

		if response != nil {
			_ = response.Body.Close()
		}

		if r.Waiting != nil {
			r.Waiting(reason, wait)
		}

		if err := sleep(request.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func (r *Retry) once(request *http.Request) (*http.Response, error) {
	attempt := request.Clone(request.Context())

	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}

		attempt.Body = body
	}

	if r.prepare != nil {
		if err := r.prepare(attempt); err != nil {
			return nil, err
		}
	}

	client := r.HTTP
	if client == nil {
		client = http.DefaultClient
	}

	response, err := client.Do(attempt)
	if err != nil {
		return nil, &brokenError{err}
	}

	return response, nil
}

// brokenError is the error of a request without a response. Errors of a Token function are not brokenErrors.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// wait returns how long to wait before the next attempt, and the reason. An empty reason means that there should be no
// further attempt.
func (r *Retry) wait(request *http.Request, response *http.Response, err error, attempt int) (time.Duration, string) {
	patience := r.Patience
	if patience == 0 {
		patience = 30 * time.Second
	}

	pause := min(200*time.Millisecond<<(attempt-1), 10*time.Second)
	pause = pause/2 + rand.N(pause/2) //nolint:gosec // spreads clients, and keeps no secret

	safe := request.Method != http.MethodDelete && !actsAgain(request)

	switch {
	case request.Context().Err() != nil:
		return 0, ""
	case err != nil:
		if _, broken := err.(*brokenError); !broken || !safe { //nolint:errorlint // as once made it
			return 0, ""
		}

		return min(pause, patience), "the connection failed"
	}

	var reason string

	switch response.StatusCode {
	case http.StatusTooManyRequests:
		reason = "too many requests"
	case http.StatusConflict:
		if response.Header.Get("Retry-After") == "" { // only IN_PROGRESS has it
			return 0, ""
		}

		reason = "the first attempt is still in progress"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		// 502 and 504 from the service itself are final: the tracing store is not reachable, or the query took too
		// long.
		if ours := response.Header.Get("X-Request-Id") != ""; !safe || ours && response.StatusCode != http.StatusServiceUnavailable {
			return 0, ""
		}

		reason = "the service is not available"
	default:
		return 0, ""
	}

	if asked, said := retryAfter(response); said {
		pause = asked
	}

	if pause > patience {
		return 0, ""
	}

	return pause, reason
}

// actsAgain reports whether the operation would act a second time, whatever key the request has.
func actsAgain(request *http.Request) bool {
	if request.Method != http.MethodPost || strings.Contains(request.URL.Path, "/schema/deleted/") { // restoring twice is restoring once
		return false
	}

	for _, ending := range []string{"/clear", "/restore", "/retry", "/rotate"} {
		if strings.HasSuffix(request.URL.Path, ending) {
			return true
		}
	}

	return false
}

func retryAfter(response *http.Response) (wait time.Duration, said bool) {
	text := response.Header.Get("Retry-After")

	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}

	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}

	return 0, false
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
