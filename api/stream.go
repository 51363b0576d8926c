package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Event is one of a run. Ignore those whose names you do not know.
type Event struct {
	ID   int64           `json:"id"`
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// Ends tells whether no event comes after it.
func (e Event) Ends() bool {
	return e.Name == "run-completed" || e.Name == "run-cancelled" || e.Name == "error"
}

const (
	// quiet is how long a stream may say nothing before it is taken for dead; the service gives a sign of life every 15 seconds.
	quiet = 45 * time.Second
	// comebacks is how often a stream may break without an event in between.
	comebacks = 6
)

// AskEvents asks a question and gives the events of its run to the last one. A stream that breaks is taken up again where it broke, so that
// every event comes once. Leaving the loop or ending ctx does not end the run.
func (c *Client) AskEvents(ctx context.Context, question Question) iter.Seq2[Event, error] {
	key := uuid.NewString()

	return c.events(ctx, func(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error) {
		if run != uuid.Nil {
			return c.follow(ctx, run, after)
		}

		// The same key attaches to the run that the first attempt has begun, if it has.
		return c.Ask(ctx, &AskParams{IdempotencyKey: &key}, question, acceptEvents)
	}, uuid.Nil, 0)
}

// RunEvents gives the events of a run after the one with this id, from the first with 0.
func (c *Client) RunEvents(ctx context.Context, run uuid.UUID, after int64) iter.Seq2[Event, error] {
	return c.events(ctx, c.follow, run, after)
}

func (c *Client) follow(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error) {
	parameters := &StreamRunEventsParams{}
	if after > 0 {
		parameters.LastEventID = new(strconv.FormatInt(after, 10))
	}

	return c.StreamRunEvents(ctx, run, parameters, acceptEvents)
}

func acceptEvents(_ context.Context, request *http.Request) error {
	request.Header.Set("Accept", "text/event-stream")

	return nil
}

// events listens until the last event, and comes back whenever the stream breaks before it.
func (c *Client) events(
	ctx context.Context, open func(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error), run uuid.UUID, after int64,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ended := false
		take := func(event Event) bool {
			if event.ID <= after {
				return true
			}

			if event.Name == "run-started" {
				run = event.run(run)
			}

			after = event.ID
			wanted := yield(event, nil)
			ended = event.Ends() || !wanted

			return wanted
		}

		for broken := 0; ; broken++ {
			before := after

			err := listen(ctx, func(ctx context.Context) (*http.Response, error) { return open(ctx, run, after) }, take)
			if after > before {
				broken = 0
			}

			if ended {
				return
			}

			if err := comeBack(ctx, err, broken); err != nil {
				yield(Event{}, err)

				return
			}
		}
	}
}

// run is the one that a run-started names.
func (e Event) run(otherwise uuid.UUID) uuid.UUID {
	var started struct {
		RunID uuid.UUID `json:"runId"`
	}

	if json.Unmarshal(e.Data, &started) != nil {
		return otherwise
	}

	return started.RunID
}

// comeBack waits until it is time to listen again, or says why that is of no use.
func comeBack(ctx context.Context, err error, broken int) error {
	_, refused := errors.AsType[*Error](err)

	switch {
	case refused:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case broken < comebacks:
		return sleep(ctx, min(100*time.Millisecond<<broken, 5*time.Second))
	case err == nil:
		err = io.ErrUnexpectedEOF
	}

	return fmt.Errorf("the stream of events broke too often: %w", err)
}

// listen reads one stream until it ends, breaks, says nothing for too long, or is no longer wanted.
func listen(ctx context.Context, open func(context.Context) (*http.Response, error), take func(Event) bool) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()

	response, err := Check(open(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	silence := time.AfterFunc(quiet, leave)
	defer silence.Stop()

	return readEvents(response.Body, func() { silence.Reset(quiet) }, take)
}

// readEvents reads the events of a stream. One that did not come whole does not count. heard is called for every line.
func readEvents(body io.Reader, heard func(), take func(Event) bool) error {
	var (
		event Event
		data  []string
	)

	lines := bufio.NewReader(body)

	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}

			return err
		}

		heard()

		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")

		switch {
		case line == "" && (event.Name != "" || data != nil):
			event.Data = json.RawMessage(strings.Join(data, "\n"))
			if !take(event) {
				return nil
			}

			event, data = Event{}, nil
		case name == "id":
			event.ID, _ = strconv.ParseInt(value, 10, 64)
		case name == "event":
			event.Name = value
		case name == "data":
			data = append(data, value)
		}
	}
}
