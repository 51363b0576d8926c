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

// failure is why an attempt gave no answer. What a provider says is not in it but for one word: it may quote the request,
// and the key.
type failure struct {
	class   string // one word, for the ledger, spans and the log
	word    string // the provider's own
	again   bool   // another attempt may help
	billed  bool   // perhaps
	late    bool
	verdict verdict
	after   time.Duration
	cause   error // of ours or of the network
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

// told is an error of whoever listens to a stream.
type told struct{ error }

func (t told) Unwrap() error { return t.error }

// said is an error in the words of the provider. In the middle of a stream the status is what it would have been.
type said struct {
	status int
	word   string
}

func (s said) Error() string { return s.word }

// errCut is a stream without its end.
var errCut = errors.New("the answer broke off")

// judge says what an error of an attempt means. ctx is that of the caller.
func judge(ctx context.Context, err error, t *trip) *failure {
	listener, isListener := errors.AsType[told](err)
	answered, isAnswered := errors.AsType[said](err)
	f := &failure{word: oneWord(answered.word), billed: t.sent.Load() || t.status != 0} // an answer can be read before the writer said that it is done

	switch {
	case isListener:
		f.class, f.cause = "listener", listener.error
	case errors.Is(ctx.Err(), context.Canceled):
		f.class, f.cause = "cancelled", ctx.Err()
	case ctx.Err() != nil:
		f.class, f.late, f.cause = "deadline", true, ctx.Err() // perhaps there was little time left: that says nothing
	case errors.Is(err, context.DeadlineExceeded):
		f.class, f.late, f.again, f.verdict = "timeout", true, true, sick
	case t.status >= http.StatusBadRequest:
		f.refused(t.status)
		f.after = t.after
	case isAnswered: // in the middle of a stream
		f.refused(answered.status)
		f.billed = true
	case t.status == 0:
		f.class, f.again, f.verdict, f.cause = "connect", true, sick, err
	case t.broken != nil && !errors.Is(t.broken, errTooLong), errors.Is(err, errCut):
		f.class, f.again, f.verdict = "cut", true, sick
	default: // it answers, but not as a model does
		f.class = "garbled"
	}

	return f
}

// refused is for a status that says that there will be no answer.
func (f *failure) refused(status int) {
	f.class, f.billed, f.verdict = "status_"+strconv.Itoa(status), false, healthy

	switch {
	case status == http.StatusTooManyRequests:
		f.again, f.verdict = true, nothing
	case status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		f.again, f.verdict = true, sick
	}
}

// fault is the failure in words for whoever asked.
func (f *failure) fault() error {
	switch {
	case f.class == "listener", f.class == "cancelled":
		return f.cause
	case f.late:
		return fault.Wrap(f, fault.Timeout, "The model took too long to answer.")
	case f.again:
		e := fault.Wrap(f, fault.Unavailable, "The model cannot be reached or has too much to do. Try again later.")
		e.RetryAfter = max(f.after, time.Second)

		return e
	default:
		return fault.Wrap(f, fault.UpstreamUnavailable, "The provider of the model refused the request. The operator finds the reason in the log.")
	}
}

var wordPattern = regexp.MustCompile(`^[a-z]+([_.][a-z]+)*$`)

// oneWord is a word as providers have them for kinds of errors, and nothing else.
func oneWord(text string) string {
	if len(text) > 64 || !wordPattern.MatchString(text) {
		return ""
	}

	return text
}
