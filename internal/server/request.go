package server

import (
	"context"
	"encoding/base64"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// once makes the caller's Idempotency-Key into what the domain claims in its transaction.
func once(ctx context.Context, key *string) auth.Once {
	if key == nil {
		return auth.Once{}
	}

	c := callOf(ctx)

	return auth.Once{Key: *key, Operation: c.operation, RequestHash: c.requestHash}
}

const defaultPage = 25

func pageLimit(limit *int32) int {
	if limit == nil {
		return defaultPage
	}

	return int(*limit)
}

// A cursor of a list in the order of ids is the last id, in a form that nobody takes for one.

func cursorID(cursor *string) (uuid.UUID, error) {
	if cursor == nil {
		return uuid.Nil, nil
	}

	bytes, err := base64.RawURLEncoding.DecodeString(*cursor)
	if err == nil {
		var id uuid.UUID
		if id, err = uuid.FromBytes(bytes); err == nil && id != uuid.Nil {
			return id, nil
		}
	}

	return uuid.Nil, fault.Invalid("cursor", "is not one that a page before gave")
}

func nextCursor(last uuid.UUID) *string {
	if last == uuid.Nil {
		return nil
	}

	return new(base64.RawURLEncoding.EncodeToString(last[:]))
}
