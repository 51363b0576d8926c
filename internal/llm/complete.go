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
	longestPause = time.Minute // a provider that requests a longer wait is not tried again
	usualTokens  = 4096
	turns        = 2 // the answer and one repair
)

// Complete calls a model and waits for the whole answer, until ctx ends.
func (m *Models) Complete(ctx context.Context, call Call, request Request) (Response, error) {
	return m.ask(ctx, call, request, nil)
}

// Stream calls a model and passes parts of its answer to tell as they arrive. An error of tell ends the call and is
// returned. An answer of which a part was passed to tell is neither tried again nor repaired.
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
			m.config.Log.WarnContext(ctx, "a model does not follow the schema", "provider", p.Name, "model", request.Model.Name, "purpose", call.Purpose)

			return sum, fault.Wrap(ErrSchema, fault.UpstreamUnavailable, "The model did not answer in the required form.")
		}

		t.repair(sum.Text, problem)
	}
}

// judgeAnswer returns the problem that the model has to repair, or an error if the answer cannot be repaired. It
// replaces the text by the JSON that the schema accepted.
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

// turn is one request and its answer, with all attempts that it takes.
type turn struct {
	Call

	provider *provider
	request  Request
	tell     func(string) error // nil if the answer is not streamed
	told     bool
	number   int
	attempt  int
}

// repair adds the answer and its problem to the messages, to request the answer again.
func (t *turn) repair(answer string, problem error) {
	if strings.TrimSpace(answer) != "" {
		t.request.Messages = append(t.request.Messages, Message{Role: Assistant, Text: answer})
	}

	t.request.Messages = append(t.request.Messages, Message{Role: User, Text: "Your answer does not have the form that was asked for:\n" +
		problem.Error() + "\nAnswer again, with JSON of that form and nothing else."})
}

// turn makes attempts until one succeeds or another attempt would not help.
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

// backoff returns a random duration. Its maximum doubles with each attempt, up to backoffMost. Random durations keep
// callers that failed together from retrying together.
func backoff(attempt int) time.Duration {
	return rand.N(min(backoffMost, backoffFirst<<attempt)) //nolint:gosec // no secret
}

// pause waits and reports whether it did. It does not wait longer than longestPause or past the deadline of ctx.
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

// attempt makes one call, if the provider can be called now. A *failure is the result of a call; any other error means
// that no call was made or that the ledger could not be written.
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

	if m.config.Observe != nil {
		m.config.Observe(entry.Model, failed == nil, answer.Usage, m.config.Now().Sub(entry.StartedAt))
	}

	if err := m.end(ctx, entry, answer, failed); err != nil || failed == nil {
		return answer, err
	}

	return answer, failed
}

// send makes the call, with its timeout and its span.
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

// withoutNUL removes NUL characters, which PostgreSQL cannot store in text.
func withoutNUL(text string) string { return strings.ReplaceAll(text, "\x00", "") }

const longestID = 200

// enter waits for a slot of the provider and checks its breaker. The caller must call leave with the verdict.
func (p *provider) enter(ctx context.Context, now time.Time) (leave func(now time.Time, v verdict), err error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}

		return nil, busy("The model is busy. Try again later.", time.Second)
	}

	if wait := p.breaker.allow(now); wait > 0 {
		<-p.slots

		return nil, busy("The model is not responding. Try again later.", wait)
	}

	return func(now time.Time, v verdict) {
		p.breaker.report(now, v)
		<-p.slots
	}, nil
}

func busy(message string, wait time.Duration) error {
	e := fault.New(fault.Unavailable, message)
	e.RetryAfter = wait

	return e
}
