package tracing

import (
	"context"
	"errors"
	"net/http"
)

// CanErase reports whether Erase can remove traces: nothing is sent, or the store can delete a trace.
func (t *Tracing) CanErase() bool { return t.provider == nil || t.tracePath("") != "" }

// Erase removes the trace of a run from the store. It does nothing if the store does not have the trace, or cannot delete traces.
func (t *Tracing) Erase(ctx context.Context, traceID [16]byte) error {
	if t.provider == nil || t.tracePath("") == "" {
		return nil
	}

	err := t.call(ctx, http.MethodDelete, t.tracePath(hexOf(traceID)), nil, nil)
	if errors.Is(err, errAbsent) {
		return nil
	}

	return err
}

// tracePath returns the path of the operation that deletes a trace, or "" if the store has none.
func (t *Tracing) tracePath(id string) string {
	switch t.config.Kind {
	case Phoenix:
		return "/v1/traces/" + id
	case Langfuse:
		return "/api/public/traces/" + id
	case None, OTLP:
	}

	return ""
}
