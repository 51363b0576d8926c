package tracing

import (
	"context"
	"fmt"
	"net/http"
)

// Probe sends an empty request to the address for spans, and returns the HTTP status of the response.
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
		return 0, fmt.Errorf("no response: %w", err)
	}

	return response.StatusCode, response.Body.Close()
}

// path returns the path at which a store accepts spans.
func (k Kind) path() string {
	if k == Langfuse {
		return "/api/public/otel/v1/traces"
	}

	return "/v1/traces"
}
