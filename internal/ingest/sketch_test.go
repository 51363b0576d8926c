package ingest

import (
	"hash/fnv"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// hashesOf returns the hashes that a sealed process reports for a file with the rows from..to-1.
func hashesOf(from, to int) (hashes []uint64) {
	for n := from; n < to; n++ {
		h := fnv.New64a()
		_, _ = h.Write([]byte("row " + strconv.Itoa(n) + " of a file"))
		mixed := h.Sum64()
		mixed ^= mixed >> 33
		mixed *= 0xff51afd7ed558ccd
		mixed ^= mixed >> 33
		hashes = append(hashes, mixed)
	}

	slices.Sort(hashes)

	return hashes[:min(len(hashes), sketchSize)]
}

func TestSketch(t *testing.T) {
	t.Parallel()

	for name, one := range map[string]struct {
		file   []uint64
		loaded [][]uint64
		want   bool
	}{
		"nothing was loaded":          {hashesOf(0, 100), nil, false},
		"the same rows":               {hashesOf(0, 100), [][]uint64{hashesOf(0, 100)}, true},
		"and some more":               {hashesOf(0, 11_000), [][]uint64{hashesOf(0, 10_000)}, true},
		"a part of what is there":     {hashesOf(0, 4_000), [][]uint64{hashesOf(0, 10_000)}, true},
		"spread over several files":   {hashesOf(0, 900), [][]uint64{hashesOf(0, 300), hashesOf(300, 600), hashesOf(600, 900)}, true},
		"a fifth":                     {hashesOf(8_000, 18_000), [][]uint64{hashesOf(0, 10_000)}, false},
		"nothing in common":           {hashesOf(10_000, 20_000), [][]uint64{hashesOf(0, 10_000)}, false},
		"too few to say":              {hashesOf(0, 3), [][]uint64{hashesOf(0, 3)}, false},
		"the same few rows and again": {slices.Repeat(hashesOf(0, 10), 20), [][]uint64{hashesOf(0, 10)}, false},
	} {
		var others []sketch
		for _, hashes := range one.loaded {
			others = append(others, readSketch(newSketch(hashes).bytes()))
		}

		require.Equal(t, one.want, newSketch(one.file).mostlyIn(others), name)
	}
}
