package a2a

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"iter"
	"slices"
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

// SendMessage asks, and waits for the end unless the caller does not want to.
func (h handler) SendMessage(ctx context.Context, request *protocol.SendMessageRequest) (protocol.SendMessageResult, error) {
	made, err := h.accept(ctx, request)
	if err != nil {
		return nil, err
	}

	config := request.Config
	if config == nil {
		config = &protocol.SendMessageConfig{}
	}

	if config.ReturnImmediately && made.Status == run.Running && made.BeganAt.IsZero() {
		return trim(submitted(made), config.HistoryLength), nil
	}

	if !config.ReturnImmediately {
		if err := h.Runs.Await(ctx, h.who, made.ID); err != nil {
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
		made, err := h.accept(ctx, request)
		if err != nil {
			yield(nil, err)

			return
		}

		h.narrate(ctx, made, 0, h.agent.order(&telling{run: made}), yield)
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
		var updates []protocol.Event

		if err == nil {
			updates, err = order.next(event)
		}

		for _, update := range updates {
			if !yield(update, nil) {
				return
			}
		}

		if err != nil {
			yield(nil, err)

			return
		}
	}
}

const (
	// A log that cannot be read now can be read later. After the deadline of the run nothing comes any more.
	retryEvery = time.Second
	graceTime  = time.Minute
)

// events gives the events of a run after one, to the last. Only what stays wrong until the run must have ended is an
// error.
func (h handler) events(ctx context.Context, r run.Run, after int64) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		for {
			err := h.follow(ctx, r, &after, yield)
			if err == nil || ctx.Err() != nil {
				return
			}

			if fault.Is(err, fault.NotFound) || h.Now().After(r.DeadlineAt.Add(graceTime)) {
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

const (
	defaultPage = 50
	maxPage     = 100
)

// ListTasks lists tasks, those first whose status changed last.
func (h handler) ListTasks(ctx context.Context, request *protocol.ListTasksRequest) (*protocol.ListTasksResponse, error) {
	want, err := h.listing(request)
	if err != nil {
		return nil, err
	}

	answer := &protocol.ListTasksResponse{Tasks: []*protocol.Task{}, PageSize: want.Limit}
	if len(want.Statuses) == 0 {
		return answer, nil // no run has such a status
	}

	page, err := h.Runs.List(ctx, h.who, want)
	if err != nil {
		return nil, err
	}

	answer.TotalSize, answer.NextPageToken = page.Total, pageToken(page.Next)

	for _, found := range page.Runs {
		task := submitted(found)
		task.Status = statusOf(found, found.Result, words(found))

		if request.IncludeArtifacts {
			if task, err = h.task(ctx, found); err != nil {
				return nil, err
			}
		}

		answer.Tasks = append(answer.Tasks, trim(task, request.HistoryLength))
	}

	return answer, nil
}

// words are those of a run that failed.
func words(r run.Run) string {
	if r.Error == nil {
		return ""
	}

	return r.Error.Message
}

func (h handler) listing(request *protocol.ListTasksRequest) (want run.Listing, err error) {
	want = run.Listing{Agent: h.agent.name, Limit: defaultPage, Whole: request.IncludeArtifacts}

	var isKnown bool
	if want.Statuses, want.Begun, isKnown = statuses(request.Status); !isKnown {
		return want, invalidField("status", "is not a state of the protocol")
	}

	if err := checkHistory("historyLength", request.HistoryLength); err != nil {
		return want, err
	}

	if request.PageSize < 0 || request.PageSize > maxPage {
		return want, invalidField("pageSize", "must be 1 to 100")
	}

	if request.PageSize > 0 {
		want.Limit = request.PageSize
	}

	if request.StatusTimestampAfter != nil {
		want.Since = *request.StatusTimestampAfter
	}

	if want.After, err = position(request.PageToken); err != nil || request.ContextID == "" {
		return want, err
	}

	var isID bool
	if want.Conversation, isID = parseID(request.ContextID); !isID {
		want.Conversation = uuid.Max // one that nobody has
	}

	return want, nil
}

// statuses are those of the runs in a state of the protocol.
func statuses(state protocol.TaskState) (list []run.Status, begun *bool, isKnown bool) {
	switch state {
	case protocol.TaskStateUnspecified:
		return []run.Status{run.Running, run.Completed, run.Failed, run.Cancelled, run.Expired}, nil, true
	case protocol.TaskStateSubmitted:
		return []run.Status{run.Running}, new(false), true
	case protocol.TaskStateWorking:
		return []run.Status{run.Running}, new(true), true
	case protocol.TaskStateCompleted:
		return []run.Status{run.Completed}, nil, true
	case protocol.TaskStateFailed:
		return []run.Status{run.Failed, run.Expired}, nil, true
	case protocol.TaskStateCanceled:
		return []run.Status{run.Cancelled}, nil, true
	default:
		return nil, nil, slices.Contains([]protocol.TaskState{
			protocol.TaskStateRejected, protocol.TaskStateInputRequired, protocol.TaskStateAuthRequired,
		}, state)
	}
}

func checkHistory(field string, length *int) error {
	if length != nil && *length < 0 {
		return invalidField(field, "must not be negative")
	}

	return nil
}

const timeBytes = 8

// A page token is the place of the last task of a page, in a form that nobody takes for one.

func pageToken(last run.Position) string {
	if last == (run.Position{}) {
		return ""
	}

	place := binary.BigEndian.AppendUint64(nil, uint64(last.ActiveAt.UnixMicro()))

	return base64.RawURLEncoding.EncodeToString(append(place, last.ID[:]...))
}

func position(token string) (run.Position, error) {
	if token == "" {
		return run.Position{}, nil
	}

	place, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(place) != timeBytes+len(uuid.UUID{}) {
		return run.Position{}, invalidField("pageToken", "is not one that a page before gave")
	}

	at := time.UnixMicro(int64(binary.BigEndian.Uint64(place))) //nolint:gosec // what pageToken wrote
	if at.Year() < 1970 || at.Year() > 9999 {
		return run.Position{}, invalidField("pageToken", "is not one that a page before gave")
	}

	return run.Position{ActiveAt: at, ID: uuid.UUID(place[timeBytes:])}, nil
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
