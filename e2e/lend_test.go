package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLent checks what a model gets beside the datasets: verified questions that are near, and rows of the turn before, only if the caller may
// read them.
func TestLent(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		switch question := said.question(); {
		case strings.HasPrefix(question, "Hello"):
			return drafted{Outcome: "refused", Interpretation: "A greeting."}
		case strings.HasPrefix(question, "Every"):
			return selects(`SELECT "id", "region" FROM "orders" ORDER BY "id"`)
		case strings.HasPrefix(question, "List"):
			return selects(`SELECT "id", "city" FROM "customers" ORDER BY "id"`)
		default:
			return selects(`SELECT count(*) AS n FROM "orders"`)
		}
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	key := s.newKey()
	d := newTrade(t, s, "lena", key.token("lena"))
	last := func() string { return m.requests()[len(m.requests())-1] }

	const similar = "Verified questions that are similar:"

	d.verify(`{"question": "How many orders are late?", "query": "SELECT count(*) AS overdue\nFROM orders WHERE status = 'Late'"}`)

	// A near one is an example for the model, and not the answer.
	run := d.asks("How many orders are quixotically late?", "")
	require.NotEqual(t, "verified", run.Result.Basis)
	require.Contains(t, last(), similar+`\n- How many orders are late?\n  SELECT count(*) AS overdue FROM orders WHERE status = 'Late'\n`)
	require.NotContains(t, run.Result.Response, similar)

	d.asks("What is the weather on Mars?", "")
	require.NotContains(t, last(), similar)

	// If the model refuses, it is suggested.
	run = d.asks("Hello how many orders are late?", "")
	require.Equal(t, "refused", run.Result.Outcome)
	require.Contains(t, run.Result.Response, similar+"\n- How many orders are late?")

	// Who may not read its dataset gets neither.
	other := d.by(key.token("lent"))
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/customers", "lent", "viewer")

	run = other.asks("Hello how many orders are late?", "")
	require.NotContains(t, last(), similar)
	require.NotContains(t, last(), "overdue")
	require.NotContains(t, run.Result.Response, similar)

	// A question that follows comes with a few rows of the one before.
	first := d.asks("Every order with its region", "")
	require.Equal(t, 200, first.Result.Steps[0].RowCount)
	require.NotContains(t, last(), "The first ones, as they were then")

	within := fmt.Sprintf(`"conversationId": %q`, first.ConversationID)
	d.asks("Count them", within)
	require.Contains(t, last(), `The last of these found 200 rows. The first ones, as they were then:\n[{\"id\":0,\"region\":\"north\"},{\"id\":1,\"region\":\"south\"}`)
	require.Contains(t, last(), `{\"id\":4,\"region\":\"north\"}]`)
	d.asks("Count them again", within)
	require.Contains(t, last(), `found 1 rows. The first ones, as they were then:\n[{\"n\":200}]`, "only the turn before")
	require.NotContains(t, last(), `{\"id\":4`)

	// A caller who may no longer read the dataset does not get them back.
	mine := other.asks("List the customers", "")
	require.Equal(t, "answer", mine.Result.Outcome, "%+v", mine)

	within = fmt.Sprintf(`"conversationId": %q`, mine.ConversationID)
	other.asks("Count these", within)
	require.Contains(t, last(), `\"city\":\"`)
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/products", "lent", "viewer")
	unshare(t, s, d.bearer, "datasets/self/"+d.namespace+"/customers", "lent")

	mine = other.asks("Count these once more", within)
	require.NotContains(t, last(), "as they were then", "%+v", mine)
	require.NotContains(t, last(), "Vienna")
}
