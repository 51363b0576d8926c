package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

const (
	defaultWait = 60 * time.Second
	maxWait     = 110 * time.Second
	eventStream = "text/event-stream"
)

// shownRun is a run as the contract has it. Rows are JSON already and stay as they are.
type shownRun struct {
	RunID          uuid.UUID     `json:"runId"`
	ConversationID uuid.UUID     `json:"conversationId"`
	Agent          string        `json:"agent"`
	Username       string        `json:"username"`
	Namespace      string        `json:"namespace"`
	Question       string        `json:"question"`
	Status         run.Status    `json:"status"`
	CreatedAt      time.Time     `json:"createdAt"`
	FinishedAt     *time.Time    `json:"finishedAt,omitempty"`
	Result         *run.Result   `json:"result,omitempty"`
	Error          *shownFailure `json:"error,omitempty"`
}

type shownFailure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

func showRun(r run.Run) shownRun {
	shown := shownRun{
		RunID: r.ID, ConversationID: r.Conversation, Agent: r.Agent, Username: r.Question.Username, Namespace: r.Question.Namespace,
		Question: r.Question.Text, Status: r.Status, CreatedAt: r.CreatedAt, Result: r.Result,
	}

	if !r.FinishedAt.IsZero() {
		shown.FinishedAt = &r.FinishedAt
	}

	if r.Error != nil {
		shown.Error = &shownFailure{r.Error.Code, r.Error.Message}
	}

	return shown
}

// ask is POST /query/ask.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	wait, err := preference(r.Header.Get("Prefer"))
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	asJSON := quality(r.Header.Values("Accept"), "application/json") > quality(streamed(r.Header.Values("Accept")), eventStream)

	var body api.Question
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.failDecode(w, r, err)

		return
	}

	made, err := s.config.Runs.Ask(r.Context(), callOf(r.Context()).who, asked(r, body))

	switch {
	case err != nil:
		s.Fail(w, r, err)
	case wait == 0:
		writeJSON(w, http.StatusAccepted, showRun(made))
	case asJSON:
		s.awaitRun(w, r, made, wait)
	default:
		s.stream(w, r, made.ID, 0)
	}
}

// streamed is what Accept says if it says nothing: a stream.
func streamed(accept []string) []string {
	if len(accept) == 0 {
		return []string{eventStream}
	}

	return accept
}

// preference is how long the client waits; zero is not at all.
func preference(prefer string) (time.Duration, error) {
	for part := range strings.SplitSeq(prefer, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")

		switch {
		case strings.EqualFold(name, "respond-async"):
			return 0, nil
		case strings.EqualFold(name, "wait"):
			seconds, err := strconv.Atoi(value)
			if err != nil || seconds < 1 {
				return 0, fault.Invalid("Prefer", "wait must be a number of seconds")
			}

			return min(time.Duration(seconds)*time.Second, maxWait), nil
		}
	}

	return defaultWait, nil
}

func asked(r *http.Request, body api.Question) run.Ask {
	want := run.Ask{Agent: "assistant", Question: run.Question{Username: body.Username, Namespace: body.Namespace, Text: body.Query}}
	q := &want.Question

	if body.Agent != nil {
		want.Agent = string(*body.Agent)
	}

	if body.ConversationID != nil {
		want.Conversation = *body.ConversationID
	}

	if body.Datasets != nil {
		q.Datasets = *body.Datasets
	}

	if body.AsOf != nil {
		q.AsOf = *body.AsOf
	}

	for to, from := range map[*string]*string{&q.HelperPrompt: body.HelperPrompt, &q.Model: body.Model, &q.Provider: body.Provider, &q.TimeZone: body.TimeZone} {
		if from != nil {
			*to = *from
		}
	}

	if key := r.Header.Get("Idempotency-Key"); key != "" {
		want.Once = once(r.Context(), &key)
	}

	return want
}

// awaitRun gives the run when it has ended, or as it is when the client's time is over.
func (s *Server) awaitRun(w http.ResponseWriter, r *http.Request, made run.Run, wait time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + streamWrite)) // only tests have none

	waiting, stop := context.WithTimeout(r.Context(), wait)
	defer stop()

	who := callOf(r.Context()).who
	if err := s.config.Runs.Await(waiting, who, made.ID); err != nil && waiting.Err() == nil {
		s.Fail(w, r, err)

		return
	}

	found, err := s.config.Runs.Get(r.Context(), who, made.ID)
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	status := http.StatusOK
	if found.Status == run.Running {
		status = http.StatusAccepted
	}

	writeJSON(w, status, showRun(found))
}

// streamRunEvents is GET /query/runs/{runId}/events.
func (s *Server) streamRunEvents(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // checked to be one, or absent

	s.stream(w, r, pathID(r, "runId"), after)
}

// getRun is GET /query/runs/{runId}.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) {
	s.answerRun(w, r, s.config.Runs.Get)
}

// cancelRun is POST /query/runs/{runId}/cancel.
func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) {
	s.answerRun(w, r, s.config.Runs.Cancel)
}

func (s *Server) answerRun(w http.ResponseWriter, r *http.Request, do func(context.Context, auth.Principal, uuid.UUID) (run.Run, error)) {
	found, err := do(r.Context(), callOf(r.Context()).who, pathID(r, "runId"))
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	writeJSON(w, http.StatusOK, showRun(found))
}

// pathID is an id in the path, which was checked to be one.
func pathID(r *http.Request, name string) uuid.UUID {
	id, _ := uuid.Parse(r.PathValue(name))

	return id
}

// getConversation is GET /query/conversations/{conversationId}.
func (s *Server) getConversation(w http.ResponseWriter, r *http.Request) {
	found, err := s.config.Runs.Conversation(r.Context(), callOf(r.Context()).who, pathID(r, "conversationId"))
	if err != nil {
		s.Fail(w, r, err)

		return
	}

	type turn struct {
		RunID    uuid.UUID   `json:"runId"`
		Question string      `json:"question"`
		Status   run.Status  `json:"status"`
		Result   *run.Result `json:"result,omitempty"`
	}

	turns := make([]turn, len(found.Turns))
	for i, t := range found.Turns {
		turns[i] = turn{RunID: t.ID, Question: t.Question.Text, Status: t.Status, Result: t.Result}
	}

	writeJSON(w, http.StatusOK, map[string]any{"id": found.ID, "title": found.Title, "turns": turns})
}

// DeleteRun removes a run of the caller's.
func (h handlers) DeleteRun(ctx context.Context, request api.DeleteRunRequestObject) (api.DeleteRunResponseObject, error) {
	return api.DeleteRun204Response{}, h.runs.Delete(ctx, callOf(ctx).who, request.RunID)
}

// ListConversations lists the caller's conversations.
func (h handlers) ListConversations(ctx context.Context, request api.ListConversationsRequestObject) (api.ListConversationsResponseObject, error) {
	var at *catalog.Path

	switch p := request.Params; {
	case p.Username != nil && p.Namespace != nil:
		at = &catalog.Path{Username: *p.Username, Namespace: *p.Namespace}
	case p.Username != nil:
		return nil, fault.Invalid("namespace", "is required with username")
	case p.Namespace != nil:
		return nil, fault.Invalid("username", "is required with namespace")
	}

	after, err := cursorMoment(request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.runs.Conversations(ctx, callOf(ctx).who, at, run.Position{ActiveAt: after.At, ID: after.ID}, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListConversations200JSONResponse{
		Conversations: make([]api.ConversationItem, len(found)), NextCursor: nextMoment(audit.Position{At: next.ActiveAt, ID: next.ID}),
	}
	for i, c := range found {
		page.Conversations[i] = conversationItem(c)
	}

	return page, nil
}

func conversationItem(c run.Conversation) api.ConversationItem {
	return api.ConversationItem{
		ID: c.ID, Title: c.Title, Username: c.Username, Namespace: c.Namespace, CreatedAt: c.CreatedAt.UnixMilli(), UpdatedAt: c.ActiveAt.UnixMilli(),
	}
}

// RenameConversation gives a conversation another title.
func (h handlers) RenameConversation(ctx context.Context, request api.RenameConversationRequestObject) (api.RenameConversationResponseObject, error) {
	found, err := h.runs.Rename(ctx, callOf(ctx).who, request.ConversationID, request.Body.Title)

	return api.RenameConversation200JSONResponse(conversationItem(found)), err
}

// DeleteConversation removes a conversation with its runs.
func (h handlers) DeleteConversation(ctx context.Context, request api.DeleteConversationRequestObject) (api.DeleteConversationResponseObject, error) {
	return api.DeleteConversation204Response{}, h.runs.DeleteConversation(ctx, callOf(ctx).who, request.ConversationID)
}
