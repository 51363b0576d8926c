package a2a

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// handler handles the requests of one caller to one agent. It implements a2asrv.RequestHandler of the library.
type handler struct {
	*Agents

	agent profile
	who   auth.Principal
}

// SendMessage sends a message to the agent. It waits until the agent is done or needs input, unless the request has
// ReturnImmediately set.
func (h handler) SendMessage(ctx context.Context, request *protocol.SendMessageRequest) (protocol.SendMessageResult, error) {
	made, said, err := h.accept(ctx, request)
	if err != nil {
		return nil, err
	}

	if said != nil {
		return said, nil
	}

	config := request.Config
	if config == nil {
		config = &protocol.SendMessageConfig{}
	}

	if config.ReturnImmediately && made.Status == run.Running && made.BeganAt.IsZero() {
		return trim(submitted(made), config.HistoryLength), nil
	}

	if !config.ReturnImmediately {
		if err := h.agent.talk.wait(ctx, h, made); err != nil {
			return nil, err
		}
	}

	task, err := h.GetTask(ctx, &protocol.GetTaskRequest{ID: protocol.TaskID(made.ID.String()), HistoryLength: config.HistoryLength})
	if err != nil {
		return nil, err
	}

	return modesOf(config).task(task), nil
}

// send is SendMessage with the result in the wrapper that the protocol requires.
func (h handler) send(ctx context.Context, request *protocol.SendMessageRequest) (protocol.StreamResponse, error) {
	result, err := h.SendMessage(ctx, request)

	return protocol.StreamResponse{Event: result}, err
}

// SendStreamingMessage sends a message to the agent and yields the events of the task. It yields a nil event when the
// question is accepted, which may be long before the first event. SubscribeToTask does the same.
func (h handler) SendStreamingMessage(ctx context.Context, request *protocol.SendMessageRequest) iter.Seq2[protocol.Event, error] {
	return modesOf(request.Config).stream(h.reserved(func(yield func(protocol.Event, error) bool) {
		made, said, err := h.accept(ctx, request)
		if err != nil {
			yield(nil, err)

			return
		}

		if said != nil {
			yield(said, nil)

			return
		}

		if !yield(nil, nil) {
			return
		}

		if made.Question.LastChosen() != nil && request.Message.TaskID != "" {
			h.continued(ctx, made, yield)

			return
		}

		order := h.agent.order(&telling{run: made})
		// The first event of the log is known, so it is not read.
		first := run.Event{Seq: 1, At: made.CreatedAt}
		first.Kind = run.EventStarted

		if tellOne(order, first, yield) {
			h.narrate(ctx, made, first.Seq, order, yield)
		}
	}))
}

// reserved yields the events if the caller may open another stream. events is not started before that check.
func (h handler) reserved(events iter.Seq2[protocol.Event, error]) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		release, err := h.Runs.Reserve(h.who)
		if err != nil {
			yield(nil, err)

			return
		}
		defer release()

		events(yield)
	}
}

// SubscribeToTask yields the current task, and then the events that follow, until the task has ended. While the task waits for
// a choice, the stream stays open.
func (h handler) SubscribeToTask(ctx context.Context, request *protocol.SubscribeToTaskRequest) iter.Seq2[protocol.Event, error] {
	return h.reserved(func(yield func(protocol.Event, error) bool) {
		found, err := h.find(ctx, request.ID)
		if err == nil && found.Status != run.Running && found.Status != run.Waiting {
			err = protocol.NewError(protocol.ErrUnsupportedOperation, "The task has ended. Use GetTask to read it.")
		}

		if !yield(nil, err) || err != nil {
			return
		}

		order := h.agent.order(&telling{run: found})

		last := h.current(ctx, found, order, yield)
		for last.Kind == run.EventWaiting {
			if err := h.chosen(ctx, found); err != nil {
				yield(nil, err)

				return
			}

			last = h.narrate(ctx, found, last.Seq, order, yield)
		}
	})
}

// chosen waits until a run no longer waits for a choice. A choice may take a day, so it asks the database from time to time.
func (h handler) chosen(ctx context.Context, r run.Run) error {
	for {
		err := h.Runs.Credentials.Check(ctx, h.who)
		if err == nil {
			var now run.Run
			if now, err = h.Runs.Get(ctx, h.who, r.ID); err == nil && now.Status != run.Waiting {
				return nil
			}
		}

		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unauthorized) {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// current yields the current task, and then the events that follow. It returns the last event of the log; an empty one if the
// stream is over.
func (h handler) current(ctx context.Context, found run.Run, order order, yield func(protocol.Event, error) bool) (last run.Event) {
	events, err := h.soFar(ctx, found)
	if err != nil {
		yield(nil, err)

		return run.Event{}
	}

	last = events[len(events)-1]
	task := submitted(found)

	if err := tell(task, order, events...); err != nil {
		yield(nil, err)

		return run.Event{}
	}

	switch {
	case !yield(task, nil):
		return run.Event{}
	case last.Rests():
		return last
	default:
		return h.narrate(ctx, found, last.Seq, order, yield)
	}
}

// narrate yields the updates for the events of the log after a number, until the run rests. It returns the last event; an empty
// one if the stream is over.
func (h handler) narrate(ctx context.Context, r run.Run, after int64, order order, yield func(protocol.Event, error) bool) (last run.Event) {
	for event, err := range h.events(ctx, r, after) {
		if err != nil {
			yield(nil, err)

			return run.Event{}
		}

		if !tellOne(order, event, yield) {
			return run.Event{}
		}

		last = event
	}

	return last
}

// tellOne yields the updates for one event of the log, and reports whether to continue.
func tellOne(order order, event run.Event, yield func(protocol.Event, error) bool) bool {
	updates, err := order.next(event)
	if err != nil {
		yield(nil, err)

		return false
	}

	for _, update := range updates {
		if !yield(update, nil) {
			return false
		}
	}

	return true
}

const (
	// A failed read of the log is repeated every retryEvery, until graceTime after the deadline of the run: no event follows
	// the deadline.
	retryEvery = time.Second
	graceTime  = time.Minute
)

// events yields the events of a run after a number, up to the last. It retries after failures, and yields an error only for
// NotFound, for Unauthorized, and for a failure that lasts until the run must have ended.
func (h handler) events(ctx context.Context, r run.Run, after int64) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		for {
			err := h.follow(ctx, r, &after, yield)
			if err == nil || ctx.Err() != nil {
				return
			}

			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unauthorized) || h.Now().After(r.DeadlineAt.Add(graceTime)) {
				yield(run.Event{}, err)

				return
			}

			select {
			case <-ctx.Done():
				return
			case <-time.After(retryEvery):
			}
		}
	}
}

// follow yields events until the last one, until the run waits for a choice, until yield returns false, or until it fails. It updates after.
func (h handler) follow(ctx context.Context, r run.Run, after *int64, yield func(run.Event, error) bool) error {
	stream, err := h.Runs.FollowTask(ctx, h.who, r.ID, *after)
	if err != nil {
		return err
	}
	defer stream.Close()

	for {
		events, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil // the run had ended and the reader had its last event
		}

		if err != nil {
			return err
		}

		for _, e := range events {
			*after = e.Seq

			if !yield(e, nil) {
				return nil
			}
		}

		if events[len(events)-1].Rests() {
			return nil
		}
	}
}

// soFar returns the events of a run up to now. There is at least one, because each run has a first event.
func (h handler) soFar(ctx context.Context, r run.Run) ([]run.Event, error) {
	stream, err := h.Runs.FollowTask(ctx, h.who, r.ID, 0)
	if err != nil {
		return nil, err
	}
	defer stream.Close()

	return stream.Next(ctx)
}

// find returns the run with a task id, if it is a run of the caller and of this agent.
func (h handler) find(ctx context.Context, task protocol.TaskID) (run.Run, error) {
	if task == "" {
		return run.Run{}, invalidField("id", "is required")
	}

	id, isID := parseID(string(task))
	if !isID {
		return run.Run{}, noTask()
	}

	found, err := h.Runs.Get(ctx, h.who, id)
	if err == nil && found.Agent != h.agent.name {
		err = noTask()
	}

	return found, err
}

// parseID parses an id. It accepts only the form in which this service writes ids.
func parseID(text string) (id uuid.UUID, isID bool) {
	id, err := uuid.Parse(text)

	return id, err == nil && id != uuid.Nil && id.String() == text
}

// GetTask returns the current state of a task.
func (h handler) GetTask(ctx context.Context, request *protocol.GetTaskRequest) (*protocol.Task, error) {
	if err := checkHistory("historyLength", request.HistoryLength); err != nil {
		return nil, err
	}

	found, err := h.find(ctx, request.ID)
	if err != nil {
		return nil, err
	}

	task, err := h.task(ctx, found)
	if err != nil {
		return nil, err
	}

	return trim(task, request.HistoryLength), nil
}

// CancelTask cancels a task. Cancelling a cancelled task again returns the same task.
func (h handler) CancelTask(ctx context.Context, request *protocol.CancelTaskRequest) (*protocol.Task, error) {
	found, err := h.find(ctx, request.ID)
	if err != nil {
		return nil, err
	}

	cancelled, err := h.Runs.Cancel(ctx, h.who, found.ID)
	if err != nil {
		return nil, err
	}

	return h.task(ctx, cancelled)
}

func checkHistory(field string, length *int) error {
	if length != nil && *length < 0 {
		return invalidField(field, "must not be negative")
	}

	return nil
}

// GetExtendedAgentCard returns the card for the caller, in the form of the library.
func (h handler) GetExtendedAgentCard(ctx context.Context, _ *protocol.GetExtendedAgentCardRequest) (*protocol.AgentCard, error) {
	full, err := h.extended(ctx)

	return &full.AgentCard, err
}
