package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/run"
)

const (
	// streamWrite is how long a reader may take to take what is written; then it is dropped, and can come again.
	streamWrite = 10 * time.Second
	// heartbeat keeps those between us and the reader from taking a quiet stream for a dead one.
	heartbeat = 15 * time.Second
)

// stream writes the events of a run until it has ended or the client has left, which does not concern the run.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, id uuid.UUID, after int64) {
	events, err := s.config.Runs.Follow(r.Context(), callOf(r.Context()).who, id, after)
	if err != nil {
		s.Fail(w, r, err)

		return
	}
	defer events.Close()

	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)

	for {
		waiting, stop := context.WithTimeout(r.Context(), heartbeat)
		next, err := events.Next(waiting)

		stop()

		switch {
		case err == nil:
			if ended, err := send(w, next); err != nil || ended {
				return
			}
		case r.Context().Err() != nil, errors.Is(err, io.EOF):
			return
		case errors.Is(err, context.DeadlineExceeded):
			if flush(w, []byte(":\n\n")) != nil {
				return
			}
		default:
			callOf(r.Context()).err = err

			panic(http.ErrAbortHandler) // the client comes again with the last id that it has
		}
	}
}

func send(w http.ResponseWriter, events []run.Event) (ended bool, err error) {
	var text bytes.Buffer

	for _, e := range events {
		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, e.Body)
		ended = ended || e.Ends()
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
