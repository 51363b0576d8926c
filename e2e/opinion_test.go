package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sameResult  = "The rules that answer without a model give the same result."
	otherResult = "The rules that answer without a model read it otherwise: "
)

// thinks takes longer than the rules do, also on a busy machine.
func thinks() { time.Sleep(3 * time.Second) }

// TestSecondOpinion: a simple question that a model answers is read by rules too.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()

	var m *model

	m = newModel(t, func(said conversation) any {
		thinks()

		all, asked := selects(`SELECT count(*) AS n FROM "orders"`), said.question()

		switch again := said.complaint() != ""; {
		case strings.Contains(asked, "late") || (again && strings.Contains(asked, "north")):
			return selects(map[bool]string{
				true: `SELECT 'late' AS what, count(*) AS n FROM "orders" WHERE "status" = 'Late'`, false: `SELECT count(*) FROM "orders" WHERE "region" = 'north'`,
			}[strings.Contains(asked, "late")])
		case again && strings.Contains(asked, "2026"):
			m.down.Store(true)
		case again && strings.Contains(asked, "south"):
			return selects(`SELECT nothing FROM "orders"`)
		}

		return all
	})

	s := start(t, append(m.settings(), "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	ask := func(question, more string, requests int) concluded {
		before := len(m.requests())
		run := d.asks(question, more)
		require.Equal(t, "answer", run.Result.Outcome, "%s: %+v", question, run)
		require.Equal(t, "small", run.Result.Model)
		require.Len(t, m.requests()[before:], requests, question)

		return run
	}

	agreed := ask("How many orders are late?", "", 1)
	require.Equal(t, map[string]any{"what": "late", "n": 67.0}, agreed.cells(t), "more columns are no other result")
	require.Equal(t, "It says so. "+sameResult, agreed.Result.Steps[0].Reasoning)

	// It is told once, and corrects itself.
	corrected := ask("How many orders are in the north?", "", 2)
	require.Equal(t, "It says so. "+sameResult, corrected.Result.Steps[0].Reasoning)
	require.Equal(t, 200, corrected.Result.Usage.InputTokens)

	told := m.requests()[len(m.requests())-1]
	for _, part := range []string{"Simple rules", `'north'`, `{\"count\":100}`, `{\"n\":200}`} {
		require.Contains(t, told, part)
	}

	// Its last word stands: the same again, another that fails, or nothing because it died.
	stood := ask("How many orders have an amount of more than 90?", "", 2)
	require.Equal(t, map[string]any{"n": 200.0}, stood.cells(t))
	require.Contains(t, stood.Result.Steps[0].Reasoning, "It says so. "+otherResult+"number of the rows of *orders* where *amount* > 90")

	failed := ask("How many orders are in the south?", "", 4)
	require.Equal(t, map[string]any{"n": 200.0}, failed.cells(t))

	died := ask("How many orders were there in February 2026?", "", 4)
	require.Equal(t, map[string]any{"n": 200.0}, died.cells(t))
	m.down.Store(false)

	// What the rules do not read, or are not sure of, is the model's alone.
	kept := ask("How many orders are in the north?", `"helperPrompt": "North is everywhere."`, 1)
	require.Equal(t, "It says so.", kept.Result.Steps[0].Reasoning)
	require.Equal(t, "It says so.", ask("How many orders were sent back?", "", 1).Result.Steps[0].Reasoning)

	s.stop()
	s.settings = append(s.settings, "QUERN_RUN_SECOND_OPINION=false")
	s.restart()

	require.Equal(t, "It says so.", ask("How many orders are in the north?", "", 1).Result.Steps[0].Reasoning)
}

// TestSecondOpinionExposure: of another reading a model hears what it may see.
func TestSecondOpinionExposure(t *testing.T) {
	t.Parallel()

	models := map[string]*model{}
	for _, level := range []string{"schema", "values", "rows"} {
		models[level] = newModel(t, func(conversation) any {
			thinks()

			return selects(`SELECT max("amount") AS n FROM "orders"`)
		})
	}

	s := start(t, append(external(models), "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s")...)
	d := newTrade(t, s, "bea", s.newKey().token("bea"))

	for level, m := range models {
		ask := func(question string) (told string) {
			before := len(m.requests())
			run := d.asks(question, `"provider": "`+level+`"`)
			require.Contains(t, run.Result.Steps[0].Reasoning, otherResult, "the asker may see it")

			return strings.Join(m.requests()[before+1:], "\n")
		}

		// That "late" is a status is known from the values.
		told := ask("How many orders are late?")
		require.Equal(t, level != "schema", strings.Contains(told, "Simple rules"), told)
		require.Equal(t, level == "rows", strings.Contains(told, `{\"count\":67}`), told)

		told = ask("What is the total amount of orders?")
		require.Contains(t, told, "Simple rules")
		require.Contains(t, told, `sum(\"amount\")`)
		require.Equal(t, level == "rows", strings.Contains(told, `{\"total amount\":`), told)
	}
}
