package form_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/form"
)

// TestFanOut checks forms at random over made schemas against a calculation row by row: no figure is multiplied and none
// is lost. What has no result there is an error here, and nothing else is.
func TestFanOut(t *testing.T) {
	t.Parallel()

	const schemas, forms = 500, 8

	db := open(t)
	seen := map[string]int{}

	for seed := range uint64(schemas) {
		m := make500(seed)
		m.load(t, db)

		c := chooser{made: m, r: rand.New(rand.NewPCG(seed, 11))}

		for range forms {
			f := c.form()
			told, err := json.Marshal(f)
			require.NoError(t, err)

			statement, err := m.schema.Compile(f)
			want, reason := calculate(m, f)

			if reason != nil {
				require.True(t, isTyped(err), "schema %d, form %s\n%s\nwant the error %v, got %v", seed, told, statement.SQL, reason, err)

				seen[reason.Error()]++

				continue
			}

			require.NoError(t, err, "schema %d, form %s", seed, told)

			got, err := db.rows(statement.SQL)
			require.NoError(t, err, "schema %d, form %s\n%s", seed, told, statement.SQL)

			if len(f.Measures) == 0 {
				slices.Sort(got)
				slices.Sort(want)
			}

			require.Equal(t, want, got, "schema %d, form %s\n%s", seed, told, statement.SQL)

			for _, f := range db.check(t, statement) {
				if f.Lost > 0 {
					seen["left out"]++
				}
			}

			for what, isTrue := range map[string]bool{
				"result": true, "rows": len(want) > 0, "joined": strings.Contains(statement.SQL, "LEFT JOIN"), "apart": strings.Contains(statement.SQL, "FULL JOIN"),
				"many side": strings.Contains(statement.SQL, "EXISTS ("), "ties": strings.Contains(statement.SQL, "QUALIFY"),
			} {
				if isTrue {
					seen[what]++
				}
			}
		}
	}

	t.Log(seen)

	for _, what := range []string{"result", "rows", "joined", "apart", "many side", "ties", "left out", errPaths.Error(), errJoin.Error(), errFigure.Error()} {
		require.Greater(t, seen[what], 50, what)
	}
}

// isTyped reports whether a caller can turn an error into a question.
func isTyped(err error) bool {
	var (
		paths  *form.PathsError
		join   *form.JoinError
		figure *form.FigureError
		name   *form.NameError
	)

	return errors.As(err, &paths) || errors.As(err, &join) || errors.As(err, &figure) || errors.As(err, &name)
}
