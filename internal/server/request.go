package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
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

// decode reads the body of a request, which the guard has checked.
func decode(r *http.Request, into any) error {
	return decodeFault(json.NewDecoder(r.Body).Decode(into))
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

// A cursor is the position of the last entry of a page, encoded so that clients treat it as opaque.

const idBytes = 16

// decodeCursor returns nil for the beginning of a list.
func decodeCursor(cursor *string, length int) ([]byte, error) {
	if cursor == nil {
		return nil, nil
	}

	position, err := base64.RawURLEncoding.DecodeString(*cursor)
	if err != nil || len(position) != length {
		return nil, fault.Invalid("cursor", "is not a cursor of an earlier page")
	}

	return position, nil
}

func encodeCursor(position []byte) *string {
	return new(base64.RawURLEncoding.EncodeToString(position))
}

func cursorID(cursor *string) (uuid.UUID, error) {
	position, err := decodeCursor(cursor, idBytes)
	if err != nil || position == nil {
		return uuid.Nil, err
	}

	return uuid.UUID(position), nil
}

func nextCursor(last uuid.UUID) *string {
	if last == uuid.Nil {
		return nil
	}

	return encodeCursor(last[:])
}

func cursorPosition(cursor *string) (catalog.Position, error) {
	position, err := decodeCursor(cursor, 1+3*idBytes)
	if err != nil || position == nil {
		return catalog.Position{}, err
	}

	ids := position[1:]

	return catalog.Position{
		Shared: position[0] != 0, Account: uuid.UUID(ids[:idBytes]), Namespace: uuid.UUID(ids[idBytes : 2*idBytes]), Dataset: uuid.UUID(ids[2*idBytes:]),
	}, nil
}

func nextPosition(last *catalog.Position) *string {
	if last == nil {
		return nil
	}

	position := []byte{0}
	if last.Shared {
		position[0] = 1
	}

	for _, id := range []uuid.UUID{last.Account, last.Namespace, last.Dataset} {
		position = append(position, id[:]...)
	}

	return encodeCursor(position)
}

const scoreBytes = 4

// cursorRank returns a position among the hits of a search.
func cursorRank(cursor *string) (catalog.Rank, error) {
	position, err := decodeCursor(cursor, scoreBytes+2*idBytes)
	if err != nil || position == nil {
		return catalog.Rank{}, err
	}

	ids := position[scoreBytes:]

	return catalog.Rank{Score: binary.BigEndian.Uint32(position), Account: uuid.UUID(ids[:idBytes]), Dataset: uuid.UUID(ids[idBytes:])}, nil
}

func nextRank(last *catalog.Rank) *string {
	if last == nil {
		return nil
	}

	position := binary.BigEndian.AppendUint32(nil, last.Score)

	return encodeCursor(append(append(position, last.Account[:]...), last.Dataset[:]...))
}

const momentBytes = 8

// cursorMoment returns a position in the audit log: microseconds, as the database stores them, and an ID.
func cursorMoment(cursor *string) (audit.Position, error) {
	position, err := decodeCursor(cursor, momentBytes+idBytes)
	if err != nil || position == nil {
		return audit.Position{}, err
	}

	at := time.UnixMicro(int64(binary.BigEndian.Uint64(position))) //nolint:gosec // what nextMoment wrote
	if at.Year() < 1970 || at.Year() > 9999 {
		return audit.Position{}, fault.Invalid("cursor", "is not a cursor of an earlier page")
	}

	return audit.Position{At: at, ID: uuid.UUID(position[momentBytes:])}, nil
}

func nextMoment(last audit.Position) *string {
	if last == (audit.Position{}) {
		return nil
	}

	position := binary.BigEndian.AppendUint64(nil, uint64(last.At.UnixMicro()))

	return encodeCursor(append(position, last.ID[:]...))
}
