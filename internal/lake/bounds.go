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
	// measured is how many columns get bounds: a table of thousands would carry more statistics than data.
	measured = 200
	// maxBound is how many bytes a bound in our rows can have.
	maxBound = 64
	// maxText is how many characters of a text a bound has.
	maxText = 16
	// maxDecimal is how many bytes a decimal can have.
	maxDecimal = 16
)

// bound is between what the values of a column in a file are, as Iceberg writes values. A text may be cut off: then
// the lower one is less than the least value, and the upper one is greater than the greatest.
type bound struct {
	Lower []byte `json:"lower,omitempty"`
	Upper []byte `json:"upper,omitempty"`
	Nulls *int64 `json:"nulls,omitempty"`
}

// metric is what a manifest says of a column of a file.
type metric struct {
	size, values, nulls int64
	least, greatest     iceberg.Literal // nil if there is no value
	partial             bool            // some rows are not in it
}

// measure returns the metrics of those of the first columns whose statistics are about all rows, by id. A writer
// leaves them out where it likes to, of a row group with long texts for instance; with bounds of the other row groups
// alone, whoever trusts them does not find the rows.
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

			if err := metrics[id].include(chunk, columns[at].Type); err != nil {
				return nil, err
			}
		}
	}

	maps.DeleteFunc(metrics, func(_ int, m *metric) bool { return m.partial })

	return metrics, nil
}

// include adds what the statistics of a row group say.
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

// widen keeps the lesser of the least values and the greater of the greatest.
func widen[T iceberg.LiteralType](m *metric, least, greatest T) {
	if known, ok := m.least.(iceberg.TypedLiteral[T]); !ok || known.Comparator()(least, known.Value()) < 0 {
		m.least = iceberg.NewLiteral(least)
	}

	if known, ok := m.greatest.(iceberg.TypedLiteral[T]); !ok || known.Comparator()(greatest, known.Value()) > 0 {
		m.greatest = iceberg.NewLiteral(greatest)
	}
}

// widenDecimal takes numbers in two's complement, the highest byte first.
func (m *metric) widenDecimal(scale int, least, greatest []byte) error {
	low, high := iceberg.DecimalLiteral{Scale: scale}, iceberg.DecimalLiteral{Scale: scale}
	if err := errors.Join(low.UnmarshalBinary(least), high.UnmarshalBinary(greatest)); err != nil {
		return err
	}

	widen(m, low.Value(), high.Value())

	return nil
}

func whole(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) } //nolint:gosec // its bits

// bounds returns the least and the greatest value as Iceberg writes them, none for what is empty.
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

// cut returns the beginning of a text, and whether that is not all.
func cut(text string) (beginning string, isCut bool) {
	count := 0
	for at := range text {
		if count++; count > maxText {
			return text[:at], true
		}
	}

	return text, false
}

// above returns a short text that is not less than this one and all that begin as it does; "" if there is none.
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
			return text + "\ue000" // there are no characters between them
		case last < utf8.MaxRune:
			return text + string(last+1)
		}
	}

	return ""
}

// covered tells whether the statistics are about all values, and their least and greatest can be compared.
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
