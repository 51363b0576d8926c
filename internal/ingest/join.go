package ingest

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

// summary is what PostgreSQL keeps of a profile: enough to compare columns.
type summary struct {
	Rows    int64           `json:"rows"`
	Columns []summaryColumn `json:"columns"`
}

type summaryColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nulls    int64  `json:"nulls"`
	Distinct int64  `json:"distinct"`
	Sketch   []byte `json:"sketch,omitempty"` // hashes of four bytes
	Whole    bool   `json:"whole,omitempty"`  // of all values
}

const (
	hashBytes = 4
	// A summary has so many hashes; a wide table has fewer for each column.
	summaryHashes = 12800
	leastHashes   = 16
)

func summarize(p engine.Profile) summary {
	made := summary{Rows: p.Rows, Columns: make([]summaryColumn, len(p.Columns))}
	most := max(summaryHashes/max(len(p.Columns), 1), leastHashes)

	for i, c := range p.Columns {
		one := summaryColumn{Name: c.Name, Type: c.Type, Nulls: c.Nulls, Distinct: c.Distinct, Whole: len(c.Sketch) < min(most, engine.ProfileSketch)}
		for _, hash := range c.Sketch[:min(len(c.Sketch), most)] {
			one.Sketch = binary.BigEndian.AppendUint32(one.Sketch, hash)
		}

		made.Columns[i] = one
	}

	return made
}

// hashes are in order; below end there are no others.
func (c summaryColumn) hashes() (list []uint32, end uint32) {
	list = make([]uint32, len(c.Sketch)/hashBytes)
	for i := range list {
		list[i] = binary.BigEndian.Uint32(c.Sketch[i*hashBytes:])
	}

	if c.Whole || len(list) == 0 {
		return list, math.MaxUint32
	}

	return list, list[len(list)-1]
}

// unique tells whether the column's values are all different.
func (c summaryColumn) unique(rows int64) bool { return c.Nulls == 0 && c.Distinct == rows }

// named is a dataset's summary with its name.
type named struct {
	name string
	summary
}

// What makes two columns a probable join.
const (
	leastShare    = 0.8 // of the values of one that the other has too
	leastSeen     = 5   // hashes that this rests on, if the columns' names are alike
	leastSeenElse = 20  // if they are not
	mostJoins     = 10  // with one dataset
)

// compare finds the columns of two datasets that probably join.
func compare(a, b named) (joins []lake.Join) {
	for _, mine := range a.Columns {
		for _, theirs := range b.Columns {
			family := engine.Family(mine.Type)
			if family == "" || family != engine.Family(theirs.Type) {
				continue
			}

			like := alike(a.name, mine.Name, b.name, theirs.Name)

			// Numbers and days are in one another by chance, and two keys that are counted up always are.
			if family != engine.Varchar && (!like || mine.unique(a.Rows) && theirs.unique(b.Rows)) {
				continue
			}

			share, seen := contained(mine, theirs)
			if share >= leastShare && (seen >= leastSeenElse || like && seen >= leastSeen) {
				joins = append(joins, lake.Join{Column: mine.Name, To: theirs.Name, Share: share})
			}
		}
	}

	slices.SortStableFunc(joins, func(x, y lake.Join) int { return cmp.Compare(y.Share, x.Share) })

	return joins[:min(len(joins), mostJoins)]
}

// contained estimates which share of the values of one column the other has too, whichever has more of the other's.
// It looks at the hashes below which both sketches have all that there are; seen is how many of the smaller one's
// these are.
func contained(mine, theirs summaryColumn) (share float64, seen int) {
	a, end := mine.hashes()
	b, theirEnd := theirs.hashes()
	end = min(end, theirEnd)

	below := func(list []uint32) []uint32 {
		n, found := slices.BinarySearch(list, end)
		if found {
			n++
		}

		return list[:n]
	}

	a, b = below(a), below(b)
	if seen = min(len(a), len(b)); seen == 0 {
		return 0, 0
	}

	both := 0

	for _, hash := range a {
		if _, found := slices.BinarySearch(b, hash); found {
			both++
		}
	}

	return float64(both) / float64(seen), seen
}

// alike tells whether two columns are called as if they had the same in them: both the same, or one by the name of
// the other's dataset.
func alike(dataset, column, otherDataset, other string) bool {
	a, b := plain(column), plain(other)

	if a == b {
		return a != "id" // everything has one
	}

	return a == singular(plain(otherDataset))+b || b == singular(plain(dataset))+a ||
		a == singular(plain(otherDataset)) || b == singular(plain(dataset))
}

// plain is a name without case and signs.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}

		return -1
	}, name)
}

// singular of English words, or near enough.
func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "ss"):
		return word
	default:
		return strings.TrimSuffix(word, "s")
	}
}
