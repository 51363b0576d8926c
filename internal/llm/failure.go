package llm

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"quern.dev/quern/internal/fault"
)

// failure is the reason why an attempt returned no answer. It contains only one word of the provider's message, because
// the message may quote the request and the key.
type failure struct {
	class   string // one word for the ledger, spans and the log
	word    string // error code or type of the provider
	again   bool   // another attempt may succeed
	billed  bool   // the provider may bill the attempt
	late    bool
	verdict verdict
	after   time.Duration
	cause   error // error of this process or of the network
}

func (f *failure) Error() string {
	text := f.class
	if f.word != "" {
		text += " " + f.word
	}

	if f.cause != nil {
		text += ": " + f.cause.Error()
	}

	return text
}

func (f *failure) Unwrap() error { return f.cause }

// told is an error of the function that receives a stream.
type told struct{ error }

func (t told) Unwrap() error { return t.error }

// said is an error that the provider returned. For an error inside a stream, status is the status that the error would
// have had outside.
type said struct {
	status int
	word   string
}

func (s said) Error() string { return s.word }

// errCut reports a stream that ended without its final event.
var errCut = errors.New("the response ended early")

// judge classifies the error of an attempt. ctx is the context of the caller.
func judge(ctx context.Context, err error, t *trip) *failure {
	listener, isListener := errors.AsType[told](err)
	answered, isAnswered := errors.AsType[said](err)
	f := &failure{word: oneWord(answered.word), billed: t.sent.Load() || t.status != 0} // a response can arrive before the request is reported as written

	switch {
	case isListener:
		f.class, f.cause = "listener", listener.error
	case errors.Is(ctx.Err(), context.Canceled):
		f.class, f.cause = "cancelled", ctx.Err()
	case ctx.Err() != nil:
		f.class, f.late, f.cause = "deadline", true, ctx.Err() // no verdict: the caller may have had little time left
	case errors.Is(err, context.DeadlineExceeded):
		f.class, f.late, f.again, f.verdict = "timeout", true, true, sick
	case t.status >= http.StatusBadRequest:
		f.refused(t.status)
		f.after = t.after
	case isAnswered: // an error inside a stream
		f.refused(answered.status)
		f.billed = true
	case t.status == 0:
		f.class, f.again, f.verdict, f.cause = "connect", true, sick, err
	case t.broken != nil && !errors.Is(t.broken, errTooLong), errors.Is(err, errCut):
		f.class, f.again, f.verdict = "cut", true, sick
	default: // the server answers, but not in the format of a model
		f.class = "garbled"
	}

	return f
}

// refused sets the fields for a status with which the provider refuses the request.
func (f *failure) refused(status int) {
	f.class, f.billed, f.verdict = "status_"+strconv.Itoa(status), false, healthy

	switch {
	case status == http.StatusTooManyRequests:
		f.again, f.verdict = true, nothing
	case status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		f.again, f.verdict = true, sick
	}
}

// fault returns the failure as a fault for the caller.
func (f *failure) fault() error {
	switch {
	case f.class == "listener", f.class == "cancelled":
		return f.cause
	case f.late:
		return fault.Wrap(f, fault.Timeout, "The model did not answer in time.")
	case f.again:
		e := fault.Wrap(f, fault.Unavailable, "The model is unreachable or overloaded. Try again later.")
		e.RetryAfter = max(f.after, time.Second)

		return e
	default:
		return fault.Wrap(f, fault.UpstreamUnavailable, "The provider of the model refused the request. The log of the service has the reason.")
	}
}

var wordPattern = regexp.MustCompile(`^[a-z]+([_.][a-z]+)*$`)

// oneWord returns text if it has the form of a provider's error code, else "".
func oneWord(text string) string {
	if len(text) > 64 || !wordPattern.MatchString(text) {
		return ""
	}

	return text
}
