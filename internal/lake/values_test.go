package lake

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// parquetRows returns a file with these row groups. A row is a list of values, nil for null.
func parquetRows(tb testing.TB, columns []Column, groups ...[][]any) []byte {
	tb.Helper()

	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.Type), Nullable: true, Metadata: fieldID(c.ID)}
	}

	var content bytes.Buffer

	schema := arrow.NewSchema(fields, nil)
	writer, err := pqarrow.NewFileWriter(schema, &content,
		parquet.NewWriterProperties(parquet.WithStats(true), parquet.WithStoreDecimalAsInteger(true)), pqarrow.DefaultWriterProps())
	require.NoError(tb, err)

	builder := array.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
	defer builder.Release()

	for _, rows := range groups {
		for _, row := range rows {
			for i, value := range row {
				appendAny(builder.Field(i), columns[i].Type, value)
			}
		}

		record := builder.NewRecordBatch()
		require.NoError(tb, writer.Write(record))
		record.Release()
	}

	require.NoError(tb, writer.Close())

	return content.Bytes()
}

func appendAny(builder array.Builder, t Type, value any) {
	if value == nil {
		builder.AppendNull()

		return
	}

	switch b := builder.(type) {
	case *array.BooleanBuilder:
		b.Append(as[bool](value))
	case *array.Int64Builder:
		b.Append(as[int64](value))
	case *array.Float64Builder:
		b.Append(as[float64](value))
	case *array.Date32Builder:
		b.Append(arrow.Date32(as[time.Time](value).Unix() / 86400))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(as[time.Time](value).UnixMicro()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(as[int64](value)))
	case *array.StringBuilder:
		b.Append(as[string](value))
	case *array.Decimal128Builder:
		_, scale, _ := t.Decimal()
		b.Append(decimal128.FromBigInt(unscaled(as[*big.Rat](value), scale)))
	default:
		panic(fmt.Sprintf("%T", builder))
	}
}

// as returns value as a T, and panics if it has another type.
func as[T any](value any) T {
	typed, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("%T", value))
	}

	return typed
}

func unscaled(value *big.Rat, scale int) *big.Int {
	return new(big.Rat).Mul(value, new(big.Rat).SetInt(power(scale))).Num()
}

func power(of int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(of)), nil) }

func rat(text string) *big.Rat {
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}

	return value
}

// holds reports whether a condition is true for a value, or might be.
func holds(t Type, value any, c Condition) bool {
	if value == nil {
		return false
	}

	var order int

	switch limit := c.Value.(type) {
	case int64:
		if t != Bigint {
			return true
		}

		order = cmp.Compare(as[int64](value), limit)
	case float64:
		if t != Double {
			return true
		}

		if order = cmp.Compare(as[float64](value), limit); math.IsNaN(limit) || math.IsNaN(as[float64](value)) {
			order = -order // NaN is the greatest, while Go treats it as the least
		}
	case bool:
		if t != Boolean {
			return true
		}

		order = map[bool]int{true: 1}[as[bool](value)] - map[bool]int{true: 1}[limit]
	case string:
		if t != Varchar {
			return true
		}

		order = strings.Compare(as[string](value), limit)
	case time.Time:
		if t != Date && t != Timestamp {
			return true
		}

		order = as[time.Time](value).Compare(limit)
	case *big.Rat:
		if _, _, isDecimal := t.Decimal(); !isDecimal || limit == nil {
			return true
		}

		order = as[*big.Rat](value).Cmp(limit)
	default:
		return true
	}

	return map[string]bool{"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[c.Operator]
}

// edges returns values of a type, in order.
func edges(t Type) (values []any) {
	switch t {
	case Boolean:
		return []any{false, true}
	case Bigint, Time:
		for _, n := range []int64{math.MinInt64, -1 << 40, -257, -256, -255, -2, -1, 0, 1, 2, 127, 128, 255, 256, 1 << 40, math.MaxInt64} {
			if t == Bigint || n >= 0 && n < 1<<36 {
				values = append(values, n)
			}
		}

		return values
	case Double:
		return []any{
			math.Inf(-1), -math.MaxFloat64, -2.5, -1.0, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0.0, math.SmallestNonzeroFloat64,
			1.0, 2.5, math.MaxFloat64, math.Inf(1), math.NaN(),
		}
	case Date, Timestamp:
		for _, text := range []string{"0001-01-01", "1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "1970-01-02", "2024-02-29", "9999-12-31"} {
			day, err := time.Parse(time.DateOnly, text)
			if err != nil {
				panic(err)
			}

			if values = append(values, day); t == Timestamp {
				values = append(values, day.Add(time.Microsecond), day.Add(24*time.Hour-time.Microsecond))
			}
		}

		return values
	case Varchar, JSON:
		for _, text := range []string{"", "\x00", "B", "a", "a\x00", "ab", "b", "é", "€", "\ud7ff", "\ue000", "\uffff", "𐍈", "\U0010ffff"} {
			values = append(values, text, strings.Repeat(text, 16), strings.Repeat(text, 17), "sixteen letters "+text, "fifteen letters"+text+text)
		}

		values = append(values, strings.Repeat("z", 5000))
		slices.SortFunc(values, func(a, b any) int { return strings.Compare(as[string](a), as[string](b)) })

		return values
	}

	precision, scale, _ := t.Decimal()
	highest := new(big.Int).Sub(power(precision), big.NewInt(1))

	for _, n := range []int64{-32769, -32768, -256, -129, -128, -1, 0, 1, 127, 128, 255, 256, 32768} {
		values = append(values, new(big.Rat).SetFrac(big.NewInt(n), power(scale)))
	}

	return append(append([]any{new(big.Rat).SetFrac(new(big.Int).Neg(highest), power(scale))}, values...), new(big.Rat).SetFrac(highest, power(scale)))
}

// newRandom returns the same numbers in every run, so that a run fails because of a change and not by chance. The long
// loops draw new numbers.
func newRandom(t *testing.T) *rand.Rand {
	t.Helper()

	seed := uint64(1)
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		seed = rand.Uint64()
	}

	t.Log("seed", seed)

	return rand.New(rand.NewPCG(seed, 0))
}

// near returns a random value to compare with. It may lie between values that the column can have, or have another
// type.
func near(random *rand.Rand, t Type) any {
	if random.IntN(20) == 0 {
		return []any{int64(1), 1.5, "a", true, time.Unix(0, 0), rat("1/3"), nil, uint8(1), (*big.Rat)(nil)}[random.IntN(9)]
	}

	value := edges(t)[random.IntN(len(edges(t)))]
	between := random.IntN(3) - 1

	switch value := value.(type) {
	case time.Time:
		return value.Add(time.Duration(between))
	case *big.Rat:
		return new(big.Rat).Add(value, new(big.Rat).SetFrac(big.NewInt(int64(between)), power(20)))
	default:
		return value
	}
}

// randomGroups returns row groups in which the values of each column lie close together.
func randomGroups(random *rand.Rand, columns []Column) [][][]any {
	from := make([]int, len(columns))
	width := 1 + random.IntN(5)

	for i, c := range columns {
		from[i] = random.IntN(len(edges(c.Type)))
	}

	groups := make([][][]any, 1+random.IntN(3))
	for g := range groups {
		groups[g] = make([][]any, 1+random.IntN(4))
		for r := range groups[g] {
			row := make([]any, len(columns))

			for i, c := range columns {
				values := edges(c.Type)
				if random.IntN(4) > 0 {
					row[i] = values[min(len(values)-1, from[i]+random.IntN(width))]
				}
			}

			groups[g][r] = row
		}
	}

	return groups
}
