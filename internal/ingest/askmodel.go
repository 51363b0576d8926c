package ingest

import (
	"context"
	"time"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/llm"
)

const (
	modelWait   = 10 * time.Second
	longestWait = 2 * time.Minute

	phaseModel  = "waitingForModel"
	purposeRead = "extract"
)

// reader returns the model that reads documents for a dataset, or the reason why none may.
//
// Faults: InvalidState.
func (g *Ingest) reader(dataset *catalog.Dataset) (model llm.Model, err error) {
	if !g.Models.Configured() {
		return model, fault.New(fault.InvalidState, "No model is configured, so documents cannot be read with one. Ask the operator to set QUERN_MODELS.")
	}

	if model, err = g.Models.Choose("", ""); err != nil {
		return model, err
	}

	if dataset != nil && model.Allowed(string(dataset.Exposure)) < llm.ExposeRows {
		return model, fault.New(fault.InvalidState,
			"The model may not see rows of this dataset, so it may not see documents either. The owner of the dataset and the operator decide with the exposure.")
	}

	return model, nil
}

// askModel calls the model. If it does not answer now, the job waits and another worker continues.
func (w *working) askModel(ctx context.Context, request llm.Request) (response llm.Response, err error) {
	dataset, _, err := w.target(ctx, w.i.table())
	if err == nil && dataset == nil {
		err = cleared()
	}

	if err != nil {
		return response, err
	}

	// The owner may have changed the exposure since the last request.
	if request.Model, err = w.reader(dataset); err != nil {
		return response, err
	}

	response, err = w.Models.Complete(ctx, llm.Call{Account: w.i.Caller, Run: w.i.ID, Purpose: purposeRead}, request)
	if err != nil && ctx.Err() == nil && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout)) {
		w.told = time.Time{}
		if told := w.tell(ctx, phaseModel); told != nil {
			return response, told
		}

		return response, job.WaitFor(err, w.patience())
	}

	return response, err
}

// patience returns how long to wait for a model that does not answer: a tenth of the time since the load began, because each delivery reads the
// documents again.
func (w *working) patience() time.Duration {
	if w.i.StartedAt.IsZero() { // the first delivery
		return modelWait
	}

	return min(max(w.Now().Sub(w.i.StartedAt)/10, modelWait), longestWait)
}
