package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

// sketched is a column with the values from first to last, each in so many rows.
func sketched(name, kind, prefix string, first, last int) engine.ColumnProfile {
	var hashes []uint32

	for i := first; i < last; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s%d", prefix, i))
		hashes = append(hashes, binary.BigEndian.Uint32(sum[:]))
	}

	slices.Sort(hashes)

	return engine.ColumnProfile{Name: name, Type: kind, Distinct: int64(last - first), Sketch: hashes[:min(len(hashes), engine.ProfileSketch)]}
}

func TestCompare(t *testing.T) {
	t.Parallel()

	// of is a dataset of 10,000 rows and the column, and so many others.
	of := func(name string, c engine.ColumnProfile, others int) named {
		p := engine.Profile{Rows: 10_000, Columns: []engine.ColumnProfile{c}}
		for i := range others {
			p.Columns = append(p.Columns, engine.ColumnProfile{Name: fmt.Sprintf("other %d", i), Type: engine.Double})
		}

		return named{name, summarize(p)}
	}

	key := sketched("id", engine.Bigint, "", 0, 10_000)

	for name, c := range map[string]struct {
		a, b  engine.ColumnProfile
		yes   bool
		width int
	}{
		"a reference":                {a: sketched("customer_id", engine.Bigint, "", 0, 5000), b: key, yes: true},
		"a reference, few":           {a: sketched("customer_id", engine.Bigint, "", 0, 600), b: key, yes: true},
		"a reference, named like it": {a: sketched("Customer", engine.Bigint, "", 0, 5000), b: key, yes: true},
		"a whole decimal":            {a: sketched("customer_id", "decimal(20,0)", "", 0, 5000), b: key, yes: true},
		"two counted keys":           {a: sketched("id", engine.Bigint, "", 0, 10_000), b: key},
		"numbers by chance":          {a: sketched("quantity", engine.Bigint, "", 0, 5000), b: key},
		"half of the values":         {a: sketched("customer_id", engine.Bigint, "", 5000, 15_000), b: key},
		"nine tenths":                {a: sketched("customer_id", engine.Bigint, "", 1000, 10_900), b: key, yes: true},
		"another type":               {a: sketched("customer_id", engine.Varchar, "", 0, 5000), b: key},
		"texts of another name":      {a: sketched("mail", engine.Varchar, "m", 0, 900), b: sketched("contact", engine.Varchar, "m", 0, 1000), yes: true},
		"few texts of another name":  {a: sketched("a", engine.Varchar, "m", 0, 8), b: sketched("b", engine.Varchar, "m", 0, 8)},
		"few texts of one name":      {a: sketched("region", engine.Varchar, "m", 0, 8), b: sketched("Region", engine.Varchar, "m", 0, 9), yes: true},
		"other texts of one name":    {a: sketched("region", engine.Varchar, "m", 0, 100), b: sketched("region", engine.Varchar, "o", 0, 100)},
		"nothing":                    {a: sketched("region", engine.Varchar, "m", 0, 0), b: sketched("region", engine.Varchar, "o", 0, 100)},
		"wide":                       {a: sketched("customer_id", engine.Bigint, "", 0, 8000), b: key, yes: true, width: 1500},
		"doubles":                    {a: sketched("x", engine.Double, "", 0, 100), b: sketched("x", engine.Double, "", 0, 100)},
	} {
		a, b := of("orders", c.a, c.width), of("customers", c.b, 0)

		found, back := compare(a, b), compare(b, a)
		require.Equal(t, c.yes, len(found) == 1, "%s: %v", name, found)
		require.Len(t, back, len(found), name)

		if c.yes {
			require.Equal(t, c.a.Name+" "+c.b.Name, found[0].Column+" "+found[0].To, name)
			require.Equal(t, c.b.Name+" "+c.a.Name, back[0].Column+" "+back[0].To, name)
			require.InDelta(t, found[0].Share, back[0].Share, 0, name)
		}
	}
}
