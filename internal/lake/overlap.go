package lake

import (
	"context"
	"encoding/binary"
	"time"

	"quern.dev/quern/internal/postgres"
)

// Overlapping drops files that certainly have no row with the same key as a row of the staged files. columns are those of the
// snapshot, and key are the ids of the columns of the key.
func (l *Lake) Overlapping(ctx context.Context, q postgres.Querier, t Table, files []File, columns []Column, key []int, staged []File) ([]File, error) {
	keys := make([]string, len(staged))
	for i, f := range staged {
		keys[i] = f.Key
	}

	bounds, err := selectBounds(ctx, q, t, keys, key)
	if err != nil || len(files) == 0 {
		return files, err
	}

	var (
		known      = index(columns).ids
		conditions []Condition
	)

	for _, id := range key {
		if at, isKnown := known[id]; isKnown {
			conditions = append(conditions, between(id, columns[at].Type, keys, bounds)...)
		}
	}

	return l.Prune(ctx, q, t, files, columns, conditions)
}

// between returns the conditions that a column lies between the bounds of files; none if a bound is not known.
func between(id int, of Type, keys []string, bounds map[string]map[int]bound) []Condition {
	var least, most any

	for _, key := range keys {
		b, isKnown := bounds[key][id]
		lower, upper := of.decode(b.Lower), of.decode(b.Upper)

		if !isKnown || lower == nil || upper == nil {
			return nil
		}

		if order, _ := compare(of, b.Lower, least); least == nil || order < 0 {
			least = lower
		}

		if order, _ := compare(of, b.Upper, most); most == nil || order > 0 {
			most = upper
		}
	}

	if least == nil {
		return nil
	}

	return []Condition{{Column: id, Operator: ">=", Value: least}, {Column: id, Operator: "<=", Value: most}}
}

// decode returns the value of a bound as a Condition has it; nil if it cannot be compared.
func (t Type) decode(b []byte) any {
	_, scale, isDecimal := t.Decimal()

	switch {
	case t == Bigint && len(b) == 8:
		return number64(b)
	case t == Varchar && len(b) > 0:
		return string(b)
	case t == Boolean && len(b) == 1:
		return b[0] == 1
	case t == Timestamp && len(b) == 8:
		return time.UnixMicro(number64(b)).UTC()
	case t == Date && len(b) == 4:
		return time.Unix(int64(int32(binary.LittleEndian.Uint32(b)))*24*60*60, 0).UTC() //nolint:gosec // it is signed
	case isDecimal && len(b) > 0:
		return decimal(b, scale)
	default:
		return nil
	}
}
