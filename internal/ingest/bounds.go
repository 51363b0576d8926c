package ingest

import (
	"fmt"

	"quern.dev/quern/internal/engine"
)

const (
	maxColumns   = 2000
	maxRecord    = 16 << 20
	maxUnpacked  = 64 << 30
	maxAside     = 10_000 // limit of rows set aside; all of them are stored, so that the number in the file is known for every other row
	asideShare   = 0.05
	asideAlways  = 10
	tooManyAside = "TOO_MANY_SET_ASIDE"
)

// DefaultBounds returns the limits of a file that apply unless the operator configures others.
func DefaultBounds() engine.Bounds {
	return engine.Bounds{Columns: maxColumns, Record: maxRecord, Unpacked: maxUnpacked, SetAside: maxAside}
}

// TooManySetAside returns an error if too many rows were set aside. A few indicate errors in the data; many indicate
// that the file was interpreted wrongly.
func TooManySetAside(rows, aside int64) error {
	few := aside <= asideAlways || (aside <= maxAside && float64(aside) <= asideShare*float64(rows+aside))
	if aside == 0 || (rows > 0 && few) {
		return nil
	}

	return &engine.FileError{Code: tooManyAside, Message: fmt.Sprintf("%d of %d rows do not fit. Check these rows and give the missing options.", aside, rows+aside)}
}
