package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
)

// statuses is the only mapping from fault codes to HTTP statuses.
func statuses() map[fault.Code]int {
	return map[fault.Code]int{
		fault.BadRequest:           http.StatusBadRequest,
		fault.Unauthorized:         http.StatusUnauthorized,
		fault.Forbidden:            http.StatusForbidden,
		fault.NotFound:             http.StatusNotFound,
		fault.MethodNotAllowed:     http.StatusMethodNotAllowed,
		fault.NotAcceptable:        http.StatusNotAcceptable,
		fault.Conflict:             http.StatusConflict,
		fault.InProgress:           http.StatusConflict,
		fault.PreconditionFailed:   http.StatusPreconditionFailed,
		fault.PayloadTooLarge:      http.StatusRequestEntityTooLarge,
		fault.UnsupportedMediaType: http.StatusUnsupportedMediaType,
		fault.ValidationFailed:     http.StatusUnprocessableEntity,
		fault.InvalidState:         http.StatusUnprocessableEntity,
		fault.RunNotCompleted:      http.StatusUnprocessableEntity,
		fault.QueryInvalid:         http.StatusUnprocessableEntity,
		fault.LimitExceeded:        http.StatusUnprocessableEntity,
		fault.RateLimited:          http.StatusTooManyRequests,
		fault.Internal:             http.StatusInternalServerError,
		fault.UpstreamUnavailable:  http.StatusBadGateway,
		fault.Unavailable:          http.StatusServiceUnavailable,
		fault.Timeout:              http.StatusGatewayTimeout,
	}
}

// statusClientLeft is the status that proxies use for a client that disconnected before the response.
const statusClientLeft = 499

// handlerFunc handles a request. It returns a failure and leaves the error response to guard.
type handlerFunc func(http.ResponseWriter, *http.Request) error

// report tells the client about the failure of a handler. If the response has begun, only a broken connection can signal
// the failure.
func (s *Server) report(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r.Context())
	if c.response.status == 0 {
		s.fail(w, r, err)

		return
	}

	c.err = err

	panic(http.ErrAbortHandler)
}

// failDecode reports a body that the generated server cannot decode.
func (s *Server) failDecode(w http.ResponseWriter, r *http.Request, err error) {
	s.fail(w, r, decodeFault(err))
}

// fail writes err as the ErrorResponse of the contract and keeps it for the log line. No other code of
// REST writes errors.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if _, known := errors.AsType[*fault.Error](err); !known && errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Timeout, "The request took too long.")
	}

	e := fault.From(err)
	c := callOf(r.Context())
	c.err = err

	if errors.Is(r.Context().Err(), context.Canceled) {
		w.WriteHeader(statusClientLeft) // no client reads it; the log and the metrics must not count it as a failure of Quern

		return
	}

	body := api.ErrorResponse{ErrorCode: api.ErrorCode(e.Code), Message: e.Message}

	if op := s.contract.operations[c.operation]; op != nil && fault.IsAbsent(err) {
		body.Message = cmp.Or(op.absent(r), e.Message)
	}

	if len(e.Subs) > 0 {
		subs := make([]api.SubError, 0, len(e.Subs))
		for _, sub := range e.Subs {
			subs = append(subs, api.SubError{Code: sub.Code, Message: sub.Message})
		}

		body.SubErrors = &subs
	}

	if e.Code == fault.Unauthorized {
		w.Header().Set("WWW-Authenticate", s.challenge(r))
	}

	if e.Code == fault.RateLimited || e.Code == fault.Unavailable || e.Code == fault.InProgress {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(e.RetryAfter.Seconds())))))
	}

	writeJSON(w, statuses()[e.Code], body)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) //nolint:errchkjson // it can only fail because the client left
}

// challenge returns the WWW-Authenticate header (RFC 6750): it distinguishes a missing token from an invalid one. Clients of MCP also
// learn from it where people sign in (RFC 9728).
func (s *Server) challenge(r *http.Request) string {
	header := `Bearer realm="quern"`

	if r.Header.Get("Authorization") != "" {
		header += `, error="invalid_token", error_description="the token is not valid"`
	}

	if r.URL.Path == toolsPath {
		header += `, resource_metadata="` + s.config.PublicURL + resourceMetadataPath + toolsPath + `", scope="openid"`
	}

	return header
}
