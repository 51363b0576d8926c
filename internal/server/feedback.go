package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/run"
)

// SubmitFeedback records the caller's rating of a run.
func (h handlers) SubmitFeedback(ctx context.Context, request api.SubmitFeedbackRequestObject) (api.SubmitFeedbackResponseObject, error) {
	var comment string
	if request.Body.Comment != nil {
		comment = *request.Body.Comment
	}

	return api.SubmitFeedback204Response{}, h.runs.Rate(ctx, callOf(ctx).who, request.RunID, request.Body.ThumbsUp, comment)
}

// GetFeedback returns the current rating of a run.
func (h handlers) GetFeedback(ctx context.Context, request api.GetFeedbackRequestObject) (api.GetFeedbackResponseObject, error) {
	found, err := h.runs.Feedback(ctx, callOf(ctx).who, request.RunID)
	if err != nil {
		return nil, err
	}

	return api.GetFeedback200JSONResponse(*showFeedback(&found)), nil
}

func showFeedback(f *run.Feedback) *api.Feedback {
	if f == nil {
		return nil
	}

	return &api.Feedback{ThumbsUp: f.ThumbsUp, Comment: optionalText(f.Comment), UpdatedAt: f.At}
}

// DeleteFeedback withdraws the caller's rating of a run.
func (h handlers) DeleteFeedback(ctx context.Context, request api.DeleteFeedbackRequestObject) (api.DeleteFeedbackResponseObject, error) {
	return api.DeleteFeedback204Response{}, h.runs.Withdraw(ctx, callOf(ctx).who, request.RunID)
}
