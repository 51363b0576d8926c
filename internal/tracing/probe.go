package tracing

import (
	"context"
	"fmt"
	"net/http"
)

// Probe sends no spans to where spans go, and returns the status that the store answers with.
func (t *Tracing) Probe(ctx context.Context) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.config.Endpoint+t.config.Kind.path(), http.NoBody)
	if err != nil {
		return 0, err
	}

	for name, value := range t.headers {
		request.Header.Set(name, value)
	}

	request.Header.Set("Content-Type", "application/x-protobuf")

	response, err := t.config.Client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}

	return response.StatusCode, response.Body.Close()
}

// path is where a store takes spans.
func (k Kind) path() string {
	if k == Langfuse {
		return "/api/public/otel/v1/traces"
	}

	return "/v1/traces"
}
