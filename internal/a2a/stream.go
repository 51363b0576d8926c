package a2a

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"sync"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"

	"quern.dev/quern/internal/fault"
)

// keepAlive is the longest time without output on a stream. Clients disconnect after five seconds; the documented limit is
// four.
const keepAlive = 3500 * time.Millisecond

// told is an event, or the error that ends the stream. If both are nil, the request was accepted.
type told struct {
	event protocol.Event
	err   error
}

// forward passes events on until the last one or until ctx ends. It reads an event only after the previous one is written,
// so that the access check of an event is recent when the event is written. A panic is passed on as an error.
func forward(ctx context.Context, events iter.Seq2[protocol.Event, error], to chan<- told, written <-chan struct{}) {
	pass := func(one told) bool {
		select {
		case to <- one:
		case <-ctx.Done():
			return false
		}

		select {
		case <-written:
			return true
		case <-ctx.Done():
			return false
		}
	}

	err := fault.Try(func() error {
		for event, err := range events {
			if !pass(told{event, err}) {
				break
			}
		}

		return nil
	})
	if err != nil {
		pass(told{err: err})
	}
}

// stream writes events until the last one or until the client disconnects. An error before the request is accepted is a
// normal JSON-RPC response. The stream opens when the request is accepted, even if there is no event yet. stop cancels the
// context of the events.
func (a *Agents) stream(w http.ResponseWriter, r *http.Request, id json.RawMessage, events iter.Seq2[protocol.Event, error], stop context.CancelFunc) {
	ctx := r.Context()
	channel, written := make(chan told), make(chan struct{})

	var reading sync.WaitGroup

	defer reading.Wait()
	defer stop()

	reading.Go(func() {
		defer close(channel)

		forward(ctx, events, channel, written)
	})

	out := &sse{w: w, id: id}
	quiet := time.NewTicker(keepAlive)

	defer quiet.Stop()

	for {
		select {
		case next, more := <-channel:
			if !more {
				return
			}

			if !a.tell(w, r, out, next) {
				return
			}

			quiet.Reset(keepAlive)

			select {
			case written <- struct{}{}:
			case <-ctx.Done():
				return
			}
		case <-quiet.C:
			if out.open && out.comment() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// tell writes an event or error, and reports whether to continue.
func (a *Agents) tell(w http.ResponseWriter, r *http.Request, out *sse, next told) bool {
	switch {
	case next.err != nil && !out.open:
		a.fail(w, r, out.id, next.err)

		return false
	case next.err != nil:
		_ = out.send(response{Error: a.failed(r.Context(), next.err)}) // on failure the client has disconnected

		return false
	case next.event == nil:
		return out.comment() == nil
	default:
		return out.send(response{Result: protocol.StreamResponse{Event: next.event}}) == nil
	}
}

// sse writes server-sent events.
type sse struct {
	w    http.ResponseWriter
	id   json.RawMessage
	open bool
}

func (s *sse) send(answer response) error {
	answer.Version, answer.ID = "2.0", s.id

	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}

	return s.write(append(append([]byte("data: "), text...), "\n\n"...))
}

func (s *sse) comment() error { return s.write([]byte(": keep-alive\n\n")) }

// write writes text and opens the stream if needed. A client that does not receive it within writeTime is disconnected, and
// can subscribe again.
func (s *sse) write(text []byte) error {
	if !s.open {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)

		s.open = true
	}

	control := http.NewResponseController(s.w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}

	if _, err := s.w.Write(text); err != nil {
		return err
	}

	return control.Flush()
}
