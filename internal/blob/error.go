package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"quern.dev/quern/internal/fault"
)

const retryAfterOutage = 2 * time.Second

// translate converts an error of the SDK into a fault, or into another error for the operator. It keeps only the
// status and the code of an answer, because the rest may contain keys and addresses.
func translate(err error) error {
	if err == nil {
		return nil
	}

	name := "S3"
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		name += " " + operation.OperationName
	}

	var (
		status   = statusOf(err)
		code     string
		api, _   = errors.AsType[smithy.APIError](err)
		wire, _  = errors.AsType[*url.Error](err)
		_, isNet = errors.AsType[net.Error](err)
	)

	if api != nil {
		code = api.ErrorCode()
	}

	answer := &RefusalError{Operation: name, Status: status, Code: code}

	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", name, context.Canceled)
	case status >= http.StatusInternalServerError && status != http.StatusNotImplemented, status == http.StatusTooManyRequests,
		slices.Contains([]string{"SlowDown", "RequestTimeout", "ServiceUnavailable", "InternalError", "Throttling"}, code):
		return unavailable(answer)
	case wire != nil:
		return unavailable(fmt.Errorf("%s: %w", name, wire.Err)) // the text of wire itself contains the address
	case isNet, errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.ErrUnexpectedEOF):
		return unavailable(err)
	case status == http.StatusNotFound && code != "NoSuchBucket":
		return fault.Absent()
	case status != 0:
		return answer
	default:
		return err
	}
}

// RefusalError is a failure that the store reported.
type RefusalError struct {
	Operation string
	Status    int
	Code      string // code of the store, such as NoSuchBucket
}

func (r *RefusalError) Error() string {
	return fmt.Sprintf("%s: status %d %s", r.Operation, r.Status, r.Code)
}

func unavailable(err error) error {
	e := fault.Wrap(err, fault.Unavailable, "The object store cannot be reached. Try again shortly.")
	e.RetryAfter = retryAfterOutage

	return e
}

// statusOf returns the HTTP status of the answer, or 0 if the store did not answer.
func statusOf(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}

	return 0
}

func hasStatus(err error, status int) bool { return statusOf(err) == status }

func hasCode(err error, codes ...string) bool {
	api, ok := errors.AsType[smithy.APIError](err)

	return ok && slices.Contains(codes, api.ErrorCode())
}
