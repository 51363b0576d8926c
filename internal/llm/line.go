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

// longestAnswer is how much a provider may send.
const longestAnswer = 16 << 20

var errTooLong = errors.New("the provider sends without end")

// trip is what happened on the wire during one attempt. The clients of the vendors keep some of it to themselves: an
// error whose body is not theirs loses its status, and a stream that breaks off can look as if it had ended.
type trip struct {
	sent   atomic.Bool // the request was written: from then on it may be billed
	status int
	after  time.Duration
	broken error // why reading ended, if not at the end
}

type tripKey struct{}

func withTrip(ctx context.Context) (context.Context, *trip) {
	t := &trip{}
	ctx = context.WithValue(ctx, tripKey{}, t)

	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { t.sent.Store(info.Err == nil) },
	}), t
}

// clientOf is a client that goes nowhere else than it was told, and notes what happens.
func clientOf(given *http.Client) *http.Client {
	client := *given
	client.Timeout = 0 // a stream lasts as long as the attempt may
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

// retryAfter is how long the provider wants to be left alone; zero if it does not say.
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
