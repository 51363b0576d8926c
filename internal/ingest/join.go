package ingest

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
)

// summary is the part of a profile that PostgreSQL stores to compare columns.
type summary struct {
	Rows    int64           `json:"rows"`
	Columns []summaryColumn `json:"columns"`
}

type summaryColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nulls    int64  `json:"nulls"`
	Distinct int64  `json:"distinct"`
	Sketch   []byte `json:"sketch,omitempty"` // hashes of four bytes each
	Whole    bool   `json:"whole,omitempty"`  // the hashes cover all values
}

const (
	hashBytes = 4
	// summaryHashes is the approximate number of hashes in a summary. A wide table has fewer for each column.
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

// hashes returns the hashes in order. Up to end the list is complete.
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

// unique reports whether the values of the column are all different and not null.
func (c summaryColumn) unique(rows int64) bool { return c.Nulls == 0 && c.Distinct == rows }

// named is the summary of a dataset, with its name.
type named struct {
	name string
	summary
}

// Requirements for a probable join of two columns.
const (
	leastShare    = 0.8 // fraction of the values of one column that the other also has
	leastSeen     = 5   // minimum number of compared hashes if the column names are alike
	leastSeenElse = 20  // minimum number of compared hashes otherwise
	mostJoins     = 10  // maximum number of joins with one dataset
)

// compare returns the columns of two datasets that probably join.
func compare(a, b named) (joins []lake.Join) {
	for _, mine := range a.Columns {
		for _, theirs := range b.Columns {
			family := engine.Family(mine.Type)
			if family == "" || family != engine.Family(theirs.Type) {
				continue
			}

			like := alike(a.name, mine.Name, b.name, theirs.Name)

			// Numbers and dates overlap by chance, and two columns of sequential keys always do, unless both have the same name.
			if family != engine.Varchar && (!like || mine.unique(a.Rows) && theirs.unique(b.Rows) && lexicon.Letters(mine.Name) != lexicon.Letters(theirs.Name)) {
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

// contained estimates the fraction of the values of the column with fewer values that the other column also has. It
// compares only hashes in the range in which both sketches are complete. seen is the smaller number of such hashes.
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

// alike reports whether the names of two columns suggest the same content: the names are equal, one is derived from the
// name of the other's dataset, or one ends with what the other identifies: home_shop and shop_id.
func alike(dataset, column, otherDataset, other string) bool {
	a, b := lexicon.Letters(column), lexicon.Letters(other)

	if a == b {
		return len(identified(column)) > 0 // too many datasets have a column id
	}

	return endsWith(identified(column), identified(other)) || endsWith(identified(other), identified(column)) || a == lexicon.Singular(lexicon.Letters(otherDataset))+b || b == lexicon.Singular(lexicon.Letters(dataset))+a ||
		a == lexicon.Singular(lexicon.Letters(otherDataset)) || b == lexicon.Singular(lexicon.Letters(dataset))
}

// identified returns the name of a column without its ID word: shop for shop_id.
func identified(column string) []string {
	words := lexicon.NameWords(column)
	if n := len(words); n > 0 && meaning.IsIDWord(words[n-1]) && words[n-1] != "sku" && words[n-1] != "isbn" {
		words = words[:n-1]
	}

	return words
}

func endsWith(words, end []string) bool {
	return len(end) > 0 && len(words) > len(end) && slices.Equal(words[len(words)-len(end):], end)
}
