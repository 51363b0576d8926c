package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExposure searches everything that is sent to an external model for values that the model may not see. It distinguishes
// values that the profile shows from values that only rows have.
func TestExposure(t *testing.T) { //nolint:tparallel // requests are counted by model
	t.Parallel()

	models := map[string]*model{}
	for _, operator := range []string{"schema", "values", "rows"} {
		models[operator] = newModel(t, obeysQuestion)
	}

	s := start(t, append(external(models), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_MAX_PER_USER=100")...)
	bearer := s.newKey().token("ada")

	for operator, m := range models {
		for _, owner := range []string{"", "schema", "values", "rows"} {
			t.Run(operator+" and "+owner, func(t *testing.T) {
				exposed(t, newFilled(t, s, "ada", bearer), m, operator, owner)
			})
		}
	}
}

func obeysQuestion(said conversation) any {
	switch question := said.question(); {
	case said.kind() == "plan":
		return parts(part("All of it"), part("And all of it again", 0))
	case said.kind() == "answer":
		return "It is there."
	case said.complaint() != "":
		return selects(`SELECT count(*) AS n FROM "orders"`)
	case strings.HasPrefix(question, "Fail"): // with an error message that quotes a cell
		return selects(`SELECT sum(CAST("rare" AS DOUBLE)) AS n FROM "orders"`)
	case strings.HasPrefix(question, "Number"):
		return selects(`SELECT CAST("big" AS TINYINT) AS n FROM "orders"`)
	case strings.HasPrefix(question, "Nothing"):
		return selects(`SELECT "often" FROM "orders" WHERE "often" = 'CANARY-often'`)
	default:
		return selects(`SELECT "often", "rare", "big" FROM "orders"`)
	}
}

func exposed(t *testing.T, d *filled, m *model, operator, owner string) {
	t.Helper()

	s, before := d.s, len(m.requests())

	var rows []string

	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`{"often": "canary-OFTEN", "rare": "canary-rare-%d-", "big": %d}`, i, 9_000_000+i*7919))
	}

	postRows(t, s, d.bearer, d.path(), `{"data": [`+strings.Join(rows, ", ")+`]}`)
	d.indexed()

	if owner != "" {
		changed := d.call(http.MethodPatch, "", fmt.Sprintf(`{"exposure": %q}`, owner))
		require.Equal(t, http.StatusOK, changed.status, changed.body)
	}

	profile := d.profiled()
	shown := map[string]bool{}

	for _, c := range profile.Columns {
		shown[cellText(c.Min)], shown[cellText(c.Max)] = true, true

		for _, example := range c.Examples {
			shown[cellText(example)] = true
		}

		for _, top := range c.TopValues {
			shown[cellText(top.Value)] = true
		}
	}

	of := fmt.Sprintf(`"provider": %q`, operator)
	first := d.asks("All of it", of)
	require.Equal(t, 300, first.Result.Steps[0].RowCount)

	for _, question := range []string{"Fail once", "Number that is too large", "Nothing", "And now?"} {
		run := d.asks(question, of+fmt.Sprintf(`, "conversationId": %q`, first.ConversationID))
		require.Equal(t, "completed", run.Status, "%+v", run)
	}

	answer := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", "All of it, twice", of), "Accept: application/json", "Prefer: wait=60")
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	level := map[string]int{"schema": 0, "values": 1, "rows": 2, "": 2}
	allowed := min(level[operator], level[owner])
	sent := strings.Join(m.requests()[before:], "\n")

	var (
		profiled int
		others   []string
	)

	for i := range 300 {
		value := fmt.Sprintf("canary-rare-%d-", i)

		switch {
		case !strings.Contains(sent, value):
		case shown[value]:
			profiled++
		default:
			others = append(others, value)
		}
	}

	for i := range 300 {
		if number := strconv.Itoa(9_000_000 + i*7919); strings.Contains(sent, number) && !shown[number] {
			others = append(others, number)
		}
	}

	wrote := strings.Contains(answer.body, "It is there.")
	require.Equal(t, allowed == 2, wrote, answer.body)
	require.Equal(t, !wrote, strings.Contains(answer.body, "The model may not see rows"), answer.body)

	switch allowed {
	case 0:
		require.NotContains(t, sent, "canary-OFTEN")
		require.Zero(t, profiled)
		require.Empty(t, others)
		require.Contains(t, sent, `\"rare\"`, "the schema is told")
	case 1:
		require.Contains(t, sent, "canary-OFTEN")
		require.NotZero(t, profiled)
		require.Empty(t, others)
	default:
		require.Contains(t, sent, "canary-OFTEN")
		require.NotZero(t, profiled)
		require.NotEmpty(t, others, "rows are told to whoever answers")
	}
}

func cellText(value any) string {
	if number, ok := value.(float64); ok {
		return fmt.Sprintf("%.0f", number)
	}

	return fmt.Sprint(value)
}
