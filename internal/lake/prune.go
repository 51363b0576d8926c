package lake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"time"

	"quern.dev/quern/internal/postgres"
)

// Condition is a comparison that the value of a column must satisfy. The operator is =, <, <=, > or >=. The value is
// an int64 (bigint), float64 (double), *big.Rat (decimal), string (varchar), bool (boolean), or time.Time in UTC
// (date, timestamp).
type Condition struct {
	Column   int // id of the column
	Operator string
	Value    any
}

// Prune drops files that certainly contain no row for which all conditions are true. It may keep other such files: a
// condition excludes nothing if the bounds are not known or the value has another type than the column. NaN is
// greater than all numbers, text is compared by bytes, and no comparison with null is true.
func (l *Lake) Prune(
	ctx context.Context, q postgres.Querier, t Table, files []File, columns []Column, conditions []Condition,
) ([]File, error) {
	var (
		known = index(columns).ids
		ids   []int
		keys  = make([]string, len(files))
	)

	for _, c := range conditions {
		if _, isKnown := known[c.Column]; isKnown {
			ids = append(ids, c.Column)
		}
	}

	if len(ids) == 0 || len(files) == 0 {
		return files, nil
	}

	for i, f := range files {
		keys[i] = f.Key
	}

	bounds, err := selectBounds(ctx, q, t, keys, ids)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(slices.Clone(files), func(f File) bool {
		return slices.ContainsFunc(conditions, func(c Condition) bool {
			at, isKnown := known[c.Column]
			b, isBound := bounds[f.Key][c.Column]

			return isKnown && isBound && c.excludes(columns[at].Type, b, f.Rows)
		})
	}), nil
}

// excludes reports whether the condition is false for every row of a file with this number of rows.
func (c Condition) excludes(t Type, b bound, rows int64) bool {
	lower, hasLower := compare(t, b.Lower, c.Value)
	upper, hasUpper := compare(t, b.Upper, c.Value)

	// Bounds do not include NaN, which is greater than any upper bound.
	open := t == Double
	empty := b.Nulls != nil && *b.Nulls == rows

	switch c.Operator {
	case "=":
		return empty || (hasLower && lower > 0) || (hasUpper && upper < 0)
	case "<":
		return empty || (hasLower && lower >= 0)
	case "<=":
		return empty || (hasLower && lower > 0)
	case ">":
		return empty || (hasUpper && upper <= 0 && !open)
	case ">=":
		return empty || (hasUpper && upper < 0 && !open)
	default:
		return false
	}
}

// compare compares a bound, as encoded by Iceberg, with a value. ok is false if they cannot be compared.
func compare(t Type, b []byte, value any) (order int, ok bool) {
	switch value := value.(type) {
	case int64:
		if t == Bigint && len(b) == 8 {
			return cmp.Compare(number64(b), value), true
		}
	case float64:
		if t == Double && len(b) == 8 && !math.IsNaN(value) {
			return cmp.Compare(math.Float64frombits(binary.LittleEndian.Uint64(b)), value), true
		}
	case bool:
		if t == Boolean && len(b) == 1 {
			return cmp.Compare(b[0], map[bool]byte{true: 1}[value]), true
		}
	case string:
		if t == Varchar && len(b) > 0 {
			return bytes.Compare(b, []byte(value)), true
		}
	case time.Time:
		if t == Timestamp && len(b) == 8 {
			return time.UnixMicro(number64(b)).Compare(value), true
		}

		if t == Date && len(b) == 4 {
			days := int32(binary.LittleEndian.Uint32(b)) //nolint:gosec // it is signed

			return time.Unix(int64(days)*24*60*60, 0).Compare(value), true
		}
	case *big.Rat:
		if _, scale, isDecimal := t.Decimal(); isDecimal && len(b) > 0 && value != nil {
			return decimal(b, scale).Cmp(value), true
		}
	}

	return 0, false
}

func number64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) } //nolint:gosec // it is signed

// decimal decodes a big-endian number in two's complement.
func decimal(b []byte, scale int) *big.Rat {
	unscaled := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}

	return new(big.Rat).SetFrac(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
}
