// Package fault is the one vocabulary of errors. A Code says what happened in words
// that every edge understands: it decides the HTTP status, the A2A error, the exit code
// of a command and whether a retry can help. Each edge keeps one table over all codes.
//
// An error that is not a *fault.Error is Internal, and its text is never shown to a caller.
package fault

import (
	"errors"
	"time"
)

// Code names a kind of failure. The set is closed: Codes lists it.
type Code string

const (
	BadRequest           Code = "BAD_REQUEST"
	Unauthorized         Code = "UNAUTHORIZED"
	Forbidden            Code = "FORBIDDEN"
	NotFound             Code = "NOT_FOUND"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	NotAcceptable        Code = "NOT_ACCEPTABLE"
	Conflict             Code = "CONFLICT"
	PreconditionFailed   Code = "PRECONDITION_FAILED"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	ValidationFailed     Code = "VALIDATION_FAILED"
	InvalidState         Code = "INVALID_STATE"
	RunNotCompleted      Code = "RUN_NOT_COMPLETED"
	QueryInvalid         Code = "QUERY_INVALID"
	LimitExceeded        Code = "LIMIT_EXCEEDED"
	RateLimited          Code = "RATE_LIMITED"
	Internal             Code = "INTERNAL"
	UpstreamUnavailable  Code = "UPSTREAM_UNAVAILABLE"
	Unavailable          Code = "UNAVAILABLE"
	Timeout              Code = "TIMEOUT"
)

// Codes returns every code, so that an edge can prove that its table is complete.
func Codes() []Code {
	return []Code{
		BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict,
		PreconditionFailed, PayloadTooLarge, UnsupportedMediaType, ValidationFailed, InvalidState,
		RunNotCompleted, QueryInvalid, LimitExceeded, RateLimited, Internal, UpstreamUnavailable,
		Unavailable, Timeout,
	}
}

// Sub is one of several faults in a single request; Code is a field name or a finer code.
type Sub struct {
	Code    string
	Message string
}

// Error is a failure that may be shown to the caller. The cause is for the log alone.
type Error struct {
	Code       Code
	Message    string
	Subs       []Sub
	RetryAfter time.Duration // how long to wait before a retry can help; zero if unknown

	cause error
}

// New returns an error with a message for the caller.
func New(code Code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Wrap returns an error with a message for the caller and a cause for the log.
func Wrap(cause error, code Code, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// Invalid reports one field that breaks a rule.
func Invalid(field, message string) *Error {
	return InvalidFields(Sub{Code: field, Message: message})
}

// InvalidFields reports all fields that break a rule, one Sub each.
func InvalidFields(subs ...Sub) *Error {
	return &Error{Code: ValidationFailed, Message: "The request is not valid.", Subs: subs}
}

// Absent is the only answer for what does not exist and for what the caller may not see:
// one constructor keeps the two byte-equal.
func Absent() *Error {
	return &Error{Code: NotFound, Message: "Nothing was found at this address."}
}

func (e *Error) Error() string {
	if e.cause != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.cause.Error()
	}

	return string(e.Code) + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.cause }

// From returns err as an *Error; anything foreign becomes Internal with err as its cause.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}

	return Wrap(err, Internal, "Something went wrong on our side. Try again, and report the X-Request-Id if it stays.")
}

// Is tells whether err carries the code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)

	return ok && e.Code == code
}
