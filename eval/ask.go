package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
)

// answer is the result of asking a question.
type answer struct {
	result   *api.RunResult // nil if the run did not complete
	failure  string         // why the run did not complete
	attempts int            // number of statements that ran
	took     time.Duration
	run      uuid.UUID
}

// askAll asks every question in its own conversation and judges the answers.
func (s *service) askAll(ctx context.Context, questions []*question, o options, script *script) ([]mark, error) {
	begin := time.Now()
	marks, answers := make([]mark, len(questions)), make([]answer, len(questions))
	asks, asking := errgroup.WithContext(ctx)
	asks.SetLimit(o.parallel)

	var done, right atomic.Int64

	for i, q := range questions {
		asks.Go(func() error {
			got, err := s.askOne(asking, q, o, script)
			if err != nil {
				return fmt.Errorf("question %d: %w", i+1, discreet(err, o.split))
			}

			marks[i], answers[i] = judge(q, got), got

			if marks[i].right() {
				right.Add(1)
			}

			if n := done.Add(1); n%20 == 0 || n == int64(len(questions)) {
				fmt.Fprintf(os.Stderr, "eval: %d of %d asked, %d right, %v\n", n, len(questions), right.Load(), time.Since(begin).Round(time.Second))
			}

			return nil
		})
	}

	if err := asks.Wait(); err != nil {
		return marks, err
	}

	// The service remembers choices, so no option may be chosen before all questions are asked.
	for i, q := range questions {
		rights, err := s.tryOptions(ctx, q, o, script, answers[i])
		if err != nil {
			return marks, fmt.Errorf("options of question %d: %w", i+1, discreet(err, o.split))
		}

		marks[i].Options = rights
	}

	return marks, nil
}

func (s *service) askOne(ctx context.Context, q *question, o options, script *script) (answer, error) {
	wanted, err := s.wanted(q, o, script)
	if err != nil {
		return answer{}, err
	}

	return s.ask(ctx, wanted)
}

// wanted returns the request for a question.
func (s *service) wanted(q *question, o options, script *script) (api.Question, error) {
	wanted := api.Question{Agent: new(api.QuestionAgent(o.agent)), Username: s.user, Namespace: q.namespace(), Query: q.Text}

	if q.Instructions != "" {
		wanted.HelperPrompt = &q.Instructions
	}

	if o.provider != "" {
		wanted.Provider = &o.provider
	}

	if o.model != "" && o.model != none && script == nil {
		wanted.Model = &o.model
	}

	if tables := q.tables(); len(tables) == 1 {
		wanted.Datasets = &[]string{tables[0].dataset}
	}

	today, err := q.today()
	if err != nil {
		return wanted, err
	}

	if !today.IsZero() {
		wanted.AsOf = &today
	}

	if script == nil || !o.scripted {
		return wanted, nil
	}

	said, err := script.answer(q)
	if err != nil {
		return wanted, err
	}

	wanted.Query, err = said.asScript()

	return wanted, err
}

const resumes = 5

// ask starts a run and follows it to its end, resuming the stream if it breaks.
func (s *service) ask(ctx context.Context, wanted api.Question) (answer, error) {
	begin := time.Now()
	following := &following{}

	response, err := s.api.Ask(ctx, nil, wanted, asStream(""))

	for try := 0; err == nil; try++ {
		if err = following.read(response); err == nil {
			following.got.took, following.got.run = time.Since(begin), following.run

			return following.got, nil
		}

		if try == resumes || following.run == uuid.Nil {
			break
		}

		if err = sleep(ctx, time.Second); err == nil {
			response, err = s.api.StreamRunEvents(ctx, following.run, nil, asStream(following.last))
		}
	}

	return answer{}, err
}

func asStream(last string) api.RequestEditorFn {
	return func(_ context.Context, request *http.Request) error {
		request.Header.Set("Accept", "text/event-stream")

		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}

		return nil
	}
}

// following is the progress of reading a stream of events.
type following struct {
	run  uuid.UUID
	last string // ID of the last event
	got  answer
}

var errBroken = errors.New("the stream of events broke")

// read reads events until the run has ended.
func (f *following) read(response *http.Response) error {
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)

		return errors.Join(refusal("asking", response, body), err)
	}

	var id, name, data string

	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return errors.Join(errBroken, err)
		}

		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")

		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if name == "" {
				continue
			}

			if ended, err := f.take(name, data); ended || err != nil {
				return err
			}

			f.last, name, data = id, "", ""
		}
	}
}

func (f *following) take(name, data string) (ended bool, err error) {
	event := api.Event{Name: api.EventName(name), Data: json.RawMessage(data)}

	switch event.Name {
	case api.EventRunStarted:
		var started api.RunStartedEvent

		err = event.Decode(&started)
		f.run = started.RunID
	case api.EventQueryExecuting:
		f.got.attempts++
	case api.EventRunCompleted:
		var completed api.RunCompletedEvent

		err = event.Decode(&completed)
		f.got.result = &completed.Result

		return true, err
	case api.EventRunWaiting: // it asks back, and nobody answers
		var waiting api.RunWaitingEvent

		err = event.Decode(&waiting)
		f.got.result = &waiting.Result

		return true, err
	case api.EventRunCancelled, api.EventRunFailed:
		f.got.failure = name + " " + data

		return true, nil
	default:
	}

	return false, err
}
