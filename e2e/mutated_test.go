package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMutatedQueries measures on a sample whether wrong statements of a model are noticed, and whether right ones are left
// alone. docs/quality.md has the figures of the whole sets.
func TestMutatedQueries(t *testing.T) {
	t.Parallel()

	program := filepath.Join(t.TempDir(), "eval")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../eval").CombinedOutput()
	require.NoError(t, err, "%s", out)

	measure := exec.CommandContext(t.Context(), program, "-suite", "business", "-model", "mutated", "-most", "3", "-out", t.TempDir())
	measure.Dir, measure.Env = "..", append(os.Environ(), "EVAL_QUERND="+binary(), "QUERN_URL=")

	var printed, told bytes.Buffer

	measure.Stdout, measure.Stderr = &printed, &told
	require.NoError(t, measure.Run(), "%s", told.String())
	t.Log("\n" + printed.String())

	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	found := regexp.MustCompile(`^eval business dev mutated agent=nl2ql mutated=(\d+) caught=([\d.]+)% right=(\d+) disturbed=([\d.]+)%$`).FindStringSubmatch(lines[len(lines)-1])
	require.NotNil(t, found, lines[len(lines)-1])

	number := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)

		return value
	}

	require.GreaterOrEqual(t, number(found[1]), 15.0)
	require.GreaterOrEqual(t, number(found[2]), 70.0, "share of wrong statements that were noticed")
	require.GreaterOrEqual(t, number(found[3]), 3.0)
	require.LessOrEqual(t, number(found[4]), 34.0, "share of right statements that were disturbed: one of three")
}

// doubtedRun is a run with its doubts.
type doubtedRun struct {
	Result struct {
		Outcome string
		Doubts  []struct{ Kind, Text string }
		Steps   []struct {
			Doubts []struct{ Kind, Text string }
		}
	}
}

func (d *filled) asksDoubted(question string) (run doubtedRun) {
	d.t.Helper()

	body := fmt.Sprintf(`{"username": %q, "namespace": %q, "agent": "nl2ql", "query": %q}`, d.owner, d.namespace, question)
	answer := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, body, "Accept: application/json", "Prefer: wait=60")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &run)

	return run
}

// TestDoubtedStatements checks that what is doubtful about a statement is sent back once, and then shown by every door: also if the model
// finds nothing although the rules are sure.
func TestDoubtedStatements(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		thinks()

		if strings.Contains(said.question(), "customers") {
			return map[string]any{"reasoning": "", "interpretation": "Nothing is about it.", "outcome": "no_data", "query": "", "clarification": nil}
		}

		return selects(`SELECT "customers"."city", sum("amount") AS n FROM "orders" JOIN "customers" ON "orders"."customer_id" = "customers"."id" GROUP BY ALL`)
	})

	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	before := len(m.requests())
	run := d.asksDoubted("What is the average amount by city in March 2026?")
	require.Len(t, m.requests()[before:], 2, "the model is told once")
	require.Contains(t, m.requests()[len(m.requests())-1], "The statement calculates no average.")
	require.Equal(t, "answer", run.Result.Outcome)
	require.Len(t, run.Result.Steps, 1)
	require.Equal(t, run.Result.Doubts, run.Result.Steps[0].Doubts)

	kinds := map[string]bool{}
	for _, one := range run.Result.Doubts {
		kinds[one.Kind] = true
	}

	require.True(t, kinds["function"] && kinds["period"], "%+v", run)

	// The rules know how many customers there are.
	var none doubtedRun

	for range 5 { // the rules have a second after the model
		before = len(m.requests())

		if none = d.asksDoubted("How many customers are there?"); len(none.Result.Doubts) > 0 {
			break
		}
	}

	require.NotEmpty(t, none.Result.Doubts)
	require.Equal(t, "no_data", none.Result.Outcome)
	require.Equal(t, "opinion", none.Result.Doubts[0].Kind)
	require.Contains(t, none.Result.Doubts[0].Text, "customers")
	require.Len(t, m.requests()[before:], 2)

	c := s.signedIn(t, d.apiToken())
	require.Contains(t, c.run("ask", "-n", d.namespace, "--agent", "nl2ql", "What is the average amount by city?"), "Doubt: The question says \"the average\".")
}
