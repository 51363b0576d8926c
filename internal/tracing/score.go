package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"quern.dev/quern/internal/fault"
)

// Rating is what somebody thinks of a run, or that nothing is thought of it any more.
type Rating struct {
	Run      Run
	Revision int64
	Up       *bool // nil: withdrawn
	Comment  string
	Others   []int64 // revisions that may stand in the store, and have to go
	Again    bool    // this one may stand there already
}

// scores is how a store keeps ratings.
type scores interface {
	put(ctx context.Context, rating Rating) error
	remove(ctx context.Context, rating Rating) error
}

const (
	scoreName = "user-feedback"
	rateTime  = 5 * time.Second
	rateAgain = 300 * time.Millisecond
	maxAnswer = 1 << 20
)

// Rate makes the store have this rating of the run, and no other. Without a store that keeps ratings it does nothing.
//
// Faults: UpstreamUnavailable within five seconds; the store may then have it or not.
func (t *Tracing) Rate(ctx context.Context, rating Rating) error {
	if t.scores == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, rateTime)
	defer cancel()

	do := t.scores.put
	if rating.Up == nil {
		do = t.scores.remove
	}

	err := do(ctx, rating)
	t.silent.Store(err != nil)

	if err != nil {
		return fault.Wrap(err, fault.UpstreamUnavailable, "The tracing store could not be reached. Nothing was recorded; try again.")
	}

	return nil
}

// errAbsent says that the store does not know what a call is about.
var errAbsent = errors.New("the store does not know it")

// call sends a body, if there is one, and reads the answer, if it is wanted. What may have passed is tried once more.
func (t *Tracing) call(ctx context.Context, method, path string, body, answer any) error {
	var content []byte

	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}

	err := t.send(ctx, method, path, content, answer)
	if err == nil || errors.Is(err, errAbsent) || errors.Is(err, errRefused) || !pause(ctx, rateAgain) {
		return err
	}

	return t.send(ctx, method, path, content, answer)
}

// errRefused says that the same call would be refused again.
var errRefused = errors.New("the store refuses it")

func (t *Tracing) send(ctx context.Context, method, path string, content []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, t.config.Endpoint+path, bytes.NewReader(content))
	if err != nil {
		return err
	}

	for name, value := range t.headers {
		request.Header.Set(name, value)
	}

	if len(content) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}

	response, err := t.config.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))

	switch status := response.StatusCode; {
	case err != nil:
		return err
	case status == http.StatusNotFound:
		return errAbsent
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return fmt.Errorf("it answers with %d", status)
	case status >= http.StatusMultipleChoices:
		return fmt.Errorf("%w: %d", errRefused, status)
	case answer == nil:
		return nil
	// Behind the address may be something else, whose pages are not an answer.
	case !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json"):
		return fmt.Errorf("%w: its answer is not JSON", errRefused)
	default:
		return json.Unmarshal(text, answer)
	}
}

// pause tells whether there is still time afterwards.
func pause(ctx context.Context, lasting time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lasting):
		return true
	}
}

func hexOf(id [16]byte) string { return hex.EncodeToString(id[:]) }
