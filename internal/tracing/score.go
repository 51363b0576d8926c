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

// Rating is a rating of a run, or its withdrawal.
type Rating struct {
	Run      Run
	Revision int64
	Up       *bool // nil means withdrawn
	Comment  string
	Others   []int64 // revisions that may be in the store and must be deleted
	Again    bool    // this revision may already be in the store
}

// scores stores ratings in one kind of tracing store.
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

// Rate makes this rating the only one of the run in the store. It does nothing if no store for ratings is configured.
//
// Faults: UpstreamUnavailable, within five seconds; the store may or may not have the rating then.
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
	t.exporter.Called(err)

	if err != nil {
		return fault.Wrap(err, fault.UpstreamUnavailable, "The tracing store could not be reached. Nothing was recorded. Try again.")
	}

	return nil
}

// errAbsent reports that the store answered a call with 404.
var errAbsent = errors.New("the store does not have it")

// call sends body, unless it is nil, and decodes the response into answer, unless it is nil. A failure that may be temporary
// is retried once.
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

// errRefused reports that the store would refuse the same call again.
var errRefused = errors.New("the store refused the request")

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
		return fmt.Errorf("the store responded with status %d", status)
	case status >= http.StatusMultipleChoices:
		return fmt.Errorf("%w: %d", errRefused, status)
	case answer == nil:
		return nil
	// Another service may answer at the address, for example with an HTML page.
	case !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json"):
		return fmt.Errorf("%w: the response is not JSON", errRefused)
	default:
		return json.Unmarshal(text, answer)
	}
}

// pause waits, and reports false if ctx ended meanwhile.
func pause(ctx context.Context, lasting time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lasting):
		return true
	}
}

func hexOf(id [16]byte) string { return hex.EncodeToString(id[:]) }
