package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTotalsAfterLoad checks that figures leave out total rows even if the value index does not have the rows of the last load yet.
func TestTotalsAfterLoad(t *testing.T) {
	t.Parallel()

	total := func(d *filled) concluded {
		run := d.asks("total amount", `"datasets": ["orders"]`)
		require.Equal(t, "answer", run.Result.Outcome, run.Result.Response)

		return run
	}

	const more = "region,amount\nwest,5\nTOTAL,65\n"

	for name, c := range map[string]struct {
		settings []string
		first    string
		before   float64
		after    float64
	}{
		"no value index":                 {nil, "region,amount\nnorth,10\nsouth,20\n Grand Total,30\n", 30, 35},
		"a value index of earlier rows":  {[]string{"QUERN_MAINTENANCE_QUIET_PERIOD=10m"}, "region,amount\nnorth,10\nsouth,20\n", 30, 35},
		"the value index has some names": {[]string{"QUERN_MAINTENANCE_QUIET_PERIOD=10m"}, "region,amount\nnorth,10\nsouth,20\nTotal,30\n", 30, 35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := start(t, c.settings...)
			d := newFilled(t, s, "ada", s.newKey().token("ada"))
			d.loaded("", c.first)

			if c.settings != nil {
				d.profiled()
			}

			// Suggestions read the same plans, and run no statement.
			suggested := call(t, http.MethodGet, s.url+"/query/suggestions?username=ada&namespace="+d.namespace+"&dataset=orders&limit=4", d.bearer, "")
			require.Equal(t, http.StatusOK, suggested.status, suggested.body)

			require.InDelta(t, c.before, total(d).cells(t)["total amount"], 0)

			d.loaded("", more)

			run := total(d)
			require.InDelta(t, c.after, run.cells(t)["total amount"], 0)
			require.Contains(t, run.Result.Steps[0].Reasoning, "that are totals of other rows are left out")
		})
	}
}
