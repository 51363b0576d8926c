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

const (
	// quiet is how long a stream may be silent before it is considered dead; the service sends a comment at least every
	// four seconds.
	quiet = 45 * time.Second
	// comebacks is how many times in a row a stream may break without an event.
	comebacks = 6
)

// AskEvents asks a question and returns the events of its run, up to the last one or until the run waits for a choice. A stream that breaks is resumed at
// the same position, so that every event is returned once. Leaving the loop or ending ctx does not end the run.
func (c *Client) AskEvents(ctx context.Context, question Question) iter.Seq2[Event, error] {
	key := uuid.NewString()

	return c.events(ctx, func(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error) {
		if run != uuid.Nil {
			return c.follow(ctx, run, after)
		}

		// With the same key, a later attempt attaches to the run that the first attempt started, if any.
		return c.Ask(ctx, &AskParams{IdempotencyKey: &key}, question, acceptEvents)
	}, uuid.Nil, 0)
}

// ChooseEvents chooses an option of a run that waits and returns the events that follow, as AskEvents does.
func (c *Client) ChooseEvents(ctx context.Context, run uuid.UUID, option int) iter.Seq2[Event, error] {
	return c.events(ctx, func(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error) {
		if after > 0 {
			return c.follow(ctx, run, after)
		}

		// A later attempt with the same option attaches to the choice of the first attempt, if any.
		return c.ChooseOption(ctx, run, &ChooseOptionParams{}, OptionChoice{Option: int32(option)}, acceptEvents) //nolint:gosec // the service refuses what does not exist
	}, run, 0)
}

// RunEvents returns the events of a run after the event with the ID after; 0 means from the first one.
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

// events reads until the last event or until the run waits for a choice, and reconnects whenever the stream breaks before it.
func (c *Client) events(
	ctx context.Context, open func(ctx context.Context, run uuid.UUID, after int64) (*http.Response, error), run uuid.UUID, after int64,
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ended, rests := false, false
		take := func(event Event) bool {
			if event.ID <= after || event.Name == "" {
				return true
			}

			if event.Name == EventRunStarted {
				run = event.run(run)
			}

			after = event.ID
			wanted := yield(event, nil)
			ended, rests = event.Ends() || !wanted, event.Name == EventRunWaiting

			return wanted
		}

		for broken := 0; ; broken++ {
			before := after

			err := listen(ctx, func(ctx context.Context) (*http.Response, error) { return open(ctx, run, after) }, take)
			if after > before {
				broken = 0
			}

			if ended || rests && err == nil { // a run that waited may have gone on since
				return
			}

			if err := comeBack(ctx, err, broken); err != nil {
				yield(Event{}, err)

				return
			}
		}
	}
}

// run returns the run that a runStarted event names, or otherwise if the event cannot be decoded.
func (e Event) run(otherwise uuid.UUID) uuid.UUID {
	var started RunStartedEvent
	if e.Decode(&started) != nil {
		return otherwise
	}

	return started.RunID
}

// comeBack waits before the next connection, or returns the error if reconnecting is not useful.
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

	return fmt.Errorf("the stream of events was interrupted too often: %w", err)
}

// listen reads one stream until it ends, breaks, is silent for too long, or take returns false.
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

// readEvents reads the events of a stream. It ignores an incomplete event at the end. It calls heard for every line.
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
		case line == "" && event.Name == "" && data == nil && event.ID != 0: // only a position
			if !take(event) {
				return nil
			}

			event = Event{}
		case line == "" && (event.Name != "" || data != nil):
			event.Data = json.RawMessage(strings.Join(data, "\n"))
			if !take(event) {
				return nil
			}

			event, data = Event{}, nil
		case name == "id":
			event.ID, _ = strconv.ParseInt(value, 10, 64)
		case name == "event":
			event.Name = EventName(value)
		case name == "data":
			data = append(data, value)
		}
	}
}
