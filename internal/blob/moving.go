package blob

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// moving cancels a request if no byte of it or of its answer moves for some time, so that a silent store does not block
// a transfer that may otherwise take hours.
type moving struct {
	next    http.RoundTripper
	begins  time.Duration // longest wait for the answer after the last byte of the request
	stalled time.Duration // longest wait for the next bytes of the answer
}

// Moving returns a transport that ends a request if no answer begins, or no byte of it comes, for some time.
func Moving(next http.RoundTripper, begins, stalled time.Duration) http.RoundTripper {
	return moving{next, begins, stalled}
}

var errSilent = fmt.Errorf("the store did not respond: %w", os.ErrDeadlineExceeded)

func (m moving) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())

	var hasBegun atomic.Bool // the transport may read the rest of the request after the answer has begun

	silent := time.AfterFunc(m.begins, func() {
		if !hasBegun.Load() {
			cancel(errSilent)
		}
	})

	sent := r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = sending{r.Body, func() { silent.Reset(m.begins) }}
	}

	answer, err := m.next.RoundTrip(sent)

	hasBegun.Store(true)
	silent.Stop()

	if cause := context.Cause(ctx); cause != nil {
		if err == nil {
			_ = answer.Body.Close()
		}

		return nil, cause
	}

	if err != nil {
		cancel(nil)

		return nil, err
	}

	stopped := time.AfterFunc(m.stalled, func() { cancel(errSilent) })
	stopped.Stop()

	answer.Body = receiving{answer.Body, stopped, m.stalled, ctx, cancel}

	return answer, nil
}

// sending is the body of a request.
type sending struct {
	io.ReadCloser

	moved func()
}

func (s sending) Read(p []byte) (int, error) {
	s.moved()

	return s.ReadCloser.Read(p)
}

// receiving is the body of an answer. Its timer runs only during a call of Read, because a slow reader is no fault of the store. Close ends
// the request.
type receiving struct {
	io.ReadCloser

	silent  *time.Timer
	stalled time.Duration
	ctx     context.Context //nolint:containedctx // of the request, which lasts as long as its body
	cancel  context.CancelCauseFunc
}

func (r receiving) Read(p []byte) (int, error) {
	r.silent.Reset(r.stalled)
	n, err := r.ReadCloser.Read(p)
	r.silent.Stop()

	// Also instead of io.EOF: a server that notices that the request has ended may end its answer as if it were whole.
	if cause := context.Cause(r.ctx); err != nil && cause != nil {
		err = cause
	}

	return n, err
}

func (r receiving) Close() error {
	defer r.cancel(nil)

	return r.ReadCloser.Close()
}
