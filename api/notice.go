package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// noticeComebacks is how many times in a row the stream of notices may break without news. It is patient with a service that restarts.
const noticeComebacks = 40

// Notices returns what happens to what the caller may see, without an end. A stream that breaks is resumed at the same position, so that every notice is
// returned once and none is missed. parameters.LastEventID is where to begin; nil means with what happens from now on.
func (c *Client) Notices(ctx context.Context, parameters StreamEventsParams) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		var (
			after   int64
			stopped bool
			invalid error
		)

		open := func(ctx context.Context) (*http.Response, error) {
			return c.StreamEvents(ctx, &parameters, acceptEvents)
		}
		take := func(event Event) bool {
			if event.ID <= after {
				return true
			}

			after, parameters.LastEventID = event.ID, new(strconv.FormatInt(event.ID, 10))

			if event.Name == "" {
				return true
			}

			var notice Notice
			if invalid = event.Decode(&notice); invalid != nil {
				return false
			}

			stopped = !yield(notice, nil)

			return !stopped
		}

		for broken := 0; ; broken++ {
			before := after
			err := listen(ctx, open, take)

			if stopped {
				return
			}

			if after > before {
				broken = 0
			}

			if err = again(ctx, errors.Join(invalid, err), broken); err != nil {
				yield(Notice{}, err)

				return
			}
		}
	}
}

// again waits before the next connection, or returns the error if reconnecting is not useful.
func again(ctx context.Context, err error, broken int) error {
	refused, answered := errors.AsType[*Error](err)

	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case answered && refused.Status < http.StatusInternalServerError:
		return err
	case broken < noticeComebacks:
		return sleep(ctx, min(100*time.Millisecond<<min(broken, comebacks), 5*time.Second))
	case err == nil:
		err = io.ErrUnexpectedEOF
	}

	return fmt.Errorf("the stream of events was interrupted too often: %w", err)
}
