package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// shownRun is a run in its form in the API. Rows are already JSON and are not changed.
type shownRun struct {
	RunID          uuid.UUID     `json:"runId"`
	ConversationID uuid.UUID     `json:"conversationId"`
	Agent          string        `json:"agent"`
	Username       string        `json:"username"`
	Namespace      string        `json:"namespace"`
	Question       string        `json:"question"`
	Datasets       []string      `json:"datasets,omitempty"`
	Status         run.Status    `json:"status"`
	CreatedAt      time.Time     `json:"createdAt"`
	FinishedAt     *time.Time    `json:"finishedAt,omitempty"`
	Result         *run.Result   `json:"result,omitempty"`
	Error          *shownFailure `json:"error,omitempty"`
	Feedback       *api.Feedback `json:"feedback,omitempty"`
}

type shownFailure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

func showRun(r run.Run) shownRun {
	return shownRun{
		RunID: r.ID, ConversationID: r.Conversation, Agent: r.Agent, Username: r.Question.Username, Namespace: r.Question.Namespace,
		Question: r.Question.Text, Datasets: r.Question.Datasets, Status: r.Status, CreatedAt: r.CreatedAt, FinishedAt: optionalTime(r.FinishedAt), Result: r.Result,
		Error: showFailure(r.Error), Feedback: showFeedback(r.Feedback),
	}
}

func showFailure(e *fault.Error) *shownFailure {
	if e == nil {
		return nil
	}

	return &shownFailure{e.Code, e.Message}
}

// streamRunEvents handles GET /query/runs/{runId}/events.
func (s *Server) streamRunEvents(w http.ResponseWriter, r *http.Request) error {
	after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // the guard has checked it; 0 if absent

	return s.reserved(r, func() error { return s.stream(w, r, pathID(r, "runId"), after) })
}

// getRun handles GET /query/runs/{runId}.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	return s.writeRun(w, r, s.config.Runs.Get)
}

// cancelRun handles POST /query/runs/{runId}/cancel.
func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) error {
	return s.writeRun(w, r, s.config.Runs.Cancel)
}

// writeRun calls do for the run in the path and writes the run that it returns.
func (s *Server) writeRun(w http.ResponseWriter, r *http.Request, do func(context.Context, auth.Principal, uuid.UUID) (run.Run, error)) error {
	found, err := do(r.Context(), callOf(r.Context()).who, pathID(r, "runId"))
	if err != nil {
		return err
	}

	writeJSON(w, http.StatusOK, showRun(found))

	return nil
}

// pathID returns an ID in the path, which the guard has checked.
func pathID(r *http.Request, name string) uuid.UUID {
	id, _ := uuid.Parse(r.PathValue(name))

	return id
}

// getConversation handles GET /query/conversations/{conversationId}.
func (s *Server) getConversation(w http.ResponseWriter, r *http.Request) error {
	found, err := s.config.Runs.Conversation(r.Context(), callOf(r.Context()).who, pathID(r, "conversationId"))
	if err != nil {
		return err
	}

	writeJSON(w, http.StatusOK, showConversation(found))

	return nil
}

// shownConversation is a conversation with its turns in its form in the API.
type shownConversation struct {
	ID        uuid.UUID   `json:"id"`
	Title     string      `json:"title"`
	Username  string      `json:"username"`
	Namespace string      `json:"namespace"`
	Turns     []shownTurn `json:"turns"`
}

type shownTurn struct {
	RunID    uuid.UUID     `json:"runId"`
	Agent    string        `json:"agent"`
	Question string        `json:"question"`
	Datasets []string      `json:"datasets,omitempty"`
	Status   run.Status    `json:"status"`
	Result   *run.Result   `json:"result,omitempty"`
	Error    *shownFailure `json:"error,omitempty"`
	Feedback *api.Feedback `json:"feedback,omitempty"`
}

func showConversation(c run.Conversation) shownConversation {
	shown := shownConversation{ID: c.ID, Title: c.Title, Username: c.Username, Namespace: c.Namespace, Turns: make([]shownTurn, len(c.Turns))}
	for i, t := range c.Turns {
		shown.Turns[i] = shownTurn{
			RunID: t.ID, Agent: t.Agent, Question: t.Question.Text, Datasets: t.Question.Datasets, Status: t.Status,
			Result: t.Result, Error: showFailure(t.Error), Feedback: showFeedback(t.Feedback),
		}
	}

	return shown
}

// DeleteRun deletes a run of the caller.
func (h handlers) DeleteRun(ctx context.Context, request api.DeleteRunRequestObject) (api.DeleteRunResponseObject, error) {
	return api.DeleteRun204Response{}, h.runs.Delete(ctx, callOf(ctx).who, request.RunID)
}

// ListModels lists the models that a question can name.
func (h handlers) ListModels(context.Context, api.ListModelsRequestObject) (api.ListModelsResponseObject, error) {
	list := api.ListModels200JSONResponse{Data: make([]api.Model, len(h.runs.Models))}
	for i, m := range h.runs.Models {
		list.Data[i] = api.Model{Name: m.Name, Provider: m.Provider, Default: i == 0, Exposure: api.Exposure(m.Exposure)}
	}

	return list, nil
}

// ListRuns lists the caller's runs without their results.
func (h handlers) ListRuns(ctx context.Context, request api.ListRunsRequestObject) (api.ListRunsResponseObject, error) {
	at, err := namespaceFilter(request.Params.Username, request.Params.Namespace)
	if err != nil {
		return nil, err
	}

	want := run.Filter{Namespace: at, Limit: pageLimit(request.Params.Limit)}
	if want.After, err = cursorID(ctx, request.Params.Cursor); err != nil {
		return nil, err
	}

	if request.Params.Status != nil {
		want.Status = run.Status(*request.Params.Status)
	}

	if request.Params.ConversationID != nil {
		want.Conversation = *request.Params.ConversationID
	}

	found, next, err := h.runs.Recent(ctx, callOf(ctx).who, want)
	page := api.ListRuns200JSONResponse{Data: make([]api.RunItem, len(found)), NextCursor: nextCursor(ctx, next)}

	for i, r := range found {
		page.Data[i] = runItem(r)
	}

	return page, err
}

func runItem(r run.Run) api.RunItem {
	return api.RunItem{
		RunID: r.ID, ConversationID: r.Conversation, Agent: api.AgentName(r.Agent), Username: r.Question.Username, Namespace: r.Question.Namespace,
		Question: r.Question.Text, Status: api.RunStatus(r.Status), CreatedAt: r.CreatedAt, FinishedAt: optionalTime(r.FinishedAt),
	}
}

// namespaceFilter returns the namespace to which a list is limited; nil if it is not.
func namespaceFilter(username, namespace *string) (*catalog.Path, error) {
	switch {
	case username != nil && namespace != nil:
		return &catalog.Path{Username: *username, Namespace: *namespace}, nil
	case username != nil:
		return nil, fault.Invalid("namespace", "is required with username")
	case namespace != nil:
		return nil, fault.Invalid("username", "is required with namespace: the owner of the namespace, or self")
	default:
		return nil, nil //nolint:nilnil // no filter
	}
}

// ListConversations lists the caller's conversations.
func (h handlers) ListConversations(ctx context.Context, request api.ListConversationsRequestObject) (api.ListConversationsResponseObject, error) {
	at, err := namespaceFilter(request.Params.Username, request.Params.Namespace)
	if err != nil {
		return nil, err
	}

	after, err := cursorMoment(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.runs.Conversations(ctx, callOf(ctx).who, at, run.Position{ActiveAt: after.At, ID: after.ID}, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListConversations200JSONResponse{
		Data: make([]api.ConversationItem, len(found)), NextCursor: nextMoment(ctx, audit.Position{At: next.ActiveAt, ID: next.ID}),
	}
	for i, c := range found {
		page.Data[i] = conversationItem(c)
	}

	return page, nil
}

func conversationItem(c run.Conversation) api.ConversationItem {
	return api.ConversationItem{
		ID: c.ID, Title: c.Title, Username: c.Username, Namespace: c.Namespace, CreatedAt: c.CreatedAt, UpdatedAt: c.ActiveAt,
	}
}

// RenameConversation changes the title of a conversation.
func (h handlers) RenameConversation(ctx context.Context, request api.RenameConversationRequestObject) (api.RenameConversationResponseObject, error) {
	found, err := h.runs.Rename(ctx, callOf(ctx).who, request.ConversationID, request.Body.Title)

	return api.RenameConversation200JSONResponse(conversationItem(found)), err
}

// DeleteConversation deletes a conversation and its runs.
func (h handlers) DeleteConversation(ctx context.Context, request api.DeleteConversationRequestObject) (api.DeleteConversationResponseObject, error) {
	return api.DeleteConversation204Response{}, h.runs.DeleteConversation(ctx, callOf(ctx).who, request.ConversationID)
}
