package lake

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

func everyType() []Column {
	return []Column{
		{1, "id", Bigint},
		{2, "small", Decimal(9, 2)},
		{3, "middle", Decimal(18, 3)},
		{4, "large", Decimal(38, 10)},
		{5, "ratio", Double},
		{6, "ok", Boolean},
		{7, "day", Date},
		{8, "at", Timestamp},
		{9, "hour", Time},
		{10, "name", Varchar},
		{11, "more", JSON},
	}
}

func describeBytes(content []byte, columns []Column) (description, error) {
	return describe(bytes.NewReader(content), int64(len(content)), "s3://bucket/key", columns)
}

// withFooter returns a Parquet file with this footer.
func withFooter(footer []byte) []byte {
	content := slices.Concat([]byte(magic), footer)
	content = binary.LittleEndian.AppendUint32(content, uint32(len(footer)))

	return append(content, magic...)
}

func TestFooter(t *testing.T) {
	t.Parallel()

	good := parquetBytes(t, everyType(), 0, 50)
	found, err := describeBytes(good, everyType())
	require.NoError(t, err)
	require.Equal(t, int64(50), found.rows)

	length := binary.LittleEndian.Uint32(good[len(good)-trailer:])
	footer := good[len(good)-trailer-int(length) : len(good)-trailer]

	with := func(change func(columns []Column)) []Column {
		columns := everyType()
		change(columns)

		return columns
	}

	for name, columns := range map[string][]Column{
		"another id":        with(func(c []Column) { c[0].ID = 99 }),
		"ids exchanged":     with(func(c []Column) { c[0].ID, c[1].ID = c[1].ID, c[0].ID }),
		"another name":      with(func(c []Column) { c[0].Name = "ID" }),
		"another type":      with(func(c []Column) { c[0].Type = Double }),
		"another decimal":   with(func(c []Column) { c[1].Type = Decimal(9, 3) }),
		"a wider decimal":   with(func(c []Column) { c[1].Type = Decimal(10, 2) }),
		"day for time":      with(func(c []Column) { c[6].Type = Time }),
		"number for time":   with(func(c []Column) { c[7].Type = Bigint }),
		"number as decimal": with(func(c []Column) { c[0].Type = Decimal(18, 0) }),
		"one less":          everyType()[1:],
		"one more":          append(everyType(), Column{12, "z", Bigint}),
		"none":              {},
	} {
		_, err := describeBytes(good, columns)
		require.Error(t, err, name)
	}

	zoned := parquetOf(t, arrow.Field{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true, Metadata: fieldID(1)})
	_, err = describeBytes(zoned, []Column{{1, "at", Timestamp}})
	require.Error(t, err, "with a zone")

	whole := parquetOf(t, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Metadata: fieldID(1)})
	_, err = describeBytes(whole, []Column{{1, "n", Bigint}})
	require.Error(t, err, "32 bits")

	anonymous := parquetOf(t, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	_, err = describeBytes(anonymous, []Column{{1, "n", Bigint}})
	require.Error(t, err, "without an id: it would read as null")

	nested := parquetOf(t, arrow.Field{Name: "n", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true, Metadata: fieldID(1)})
	_, err = describeBytes(nested, []Column{{1, "n", Bigint}})
	require.Error(t, err, "nested")

	// Every truncated or modified footer causes an error or no harm, at low cost.
	for cut := range footer {
		_, err := describeBytes(withFooter(footer[:cut]), everyType())
		require.Error(t, err, cut)
	}

	for _, size := range []int{0, 1, 8, 11, 12, len(good) - 1} {
		_, err := describeBytes(good[:size], everyType())
		require.Error(t, err)
	}

	for _, claimed := range []uint32{length + 1, length - 1, maxFooter + 1, 1<<32 - 1, 0} {
		lying := slices.Clone(good)
		binary.LittleEndian.PutUint32(lying[len(lying)-trailer:], claimed)

		_, err := describeBytes(lying, everyType())
		require.Error(t, err, claimed)
	}

	// Lists that declare a billion elements: the decoder alone would allocate them.
	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	for _, list := range [][]byte{
		{0x15, 0x02, 0x19, 0xfc, 0x80, 0x94, 0xeb, 0xdc, 0x03},                         // schema elements
		{0x15, 0x02, 0x19, 0x0c, 0x16, 0x00, 0x19, 0xfc, 0x80, 0x94, 0xeb, 0xdc, 0x03}, // row groups
		{0x15, 0x02, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07},                               // a name of two gigabytes
	} {
		_, err := describeBytes(withFooter(append(list, make([]byte, 100)...)), everyType())
		require.Error(t, err)
	}

	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}

func fieldID(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(id)})
}

// TestWideFooter checks that the entry of a file with thousands of columns stays small.
func TestWideFooter(t *testing.T) {
	t.Parallel()

	columns := make([]Column, 5000)
	for i := range columns {
		columns[i] = Column{ID: i + 1, Name: "column " + strconv.Itoa(i), Type: Bigint}
	}

	d, err := describeBytes(parquetBytes(t, columns, 0, 3), columns)
	require.NoError(t, err)
	require.Equal(t, int64(3), d.rows)
	require.Less(t, len(d.entry), 16<<10)
	require.Len(t, d.bounds, measured)
}

// FuzzFooter checks that no footer causes a panic or a wrong description.
func FuzzFooter(f *testing.F) {
	columns := everyType()
	good := parquetBytes(f, columns, 0, 3)
	length := binary.LittleEndian.Uint32(good[len(good)-trailer:])
	f.Add(good[len(good)-trailer-int(length) : len(good)-trailer])
	f.Add([]byte{0x15, 0x02, 0x19, 0xfc, 0x80, 0x94, 0xeb, 0xdc, 0x03})

	f.Fuzz(func(t *testing.T, footer []byte) {
		d, err := describeBytes(withFooter(footer), columns)
		if err == nil {
			require.NotEmpty(t, d.entry)
			require.GreaterOrEqual(t, d.rows, int64(0))
		}
	})
}
