package query

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
)

var update = flag.Bool("update", false, "write the golden files")

// shopReads returns datasets for the tables of a statement.
func shopReads(s *statement) (reads []resolved) {
	columns := map[string][]lake.Column{
		"orders": {
			{Name: "id", Type: lake.Bigint},
			{Name: "customer", Type: lake.Bigint},
			{Name: "status", Type: lake.Varchar},
			{Name: "region", Type: lake.Varchar},
			{Name: "total", Type: lake.Decimal(9, 2)},
			{Name: "weight", Type: lake.Double},
			{Name: "day", Type: lake.Date},
			{Name: "made", Type: lake.Timestamp},
			{Name: "paid", Type: lake.Boolean},
			{Name: "note", Type: lake.Varchar},
			{Name: "Odd name \"x\"", Type: lake.Varchar},
			{Name: "body", Type: lake.JSON},
		},
		"customers": {
			{Name: "id", Type: lake.Bigint},
			{Name: "name", Type: lake.Varchar},
			{Name: "city", Type: lake.Varchar},
			{Name: "since", Type: lake.Date},
			{Name: "score", Type: lake.Bigint},
		},
	}

	for i, t := range s.tables {
		s.tables[i].read = len(reads)
		reads = append(reads, resolved{name: t.name, snapshot: lake.Snapshot{Columns: columns[folded(t.name)]}})
	}

	return reads
}

// translations returns the translation of each recorded statement, or the fault.
func translations(t *testing.T, name string) string {
	t.Helper()

	var found strings.Builder

	known := trees(t, name)

	for _, text := range slices.Sorted(maps.Keys(known)) {
		s := checked(t, known, text)
		s.values = map[string]engine.Parameter{}

		for _, parameter := range s.parameters {
			value := map[string]string{"1": "7", "2": "2026-01-31", "3": "x' OR 1=1 --"}[parameter]
			s.values[parameter] = engine.Parameter{Name: parameter, Type: map[string]string{"1": engine.Bigint, "2": engine.Varchar, "3": engine.Varchar}[parameter], Value: &value}
		}

		there, err := translate(s, shopReads(s), "q")

		fmt.Fprintf(&found, "# %s\n", text)

		if err != nil {
			fmt.Fprintf(&found, "%s\n\n", err)

			continue
		}

		for _, value := range there.values {
			there.text += "\n? = " + *value.Value
		}

		fmt.Fprintf(&found, "%s\n%s\n\n", there.text, strings.Join(there.columns, " "))
	}

	return found.String()
}

// TestTranslations compares the translations of recorded statements with golden files: statements that both engines answer alike, which
// TestEnginesAgree runs on both, and statements that are refused.
func TestTranslations(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"dialect", "bound", "foreign"} {
		found := translations(t, name)
		file := filepath.Join("testdata", name+".golden")

		if *update {
			require.NoError(t, os.WriteFile(file, []byte(found), 0o600))
		}

		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), found, "run with -update and look at what changed")
	}
}
