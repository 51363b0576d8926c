package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	sameResult  = "The planner gives the same result."
	otherResult = "The planner interprets the question differently: "
)

// thinks takes longer than the planner, unless the machine is very busy.
func thinks() { time.Sleep(3 * time.Second) }

// inTime repeats the question while the planner's result came too late to be compared, which happens on a very busy machine.
func inTime(ask func() concluded) (run concluded) {
	for range 5 {
		if run = ask(); run.Result.Steps[0].Reasoning != "It says so." {
			break
		}
	}

	return run
}

// TestSecondOpinion checks that the planner also interprets a simple question that a model answers.
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

	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	before := 0
	ask := func(question, more string) concluded {
		before = len(m.requests())
		run := d.asks(question, more)
		require.Equal(t, "answer", run.Result.Outcome, "%s: %+v", question, run)
		require.Equal(t, "small", run.Result.Model)

		return run
	}
	compared := func(question string, requests int) concluded {
		run := inTime(func() concluded { return ask(question, "") })
		require.Len(t, m.requests()[before:], requests, question)

		return run
	}
	alone := func(question, more string) {
		require.Equal(t, "It says so.", ask(question, more).Result.Steps[0].Reasoning)
		require.Len(t, m.requests()[before:], 1, question)
	}

	agreed := compared("How many orders are late?", 1)
	require.Equal(t, map[string]any{"what": "late", "n": 67.0}, agreed.cells(t), "more columns are no other result")
	require.Equal(t, "It says so. "+sameResult, agreed.Result.Steps[0].Reasoning)

	// The model gets the planner's result once, and corrects its statement.
	corrected := compared("How many orders are in the north?", 2)
	require.Equal(t, "It says so. "+sameResult, corrected.Result.Steps[0].Reasoning)
	require.Equal(t, 200, corrected.Result.Usage.InputTokens)

	told := m.requests()[len(m.requests())-1]
	for _, part := range []string{"Simple rules", `'north'`, `{\"count\":100}`, `{\"n\":200}`} {
		require.Contains(t, told, part)
	}

	// The model's first result is kept if its second statement is the same, if the second one fails, or if the model stops
	// answering.
	stood := compared("How many orders have an amount of more than 90?", 2)
	require.Equal(t, map[string]any{"n": 200.0}, stood.cells(t))
	require.Contains(t, stood.Result.Steps[0].Reasoning, "It says so. "+otherResult+"number of *orders* where *amount* is more than 90")

	failed := compared("How many orders are in the south?", 4)
	require.Equal(t, map[string]any{"n": 200.0}, failed.cells(t))

	died := compared("How many orders were there in February 2026?", 4)
	require.Equal(t, map[string]any{"n": 200.0}, died.cells(t))
	m.down.Store(false)

	// Questions that the planner does not understand, or is not sure about, are answered by the model alone.
	alone("How many orders are in the north?", `"helperPrompt": "North is everywhere."`)
	alone("How many orders were sent back?", "")

	s.stop()
	s.settings = append(s.settings, "QUERN_RUN_SECOND_OPINION=false")
	s.restart()

	alone("How many orders are in the north?", "")
}

// TestSecondOpinionExposure checks that a model gets only as much of the planner's interpretation as its exposure allows.
func TestSecondOpinionExposure(t *testing.T) {
	t.Parallel()

	models := map[string]*model{}
	for _, level := range []string{"schema", "values", "rows"} {
		models[level] = newModel(t, func(conversation) any {
			thinks()

			return selects(`SELECT max("amount") AS n FROM "orders"`)
		})
	}

	s := start(t, append(external(models), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "bea", s.newKey().token("bea"))

	for level, m := range models {
		ask := func(question string) (told string) {
			before := 0
			run := inTime(func() concluded {
				before = len(m.requests())

				return d.asks(question, `"provider": "`+level+`"`)
			})
			require.Contains(t, run.Result.Steps[0].Reasoning, otherResult, "the asker may see it")

			return strings.Join(m.requests()[before+1:], "\n")
		}

		// The planner knows only from values that "late" is a status.
		told := ask("How many orders are late?")
		require.Equal(t, level != "schema", strings.Contains(told, "Simple rules"), told)
		require.Equal(t, level == "rows", strings.Contains(told, `{\"count\":67}`), told)

		told = ask("What is the total amount of orders?")
		require.Contains(t, told, "Simple rules")
		require.Contains(t, told, `sum(\"amount\")`)
		require.Equal(t, level == "rows", strings.Contains(told, `{\"total amount\":`), told)
	}
}
