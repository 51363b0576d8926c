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

// handler is an agent in the hands of one caller. It has the methods of a RequestHandler of the library.
type handler struct {
	*Agents

	agent profile
	who   auth.Principal
}

// SendMessage asks, and waits for what comes of it unless the caller does not want to.
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

	return h.GetTask(ctx, &protocol.GetTaskRequest{ID: protocol.TaskID(made.ID.String()), HistoryLength: config.HistoryLength})
}

// send gives the result its wrapper.
func (h handler) send(ctx context.Context, request *protocol.SendMessageRequest) (protocol.StreamResponse, error) {
	result, err := h.SendMessage(ctx, request)

	return protocol.StreamResponse{Event: result}, err
}

// SendStreamingMessage asks, and tells what happens.
func (h handler) SendStreamingMessage(ctx context.Context, request *protocol.SendMessageRequest) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		made, said, err := h.accept(ctx, request)
		if err != nil {
			yield(nil, err)

			return
		}

		if said != nil {
			yield(said, nil)

			return
		}

		order := h.agent.order(&telling{run: made})
		// What the log begins with is known, so nobody waits for it.
		first := run.Event{Seq: 1, At: made.CreatedAt}
		first.Kind = run.EventStarted

		if tellOne(order, first, yield) {
			h.narrate(ctx, made, first.Seq, order, yield)
		}
	}
}

// SubscribeToTask gives the task as it is, and tells what happens from then on.
func (h handler) SubscribeToTask(ctx context.Context, request *protocol.SubscribeToTaskRequest) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		found, err := h.find(ctx, request.ID)
		if err != nil {
			yield(nil, err)

			return
		}

		events, err := h.soFar(ctx, found)
		if err != nil {
			yield(nil, err)

			return
		}

		last := events[len(events)-1]
		if last.Ends() {
			yield(nil, protocol.NewError(protocol.ErrUnsupportedOperation, "The task has ended. Get it instead."))

			return
		}

		task, order := submitted(found), h.agent.order(&telling{run: found})
		if err := tell(task, order, events...); err != nil {
			yield(nil, err)

			return
		}

		if yield(task, nil) {
			h.narrate(ctx, found, last.Seq, order, yield)
		}
	}
}

// narrate tells what the log has after an event, until the end.
func (h handler) narrate(ctx context.Context, r run.Run, after int64, order order, yield func(protocol.Event, error) bool) {
	for event, err := range h.events(ctx, r, after) {
		if err != nil {
			yield(nil, err)

			return
		}

		if !tellOne(order, event, yield) {
			return
		}
	}
}

// tellOne tells what an event means, and whether there is to be more.
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
	// A log that cannot be read now can be read later. After the deadline of the run nothing comes any more.
	retryEvery = time.Second
	graceTime  = time.Minute
)

// events gives the events of a run after one, to the last. Only what stays wrong until the run must have ended is an
// error, and that the caller has too many streams open.
func (h handler) events(ctx context.Context, r run.Run, after int64) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		for {
			err := h.follow(ctx, r, &after, yield)
			if err == nil || ctx.Err() != nil {
				return
			}

			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.RateLimited) || h.Now().After(r.DeadlineAt.Add(graceTime)) {
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

// follow gives events until the last, or until nobody wants more, or until it fails.
func (h handler) follow(ctx context.Context, r run.Run, after *int64, yield func(run.Event, error) bool) error {
	stream, err := h.Runs.Follow(ctx, h.who, r.ID, *after)
	if err != nil {
		return err
	}
	defer stream.Close()

	for {
		events, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil // there was nothing after that
		}

		if err != nil {
			return err
		}

		for _, e := range events {
			*after = e.Seq

			if !yield(e, nil) || e.Ends() {
				return nil
			}
		}
	}
}

// soFar are the events that there are. Each run has one.
func (h handler) soFar(ctx context.Context, r run.Run) ([]run.Event, error) {
	stream, err := h.Runs.Follow(ctx, h.who, r.ID, 0)
	if err != nil {
		return nil, err
	}
	defer stream.Close()

	return stream.Next(ctx)
}

// find returns the caller's run that a task id names, if it is one of this agent.
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

// parseID takes ids as we give them alone.
func parseID(text string) (id uuid.UUID, isID bool) {
	id, err := uuid.Parse(text)

	return id, err == nil && id != uuid.Nil && id.String() == text
}

// GetTask returns a task as it is.
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

// CancelTask ends a task. A repeat gives the same.
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

// GetExtendedAgentCard returns the card for the caller, in the library's form.
func (h handler) GetExtendedAgentCard(ctx context.Context, _ *protocol.GetExtendedAgentCardRequest) (*protocol.AgentCard, error) {
	full, err := h.extended(ctx)

	return &full.AgentCard, err
}

func noPush() error {
	return protocol.NewError(protocol.ErrPushNotificationNotSupported, "This agent sends no push notifications.")
}

// CreateTaskPushConfig is not supported, nor are the other three.
func (h handler) CreateTaskPushConfig(context.Context, *protocol.PushConfig) (*protocol.PushConfig, error) {
	return nil, noPush()
}

// GetTaskPushConfig is not supported.
func (h handler) GetTaskPushConfig(context.Context, *protocol.GetTaskPushConfigRequest) (*protocol.PushConfig, error) {
	return nil, noPush()
}

// ListTaskPushConfigs is not supported.
func (h handler) ListTaskPushConfigs(context.Context, *protocol.ListTaskPushConfigRequest) (*protocol.ListTaskPushConfigResponse, error) {
	return nil, noPush()
}

// DeleteTaskPushConfig is not supported.
func (h handler) DeleteTaskPushConfig(context.Context, *protocol.DeleteTaskPushConfigRequest) error {
	return noPush()
}
