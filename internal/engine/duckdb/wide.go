package duckdb

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

// wideColumns is the largest number of columns for which DuckDB writes rows as JSON. DuckDB plans one expression over
// all columns, and the time for that grows with the square of their number. For wider results DuckDB returns texts, and
// the rows are assembled in Go.
const wideColumns = 100

// stringInline is the number of bytes of a text that are stored inside its duckdb_string_t.
const stringInline = 12

// wideLines returns the rows of a wide result in the same form as narrowLines.
func (p *program) wideLines(d described, rows int64, each func(line []byte) bool) error {
	var (
		texts   []string
		members = make([]wideMember, len(d.columns))
	)

	if d.traced {
		texts = append(texts, asText(name(engine.ProvenanceFile)), asText(name(engine.ProvenanceRow)))
	}

	before := len(texts)

	for i, c := range d.columns {
		value := name(c.name)

		if members[i] = wideMemberOf(c); members[i].write == nil {
			value = c.kind.asJSON(value)
		}

		texts = append(texts, asText(value))
	}

	var line []byte

	return p.db.chunks(p.over(``, strings.Join(texts, ", "), limited(rows+1, rows > 0)), func(chunk duckdb.DataChunk, size int) bool {
		cells := make([]cells, len(texts))
		for i := range cells {
			cells[i] = cellsOf(chunk, i, size)
		}

		for row := range size {
			line = line[:0]
			for i := range before {
				line = append(append(line, cells[i].at(row)...), ' ')
			}

			line = append(line, '{')

			for i, m := range members {
				line = m.append(line, cells[before+i].at(row), i == 0)
			}

			if !each(append(line, '}')) {
				return false
			}
		}

		return true
	})
}

// wideMember writes one member of a row's object.
type wideMember struct {
	name  []byte                          // quoted, with the colon
	write func(line, value []byte) []byte // nil if the value is already JSON
}

// append adds the member to the line. A nil value is written as null.
func (m wideMember) append(line, value []byte, first bool) []byte {
	if !first {
		line = append(line, ',')
	}

	line = append(line, m.name...)

	switch {
	case value == nil:
		return append(line, "null"...)
	case m.write == nil:
		return append(line, value...)
	default:
		return m.write(line, value)
	}
}

// wideMemberOf returns the member for a column. Its write is set for kinds whose text is sufficient to write the same
// JSON as asJSON.
func wideMemberOf(c resultColumn) wideMember {
	m := wideMember{name: append(appendQuoted(nil, []byte(c.name)), ':')}
	kindName, _, _ := strings.Cut(c.kind.name, "(")

	switch kindName {
	case "boolean", "tinyint", "smallint", "integer", "utinyint", "usmallint", "uinteger":
		m.write = func(line, value []byte) []byte { return append(line, value...) }
	case "bigint", "ubigint", "hugeint", "uhugeint":
		m.write = appendInteger
	case "double":
		m.write = appendDouble
	case "decimal":
		var width, scale int
		if _, err := fmt.Sscanf(c.kind.name, "decimal(%d,%d)", &width, &scale); err == nil && width <= exactDigits && scale < width {
			m.write = appendDecimal
		}
	case "varchar", "date", "time", "uuid":
		m.write = appendQuoted
	case "timestamp":
		m.write = appendMoment
	case "timestamp with time zone":
		m.write = func(line, value []byte) []byte {
			if local, isUTC := bytes.CutSuffix(value, []byte("+00")); isUTC {
				value = append(bytes.Clone(local), 'Z')
			}

			return appendMoment(line, value)
		}
	}

	return m
}

// appendInteger writes the same JSON as integer.
func appendInteger(line, value []byte) []byte {
	const limit = "9007199254740991" // safeInteger

	digits := bytes.TrimPrefix(value, []byte{'-'})
	if len(digits) > len(limit) || len(digits) == len(limit) && string(digits) > limit {
		return appendQuoted(line, value)
	}

	return append(line, value...)
}

// appendDouble writes the same JSON as double.
func appendDouble(line, value []byte) []byte {
	switch string(value) {
	case "nan", "-nan":
		return append(line, `"NaN"`...)
	case "inf":
		return append(line, `"Infinity"`...)
	case "-inf":
		return append(line, `"-Infinity"`...)
	default:
		return append(line, value...)
	}
}

// appendDecimal writes the same JSON as decimalKind, for decimals that are always JSON numbers.
func appendDecimal(line, value []byte) []byte {
	if whole, fraction, isFraction := bytes.Cut(value, []byte{'.'}); isFraction {
		value = value[:len(whole)+1+max(1, len(bytes.TrimRight(fraction, "0")))]
	}

	return append(line, value...)
}

// appendMoment writes the same JSON as moment.
func appendMoment(line, value []byte) []byte {
	value = bytes.ReplaceAll(value, []byte{' '}, []byte{'T'})

	return appendQuoted(line, bytes.ReplaceAll(value, []byte("T(BC)"), []byte(" (BC)")))
}

// appendQuoted writes a JSON text.
func appendQuoted(line, value []byte) []byte {
	const hex = "0123456789ABCDEF"

	line = append(line, '"')

	for _, c := range value {
		switch {
		case c == '"' || c == '\\':
			line = append(line, '\\', c)
		case c == '\n':
			line = append(line, '\\', 'n')
		case c == '\r':
			line = append(line, '\\', 'r')
		case c == '\t':
			line = append(line, '\\', 't')
		case c < ' ':
			line = append(line, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			line = append(line, c)
		}
	}

	return append(line, '"')
}

// cells contains the texts of one column of a chunk.
type cells struct {
	texts []duckdb.StringT
	valid []uint64 // validity bits; nil if there is no NULL
}

func cellsOf(chunk duckdb.DataChunk, column, size int) cells {
	vector := duckdb.DataChunkGetVector(chunk, duckdb.IdxT(column)) //nolint:gosec // a small number
	found := cells{texts: unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(vector)), size)}

	if mask := duckdb.VectorGetValidity(vector); mask != nil {
		found.valid = unsafe.Slice((*uint64)(mask), (size+63)/64)
	}

	return found
}

// at returns a text without copying it from DuckDB's memory, and nil for NULL. It reads the duckdb_string_t directly,
// because a call to DuckDB for each of a million cells would take longer than everything else.
func (c cells) at(row int) []byte {
	if c.valid != nil && c.valid[row/64]>>(row%64)&1 == 0 {
		return nil
	}

	cell := unsafe.Pointer(&c.texts[row])
	length := *(*uint32)(cell)

	if length <= stringInline {
		return unsafe.Slice((*byte)(unsafe.Add(cell, 4)), length)[:length:length]
	}

	return unsafe.Slice(*(**byte)(unsafe.Add(cell, 8)), length)
}
