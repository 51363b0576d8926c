package extract

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
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

// integerOf parses a whole number.
func (c column) integerOf(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, c.inexact("a value that is not a whole number")
	}

	return n, nil
}

func (c column) doubleOf(value string) (float64, error) {
	bits := 64
	if c.oid == pgtype.Float4OID {
		bits = 32
	}

	n, err := strconv.ParseFloat(value, bits)
	if err != nil {
		return 0, c.inexact("a value that is not a number")
	}

	return n, nil
}

// decimalOf returns the number without its point, in two's complement.
func (c column) decimalOf(value string) (parquet.FixedLenByteArray, error) {
	whole, fraction, _ := strings.Cut(value, ".")
	if len(fraction) != c.scale {
		return nil, c.inexact("NaN or infinity")
	}

	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return nil, c.inexact("NaN or infinity")
	}

	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalBytes))
	}

	if n.BitLen() > 8*decimalBytes {
		return nil, c.inexact("a number that is too large")
	}

	return n.FillBytes(make([]byte, decimalBytes)), nil
}

// moment parses a date or a time of the years 1 to 9999.
func (c column) moment(value, layout string) (time.Time, error) {
	if strings.Contains(value, "infinity") {
		return time.Time{}, c.inexact("infinity")
	}

	at, err := time.Parse(layout, value)
	if err != nil || at.Year() < 1 {
		return time.Time{}, c.inexact("a date outside the years 1 to 9999")
	}

	return at, nil
}

const secondsOfDay = 24 * 60 * 60

func (c column) dateOf(value string) (int32, error) {
	at, err := c.moment(value, "2006-01-02")

	return int32(at.Unix() / secondsOfDay), err //nolint:gosec // of the years 1 to 9999; whole days
}

func (c column) timestampOf(value string) (int64, error) {
	layout := "2006-01-02 15:04:05.999999"
	if c.kind == timestamptz {
		layout += "Z07"
	}

	at, err := c.moment(value, layout)

	return at.UnixMicro(), err
}

func (c column) clockOf(value string) (int64, error) {
	at, err := time.Parse("15:04:05.999999", value)
	if err != nil {
		return 0, c.inexact("24:00:00")
	}

	return at.Sub(at.Truncate(secondsOfDay * time.Second)).Microseconds(), nil
}

func (c column) textOf(value []byte) (parquet.ByteArray, error) {
	if !utf8.Valid(value) {
		return nil, c.inexact("a text that is not valid UTF-8")
	}

	return slices.Clone(value), nil
}
