package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

const (
	// streamWrite is how long a client may take to receive one write. Then its connection is dropped; the client can
	// reconnect.
	streamWrite = 10 * time.Second
	// heartbeat is the longest silence on a stream. Clients give up after five seconds; the API promises four.
	heartbeat = 3500 * time.Millisecond
)

// comment is an SSE comment, which clients ignore.
var comment = []byte(":\n\n") //nolint:gochecknoglobals // a constant

// reserved calls next if the caller may open another stream, and fails before anything has begun if not.
func (s *Server) reserved(r *http.Request, next func() error) error {
	release, err := s.config.Runs.Reserve(callOf(r.Context()).who)
	if err != nil {
		return err
	}
	defer release()

	return next()
}

// delivery is the next part of a stream, or the error that ends it.
type delivery[T any] struct {
	part T
	err  error
}

// stream writes the events of a run until the run ends or waits for a choice, or until the client disconnects; a disconnect does not affect the run.
// The response begins as soon as the caller's access to the run is checked: a client that waits for the first byte
// cannot distinguish a slow agent from a dead service.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, id uuid.UUID, after int64) error {
	events, err := s.config.Runs.Follow(r.Context(), callOf(r.Context()).who, id, after)
	if err != nil {
		return err
	}
	defer events.Close()

	return writeEvents(r.Context(), w, events.Next)
}

// writeEvents is writeStream for the events of a run.
func writeEvents(ctx context.Context, w http.ResponseWriter, next func(context.Context) ([]run.Event, error)) error {
	return writeStream(ctx, w, next, send)
}

// writeStream begins the response and sends the parts that next returns, until the last one or until the client
// disconnects. After a failure of next the client reconnects with its last event ID.
func writeStream[T any](ctx context.Context, w http.ResponseWriter, next func(context.Context) (T, error), send func(http.ResponseWriter, T) (ended bool, err error)) error {
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)

	if flush(w, comment) != nil {
		return nil
	}

	var reading sync.WaitGroup

	defer reading.Wait()

	ctx, stop := context.WithCancel(ctx)
	defer stop()

	// Request each delivery only after the previous one is written, so that access was checked just before every write.
	err := deliver(ctx, w, send, func() <-chan delivery[T] {
		coming := make(chan delivery[T], 1)

		reading.Go(func() {
			var d delivery[T]

			d.err = fault.Try(func() (err error) {
				d.part, err = next(ctx)

				return err
			})
			coming <- d
		})

		return coming
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return err
	}

	return nil
}

// deliver writes deliveries until the last one, and comments while it waits. It returns only errors of deliveries.
func deliver[T any](ctx context.Context, w http.ResponseWriter, send func(http.ResponseWriter, T) (ended bool, err error), ask func() <-chan delivery[T]) error {
	quiet := time.NewTicker(heartbeat)
	defer quiet.Stop()

	for coming := ask(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-quiet.C:
			if flush(w, comment) != nil {
				return nil
			}
		case next := <-coming:
			if next.err != nil {
				return next.err
			}

			if ended, err := send(w, next.part); err != nil || ended {
				return nil
			}

			quiet.Reset(heartbeat)

			coming = ask()
		}
	}
}

func send(w http.ResponseWriter, events []run.Event) (ended bool, err error) {
	var text bytes.Buffer

	for _, e := range events {
		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, e.Body)
		ended = e.Rests() // if the run went on after a wait, other events follow
	}

	return ended, flush(w, text.Bytes())
}

func flush(w http.ResponseWriter, text []byte) error {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}

	if _, err := w.Write(text); err != nil {
		return err
	}

	return control.Flush()
}
