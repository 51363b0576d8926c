package mcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"quern.dev/quern/internal/fault"
)

// isOurs returns, for each fault code, whether the failure is one of the service. The caller's model can correct all others.
func isOurs() map[fault.Code]bool {
	return map[fault.Code]bool{
		fault.BadRequest:           false,
		fault.Unauthorized:         false,
		fault.Forbidden:            false,
		fault.NotFound:             false,
		fault.MethodNotAllowed:     false,
		fault.NotAcceptable:        false,
		fault.Conflict:             false,
		fault.InProgress:           false,
		fault.PreconditionFailed:   false,
		fault.PayloadTooLarge:      false,
		fault.UnsupportedMediaType: false,
		fault.ValidationFailed:     false,
		fault.InvalidState:         false,
		fault.RunNotCompleted:      false,
		fault.QueryInvalid:         false,
		fault.LimitExceeded:        false,
		fault.RateLimited:          false,
		fault.Internal:             true,
		fault.UpstreamUnavailable:  true,
		fault.Unavailable:          true,
		fault.Timeout:              false,
	}
}

// refused returns the result for a mistake of the caller, or the JSON-RPC error for a failure of the service. It has no structured
// content, which clients would check against the schema of the tool.
func refused(err error) (*sdk.CallToolResult, error) {
	if _, known := errors.AsType[*fault.Error](err); !known && errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Timeout, "The call took too long.")
	}

	e := fault.From(err)
	if isOurs()[e.Code] {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: words(e)}
	}

	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: words(e)}}}, nil
}

// words returns a fault as text: code, message, what is wrong with each argument, and when to try again.
func words(e *fault.Error) string {
	lines := []string{string(e.Code) + ": " + e.Message}
	for _, sub := range e.Subs {
		lines = append(lines, "- "+sub.Code+": "+sub.Message)
	}

	if e.RetryAfter > 0 {
		lines = append(lines, fmt.Sprintf("Try again in %d seconds.", int(math.Ceil(e.RetryAfter.Seconds()))))
	}

	return clip(strings.Join(lines, "\n"), maxError)
}

// maxError is the largest size of the text of an error, in bytes of JSON. The text can quote a statement.
const maxError = 4000

// absent replaces the message about what was not found by one that names it as the caller did.
func absent(err error, message string) error {
	if fault.IsAbsent(err) {
		return fault.New(fault.NotFound, message)
	}

	return err
}
