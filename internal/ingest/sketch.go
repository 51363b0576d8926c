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
	sketchSize     = 1024 // hashes of a file
	sketchFiles    = 200  // earlier files that a new one is compared with
	sketchEvidence = 5    // rows that must be there
	sketchSample   = 16   // rows that a share is told from, at least
)

// fileContent is what a file has in it.
type fileContent struct {
	digest []byte
	sketch sketch
	known  bool // a doubt tells already that it was loaded before
}

// sketch is the smallest hashes of the rows of a file, each once and in order. Hashes are spread evenly, so these are a fair
// sample of the rows, and two files that share rows share those with small hashes.
type sketch struct {
	hashes   []uint64
	complete bool // they are those of all rows
	distinct bool // hardly a row comes twice
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

// mostlyIn tells whether more than half of the rows are in the other files. Rows that come often in a file say nothing:
// answers to a question with three choices are all there already.
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
				break // nobody knows
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

// rowsPresent tells of files most of whose rows are in the dataset.
func (w *working) rowsPresent(ctx context.Context) (doubts []engine.Doubt, err error) {
	if w.i.Mode == lake.Replace {
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
				"Most rows of the file %q are in the dataset already. They would be there twice.", w.i.Files[n].Name)})
		}
	}

	return doubts, nil
}
