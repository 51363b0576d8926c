package lake

import "math/bits"

// RowSet is a set of rows of one data file, by their positions from 0. It has one bit for each row of the file.
type RowSet struct {
	bits  []byte // the first row is the highest bit of the first byte
	rows  int64
	count int64
}

// NewRowSet returns an empty set of rows of a file with this number of rows.
func NewRowSet(rows int64) *RowSet { return &RowSet{bits: make([]byte, (rows+7)/8), rows: rows} }

// Add adds a row. It returns false if the file does not have the row, or the set has it already.
func (s *RowSet) Add(row int64) bool {
	if row < 0 || row >= s.rows || s.Has(row) {
		return false
	}

	s.bits[row/8] |= 0x80 >> (row % 8)
	s.count++

	return true
}

// Has reports whether a row of the file is in the set.
func (s *RowSet) Has(row int64) bool { return s.bits[row/8]&(0x80>>(row%8)) != 0 }

// next returns the first row of the set from the given one on, or the number of rows of the file if there is none.
func (s *RowSet) next(row int64) int64 {
	for row < s.rows {
		rest := s.bits[row/8] << (row % 8)
		if rest != 0 {
			return row + int64(bits.LeadingZeros8(rest))
		}

		row += 8 - row%8
	}

	return s.rows
}

// Count returns the number of rows in the set.
func (s *RowSet) Count() int64 { return s.count }

// Bytes returns the bits of the set, the first row first. The last byte is filled with zeros.
func (s *RowSet) Bytes() []byte { return s.bits }
