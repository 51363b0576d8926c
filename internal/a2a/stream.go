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

// keepAlive keeps those between us and the reader from taking a quiet stream for a dead one.
const keepAlive = 15 * time.Second

// told is an event, or why there are no more.
type told struct {
	event protocol.Event
	err   error
}

// forward passes events on until there are no more or the client has left. A panic is told as an error.
func forward(ctx context.Context, events iter.Seq2[protocol.Event, error], to chan<- told) {
	pass := func(one told) bool {
		select {
		case to <- one:
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

// stream writes events until there are no more or the client has left. An error before the first one is an answer like
// any other; so the first one is waited for before the stream is opened, as long as a client may take silence. stop
// ends the events.
func (a *Agents) stream(w http.ResponseWriter, r *http.Request, id json.RawMessage, events iter.Seq2[protocol.Event, error], stop context.CancelFunc) {
	ctx := r.Context()
	channel := make(chan told)

	var reading sync.WaitGroup

	defer reading.Wait()
	defer stop()

	reading.Go(func() {
		defer close(channel)

		forward(ctx, events, channel)
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

			if next.err != nil && !out.open {
				a.fail(w, r, id, next.err)

				return
			}

			if next.err != nil {
				_ = out.send(response{Error: a.failed(ctx, next.err)}) // nobody reads it if it fails

				return
			}

			if out.send(response{Result: protocol.StreamResponse{Event: next.event}}) != nil {
				return
			}

			quiet.Reset(keepAlive)
		case <-quiet.C:
			if out.write([]byte(": keep-alive\n\n")) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// sse is a stream on its way out.
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

// write gives the reader some time; who does not take it is dropped, and can subscribe again.
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
