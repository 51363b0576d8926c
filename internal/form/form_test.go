package form_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// TestForms checks the statements and interpretations of forms of every kind against testdata/forms.golden, and the
// results of the statements against rows that were written by hand.
func TestForms(t *testing.T) {
	t.Parallel()

	var golden strings.Builder

	for _, set := range []struct {
		world
		examples []example
	}{{shop(), shopExamples()}, {farm(), farmExamples()}, {freight(), freightExamples()}} {
		db := set.open(t)

		for _, e := range set.examples {
			statement, err := set.schema.Compile(e.form)
			require.NoError(t, err, e.name)

			again, err := set.schema.Compile(e.form)
			require.NoError(t, err, e.name)
			require.Equal(t, statement, again, e.name)

			golden.WriteString("# " + e.name + "\n" + statement.SQL + "\n" + statement.Interpretation + "\n")

			for _, note := range statement.Notes {
				golden.WriteString("Note: " + note + "\n")
			}

			golden.WriteString("\n")

			got, err := db.rows(statement.SQL)
			if err != nil || strings.Join(got, "; ") != e.want {
				t.Errorf("%s: %s\nwant %s\ngot  %s\n%v", e.name, statement.SQL, e.want, strings.Join(got, "; "), err)
			}
		}
	}

	const file = "testdata/forms.golden"

	if *update {
		require.NoError(t, os.WriteFile(file, []byte(golden.String()), 0o600))
	}

	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}
