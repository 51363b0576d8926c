package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
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

// A cursor is the place of the last entry of a page, in a form that nobody takes for one.

const idBytes = 16

// decodeCursor returns nil for the beginning of a list.
func decodeCursor(cursor *string, length int) ([]byte, error) {
	if cursor == nil {
		return nil, nil
	}

	place, err := base64.RawURLEncoding.DecodeString(*cursor)
	if err != nil || len(place) != length {
		return nil, fault.Invalid("cursor", "is not one that a page before gave")
	}

	return place, nil
}

func encodeCursor(place []byte) *string { return new(base64.RawURLEncoding.EncodeToString(place)) }

func cursorID(cursor *string) (uuid.UUID, error) {
	place, err := decodeCursor(cursor, idBytes)
	if err != nil || place == nil {
		return uuid.Nil, err
	}

	return uuid.UUID(place), nil
}

func nextCursor(last uuid.UUID) *string {
	if last == uuid.Nil {
		return nil
	}

	return encodeCursor(last[:])
}

func cursorPosition(cursor *string) (catalog.Position, error) {
	place, err := decodeCursor(cursor, 1+3*idBytes)
	if err != nil || place == nil {
		return catalog.Position{}, err
	}

	ids := place[1:]

	return catalog.Position{
		Shared: place[0] != 0, Account: uuid.UUID(ids[:idBytes]), Namespace: uuid.UUID(ids[idBytes : 2*idBytes]), Dataset: uuid.UUID(ids[2*idBytes:]),
	}, nil
}

func nextPosition(last *catalog.Position) *string {
	if last == nil {
		return nil
	}

	place := []byte{0}
	if last.Shared {
		place[0] = 1
	}

	for _, id := range []uuid.UUID{last.Account, last.Namespace, last.Dataset} {
		place = append(place, id[:]...)
	}

	return encodeCursor(place)
}

const scoreBytes = 4

// cursorRank is a place among the hits of a search.
func cursorRank(cursor *string) (catalog.Rank, error) {
	place, err := decodeCursor(cursor, scoreBytes+2*idBytes)
	if err != nil || place == nil {
		return catalog.Rank{}, err
	}

	ids := place[scoreBytes:]

	return catalog.Rank{Score: binary.BigEndian.Uint32(place), Account: uuid.UUID(ids[:idBytes]), Dataset: uuid.UUID(ids[idBytes:])}, nil
}

func nextRank(last *catalog.Rank) *string {
	if last == nil {
		return nil
	}

	place := binary.BigEndian.AppendUint32(nil, last.Score)

	return encodeCursor(append(append(place, last.Account[:]...), last.Dataset[:]...))
}

const momentBytes = 8

// cursorMoment is a place in the audit: microseconds, as the database keeps them, and an id.
func cursorMoment(cursor *string) (audit.Position, error) {
	place, err := decodeCursor(cursor, momentBytes+idBytes)
	if err != nil || place == nil {
		return audit.Position{}, err
	}

	at := time.UnixMicro(int64(binary.BigEndian.Uint64(place))) //nolint:gosec // what nextMoment wrote
	if at.Year() < 1970 || at.Year() > 9999 {
		return audit.Position{}, fault.Invalid("cursor", "is not one that a page before gave")
	}

	return audit.Position{At: at, ID: uuid.UUID(place[momentBytes:])}, nil
}

func nextMoment(last audit.Position) *string {
	if last == (audit.Position{}) {
		return nil
	}

	place := binary.BigEndian.AppendUint64(nil, uint64(last.At.UnixMicro()))

	return encodeCursor(append(place, last.ID[:]...))
}
