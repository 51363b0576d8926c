package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"quern.dev/quern/internal/fault"
)

const (
	// keepAlive is the longest time without output on a stream. Proxies close a connection that is silent for longer.
	keepAlive = 10 * time.Second
	// writeTime is how long a client may take to receive one write.
	writeTime = 10 * time.Second
)

// response adds to the SDK's use of a response: comments that keep a stream alive, a deadline for each write, and JSON-RPC errors
// where the SDK writes plain text.
type response struct {
	w http.ResponseWriter

	mu     sync.Mutex
	status int
	refuse *bytes.Buffer // text of an error; nil if the response is not one
	ticker *time.Ticker
	done   chan struct{}
	closed bool
}

func newResponse(w http.ResponseWriter) *response {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a response lasts as long as the run; fails only in tests

	return &response{w: w, done: make(chan struct{})}
}

func (r *response) Header() http.Header { return r.w.Header() }

func (r *response) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.begin(status)
}

func (r *response) begin(status int) {
	if r.status != 0 || r.closed {
		return
	}

	r.status = status

	switch media := r.Header().Get("Content-Type"); {
	case status >= http.StatusBadRequest && strings.HasPrefix(media, "text/plain"):
		r.refuse = &bytes.Buffer{}

		return
	case media == eventStream:
		r.Header().Set("X-Accel-Buffering", "no")
		r.ticker = time.NewTicker(keepAlive)

		tick := r.ticker.C

		// A failure leaves the stream without comments.
		go func() {
			_ = fault.Try(func() error {
				r.live(tick)

				return nil
			})
		}()
	}

	r.w.WriteHeader(status)
}

func (r *response) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.begin(http.StatusOK)

	return r.write(text)
}

func (r *response) write(text []byte) (int, error) {
	switch {
	case r.closed:
		return 0, http.ErrHandlerTimeout
	case r.refuse != nil:
		return r.refuse.Write(text)
	case r.ticker != nil:
		r.ticker.Reset(keepAlive)
	}

	_ = http.NewResponseController(r.w).SetWriteDeadline(time.Now().Add(writeTime)) // fails only in tests

	return r.w.Write(text)
}

// Flush sends what was written. The SDK calls it after each event.
func (r *response) Flush() { _ = r.FlushError() } // the next write fails too

// FlushError is Flush for http.ResponseController.
func (r *response) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.closed || r.refuse != nil {
		return nil
	}

	r.begin(http.StatusOK)

	return http.NewResponseController(r.w).Flush()
}

// live writes comments while the stream is silent.
func (r *response) live(tick <-chan time.Time) {
	for {
		select {
		case <-r.done:
			return
		case <-tick:
			r.comment()
		}
	}
}

func (r *response) comment() {
	r.mu.Lock()
	defer r.mu.Unlock()

	if _, err := r.write([]byte(": keep-alive\n\n")); err == nil {
		_ = http.NewResponseController(r.w).Flush() // the next write fails too
	}
}

// close ends the use of the connection: the SDK may still try to write afterwards.
func (r *response) close() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.closed = true
	close(r.done)

	if r.ticker != nil {
		r.ticker.Stop()
	}

	if r.refuse != nil {
		r.Header().Set("Content-Type", jsonType)
		r.w.WriteHeader(r.status)
		_ = json.NewEncoder(r.w).Encode(refusal{Version: "2.0", Error: refusalError{invalidRequest, strings.TrimSpace(r.refuse.String())}}) //nolint:errchkjson // it can only fail because the client left
	}
}

const invalidRequest = -32600

type refusal struct {
	Version string       `json:"jsonrpc"`
	ID      *string      `json:"id"`
	Error   refusalError `json:"error"`
}

type refusalError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}
