package span

import (
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/codes"
)

// Transport records each request to an outside system as a span with the name of the system and the method. It records neither
// address nor headers.
func Transport(next http.RoundTripper, system string) http.RoundTripper {
	return transport{next, system}
}

type transport struct {
	next   http.RoundTripper
	system string
}

// RoundTrip implements http.RoundTripper. The span ends when the response begins.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, span := Start(r.Context(), t.system+" "+r.Method, Text("http.request.method", r.Method), Text("peer.service", t.system))

	response, err := t.next.RoundTrip(r)
	if response != nil {
		span.status(response.StatusCode)
	}

	span.End(err)

	return response, err
}

func (s *Span) status(status int) {
	s.Set(Number("http.response.status_code", int64(status)))

	if s != nil && status >= http.StatusBadRequest {
		s.span.SetStatus(codes.Error, strconv.Itoa(status))
	}
}

// Answered records the status of the response to a request.
func (s *Span) Answered(status int) {
	s.Set(Number("http.response.status_code", int64(status)))

	if s != nil && status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, strconv.Itoa(status))
	}
}
