package a2a

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/errordetails"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// codes maps errors of the protocol to JSON-RPC error codes.
func codes() map[error]int {
	return map[error]int{
		protocol.ErrParseError:             -32700,
		protocol.ErrInvalidRequest:         -32600,
		protocol.ErrMethodNotFound:         -32601,
		protocol.ErrInvalidParams:          -32602,
		protocol.ErrInternalError:          -32603,
		protocol.ErrServerError:            -32000,
		protocol.ErrTaskNotFound:           -32001,
		protocol.ErrTaskNotCancelable:      -32002,
		protocol.ErrUnsupportedOperation:   -32004,
		protocol.ErrUnsupportedContentType: -32005,
		protocol.ErrVersionNotSupported:    -32009,
	}
}

// faults maps fault codes to errors of the protocol. A code without a counterpart in the protocol is ErrServerError with
// the fault code as the reason.
func faults() map[fault.Code]error {
	return map[fault.Code]error{
		fault.BadRequest:           protocol.ErrParseError,
		fault.Unauthorized:         protocol.ErrServerError,
		fault.Forbidden:            protocol.ErrServerError,
		fault.NotFound:             protocol.ErrTaskNotFound,
		fault.MethodNotAllowed:     protocol.ErrMethodNotFound,
		fault.NotAcceptable:        protocol.ErrUnsupportedContentType,
		fault.Conflict:             protocol.ErrServerError,
		fault.InProgress:           protocol.ErrServerError,
		fault.PreconditionFailed:   protocol.ErrServerError,
		fault.PayloadTooLarge:      protocol.ErrInvalidRequest,
		fault.UnsupportedMediaType: protocol.ErrUnsupportedContentType,
		fault.ValidationFailed:     protocol.ErrInvalidParams,
		fault.InvalidState:         protocol.ErrTaskNotCancelable,
		fault.RunNotCompleted:      protocol.ErrUnsupportedOperation,
		fault.QueryInvalid:         protocol.ErrInvalidParams,
		fault.LimitExceeded:        protocol.ErrInvalidParams,
		fault.RateLimited:          protocol.ErrServerError,
		fault.Internal:             protocol.ErrInternalError,
		fault.UpstreamUnavailable:  protocol.ErrServerError,
		fault.Unavailable:          protocol.ErrServerError,
		fault.Timeout:              protocol.ErrServerError,
	}
}

// failure is a JSON-RPC error.
type failure struct {
	Code    int                   `json:"code"`
	Message string                `json:"message"`
	Data    []*errordetails.Typed `json:"data"`
}

// failureOf returns an error in the form in which it is sent to a client.
func failureOf(err error) failure {
	known := translate(err)
	known.ErrorInfo()

	return failure{Code: codes()[known.Err], Message: known.Message, Data: known.TypedDetails}
}

const ourDomain = "quern.dev"

// translate converts an error to an error of the protocol. An unknown error becomes an internal error without its text.
func translate(err error) *protocol.Error {
	if known, ok := errors.AsType[*protocol.Error](err); ok {
		return known
	}

	e := fault.From(err)
	known := protocol.NewError(faults()[e.Code], e.Message)

	switch {
	case e.Code == fault.NotFound:
		known = noTask()
	case len(e.Subs) > 0:
		return invalid(e.Subs...)
	case errors.Is(known.Err, protocol.ErrServerError):
		known = known.WithTypedDetails(errordetails.NewErrorInfo(string(e.Code), ourDomain, nil))
	}

	if e.RetryAfter > 0 {
		known = known.WithTypedDetails(retryInfo(e.RetryAfter))
	}

	return known
}

func retryInfo(after time.Duration) *errordetails.Typed {
	return errordetails.NewTyped("type.googleapis.com/google.rpc.RetryInfo", map[string]any{"retryDelay": fmt.Sprintf("%gs", after.Seconds())})
}

// retryFailed is when it can help to send the question of a failed task again. The run has made its own attempts before.
const retryFailed = 10 * time.Second

// taskError is the error in the metadata of the message of a failed task, with details as in a JSON-RPC error.
type taskError struct {
	Code    fault.Code            `json:"code"`
	Details []*errordetails.Typed `json:"details"`
}

func failedAs(failed run.Failure) taskError {
	code := cmp.Or(failed.Code, fault.Internal)
	told := taskError{Code: code, Details: []*errordetails.Typed{errordetails.NewErrorInfo(string(code), ourDomain, nil)}}

	switch code {
	case fault.Unavailable, fault.UpstreamUnavailable, fault.RateLimited, fault.Internal:
		told.Details = append(told.Details, retryInfo(retryFailed))
	default: // the same question would fail again
	}

	return told
}

// noTask returns the error for a task that does not exist or does not belong to the caller.
func noTask() *protocol.Error {
	return protocol.NewError(protocol.ErrTaskNotFound, "There is no such task.")
}

// invalid returns the error for invalid parameters, with the fields and the rules that they break.
func invalid(subs ...fault.Sub) *protocol.Error {
	var (
		said       []string
		violations []map[string]string
	)

	for _, sub := range subs {
		said = append(said, sub.Code+" "+sub.Message)
		violations = append(violations, map[string]string{"field": sub.Code, "description": sub.Message})
	}

	known := protocol.NewError(protocol.ErrInvalidParams, "The parameters are not valid: "+strings.Join(said, "; ")+".")
	known.ErrorInfo()

	return known.WithTypedDetails(errordetails.NewTyped("type.googleapis.com/google.rpc.BadRequest", map[string]any{"fieldViolations": violations}))
}

func invalidField(field, message string) *protocol.Error {
	return invalid(fault.Sub{Code: field, Message: message})
}
