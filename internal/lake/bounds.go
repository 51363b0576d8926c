package lake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
)

const (
	// measured is how many columns get bounds: with thousands of columns, a table would have more statistics than
	// data.
	measured = 200
	// maxBound is the maximum size of a bound in the database, in bytes.
	maxBound = 64
	// maxText is the maximum length of a bound of a text column, in characters.
	maxText = 16
	// maxDecimal is the maximum size of a decimal, in bytes.
	maxDecimal = 16
)

// bound holds the lower and upper bound of the values of a column in a file, as encoded by Iceberg. Long text is
// truncated: then the lower bound is less than the least value, and the upper bound is greater than the greatest.
type bound struct {
	Lower []byte `json:"lower,omitempty"`
	Upper []byte `json:"upper,omitempty"`
	Nulls *int64 `json:"nulls,omitempty"`
}

// metric holds the statistics of a column of a file that a manifest records.
type metric struct {
	size, values, nulls int64
	least, greatest     iceberg.Literal // nil if there is no value
	partial             bool            // the statistics do not cover all rows
}

// measure returns metrics by column id, for those of the first columns whose statistics cover all rows. A writer may
// omit the statistics of a row group, for instance one with long text. Bounds of only the other row groups would make
// a reader miss rows.
func measure(meta *metadata.FileMetaData, columns []Column) (map[int]*metric, error) {
	var (
		root    = meta.Schema.Root()
		known   = index(columns[:min(len(columns), measured)]).ids
		metrics = map[int]*metric{}
	)

	for g := range meta.NumRowGroups() {
		group := meta.RowGroup(g)

		for i := range group.NumColumns() {
			id := int(root.Field(i).FieldID())

			at, isKnown := known[id]
			if !isKnown {
				continue
			}

			chunk, err := group.ColumnChunk(i)
			if err != nil {
				return nil, err
			}

			if metrics[id] == nil {
				metrics[id] = &metric{}
			}

			// A writer may omit only the longer of both values. The decoded statistics cannot tell an omitted value from
			// an empty one.
			if s := meta.RowGroups[g].Columns[i].MetaData.Statistics; s != nil {
				metrics[id].partial = metrics[id].partial || s.IsSetMinValue() != s.IsSetMaxValue() || s.IsSetMin() != s.IsSetMax()
			}

			if err := metrics[id].include(chunk, columns[at].Type); err != nil {
				return nil, err
			}
		}
	}

	maps.DeleteFunc(metrics, func(_ int, m *metric) bool { return m.partial })

	return metrics, nil
}

// include adds the statistics of one row group.
func (m *metric) include(chunk *metadata.ColumnChunkMetaData, t Type) error {
	if m.partial = m.partial || !covered(chunk); m.partial {
		return nil
	}

	statistics, err := chunk.Statistics()
	if err != nil {
		return err
	}

	m.size += chunk.TotalCompressedSize()
	m.values += chunk.NumValues()
	m.nulls += statistics.NullCount()

	if !statistics.HasMinMax() {
		return nil
	}

	_, scale, isDecimal := t.Decimal()

	switch s := statistics.(type) {
	case *metadata.BooleanStatistics:
		widen(m, s.Min(), s.Max())
	case *metadata.Int32Statistics:
		if isDecimal {
			return m.widenDecimal(scale, whole(int64(s.Min())), whole(int64(s.Max())))
		}

		widen(m, s.Min(), s.Max())
	case *metadata.Int64Statistics:
		if isDecimal {
			return m.widenDecimal(scale, whole(s.Min()), whole(s.Max()))
		}

		widen(m, s.Min(), s.Max())
	case *metadata.Float64Statistics:
		widen(m, s.Min(), s.Max())
	case *metadata.ByteArrayStatistics:
		widen(m, string(s.Min()), string(s.Max()))
	case *metadata.FixedLenByteArrayStatistics:
		return m.widenDecimal(scale, s.Min(), s.Max())
	default:
		return fmt.Errorf("the data file has statistics of the type %s", statistics.Type())
	}

	return nil
}

// widen extends the range of m to include least and greatest.
func widen[T iceberg.LiteralType](m *metric, least, greatest T) {
	if known, ok := m.least.(iceberg.TypedLiteral[T]); !ok || known.Comparator()(least, known.Value()) < 0 {
		m.least = iceberg.NewLiteral(least)
	}

	if known, ok := m.greatest.(iceberg.TypedLiteral[T]); !ok || known.Comparator()(greatest, known.Value()) > 0 {
		m.greatest = iceberg.NewLiteral(greatest)
	}
}

// widenDecimal is widen for big-endian numbers in two's complement.
func (m *metric) widenDecimal(scale int, least, greatest []byte) error {
	low, high := iceberg.DecimalLiteral{Scale: scale}, iceberg.DecimalLiteral{Scale: scale}
	if err := errors.Join(low.UnmarshalBinary(least), high.UnmarshalBinary(greatest)); err != nil {
		return err
	}

	widen(m, low.Value(), high.Value())

	return nil
}

func whole(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) } //nolint:gosec // its bits

// bounds returns the least and the greatest value as encoded by Iceberg, or nil if there is no value.
func (m *metric) bounds() (lower, upper []byte, err error) {
	if m.least == nil {
		return nil, nil, nil
	}

	least, isText := m.least.(iceberg.StringLiteral)
	greatest, _ := m.greatest.(iceberg.StringLiteral)

	if isText {
		below, _ := cut(string(least))

		return []byte(below), []byte(above(string(greatest))), nil
	}

	lower, err = m.least.MarshalBinary()
	if err == nil {
		upper, err = m.greatest.MarshalBinary()
	}

	return lower, upper, err
}

// cut returns the first maxText characters of text, and whether the text is longer.
func cut(text string) (beginning string, isCut bool) {
	count := 0
	for at := range text {
		if count++; count > maxText {
			return text[:at], true
		}
	}

	return text, false
}

// above returns a short text that is not less than text nor, if text is truncated, than any text with the same
// beginning. It returns "" if there is none.
func above(text string) string {
	text, isCut := cut(text)
	if !isCut {
		return text
	}

	for text != "" {
		last, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]

		switch {
		case last == '\ud7ff':
			return text + "\ue000" // the surrogates between them are not characters
		case last < utf8.MaxRune:
			return text + string(last+1)
		}
	}

	return ""
}

// covered reports whether the statistics cover all values and their least and greatest value can be compared.
func covered(chunk *metadata.ColumnChunkMetaData) bool {
	if set, err := chunk.StatsSet(); err != nil || !set {
		return false
	}

	statistics, err := chunk.Statistics()
	if err != nil || statistics == nil || !statistics.HasNullCount() {
		return false
	}

	if !statistics.HasMinMax() {
		return statistics.NullCount() == chunk.NumValues()
	}

	switch s := statistics.(type) {
	case *metadata.Float64Statistics:
		return !math.IsNaN(s.Min()) && !math.IsNaN(s.Max())
	case *metadata.ByteArrayStatistics:
		return utf8.Valid(s.Min()) && utf8.Valid(s.Max())
	case *metadata.FixedLenByteArrayStatistics:
		return min(len(s.Min()), len(s.Max())) > 0 && max(len(s.Min()), len(s.Max())) <= maxDecimal
	default:
		return true
	}
}
