package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// A cursor is the position of the last entry of a page and a tag of the list, encoded so that clients treat it as opaque.
// A cursor grants nothing: the handlers check access to every page.

const (
	idBytes  = 16
	tagBytes = 8
)

// listTag identifies the list that a request reads: the operation, the caller and all parameters except those that
// say what a page shows of it. With another tag a cursor is refused, because its position would skip entries of the other list.
func listTag(r *http.Request, op *operation, who auth.Principal) []byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n", op.id, who.Account)

	for _, param := range op.params {
		value := r.URL.Query().Get(param.Name)

		switch {
		case param.In == openapi3.ParameterInPath:
			value = strings.ToLower(r.PathValue(param.Name))
		case param.Name == "cursor" || param.Name == "limit" || param.Name == "columns":
			continue
		}

		if param.Name == "username" && isCaller(value, who) {
			value = auth.Self
		}

		fmt.Fprintf(hash, "%s=%q\n", param.Name, value)
	}

	return hash.Sum(nil)[:tagBytes]
}

func badCursor() error {
	return fault.Invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")
}

// decodeCursor returns nil for the beginning of a list.
func decodeCursor(ctx context.Context, cursor *string, length int) ([]byte, error) {
	if cursor == nil {
		return nil, nil
	}

	position, err := base64.RawURLEncoding.DecodeString(*cursor)
	if err != nil || length < 0 || len(position) != length+tagBytes || !bytes.Equal(position[length:], callOf(ctx).list) {
		return nil, badCursor()
	}

	return position[:length], nil
}

// cursorText returns a position in a list that is in the order of texts.
func cursorText(ctx context.Context, cursor *string) (string, error) {
	if cursor == nil {
		return "", nil
	}

	length := base64.RawURLEncoding.DecodedLen(len(*cursor)) - tagBytes

	position, err := decodeCursor(ctx, cursor, length)
	if err != nil || !utf8.Valid(position) {
		return "", badCursor()
	}

	return string(position), nil
}

func nextText(ctx context.Context, last string) *string {
	if last == "" {
		return nil
	}

	return encodeCursor(ctx, []byte(last))
}

func encodeCursor(ctx context.Context, position []byte) *string {
	return new(base64.RawURLEncoding.EncodeToString(append(position, callOf(ctx).list...)))
}

func cursorID(ctx context.Context, cursor *string) (uuid.UUID, error) {
	position, err := decodeCursor(ctx, cursor, idBytes)
	if err != nil || position == nil {
		return uuid.Nil, err
	}

	return uuid.UUID(position), nil
}

func nextCursor(ctx context.Context, last uuid.UUID) *string {
	if last == uuid.Nil {
		return nil
	}

	return encodeCursor(ctx, last[:])
}

func cursorPosition(ctx context.Context, cursor *string) (catalog.Position, error) {
	position, err := decodeCursor(ctx, cursor, 1+3*idBytes)
	if err != nil || position == nil {
		return catalog.Position{}, err
	}

	ids := position[1:]

	return catalog.Position{
		Shared: position[0] != 0, Account: uuid.UUID(ids[:idBytes]), Namespace: uuid.UUID(ids[idBytes : 2*idBytes]), Dataset: uuid.UUID(ids[2*idBytes:]),
	}, nil
}

func nextPosition(ctx context.Context, last *catalog.Position) *string {
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

	return encodeCursor(ctx, position)
}

const scoreBytes = 4

// cursorRank returns a position among the hits of a search.
func cursorRank(ctx context.Context, cursor *string) (catalog.Rank, error) {
	position, err := decodeCursor(ctx, cursor, scoreBytes+2*idBytes)
	if err != nil || position == nil {
		return catalog.Rank{}, err
	}

	ids := position[scoreBytes:]

	return catalog.Rank{Score: binary.BigEndian.Uint32(position), Account: uuid.UUID(ids[:idBytes]), Dataset: uuid.UUID(ids[idBytes:])}, nil
}

func nextRank(ctx context.Context, last *catalog.Rank) *string {
	if last == nil {
		return nil
	}

	position := binary.BigEndian.AppendUint32(nil, last.Score)

	return encodeCursor(ctx, append(append(position, last.Account[:]...), last.Dataset[:]...))
}

const momentBytes = 8

// cursorMoment returns a position in the audit log: microseconds, as the database stores them, and an ID.
func cursorMoment(ctx context.Context, cursor *string) (audit.Position, error) {
	position, err := decodeCursor(ctx, cursor, momentBytes+idBytes)
	if err != nil || position == nil {
		return audit.Position{}, err
	}

	at := time.UnixMicro(int64(binary.BigEndian.Uint64(position))) //nolint:gosec // what nextMoment wrote
	if at.Year() < 1970 || at.Year() > 9999 {
		return audit.Position{}, badCursor()
	}

	return audit.Position{At: at, ID: uuid.UUID(position[momentBytes:])}, nil
}

func nextMoment(ctx context.Context, last audit.Position) *string {
	if last == (audit.Position{}) {
		return nil
	}

	position := binary.BigEndian.AppendUint64(nil, uint64(last.At.UnixMicro()))

	return encodeCursor(ctx, append(position, last.ID[:]...))
}
