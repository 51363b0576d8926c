package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// planted is a faulty statement. The model corrects it if the error message matches told.
type planted struct {
	kind, bad, told, good string
}

func plantedFaults() []planted {
	return []planted{
		{"column", `SELECT sum(amout) AS v FROM orders`, `"amount"`, `SELECT sum(amount) AS v FROM orders`},
		{"column", `SELECT count(*) AS v FROM orders WHERE state = 'Late'`, `"?status"?`, `SELECT count(*) AS v FROM orders WHERE status = 'Late'`},
		{"column", `SELECT count(DISTINCT custmer_id) AS v FROM orders`, `"customer_id"`, `SELECT count(DISTINCT customer_id) AS v FROM orders`},
		{"column", `SELECT count(*) AS v FROM customers WHERE town = 'Vienna'`, `"?city"?`, `SELECT count(*) AS v FROM customers WHERE city = 'Vienna'`},
		{"column", `SELECT c.fullname AS v FROM customers c ORDER BY c.id LIMIT 1`, `"?name"?`, `SELECT c.name AS v FROM customers c ORDER BY c.id LIMIT 1`},
		{"column", `SELECT id AS v FROM orders ORDER BY date_ordered, id LIMIT 1`, `"?ordered"?`, `SELECT id AS v FROM orders ORDER BY ordered, id LIMIT 1`},
		{"column", `SELECT regoin AS v FROM orders GROUP BY regoin ORDER BY 1`, `"region"`, `SELECT region AS v FROM orders GROUP BY region ORDER BY 1`},
		{"column", `SELECT count(DISTINCT o.customer) AS v FROM orders o`, `"?customer_id"?`, `SELECT count(DISTINCT o.customer_id) AS v FROM orders o`},
		{"column", `SELECT count(*) AS v FROM customers WHERE segmnt = 'retail'`, `"segment"`, `SELECT count(*) AS v FROM customers WHERE segment = 'retail'`},
		{"column", `SELECT max(price) AS v FROM orders`, `no column "price"`, `SELECT max(price) AS v FROM products`},

		{"type", `SELECT sum(note) AS v FROM orders`, `sum`, `SELECT sum(TRY_CAST(note AS DOUBLE)) AS v FROM orders`},
		{"type", `SELECT count(*) AS v FROM orders WHERE amount > 'high'`, `(?i)convert`, `SELECT count(*) AS v FROM orders WHERE amount > 50`},
		{"type", `SELECT count(*) AS v FROM orders WHERE ordered > 5`, `(?i)type|compare|cast`, `SELECT count(*) AS v FROM orders WHERE ordered > DATE '2026-01-05'`},
		{"type", `SELECT count(*) AS v FROM orders WHERE id = 'abc'`, `(?i)convert`, `SELECT count(*) AS v FROM orders WHERE id = 7`},
		{"type", `SELECT sum(CAST(note AS DOUBLE)) AS v FROM orders`, `TRY_CAST`, `SELECT sum(TRY_CAST(note AS DOUBLE)) AS v FROM orders`},
		{"type", `SELECT avg(status) AS v FROM orders`, `avg`, `SELECT avg(amount) AS v FROM orders`},
		{"type", `SELECT max(date_diff('day', ordered, 'tomorrow')) AS v FROM orders`, `(?i)convert|date`, `SELECT max(date_diff('day', ordered, DATE '2026-12-31')) AS v FROM orders`},
		{"type", `SELECT sum(price + title) AS v FROM products`, `\+`, `SELECT sum(price) AS v FROM products`},

		{"dialect", `SELECT TOP 1 id AS v FROM orders ORDER BY amount DESC`, `not valid SQL`, `SELECT id AS v FROM orders ORDER BY amount DESC LIMIT 1`},
		{"dialect", `SELECT count(*) AS v FROM orders WHERE ordered > DATEADD(DAY, -7, DATE '2026-06-01')`, `(?i)dateadd|column "DAY"`, `SELECT count(*) AS v FROM orders WHERE ordered > DATE '2026-06-01' - INTERVAL 7 DAY`},
		{"dialect", `SELECT count(*) AS v FROM orders WHERE ordered < GETDATE()`, `(?i)no function getdate`, `SELECT count(*) AS v FROM orders WHERE ordered < DATE '2026-11-15'`},
		{"dialect", `SELECT max(NVL2(note, 1, 0)) AS v FROM orders`, `(?i)no function nvl2`, `SELECT max(CASE WHEN note IS NULL THEN 0 ELSE 1 END) AS v FROM orders`},
		{"dialect", `SELECT min(TO_CHAR(ordered, 'YYYY')) AS v FROM orders`, `(?i)no function to_char`, `SELECT min(strftime(ordered, '%Y')) AS v FROM orders`},
		{"dialect", "SELECT sum(`amount`) AS v FROM orders", `not valid SQL`, `SELECT sum("amount") AS v FROM orders`},
		{"dialect", `SELECT min(CONVERT(VARCHAR, id)) AS v FROM orders`, `(?i)convert|varchar`, `SELECT min(CAST(id AS VARCHAR)) AS v FROM orders`},
		{"dialect", `SELECT count(*) AS v FROM orders WHERE ordered > STR_TO_DATE('2026', '%Y')`, `(?i)no function str_to_date`, `SELECT count(*) AS v FROM orders WHERE ordered > DATE '2026-01-01'`},
		{"dialect", `SELECT count(*) AS v FROM customers WHERE CHARINDEX('a', name) > 0`, `(?i)no function charindex`, `SELECT count(*) AS v FROM customers WHERE strpos(name, 'a') > 0`},
		{"dialect", `SELECT max(EXTRACT(YEAR ordered)) AS v FROM orders`, `not valid SQL`, `SELECT max(EXTRACT(YEAR FROM ordered)) AS v FROM orders`},
		{"dialect", `SELECT sum(amount::money) AS v FROM orders`, `(?i)money`, `SELECT sum(amount) AS v FROM orders`},
		{"dialect", `SELECT region AS v, sum(amount) FROM orders`, `GROUP BY`, `SELECT region AS v, sum(amount) FROM orders GROUP BY region ORDER BY 1`},

		{"join", `SELECT name AS v FROM orders ORDER BY amount DESC LIMIT 1`, `no column "name"`, `SELECT c.name AS v FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.amount DESC LIMIT 1`},
		{"join", `SELECT c.city AS v FROM orders o ORDER BY o.amount DESC LIMIT 1`, `alias "c"`, `SELECT c.city AS v FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.amount DESC LIMIT 1`},
		{"join", `SELECT o.id AS v, c.name FROM orders o, customers c`, `(?i)join`, `SELECT o.id AS v, c.name FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.id`},
		{"join", `SELECT count(*) AS v FROM order_items`, `no dataset "order_items"`, `SELECT count(*) AS v FROM orders`},
		{"join", `SELECT min(title) AS v FROM prodcts`, `products`, `SELECT min(title) AS v FROM products`},
		{"join", `SELECT id AS v FROM orders JOIN customers ON customer_id = id`, `several datasets`, `SELECT o.id AS v FROM orders o JOIN customers c ON o.customer_id = c.id ORDER BY 1`},

		{"empty", `SELECT count(*) AS v FROM orders WHERE status = 'late' HAVING count(*) > 0`, `"Late"`, `SELECT count(*) AS v FROM orders WHERE status = 'Late' HAVING count(*) > 0`},
		{"empty", `SELECT name AS v FROM customers WHERE city = 'zurich'`, `"Zürich"`, `SELECT name AS v FROM customers WHERE city = 'Zürich' ORDER BY 1`},
		{"empty", `SELECT id AS v FROM orders WHERE region = 'NORTH'`, `"north"`, `SELECT id AS v FROM orders WHERE region = 'north' ORDER BY 1`},
		{"empty", `SELECT name AS v FROM customers WHERE city = 'New york'`, `"New York"`, `SELECT name AS v FROM customers WHERE city = 'New York' ORDER BY 1`},
		{"empty", `SELECT id AS v FROM orders WHERE status = 'on time'`, `"On Time"`, `SELECT id AS v FROM orders WHERE status = 'On Time' ORDER BY 1`},
		{"null", `SELECT sum(TRY_CAST(status AS DOUBLE)) AS v FROM orders`, `NULL`, `SELECT sum(amount) AS v FROM orders`},
	}
}

// newTrade creates three datasets with profiles.
func newTrade(t *testing.T, s *service, owner, bearer string) *filled {
	t.Helper()

	var orders, customers []string

	for i := range 200 {
		note := `"fragile"`
		if i%3 == 0 {
			note = fmt.Sprintf(`"%d"`, i)
		}

		orders = append(orders, fmt.Sprintf(`{"id": %d, "customer_id": %d, "status": %q, "amount": %d.5, "ordered": "2026-%02d-%02d", "region": %q, "note": %s}`,
			i, i%50, []string{"Late", "On Time", "Cancelled"}[i%3], i%97, i%11+1, i%27+1, []string{"north", "south"}[i%2], note))
	}

	for i := range 50 {
		customers = append(customers, fmt.Sprintf(`{"id": %d, "name": "Customer %c%d", "city": %q, "segment": %q}`,
			i, 'A'+rune(i%26), i, []string{"Zürich", "New York", "Vienna"}[i%3], []string{"retail", "wholesale"}[i%2]))
	}

	d := newFilled(t, s, owner, bearer)
	postRows(t, s, bearer, d.path(), `{"data": [`+strings.Join(orders, ", ")+`]}`)
	d.beside("customers", `{"data": [`+strings.Join(customers, ", ")+`]}`)
	d.beside("products", `{"data": [{"sku": "a", "title": "Anvil", "price": 12.5}, {"sku": "b", "title": "Bolt", "price": 0.25}]}`)
	d.indexed()

	return d
}

// TestRepair checks that error messages are good enough for a model that corrects what they name.
func TestRepair(t *testing.T) {
	t.Parallel()

	faults := plantedFaults()
	m := newModel(t, func(said conversation) any {
		var n int
		if _, err := fmt.Sscanf(said.question(), "Question %d", &n); err != nil {
			return err.Error()
		}

		for _, message := range said[2:] {
			if message.Role == "user" && regexp.MustCompile(faults[n].told).MatchString(message.Content) {
				return selects(faults[n].good)
			}
		}

		return selects(faults[n].bad)
	})
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_RUN_MAX_PER_USER=100")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))

	var (
		group sync.WaitGroup
		mu    sync.Mutex
		right int
		wrong []string
		turns = make(chan struct{}, 4)
	)

	for n, fault := range faults {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()

			run := d.asks(fmt.Sprintf("Question %d", n), "")

			mu.Lock()
			defer mu.Unlock()

			if len(run.Result.Steps) == 1 && run.Result.Outcome == "answer" && run.Result.Steps[0].Query == fault.good {
				right++
			} else {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %+v", fault.kind, fault.bad, run))
			}
		})
	}

	group.Wait()
	t.Logf("%d of %d faults ended right\n%s", right, len(faults), strings.Join(wrong, "\n"))
	require.GreaterOrEqual(t, len(faults), 40)
	require.GreaterOrEqual(t, right, len(faults)-2)
}
