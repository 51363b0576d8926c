package extract

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/jackc/pgx/v5/pgtype"
)

// kind is how the values of a column are written.
type kind int

const (
	text kind = iota
	document
	integer
	double
	boolean
	decimal
	date
	timestamp
	timestamptz
	clock
)

// column is a column that is read.
type column struct {
	name             string
	oid              uint32
	typeName         string
	kind             kind
	precision, scale int
	told             bool // it is text although it is something else
}

// maxDigits is the largest precision of a decimal.
const maxDigits = 38

// settled chooses how the values are written.
func (c column) settled(modifier int32, isEnum, asText bool) column {
	switch c.oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		c.kind = integer
	case pgtype.Float4OID, pgtype.Float8OID:
		c.kind = double
	case pgtype.BoolOID:
		c.kind = boolean
	case pgtype.DateOID:
		c.kind = date
	case pgtype.TimestampOID:
		c.kind = timestamp
	case pgtype.TimestamptzOID:
		c.kind = timestamptz
	case pgtype.TimeOID:
		c.kind = clock
	case pgtype.JSONOID, pgtype.JSONBOID:
		c.kind = document
	case pgtype.NumericOID:
		c.kind, c.told = text, true

		// The modifier has the precision and, in 11 bits with a sign, the scale. Without a modifier every number has a scale of its own.
		if modifier >= 4 {
			c.precision, c.scale = int((modifier-4)>>16)&0xffff, int(((modifier-4)&0x7ff)^1024)-1024
			if c.precision <= maxDigits && c.scale >= 0 && c.scale <= c.precision {
				c.kind, c.told = decimal, false
			}
		}
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.BPCharOID, pgtype.NameOID, pgtype.QCharOID, pgtype.UUIDOID:
		c.kind = text
	default:
		c.kind, c.told = text, !isEnum
	}

	if asText {
		c.kind, c.told = text, false
	}

	return c
}

// node returns the column of the Parquet file.
func (c column) node() (schema.Node, error) {
	optional := parquet.Repetitions.Optional

	switch c.kind {
	case integer:
		return schema.NewInt64Node(c.name, optional, -1), nil
	case double:
		return schema.NewFloat64Node(c.name, optional, -1), nil
	case boolean:
		return schema.NewBooleanNode(c.name, optional, -1), nil
	case decimal:
		return schema.NewPrimitiveNodeLogical(c.name, optional, schema.NewDecimalLogicalType(int32(c.precision), int32(c.scale)), parquet.Types.FixedLenByteArray, decimalBytes, -1) //nolint:gosec // at most 38
	case date:
		return schema.NewPrimitiveNodeLogical(c.name, optional, schema.DateLogicalType{}, parquet.Types.Int32, -1, -1)
	case timestamp, timestamptz:
		return schema.NewPrimitiveNodeLogical(c.name, optional, schema.NewTimestampLogicalType(c.kind == timestamptz, schema.TimeUnitMicros), parquet.Types.Int64, -1, -1)
	case clock:
		return schema.NewPrimitiveNodeLogical(c.name, optional, schema.NewTimeLogicalType(false, schema.TimeUnitMicros), parquet.Types.Int64, -1, -1)
	case document:
		return schema.NewPrimitiveNodeLogical(c.name, optional, schema.JSONLogicalType{}, parquet.Types.ByteArray, -1, -1)
	case text:
	}

	return schema.NewPrimitiveNodeLogical(c.name, optional, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
}

const decimalBytes = 16

// inexact is the reason for a value that cannot be written as it is. It does not have the value, which is data.
func (c column) inexact(what string) error {
	return unfit("The column %q (%s) has %s, which has no exact counterpart. Name the column in asText (--as-text), or leave these rows out with a query.", c.name, c.typeName, what)
}

// The formats of a value on the wire.
const (
	textFormat   int16 = 0
	binaryFormat int16 = 1
)

// format returns how the server sends the values. Numbers and times are read as the server stores them: so it does not write digits only for us to parse them.
func (c column) format() int16 {
	if c.kind == text || c.kind == document {
		return textFormat
	}

	return binaryFormat
}

// fixed checks the length of a value.
func (c column) fixed(value []byte, size int) error {
	if len(value) != size {
		return c.inexact("a value of an unexpected length")
	}

	return nil
}

func (c column) integerOf(value []byte) (int64, error) {
	switch c.oid {
	case pgtype.Int2OID:
		if err := c.fixed(value, 2); err != nil {
			return 0, err
		}

		return int64(int16(binary.BigEndian.Uint16(value))), nil //nolint:gosec // its bits
	case pgtype.Int8OID:
		if err := c.fixed(value, 8); err != nil {
			return 0, err
		}

		return int64(binary.BigEndian.Uint64(value)), nil //nolint:gosec // its bits
	}

	if err := c.fixed(value, 4); err != nil {
		return 0, err
	}

	n := binary.BigEndian.Uint32(value)
	if c.oid == pgtype.OIDOID {
		return int64(n), nil
	}

	return int64(int32(n)), nil //nolint:gosec // its bits
}

func (c column) doubleOf(value []byte) (float64, error) {
	if c.oid == pgtype.Float4OID {
		if err := c.fixed(value, 4); err != nil {
			return 0, err
		}

		return float64(math.Float32frombits(binary.BigEndian.Uint32(value))), nil
	}

	if err := c.fixed(value, 8); err != nil {
		return 0, err
	}

	return math.Float64frombits(binary.BigEndian.Uint64(value)), nil
}

func (c column) booleanOf(value []byte) (bool, error) {
	if err := c.fixed(value, 1); err != nil {
		return false, err
	}

	return value[0] != 0, nil
}

// PostgreSQL counts from the first day of 2000. The exact dates are those of the years 1 to 9999; infinity is outside.
var (
	epochDay = int32(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay)           //nolint:gochecknoglobals // a constant
	firstDay = int32(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()/secondsOfDay) - epochDay     //nolint:gochecknoglobals // a constant
	endDay   = int32(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()/secondsOfDay) - epochDay //nolint:gochecknoglobals // a constant
)

const (
	secondsOfDay = 24 * 60 * 60
	microsOfDay  = secondsOfDay * 1_000_000
)

func (c column) dateOf(value []byte) (int32, error) {
	if err := c.fixed(value, 4); err != nil {
		return 0, err
	}

	day := int32(binary.BigEndian.Uint32(value)) //nolint:gosec // its bits
	if day < firstDay || day >= endDay {
		return 0, c.inexact("infinity or a date outside the years 1 to 9999")
	}

	return day + epochDay, nil
}

func (c column) timestampOf(value []byte) (int64, error) {
	if err := c.fixed(value, 8); err != nil {
		return 0, err
	}

	at := int64(binary.BigEndian.Uint64(value)) //nolint:gosec // its bits
	if at < int64(firstDay)*microsOfDay || at >= int64(endDay)*microsOfDay {
		return 0, c.inexact("infinity or a date outside the years 1 to 9999")
	}

	return at + int64(epochDay)*microsOfDay, nil
}

func (c column) clockOf(value []byte) (int64, error) {
	if err := c.fixed(value, 8); err != nil {
		return 0, err
	}

	at := int64(binary.BigEndian.Uint64(value)) //nolint:gosec // its bits
	if at < 0 || at >= microsOfDay {
		return 0, c.inexact("24:00:00")
	}

	return at, nil
}

// The parts of a number on the wire: a head of four numbers of 16 bits, then digits to the base 10,000.
const (
	numericHead     = 8
	numericPositive = 0x0000
	numericNegative = 0x4000 // other signs are NaN and the infinities
	numericBase     = 10_000
	baseDigits      = 4 // decimal digits of one digit
)

// decimalOf returns the number without its point, in two's complement.
func (c column) decimalOf(value []byte) (number [decimalBytes]byte, err error) {
	if len(value) < numericHead || len(value) != numericHead+2*int(binary.BigEndian.Uint16(value)) {
		return number, c.inexact("a value of an unexpected length")
	}

	weight, sign, scale := int(int16(binary.BigEndian.Uint16(value[2:]))), binary.BigEndian.Uint16(value[4:]), int(binary.BigEndian.Uint16(value[6:])) //nolint:gosec // its bits
	if sign != numericPositive && sign != numericNegative || scale != c.scale {
		return number, c.inexact("NaN or infinity")
	}

	var n uint128

	// The digits before the point, then those of the scale, of whose last digit only a part counts.
	for i := min(weight, 0); i <= weight+(scale+baseDigits-1)/baseDigits; i++ {
		digit, base := uint64(0), uint64(numericBase)

		if at := numericHead + 2*i; i >= 0 && at < len(value) {
			digit = uint64(binary.BigEndian.Uint16(value[at:]))
		}

		for spare := (i-weight)*baseDigits - scale; spare > 0; spare-- {
			if digit%10 != 0 {
				return number, c.inexact("a number with more digits than its type has")
			}

			digit, base = digit/10, base/10
		}

		if digit >= base || !n.append(base, digit) {
			return number, c.inexact("a number that is too large")
		}
	}

	if sign == numericNegative {
		n.negate()
	}

	binary.BigEndian.PutUint64(number[:], n.high)
	binary.BigEndian.PutUint64(number[decimalBytes/2:], n.low)

	return number, nil
}

// uint128 is a whole number that a decimal of 38 digits fits in.
type uint128 struct{ high, low uint64 }

// append appends a digit to the base, and reports whether the number, with a sign, still fits.
func (n *uint128) append(base, digit uint64) bool {
	over, high := bits.Mul64(n.high, base)
	carry, low := bits.Mul64(n.low, base)
	low, more := bits.Add64(low, digit, 0)
	high, overflow := bits.Add64(high, carry, more)
	n.high, n.low = high, low

	return over == 0 && overflow == 0 && high < 1<<63
}

func (n *uint128) negate() {
	low, borrow := bits.Sub64(0, n.low, 0)
	n.high, _ = bits.Sub64(0, n.high, borrow)
	n.low = low
}

func (c column) checkText(value []byte) error {
	if !utf8.Valid(value) {
		return c.inexact("a text that is not valid UTF-8")
	}

	return nil
}
