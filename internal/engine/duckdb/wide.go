package duckdb

import (
	"bytes"
	"fmt"
	"strings"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
)

// wideColumns is how many columns a row may have that DuckDB itself writes as JSON. It plans the one expression over all
// columns in a time that grows with the square of their number. The rows of wider results come as texts, and are put
// together here.
const wideColumns = 100

// stringInline is how many bytes of a text stand in its duckdb_string_t.
const stringInline = 12

// wideLines gives the rows of a wide result as stream writes them.
func (p *program) wideLines(d described, rows int64, each func(line []byte) bool) error {
	var (
		texts   []string
		members = make([]wideMember, len(d.columns))
	)

	if d.traced {
		texts = append(texts, asText(name(engine.TracedFile)), asText(name(engine.TracedRow)))
	}

	before := len(texts)

	for i, c := range d.columns {
		value := name(c.name)

		if members[i] = wideMemberOf(c); members[i].write == nil {
			value = c.kind.asJSON(value)
		}

		texts = append(texts, asText(value))
	}

	statement := `SELECT ` + strings.Join(texts, ", ") + ` FROM ` + result
	if rows > 0 {
		statement += fmt.Sprintf(` LIMIT %d`, rows+1)
	}

	var line []byte

	return p.db.chunks(statement, func(chunk duckdb.DataChunk, size int) bool {
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

// wideMember writes one value of a row's object.
type wideMember struct {
	name  []byte                          // with its colon
	write func(line, value []byte) []byte // nil if the value is JSON already
}

// append adds the member; a nil value is null.
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

// wideMemberOf knows the kinds whose text is enough to write what asJSON gives.
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

// appendInteger is integer.
func appendInteger(line, value []byte) []byte {
	const limit = "9007199254740991" // safeInteger

	digits := bytes.TrimPrefix(value, []byte{'-'})
	if len(digits) > len(limit) || len(digits) == len(limit) && string(digits) > limit {
		return appendQuoted(line, value)
	}

	return append(line, value...)
}

// appendDouble is double.
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

// appendMoment is moment.
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

// cells are the texts of a column of a chunk.
type cells struct {
	texts []duckdb.StringT
	valid []uint64 // bits; nil if there is no NULL
}

func cellsOf(chunk duckdb.DataChunk, column, size int) cells {
	vector := duckdb.DataChunkGetVector(chunk, duckdb.IdxT(column)) //nolint:gosec // a small number
	found := cells{texts: unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(vector)), size)}

	if mask := duckdb.VectorGetValidity(vector); mask != nil {
		found.valid = unsafe.Slice((*uint64)(mask), (size+63)/64)
	}

	return found
}

// at is a text where DuckDB has it, nil for NULL. It reads the duckdb_string_t itself: to ask DuckDB for each of a million
// cells would take longer than everything else.
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
