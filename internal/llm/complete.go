package llm

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/fault"
)

const (
	tries        = 3
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 8 * time.Second
	longestPause = time.Minute // a provider that wants to be left alone longer is given up
	usualTokens  = 4096
	turns        = 2 // the answer, and one repair
)

// Complete asks a model and waits for the whole answer, as long as ctx lasts.
func (m *Models) Complete(ctx context.Context, call Call, request Request) (Response, error) {
	return m.ask(ctx, call, request, nil)
}

// Stream asks a model and tells its answer while it comes. An error of tell ends it and is returned. An answer that was
// told is neither tried again nor repaired.
func (m *Models) Stream(ctx context.Context, call Call, request Request, tell func(text string) error) (Response, error) {
	return m.ask(ctx, call, request, tell)
}

func (m *Models) ask(ctx context.Context, call Call, request Request, tell func(string) error) (sum Response, err error) {
	p, err := m.of(request.Model)
	if err != nil {
		return sum, err
	}

	var schema *form
	if request.Schema != nil {
		if schema, err = compile(*request.Schema); err != nil {
			return sum, err
		}
	}

	if request.MaxTokens == 0 {
		request.MaxTokens = usualTokens
	}

	request.Messages = slices.Clone(request.Messages)
	t := &turn{Call: call, provider: p, request: request, tell: tell}

	for t.number = 1; ; t.number++ {
		answer, err := m.turn(ctx, t)
		answer.Usage, answer.Turns = sum.Usage.plus(answer.Usage), t.number
		sum = answer

		if err != nil {
			return sum, err
		}

		var problem error
		if problem, err = judgeAnswer(&sum, schema); problem == nil || err != nil {
			return sum, err
		}

		if t.number == turns || t.told {
			m.config.Log.WarnContext(ctx, "a model keeps to no schema", "provider", p.Name, "model", request.Model.Name, "purpose", call.Purpose)

			return sum, fault.Wrap(ErrSchema, fault.UpstreamUnavailable, "The model did not give an answer of the form that it was asked for.")
		}

		t.repair(sum.Text, problem)
	}
}

// judgeAnswer says what a model has to mend, or why it cannot.
func judgeAnswer(answer *Response, schema *form) (problem, err error) {
	switch {
	case answer.Finish == Refusal:
		return nil, fault.Wrap(ErrRefused, fault.UpstreamUnavailable, "The model refused to answer.")
	case answer.Finish == Length:
		return nil, fault.Wrap(ErrTruncated, fault.UpstreamUnavailable, "The answer of the model was too long and was cut off.")
	case schema == nil:
		return nil, nil
	}

	answer.Text, problem = schema.check(answer.Text)

	return problem, nil
}

// turn is one question and its answer, whatever it takes to get it.
type turn struct {
	Call

	provider *provider
	request  Request
	tell     func(string) error // nil: nobody listens
	told     bool
	number   int
	attempt  int
}

// repair asks for the answer again, with what was wrong with it.
func (t *turn) repair(answer string, problem error) {
	if strings.TrimSpace(answer) != "" {
		t.request.Messages = append(t.request.Messages, Message{Role: Assistant, Text: answer})
	}

	t.request.Messages = append(t.request.Messages, Message{Role: User, Text: "Your answer does not have the form that was asked for:\n" +
		problem.Error() + "\nAnswer again, with JSON of that form and nothing else."})
}

// turn tries until there is an answer, or no more sense in trying.
func (m *Models) turn(ctx context.Context, t *turn) (sum Response, err error) {
	for t.attempt = 1; ; t.attempt++ {
		answer, err := m.attempt(ctx, t)
		answer.Usage = sum.Usage.plus(answer.Usage)
		sum = answer

		failed, tried := errors.AsType[*failure](err)
		if !tried {
			return sum, err
		}

		m.config.Log.WarnContext(ctx, "a model did not answer", "provider", t.provider.Name, "model", t.request.Model.Name, "run", t.Run,
			"attempt", t.attempt, "error", failed)

		if !failed.again || t.told || t.attempt == tries || !pause(ctx, max(failed.after, backoff(t.attempt))) {
			return sum, failed.fault()
		}
	}
}

// backoff is anything up to twice as long each time, so that those who failed together do not come back together.
func backoff(attempt int) time.Duration {
	return rand.N(min(backoffMost, backoffFirst<<attempt)) //nolint:gosec // no secret
}

// pause waits, and tells whether it did: not if the caller's time would be over.
func pause(ctx context.Context, lasting time.Duration) bool {
	if deadline, ok := ctx.Deadline(); lasting > longestPause || (ok && time.Until(deadline) <= lasting) {
		return false
	}

	timer := time.NewTimer(lasting)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// attempt makes one call, if the provider can be asked now. A *failure is what came of the call; any other error means
// that there was none.
func (m *Models) attempt(ctx context.Context, t *turn) (Response, error) {
	leave, err := t.provider.enter(ctx, m.config.Now())
	if err != nil {
		return Response{}, err
	}

	v := nothing
	defer func() { leave(m.config.Now(), v) }()

	entry, err := m.begin(ctx, t)
	if err != nil {
		return Response{}, err
	}

	answer, failed := m.send(ctx, t)
	v = healthy

	if failed != nil {
		v = failed.verdict
	}

	if err := m.end(ctx, entry, answer, failed); err != nil || failed == nil {
		return answer, err
	}

	return answer, failed
}

// send is the call itself, with its time and its span.
func (m *Models) send(ctx context.Context, t *turn) (Response, *failure) {
	trying, cancel := context.WithTimeout(ctx, t.provider.Timeout)
	defer cancel()

	trying, span := m.span(trying, t)
	trying, noted := withTrip(trying)

	var tell func(string) error
	if t.tell != nil {
		tell = func(text string) error {
			t.told = true
			span.first()

			return t.tell(withoutNUL(text))
		}
	}

	answer, err := t.provider.wire.send(trying, t.request, tell)
	answer.ID, answer.Text = withoutNUL(strings.ToValidUTF8(answer.ID[:min(len(answer.ID), longestID)], "")), withoutNUL(answer.Text)

	if err == nil {
		span.answered(answer)

		return answer, nil
	}

	if answer.Text == "" {
		answer.Finish = ""
	}

	if trying.Err() != nil && ctx.Err() == nil {
		err = trying.Err()
	}

	failed := judge(ctx, err, noted)
	span.failed(failed, answer)

	return answer, failed
}

// withoutNUL is a text of the provider's that a database can keep.
func withoutNUL(text string) string { return strings.ReplaceAll(text, "\x00", "") }

const longestID = 200

// enter waits for a place, and leaves those alone that do not work.
func (p *provider) enter(ctx context.Context, now time.Time) (leave func(now time.Time, v verdict), err error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}

		return nil, busy("The model has too much to do. Try again later.", time.Second)
	}

	if wait := p.breaker.allow(now); wait > 0 {
		<-p.places

		return nil, busy("The model does not answer at the moment. Try again later.", wait)
	}

	return func(now time.Time, v verdict) {
		p.breaker.report(now, v)
		<-p.places
	}, nil
}

func busy(message string, wait time.Duration) error {
	e := fault.New(fault.Unavailable, message)
	e.RetryAfter = wait

	return e
}
