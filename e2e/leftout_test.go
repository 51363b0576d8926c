package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// leftOutOf returns the sentences about rows that a result does not count.
func leftOutOf(run concluded) (list []string) {
	for _, d := range run.Result.Doubts {
		if d.Kind == "leftOut" {
			list = append(list, d.Text)
		}
	}

	return list
}

// newDeliveries makes orders and their customers. Of the 200 orders four have no customer_id, and eight have that of no customer.
func newDeliveries(t *testing.T, s *service, owner, bearer string) *filled {
	t.Helper()

	var orders, customers []string

	for i := range 200 {
		customer := strconv.Itoa(i % 50)

		switch {
		case i%50 == 7: // orders 7, 57, 107, 157
			customer = "null"
		case i%25 == 3: // orders 3, 28, 53 and so on
			customer = strconv.Itoa(5000 + i)
		}

		orders = append(orders, fmt.Sprintf(`{"id": %d, "customer_id": %s, "status": %q, "amount": %d.5}`, i, customer, []string{"late", "sent", "open"}[i%3], i))
	}

	for i := range 50 {
		customers = append(customers, fmt.Sprintf(`{"id": %d, "name": "Customer %c%d", "region": %q}`, i, 'A'+rune(i%26), i, []string{"north", "south", "west"}[i%3]))
	}

	d := newFilled(t, s, owner, bearer)
	postRows(t, s, bearer, d.path(), `{"data": [`+strings.Join(orders, ", ")+`]}`)
	d.beside("customers", `{"data": [`+strings.Join(customers, ", ")+`]}`)
	d.indexed()

	return d
}

// TestLeftOut checks that rows which a figure leaves out because they lack a row of another dataset are told at every door, and that
// nothing is said where none is left out.
func TestLeftOut(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newDeliveries(t, s, "ada", s.newKey().token("ada"))

	// 3+28+…+178 and 7+57+107+157, and a half each.
	const told = "12 of 200 rows of *orders* have no *customer* and are not counted; their total *amount* is 1058."

	run := d.asks("Total amount of orders by region of the customer", "")
	require.Equal(t, "answer", run.Result.Outcome, run.Result.Response)
	require.Equal(t, []string{told}, leftOutOf(run))
	require.True(t, strings.HasSuffix(run.Result.Response, "\n\n"+told), run.Result.Response)
	require.Len(t, run.Result.Steps[0].Doubts, 1)

	total, counted := 0.0, 0.0
	for i := range 200 {
		total += float64(i) + 0.5
	}

	for _, row := range run.Result.Steps[0].Data {
		amount, _ := row["total amount"].(float64)
		counted += amount
	}

	require.InDelta(t, total, counted+1058, 0.001, "every order is counted or told")

	// A condition on the other dataset leaves the same rows out, as far as they meet the other conditions.
	north := d.asks("Total amount of late orders in the north", "")
	require.Equal(t, "answer", north.Result.Outcome, north.Result.Response)
	require.Equal(t, []string{"4 of 67 rows of *orders* have no *customer* and are not counted; their total *amount* is 293."}, leftOutOf(north))

	for _, question := range []string{"How many orders are late?", "Total amount by status", "How many customers are in the north?"} {
		run := d.asks(question, "")
		require.Equal(t, "answer", run.Result.Outcome, run.Result.Response)
		require.Empty(t, run.Result.Doubts, question)
		require.NotContains(t, run.Result.Response, "not counted", question)
	}

	c := s.signedIn(t, d.apiToken())
	out := c.run("ask", "-n", d.namespace, "Total amount of orders by region of the customer")
	require.Equal(t, 1, strings.Count(strings.Join(strings.Fields(out), " "), told), out)
	require.NotContains(t, out, "Doubt:")

	p := newPeer(d, "nl2ql")
	answer := p.call("SendMessage", p.ask(uuid.NewString(), "Total amount of orders by region of the customer", "")).body
	quoted, err := json.Marshal(told)
	require.NoError(t, err)
	require.Contains(t, answer, `"doubts":[{"kind":"leftOut","text":`+string(quoted)+`}]`)
}

// TestLeftOutOfModels checks that a form that a model fills is checked, and a statement of its own is not.
func TestLeftOutOfModels(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(said conversation) any {
		if strings.Contains(said.question(), "sql") {
			return selects(`SELECT sum("amount") AS n FROM "orders" JOIN "customers" ON "customer_id" = "customers"."id" WHERE "region" = 'north'`)
		}

		return fills(`{"dataset": "orders", "measures": [{"function": "sum", "of": {"column": "amount"}}], "where": [{"dataset": "customers", "column": "region", "is": "is", "values": ["north"]}]}`)
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_SECOND_OPINION=false")...)
	d := newDeliveries(t, s, "bea", s.newKey().token("bea"))

	run := d.asks("Revenue of the north", "")
	require.Equal(t, "form", run.Result.Basis, "%+v", run)
	require.Equal(t, []string{"12 of 200 rows of *orders* have no *customer* and are not counted; their total *amount* is 1058."}, leftOutOf(run))
	require.Contains(t, run.Result.Response, "have no *customer*")

	require.Empty(t, leftOutOf(d.asks("Revenue of the north with sql", "")))
}
