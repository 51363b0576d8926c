package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// once returns the caller's Idempotency-Key in the form that the domain packages record in their transaction, so that a
// repeated request has no second effect.
func once(ctx context.Context, key *string) auth.Once {
	if key == nil {
		return auth.Once{}
	}

	c := callOf(ctx)

	return auth.Once{Key: *key, Operation: c.operation, RequestHash: c.requestHash}
}

// decode reads the body of a request, which the guard has checked. Numbers of values without a type in Go keep their
// digits.
func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()

	return decodeFault(decoder.Decode(into))
}

// decodeFault names the field whose value passes the checks but does not fit its type in Go: a number such as 1e3 or 2^63
// for an integer.
func decodeFault(err error) error {
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Invalid(misfit.Field, "is not a number of the right type or size")
	}

	return err
}

const defaultPage = 25

func pageLimit(limit *int32) int {
	if limit == nil {
		return defaultPage
	}

	return int(*limit)
}
