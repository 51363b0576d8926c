package lake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"quern.dev/quern/internal/fault"
)

// Type is the type of a column: boolean, bigint, double, decimal(p,s), date, timestamp (without zone, in
// microseconds), time, varchar, json (text for other readers). Iceberg's int and float are never written, because a
// file whose column was promoted from them cannot be filtered.
type Type string

const (
	Boolean   Type = "boolean"
	Bigint    Type = "bigint"
	Double    Type = "double"
	Date      Type = "date"
	Timestamp Type = "timestamp"
	Time      Type = "time"
	Varchar   Type = "varchar"
	JSON      Type = "json"
)

// maxPrecision is the maximum number of digits of a decimal in Iceberg.
const maxPrecision = 38

// Decimal returns the type of numbers with precision digits, scale of them after the point.
func Decimal(precision, scale int) Type {
	return Type(fmt.Sprintf("decimal(%d,%d)", precision, scale))
}

// Decimal returns precision and scale if the type is a decimal.
func (t Type) Decimal() (precision, scale int, ok bool) {
	inner, isDecimal := strings.CutPrefix(string(t), "decimal(")
	inner, isClosed := strings.CutSuffix(inner, ")")
	before, after, hasBoth := strings.Cut(inner, ",")
	precision, notNumber := strconv.Atoi(before)
	scale, notNumberEither := strconv.Atoi(after)

	ok = isDecimal && isClosed && hasBoth && notNumber == nil && notNumberEither == nil &&
		precision > 0 && precision <= maxPrecision && scale >= 0 && scale <= precision && t == Decimal(precision, scale)

	return precision, scale, ok
}

// Valid reports whether a column can have this type.
func (t Type) Valid() bool { return t.iceberg() != nil }

// iceberg returns nil if t is not a valid type.
func (t Type) iceberg() iceberg.Type {
	switch t {
	case Boolean:
		return iceberg.PrimitiveTypes.Bool
	case Bigint:
		return iceberg.PrimitiveTypes.Int64
	case Double:
		return iceberg.PrimitiveTypes.Float64
	case Date:
		return iceberg.PrimitiveTypes.Date
	case Timestamp:
		return iceberg.PrimitiveTypes.Timestamp
	case Time:
		return iceberg.PrimitiveTypes.Time
	case Varchar, JSON:
		return iceberg.PrimitiveTypes.String
	}

	if precision, scale, ok := t.Decimal(); ok {
		return iceberg.DecimalTypeOf(precision, scale)
	}

	return nil
}

// wider returns the type that holds the values of both types, and whether there is one. Iceberg allows only decimals
// of equal scale to become wider, among the types used here.
func (t Type) wider(other Type) (Type, bool) {
	if t == other {
		return t, true
	}

	precision, scale, isDecimal := t.Decimal()
	otherPrecision, otherScale, isOtherDecimal := other.Decimal()

	if !isDecimal || !isOtherDecimal || scale != otherScale {
		return t, false
	}

	return Decimal(max(precision, otherPrecision), scale), true
}

// holding returns t with room for as many digits before the point as other has. It makes no room for more digits
// after the point: a scale can never change.
func (t Type) holding(other Type) Type {
	precision, scale, isDecimal := t.Decimal()
	otherPrecision, otherScale, isOtherDecimal := other.Decimal()

	if !isDecimal || !isOtherDecimal {
		return t
	}

	return Decimal(min(maxPrecision, max(precision, otherPrecision-otherScale+scale)), scale)
}

// Column is a column of a table. Every column can be null.
type Column struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Type Type   `json:"type"`
}

// key returns the name for comparisons: engines do not distinguish case.
func (c Column) key() string { return strings.ToLower(c.Name) }

// schemaOf returns the Iceberg schema of columns. A JSON column has type string and the documentation "json".
func schemaOf(columns []Column) *iceberg.Schema {
	fields := make([]iceberg.NestedField, len(columns))
	for i, column := range columns {
		fields[i] = iceberg.NestedField{ID: column.ID, Name: column.Name, Type: column.Type.iceberg()}
		if column.Type == JSON {
			fields[i].Doc = "json"
		}
	}

	return iceberg.NewSchema(0, fields...)
}

func validate(columns []Column) error {
	met := map[string]bool{}

	for _, column := range columns {
		switch {
		case column.Name == "":
			return fault.Invalid("columns", "A column has no name.")
		case met[column.key()]:
			return fault.Invalid("columns", fmt.Sprintf("Two columns have the name %q.", column.Name))
		case !column.Type.Valid():
			return fault.Invalid("columns", fmt.Sprintf("The type of the column %q is not supported.", column.Name))
		}

		met[column.key()] = true
	}

	return nil
}

// assign assigns an id to each wanted column. given lists all columns that ever got an id, including those of the
// table. nowGiven is that list with the new columns added and with decimals that had to become wider.
//
// An assigned id is used again if name and type are the same. This is safe even for a column that the table does not
// have now, because no file of the table can contain it.
func assign(current, given, want []Column, last int, mode Mode) (planned, nowGiven []Column, nowLast int) {
	type identity struct {
		key  string
		kind Type
	}

	var (
		inForce = index(current)
		byID    = map[int]int{}
		unused  = map[identity]int{}
	)

	nowGiven, nowLast = slices.Clone(given), last
	for i, column := range given {
		byID[column.ID] = i

		if _, used := inForce.ids[column.ID]; !used {
			unused[identity{column.key(), column.Type}] = column.ID
		}
	}

	for _, column := range want {
		at, exists := inForce.names[column.key()]

		switch {
		case exists && mode == Append:
			column.ID, column.Name = current[at].ID, current[at].Name
			column.Type = current[at].Type.holding(column.Type)
		case exists && current[at].Type == column.Type:
			column.ID = current[at].ID
		default:
			column.ID = unused[identity{column.key(), column.Type}]
		}

		if i, isGiven := byID[column.ID]; isGiven {
			nowGiven[i].Type, _ = nowGiven[i].Type.wider(column.Type)
		} else {
			nowLast++
			column.ID = nowLast
			nowGiven = append(nowGiven, column)
		}

		planned = append(planned, column)
	}

	return planned, nowGiven, nowLast
}

// merge adds the columns of a file to a schema. ErrStale if they contradict it.
func merge(schema, columns []Column) ([]Column, error) {
	var (
		merged = slices.Clone(schema)
		known  = index(schema)
	)

	for _, column := range columns {
		at, hasID := known.ids[column.ID]
		named, hasName := known.names[column.key()]

		if !hasID && !hasName {
			known.ids[column.ID], known.names[column.key()] = len(merged), len(merged)
			merged = append(merged, column)

			continue
		}

		if hasID != hasName || at != named {
			return nil, ErrStale
		}

		wide, ok := merged[at].Type.wider(column.Type)
		if !ok {
			return nil, ErrStale
		}

		merged[at].Type = wide
	}

	return merged, nil
}

// shapeOf returns a short hash of columns that does not depend on their order.
func shapeOf(columns []Column) string {
	hash := sha256.New()
	for _, c := range slices.SortedFunc(slices.Values(columns), func(a, b Column) int { return cmp.Compare(a.ID, b.ID) }) {
		_, _ = fmt.Fprintf(hash, "%d %q %s\n", c.ID, c.Name, c.Type)
	}

	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// positions holds the positions of columns in a list, which may have several thousand.
type positions struct {
	ids   map[int]int
	names map[string]int
}

func index(columns []Column) positions {
	p := positions{ids: make(map[int]int, len(columns)), names: make(map[string]int, len(columns))}
	for i, column := range columns {
		p.ids[column.ID], p.names[column.key()] = i, i
	}

	return p
}
