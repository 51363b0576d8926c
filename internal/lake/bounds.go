package lake

import (
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
)

// bound is between what the values of a column in a file are, as Iceberg writes values. A text may be cut off: then
// the lower one is less than the least value, and the upper one is greater than the greatest.
type bound struct {
	Lower []byte `json:"lower,omitempty"`
	Upper []byte `json:"upper,omitempty"`
	Nulls *int64 `json:"nulls,omitempty"`
}

// boundsOf returns the bounds that a manifest has of a file, by the column's id.
func boundsOf(file iceberg.DataFile, columns []Column) map[int]bound {
	var (
		lower, upper = file.LowerBoundValues(), file.UpperBoundValues()
		nulls        = file.NullValueCounts()
		bounds       = map[int]bound{}
	)

	for _, column := range columns {
		var b bound

		if value := lower[column.ID]; len(value) <= maxBound {
			b.Lower = value
		}

		if value := upper[column.ID]; len(value) <= maxBound {
			b.Upper = value
		}

		if count, known := nulls[column.ID]; known {
			b.Nulls = &count
		}

		if len(b.Lower) > 0 || len(b.Upper) > 0 || b.Nulls != nil {
			bounds[column.ID] = b
		}
	}

	return bounds
}

// measurable returns those of the first columns whose statistics are about all rows. A writer leaves them out where
// it likes to, of a row group with long texts for instance; iceberg-go then makes bounds of the other row groups, and
// whoever trusts them does not find the rows.
func measurable(meta *metadata.FileMetaData, columns []Column) ([]Column, error) {
	var (
		root    = meta.Schema.Root()
		known   = index(columns[:min(len(columns), measured)]).ids
		partial = map[int]bool{}
	)

	for g := range meta.NumRowGroups() {
		group := meta.RowGroup(g)

		for i := range group.NumColumns() {
			id := int(root.Field(i).FieldID())
			if _, isKnown := known[id]; !isKnown || partial[id] {
				continue
			}

			chunk, err := group.ColumnChunk(i)
			if err != nil {
				return nil, err
			}

			partial[id] = !covered(chunk)
		}
	}

	var whole []Column

	for _, column := range columns[:len(known)] {
		if !partial[column.ID] {
			whole = append(whole, column)
		}
	}

	return whole, nil
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
	default:
		return true
	}
}
