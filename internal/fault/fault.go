// Package fault defines the errors that callers see. A Code says what happened in a form that every protocol can map:
// it determines the HTTP status, the A2A error, the exit code of a command and whether a retry can help. Each protocol
// has one table of all codes.
//
// An error that is not a *fault.Error is Internal, and its text is never shown to a caller.
package fault

import (
	"errors"
	"syscall"
	"time"
)

// Code is a kind of failure. Codes returns all of them.
type Code string

const (
	BadRequest           Code = "BAD_REQUEST"
	Unauthorized         Code = "UNAUTHORIZED"
	Forbidden            Code = "FORBIDDEN"
	NotFound             Code = "NOT_FOUND"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	NotAcceptable        Code = "NOT_ACCEPTABLE"
	Conflict             Code = "CONFLICT"
	InProgress           Code = "IN_PROGRESS"
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

// Codes returns every code, so that tests can check that a table of codes is complete.
func Codes() []Code {
	return []Code{
		BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict, InProgress,
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

// Error is a failure that may be shown to the caller, except its cause, which is only for the log.
type Error struct {
	Code       Code
	Message    string
	Subs       []Sub
	RetryAfter time.Duration // time after which a retry can help; zero if unknown

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

// Invalid returns the error for one field that breaks a rule.
func Invalid(field, message string) *Error {
	return InvalidFields(Sub{Code: field, Message: message})
}

// InvalidFields returns the error for all fields that break a rule, with one Sub for each.
func InvalidFields(subs ...Sub) *Error {
	return &Error{Code: ValidationFailed, Message: "The request is not valid.", Subs: subs}
}

// Absent returns the error for what does not exist and for what the caller may not see. Both use this function, so that
// callers cannot distinguish them.
func Absent() *Error {
	return &Error{Code: NotFound, Message: absentMessage}
}

const absentMessage = "Nothing was found at this address. Check the names and ids in it. What is not shared with you looks absent; /api/v1/docs lists the operations."

// IsAbsent reports whether err is what Absent returned, so that the edge that knows the request can say what was not found.
func IsAbsent(err error) bool {
	e, ok := errors.AsType[*Error](err)

	return ok && e.Code == NotFound && e.Message == absentMessage
}

// retryNoRoom is the RetryAfter of a full disk.
const retryNoRoom = 10 * time.Second

// NoRoom returns the fault for a full disk of this server.
func NoRoom(cause error) *Error {
	e := Wrap(cause, Unavailable, "The disk of the server is full. Try again later.")
	e.RetryAfter = retryNoRoom

	return e
}

// IsNoRoom reports whether a disk of this server was full: no space, no inodes, or an exhausted quota.
func IsNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (e *Error) Error() string {
	if e.cause != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.cause.Error()
	}

	return string(e.Code) + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.cause }

// From returns err as an *Error. Any other error becomes Internal with err as its cause. A full disk becomes
// Unavailable, even if a caller wrapped it in another code.
func From(err error) *Error {
	e, ok := errors.AsType[*Error](err)

	switch {
	case IsNoRoom(err) && (!ok || e.Code != Unavailable):
		return NoRoom(err)
	case ok:
		return e
	}

	return Wrap(err, Internal, "The server had an internal error. Try again. If the error remains, report the X-Request-Id.")
}

// Is reports whether err has the code. A full disk has the code Unavailable, even if a caller wrapped it in another
// code.
func Is(err error, code Code) bool {
	if IsNoRoom(err) {
		return code == Unavailable
	}

	e, ok := errors.AsType[*Error](err)

	return ok && e.Code == code
}
