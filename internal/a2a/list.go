package a2a

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/run"
)

const (
	defaultPage = 50
	maxPage     = 100
	maxWhole    = 20 // largest page with artifacts, which are large
)

// ListTasks lists the caller's tasks, the most recent change of status first.
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
		task.Status = statusOf(found, found.Result, failureIn(found))

		if request.IncludeArtifacts {
			if task, err = h.task(ctx, found); err != nil {
				return nil, err
			}
		}

		answer.Tasks = append(answer.Tasks, trim(task, request.HistoryLength))
	}

	return answer, nil
}

// failureIn returns the failure of a failed run; empty for other runs.
func failureIn(r run.Run) run.Failure {
	if r.Error == nil {
		return run.Failure{}
	}

	return run.Failure{Code: r.Error.Code, Message: r.Error.Message}
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

	if want.Whole {
		want.Limit = min(want.Limit, maxWhole)
	}

	if request.StatusTimestampAfter != nil {
		want.Since = *request.StatusTimestampAfter
	}

	if want.After, err = position(request.PageToken); err != nil || request.ContextID == "" {
		return want, err
	}

	var isID bool
	if want.Conversation, isID = parseID(request.ContextID); !isID {
		want.Conversation = uuid.Max // a conversation that does not exist
	}

	return want, nil
}

// statuses returns the statuses of runs for a state of the protocol, and whether a worker must have started them. isKnown is
// false if the state is not one of the protocol.
func statuses(state protocol.TaskState) (list []run.Status, begun *bool, isKnown bool) {
	switch state {
	case protocol.TaskStateUnspecified:
		return run.Statuses(), nil, true
	case protocol.TaskStateSubmitted:
		return []run.Status{run.Running}, new(false), true
	case protocol.TaskStateWorking:
		return []run.Status{run.Running}, new(true), true
	case protocol.TaskStateInputRequired:
		return []run.Status{run.Waiting}, nil, true
	case protocol.TaskStateCompleted:
		return []run.Status{run.Completed}, nil, true
	case protocol.TaskStateFailed:
		return []run.Status{run.Failed, run.Expired}, nil, true
	case protocol.TaskStateCanceled:
		return []run.Status{run.Cancelled}, nil, true
	default:
		return nil, nil, slices.Contains([]protocol.TaskState{
			protocol.TaskStateRejected, protocol.TaskStateAuthRequired,
		}, state)
	}
}

const timeBytes = 8

// A page token is the position of the last task of a page, encoded so that clients treat it as opaque.

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
		return run.Position{}, invalidField("pageToken", "is not a token of an earlier page")
	}

	at := time.UnixMicro(int64(binary.BigEndian.Uint64(place))) //nolint:gosec // what pageToken wrote
	if at.Year() < 1970 || at.Year() > 9999 {
		return run.Position{}, invalidField("pageToken", "is not a token of an earlier page")
	}

	return run.Position{ActiveAt: at, ID: uuid.UUID(place[timeBytes:])}, nil
}
