package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	sketchSize     = 1024 // hashes per file
	sketchFiles    = 200  // earlier files that a new file is compared with
	sketchEvidence = 5    // minimum number of rows that must be present
	sketchSample   = 16   // minimum number of rows to estimate a fraction from
)

// fileContent describes the content of a file.
type fileContent struct {
	digest []byte
	sketch sketch
	known  bool // a doubt already reports that the file was loaded before
}

// sketch holds the smallest hashes of the rows of a file, without duplicates, in order. Hashes are evenly
// distributed, so they are a fair sample of the rows, and two files with common rows have their small hashes in
// common.
type sketch struct {
	hashes   []uint64
	complete bool // the hashes cover all rows
	distinct bool // few rows are repeated
}

func newSketch(found []uint64) sketch {
	const nearly = 0.9

	s := sketch{hashes: slices.Clone(found), complete: len(found) < sketchSize}
	slices.Sort(s.hashes)
	s.hashes = slices.Compact(s.hashes)
	s.distinct = float64(len(s.hashes)) >= nearly*float64(len(found))

	return s
}

func (s sketch) bytes() []byte {
	if len(s.hashes) == 0 {
		return nil
	}

	encoded := []byte{0}
	if s.complete {
		encoded[0] = 1
	}

	for _, h := range s.hashes {
		encoded = binary.BigEndian.AppendUint64(encoded, h)
	}

	return encoded
}

func readSketch(encoded []byte) (s sketch) {
	if len(encoded) == 0 {
		return s
	}

	s.complete = encoded[0] == 1

	for rest := encoded[1:]; len(rest) >= 8; rest = rest[8:] {
		s.hashes = append(s.hashes, binary.BigEndian.Uint64(rest))
	}

	return s
}

// mostlyIn reports whether more than half of the rows are in the other files. If many rows of the file are repeated,
// it returns false, because such rows prove nothing: all answers to a question with three choices are present in any
// case.
func (s sketch) mostlyIn(others []sketch) bool {
	present := map[uint64]bool{}
	most := false

	for _, other := range others {
		if len(other.hashes) == 0 {
			continue
		}

		last, tested, found := other.hashes[len(other.hashes)-1], 0, 0

		for _, h := range s.hashes {
			if !other.complete && h > last {
				break // other does not cover larger hashes
			}

			tested++

			if _, in := slices.BinarySearch(other.hashes, h); in {
				found++
				present[h] = true
			}
		}

		most = most || (2*found > tested && found >= sketchEvidence && (tested >= sketchSample || tested == len(s.hashes)))
	}

	return s.distinct && (most || (2*len(present) > len(s.hashes) && len(present) >= sketchEvidence))
}

// rowsPresent returns doubts about files most of whose rows are in the dataset.
func (w *working) rowsPresent(ctx context.Context) (doubts []engine.Doubt, err error) {
	if w.i.Mode == lake.Replace || w.i.Mode == lake.Merged {
		return nil, nil
	}

	var stored [][]byte

	err = w.DB.Do(ctx, func(q postgres.Querier) (err error) {
		stored, err = selectSketches(ctx, q, w.i, sketchFiles)

		return err
	})
	if err != nil || len(stored) == 0 {
		return nil, err
	}

	others := make([]sketch, len(stored))
	for n, encoded := range stored {
		others[n] = readSketch(encoded)
	}

	for n, c := range w.contents {
		if !c.known && c.sketch.mostlyIn(others) {
			doubts = append(doubts, engine.Doubt{Code: RowsPresent, Message: fmt.Sprintf(
				"Most rows of the file %q are already in the dataset. Loading it duplicates them.", w.i.Files[n].Name)})
		}
	}

	return doubts, nil
}
