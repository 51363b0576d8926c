package ingest

import (
	"fmt"

	"quern.dev/quern/internal/engine"
)

const (
	maxColumns   = 2000
	maxRecord    = 16 << 20
	maxUnpacked  = 64 << 30
	maxAside     = 10_000 // all of them are kept, so that every row that fits knows its number in the file
	asideShare   = 0.05
	asideAlways  = 10
	tooManyAside = "TOO_MANY_SET_ASIDE"
)

// DefaultBounds are what a file may take unless the operator says otherwise.
func DefaultBounds() engine.Bounds {
	return engine.Bounds{Columns: maxColumns, Record: maxRecord, Unpacked: maxUnpacked, SetAside: maxAside}
}

// TooManySetAside: a few rows that do not fit are dirt, many are a misunderstanding.
func TooManySetAside(rows, aside int64) error {
	few := aside <= asideAlways || (aside <= maxAside && float64(aside) <= asideShare*float64(rows+aside))
	if aside == 0 || (rows > 0 && few) {
		return nil
	}

	return &engine.FileError{Code: tooManyAside, Message: fmt.Sprintf("%d of %d rows do not fit. Look at them, and give the options that make them fit.", aside, rows+aside)}
}
