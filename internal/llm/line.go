package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"
)

// longestAnswer is the maximum size of a response of a provider in bytes.
const longestAnswer = 16 << 20

var errTooLong = errors.New("the response of the provider is too long")

// trip is what happened on the connection during one attempt. The vendors' clients do not report all of this: an error
// whose body has another format loses its status, and an interrupted stream can look like a complete one.
type trip struct {
	sent   atomic.Bool // the request was written and may be billed from then on
	status int
	after  time.Duration
	broken error // why reading the response ended early
}

type tripKey struct{}

func withTrip(ctx context.Context) (context.Context, *trip) {
	t := &trip{}
	ctx = context.WithValue(ctx, tripKey{}, t)

	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { t.sent.Store(info.Err == nil) },
	}), t
}

// clientOf returns a client that does not follow redirects and that records what happens in the trip of the context.
func clientOf(given *http.Client) *http.Client {
	client := *given
	client.Timeout = 0 // the attempt has its own timeout, also for streams
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport = line{given.Transport}

	return &client
}

type line struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l line) RoundTrip(request *http.Request) (*http.Response, error) {
	next := l.next
	if next == nil {
		next = http.DefaultTransport
	}

	response, err := next.RoundTrip(request)
	if t, ok := request.Context().Value(tripKey{}).(*trip); ok && err == nil {
		t.status, t.after = response.StatusCode, retryAfter(response.Header, time.Now())
		response.Body = &watched{ReadCloser: response.Body, trip: t}
	}

	return response, err
}

type watched struct {
	io.ReadCloser

	trip *trip
	read int64
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)

	if w.read += int64(n); w.read > longestAnswer {
		err = errTooLong
	}

	if err != nil && !errors.Is(err, io.EOF) {
		w.trip.broken = err
	}

	return n, err
}

// retryAfter returns how long the provider wants callers to wait; zero if it does not say.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseInt(header.Get("Retry-After-Ms"), 10, 32); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}

	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}

	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}

	return 0
}
