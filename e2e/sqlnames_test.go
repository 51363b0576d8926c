package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sqlNames is the data of TestSQLNames: datasets of two accounts, each with one row that names its dataset.
type sqlNames struct {
	s        *service
	ada, bob string // bearers
}

func newSQLNames(t *testing.T, s *service, key *signer) *sqlNames {
	t.Helper()

	d := &sqlNames{s: s, ada: key.token("ada"), bob: key.token("bob")}

	for _, path := range []string{
		"ada/shop/orders", "ada/shop/items", "ada/shop/a-b.c", "ada/shop/shop", "ada/lab/orders", "ada/my.shop/orders", "ada/ada/orders",
		"ada/main/orders", "ada/temp/orders", "ada/system/orders", "ada/memory/orders", "ada/pg_catalog/orders", "ada/2026/orders",
		"bob/sales/leads", "bob/sales/hidden", "bob/shop/orders", "bob/private/orders", "bob/group/orders",
	} {
		parts := strings.Split(path, "/")
		bearer := map[string]string{"ada": d.ada, "bob": d.bob}[parts[0]]

		made := call(t, http.MethodPost, s.url+"/ingest/new/"+parts[1]+"/"+parts[2], bearer, "")
		require.Equal(t, http.StatusCreated, made.status, made.body)
		postRows(t, s, bearer, path, fmt.Sprintf(`{"data": [{"id": 1, "is": %q, "st": {"x": 7}}]}`, path))
	}

	share(t, s, d.bob, "datasets/bob/sales/leads", "ada", "viewer")
	share(t, s, d.bob, "namespaces/bob/shop", "ada", "viewer")
	share(t, s, d.bob, "datasets/bob/group/orders", "@analysts", "viewer")

	return d
}

// ask sends a statement. more contains further fields of the request, separated by commas.
func (d *sqlNames) ask(t *testing.T, bearer, statement, more string) *answer {
	t.Helper()

	if more != "" {
		more += ", "
	}

	return call(t, http.MethodPost, d.s.url+"/query", bearer, `{`+more+`"query": `+encode(t, statement)+`}`)
}

// rows returns the cells of a result that must exist.
func (d *sqlNames) rows(t *testing.T, bearer, statement, more string) string {
	t.Helper()

	answer := d.ask(t, bearer, statement, more)
	require.Equal(t, http.StatusOK, answer.status, "%s: %s", statement, answer.body)

	var found queried
	answer.json(t, &found)

	var rows []string
	for _, row := range found.rows() {
		rows = append(rows, strings.Trim(fmt.Sprintln(row...), "\n"))
	}

	return strings.Join(rows, "; ")
}

const inShop = `"username": "self", "namespace": "shop"`

// TestSQLNames checks how statements name datasets and their columns with dots.
func TestSQLNames(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_QUERY_MAX_PER_USER=100", "QUERN_QUERY_WAIT_TIMEOUT=1m", "QUERN_RUN_MAX_PER_USER=100")
	key := s.newKey()
	d := newSQLNames(t, s, key)

	for name, play := range map[string]func(*testing.T, *sqlNames, *signer){
		"found":          sqlNamesFound,
		"refused":        sqlNamesRefused,
		"others":         sqlNamesOfOthers,
		"in restriction": sqlNamesRestricted,
		"of agents":      sqlNamesOfAgents,
		"provenance":     sqlNamesProvenance,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, d, key)
		})
	}
}

func sqlNamesFound(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	for _, c := range []struct{ request, statement, want string }{
		// Names.
		{"", `SELECT "is" FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT "is" FROM ada.shop.orders`, "ada/shop/orders"},
		{"", `SELECT "is" FROM self.shop.orders`, "ada/shop/orders"},
		{"", `SELECT "is" FROM SHOP.Orders`, "ada/shop/orders"},
		{"", `SELECT "is" FROM "Shop"."ORDERS"`, "ada/shop/orders"},
		{"", `SELECT "is" FROM shop . /* a /* nested */ comment */ orders`, "ada/shop/orders"},
		{"", "SELECT \"is\" FROM ada -- the owner\n . shop\n.orders", "ada/shop/orders"},
		{"", `SELECT "is" FROM shop."a-b.c"`, "ada/shop/a-b.c"},
		{"", `SELECT "is" FROM "my.shop".orders`, "ada/my.shop/orders"},
		{"", `SELECT "is" FROM ada."my.shop".orders`, "ada/my.shop/orders"},
		{"", `SELECT "is" FROM "2026".orders`, "ada/2026/orders"},
		{"", `SELECT "is" FROM bob.sales.leads`, "bob/sales/leads"},
		{"", `SELECT "is" FROM bob.shop.orders`, "bob/shop/orders"},
		{"", `FROM shop.orders SELECT "is"`, "ada/shop/orders"},
		{"", `SELECT * EXCLUDE (id, st) FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT 1`, "1"},
		{`"username": "bob"`, `SELECT "is" FROM shop.orders`, "bob/shop/orders"},
		{`"username": "bob", "namespace": "shop"`, `SELECT o."is", i."is" FROM orders o, ada.shop.items i`, "bob/shop/orders ada/shop/items"},
		{`"namespace": "shop"`, `SELECT "is" FROM orders`, "ada/shop/orders"},
		{`"namespace": null, "username": null`, `SELECT "is" FROM shop.orders`, "ada/shop/orders"},

		// The names that the engine uses itself.
		{"", `SELECT "is" FROM main.orders`, "ada/main/orders"},
		{"", `SELECT "is" FROM temp.orders`, "ada/temp/orders"},
		{"", `SELECT "is" FROM system.orders`, "ada/system/orders"},
		{"", `SELECT "is" FROM memory.orders`, "ada/memory/orders"},
		{"", `SELECT "is" FROM pg_catalog.orders`, "ada/pg_catalog/orders"},
		{"", `SELECT "is" FROM ada.orders`, "ada/ada/orders"},
		{"", `SELECT "is" FROM ada.ada.orders`, "ada/ada/orders"},
		{
			inShop, `SELECT a."is", b."is", c."is", d."is", e."is" FROM orders a, main.orders b, temp.orders c, memory.orders d, ada.main.orders e`,
			"ada/shop/orders ada/main/orders ada/temp/orders ada/memory/orders ada/main/orders",
		},
		{"", `SELECT main.orders."is" FROM main.orders`, "ada/main/orders"},
		{"", `SELECT system.orders."is", orders.id FROM system.orders`, "ada/system/orders 1"},

		// The forms with slashes, alone and beside those with dots.
		{"", `SELECT "is" FROM "shop/orders"`, "ada/shop/orders"},
		{"", `SELECT "is" FROM "bob/sales/leads"`, "bob/sales/leads"},
		{inShop, `SELECT a."is", b."is", c."is", d."is" FROM orders a, "lab/orders" b, lab.orders c, "bob/sales/leads" d`, "ada/shop/orders ada/lab/orders ada/lab/orders bob/sales/leads"}, //nolint:dupword // names of datasets
		{"", `SELECT "lab/orders"."is", orders."is" FROM "lab/orders", shop.orders`, "ada/lab/orders ada/shop/orders"},
		{inShop, `SELECT "is" FROM "a-b.c"`, "ada/shop/a-b.c"},

		// Columns.
		{"", `SELECT orders."is" FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT shop.orders."is" FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT SHOP.ORDERS."IS" FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT ada.shop.orders."is" FROM shop.orders`, "ada/shop/orders"},
		{"", `SELECT shop.orders."is" FROM ada.shop.orders`, "ada/shop/orders"},
		{"", `SELECT bob.sales.leads."is", leads.id, sales.leads.id FROM bob.sales.leads`, "bob/sales/leads 1 1"},
		{inShop, `SELECT shop.orders."is" FROM orders`, "ada/shop/orders"},
		{inShop, `SELECT ada.shop.orders."is" FROM orders`, "ada/shop/orders"},
		{"", `SELECT shop.orders.st->>'x' FROM shop.orders`, "7"},
		{"", `SELECT o."is" FROM shop.orders o`, "ada/shop/orders"},
		{"", `SELECT shop."is" FROM lab.orders AS shop`, "ada/lab/orders"},
		{"", `SELECT shop."is", shop.shop."is" FROM shop.shop`, "ada/shop/shop ada/shop/shop"}, //nolint:dupword // names of datasets
		{"", `SELECT shop.orders."is", lab.orders."is" FROM shop.orders JOIN lab.orders ON shop.orders.id = lab.orders.id`, "ada/shop/orders ada/lab/orders"},
		{"", `SELECT ada.shop.orders."is", bob.shop.orders."is" FROM ada.shop.orders JOIN bob.shop.orders USING (id)`, "ada/shop/orders bob/shop/orders"},
		{"", `SELECT orders."is" FROM shop.orders WHERE shop.orders.id = 1 GROUP BY shop.orders."is" ORDER BY shop.orders."is"`, "ada/shop/orders"},
		{"", `SELECT (SELECT "is" FROM lab.orders WHERE lab.orders.id = shop.orders.id) FROM shop.orders`, "ada/lab/orders"},
		{"", `SELECT (ada.shop.orders.id + 1) * 2 FROM ada.shop.orders`, "4"},
		{"", `SELECT count(shop.orders) FROM shop.orders`, "1"},
		{"", `SELECT count(bob.sales.leads) FROM bob.sales.leads`, "1"},
		{"", `SELECT 'ada.shop.orders', shop.orders.id /* bob.shop.orders */ FROM ada.shop.orders`, "ada.shop.orders 1"},

		// Common table expressions hide only names without a namespace.
		{inShop, `WITH orders AS (SELECT 'mine' AS "is") SELECT "is" FROM orders`, "mine"},
		{"", `WITH orders AS (SELECT 'mine' AS "is") SELECT "is" FROM orders`, "mine"},
		{"", `WITH orders AS (SELECT 'mine' AS "is") SELECT "is" FROM shop.orders`, "ada/shop/orders"},
		{"", `WITH orders AS (SELECT * FROM shop.orders) SELECT "is" FROM orders`, "ada/shop/orders"},
		{"", `WITH shop AS (SELECT 1 AS n) SELECT "is", n FROM shop.orders, shop`, "ada/shop/orders 1"},
		{"", `WITH RECURSIVE r AS (SELECT id FROM ada.shop.orders UNION ALL SELECT id + 1 FROM r WHERE id < 3) SELECT max(id) FROM r`, "3"},

		// Other statements.
		{"", `SELECT column_name FROM (DESCRIBE shop.orders) LIMIT 1`, "id"},
		{"", `SELECT count FROM (SUMMARIZE ada.shop.orders) LIMIT 1`, "1"},
		{"", `SELECT "is" FROM shop.orders UNION ALL SELECT "is" FROM bob.sales.leads ORDER BY 1`, "ada/shop/orders; bob/sales/leads"},
		{"", "SELECT \"is\" FROM shop.orders TABLESAMPLE 100%", "ada/shop/orders"},
		{`"namespace": "shop", "dataset": "orders"`, `SELECT "is" FROM ada.shop.orders`, "ada/shop/orders"},
	} {
		t.Run(c.request+c.statement, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, d.rows(t, d.ada, c.statement, c.request))
		})
	}
}

// said is the part of an error that a caller acts on: the message, then the position and the candidates.
func said(t *testing.T, answer *answer) string {
	t.Helper()

	var body struct {
		Message   string                           `json:"message"`
		SubErrors []struct{ Code, Message string } `json:"sub_errors"`
	}

	answer.json(t, &body)

	for _, sub := range body.SubErrors {
		body.Message += " | " + sub.Message
	}

	return body.Message
}

func sqlNamesRefused(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	const remedies = " has no namespace, and neither has the request. Write namespace."

	for _, c := range []struct{ request, statement, want string }{
		{"", `SELECT * FROM orders`, "The name orders" + remedies + "orders, or set namespace in the request (quern query -n NAMESPACE). | line 1, column 15 | shop.orders | lab.orders | \"my.shop\".orders"},
		{"", `SELECT * FROM shop.orders, "a-b.c"`, `The name a-b.c` + remedies + `"a-b.c", or set namespace in the request (quern query -n NAMESPACE). | line 1, column 28 | shop."a-b.c"`},
		{`"dataset": "orders"`, `SELECT * FROM shop.orders`, "The request is not valid. | is needed to find the dataset"},
		{"", `SELECT * FROM shop.ordrs`, "There is no dataset shop.ordrs that you can see. | line 1, column 15 | shop.orders"},
		{"", `SELECT * FROM ada.Shop.ordrs`, "There is no dataset ada.Shop.ordrs that you can see. | line 1, column 15 | ada.Shop.orders"},
		{"", `SELECT * FROM "my.shop".ordrs`, `There is no dataset "my.shop".ordrs that you can see. | line 1, column 15 | "my.shop".orders`},
		{"", `SELECT * FROM shp.orders`, "There is no dataset shp.orders that you can see. | line 1, column 15 | shop.orders"},
		{"", `SELECT * FROM "shop/orders".orders`, `There is no dataset "shop/orders".orders that you can see. | line 1, column 15 | shop.orders`},
		{"", `SELECT * FROM shop."x/y"`, `There is no dataset shop."x/y" that you can see. You can see: shop.orders, shop.items, shop."a-b.c", shop.shop. | line 1, column 15`},
		{"", `SELECT * FROM bob.sales.hidden`, "There is no dataset bob.sales.hidden that you can see. You can see: bob.sales.leads. | line 1, column 15"},
		{"", `SELECT * FROM a.b.c.d`, "A name has at most three parts: owner.namespace.dataset. A part that contains a dot needs double quotes."},
		{"", `SELECT idd FROM bob.shop.orders`, `There is no column "idd". | line 1, column 8 | id`},
		{"", `SELECT 1 FROM bob.shop.orders WHERE ada.shop.orders.id = 1`, `FROM has no dataset or alias "ada.shop.orders". | line 1, column 37 | bob.shop.orders`},
		{"", `SELECT orders.id FROM ada.shop.orders, bob.shop.orders`, `The name "orders" refers to several datasets in FROM. Give each its own alias.`},
		{"", `SELECT orders.id FROM main.orders, main.orders`, `The name "orders" refers to several datasets in FROM. Give each its own alias.`},
		{"", `SELECT orders.nothing FROM shop.orders`, `There is no column "nothing" in orders. shop.orders has id, is, st. | line 1, column 8`},
		{"", "SELECT 1 FROM ada.main.orders\nWHERE nothing = 1", `There is no column "nothing". ada.main.orders has id, is, st. | line 2, column 7`},
	} {
		t.Run(c.request+c.statement, func(t *testing.T) {
			t.Parallel()

			answer := d.ask(t, d.ada, c.statement, c.request)
			require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
			require.Equal(t, c.want, said(t, answer))
			require.NotContains(t, answer.body, "__n")
		})
	}
}

// sqlNamesOfOthers checks that what the caller may not see looks as if it did not exist.
func sqlNamesOfOthers(t *testing.T, d *sqlNames, key *signer) {
	t.Helper()

	member := key.claims("ada")
	member["groups"] = []string{"analysts"}
	require.Equal(t, "bob/group/orders", d.rows(t, key.sign(member), `SELECT "is" FROM bob.group.orders`, ""), "a share with a group")

	// The names have the same lengths, so that positions are equal.
	for _, pair := range [][2]string{
		{"bob.private.orders", "bob.nothing.orders"},
		{"bob.group.orders", "bob.grxyz.orders"},
		{"bob.sales.hidden", "bob.sales.absent"},
	} {
		hidden, absent := d.ask(t, d.ada, "SELECT * FROM "+pair[0], ""), d.ask(t, d.ada, "SELECT * FROM "+pair[1], "") //nolint:unqueryvet // a statement of a user
		require.Equal(t, http.StatusUnprocessableEntity, hidden.status)
		require.Equal(t, absent.status, hidden.status)

		require.Equal(t, absent.body, strings.ReplaceAll(hidden.body, pair[0], pair[1]), pair)
	}

	stranger := key.token("stranger")
	for _, pair := range [][2]string{{"bob.sales.leads", "eve.sales.leads"}, {"ada.shop.orders", "eva.shop.orders"}} {
		hidden, absent := d.ask(t, stranger, "SELECT * FROM "+pair[0], ""), d.ask(t, stranger, "SELECT * FROM "+pair[1], "") //nolint:unqueryvet // a statement of a user
		require.Equal(t, absent.body, strings.ReplaceAll(hidden.body, pair[0], pair[1]))
		require.Equal(t, "There is no dataset "+pair[0]+" that you can see. "+listAll+" | line 1, column 15", said(t, hidden))
	}

	// Owning a namespace of the same name does not help.
	require.Equal(t, "There is no dataset shop.orders that you can see. "+listAll+" | line 1, column 15", said(t, d.ask(t, stranger, "SELECT * FROM shop.orders", ""))) //nolint:unqueryvet // a statement of a user
}

func sqlNamesRestricted(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	one := restrictedToken(t, d.s, d.ada, `{"username": "self", "namespace": "shop", "dataset": "orders"}`)
	require.Equal(t, "ada/shop/orders", d.rows(t, one, `SELECT "is" FROM shop.orders`, ""))
	require.Equal(t, "ada/shop/orders", d.rows(t, one, `SELECT ada.shop.orders."is" FROM ada.shop.orders`, ""))

	for _, name := range []string{"shop.items", "lab.orders", "bob.sales.leads", "bob.shop.orders"} {
		answer := d.ask(t, one, "SELECT * FROM "+name, "") //nolint:unqueryvet // a statement of a user
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, name)
		require.Contains(t, said(t, answer), "There is no dataset "+name+" that you can see.")

		for _, hidden := range []string{"items", "lab", "a-b.c", "my.shop", "leads"} {
			if !strings.Contains(name, hidden) {
				require.NotContains(t, answer.body, hidden, name)
			}
		}
	}

	other := restrictedToken(t, d.s, d.ada, `{"username": "bob", "namespace": "sales", "dataset": "leads"}`)
	require.Equal(t, "bob/sales/leads", d.rows(t, other, `SELECT "is" FROM bob.sales.leads`, ""))
	require.Contains(t, said(t, d.ask(t, other, "SELECT * FROM shop.orders", "")), "There is no dataset shop.orders") //nolint:unqueryvet // a statement of a user
}

// sqlNamesOfAgents checks that the statements of agents can use the same names.
func sqlNamesOfAgents(t *testing.T, d *sqlNames, _ *signer) {
	t.Helper()

	const statement = `SELECT shop.orders."is" AS mine, leads."is" AS theirs FROM shop.orders JOIN bob.sales.leads USING (id)`

	script, err := json.Marshal(map[string]any{"response": "Done.", "steps": []any{map[string]any{"instruction": "Read.", "queries": []string{statement}}}})
	require.NoError(t, err)

	for _, agent := range []string{"nl2ql", "assistant"} {
		answer := call(t, http.MethodPost, d.s.url+"/query/ask", d.ada, fmt.Sprintf(`{"username": "self", "namespace": "lab", "agent": %q, "query": %s}`, agent, encode(t, string(script))))
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		require.Contains(t, answer.body, "ada/shop/orders")
		require.Contains(t, answer.body, "bob/sales/leads")
	}
}

// sqlNamesProvenance checks that rows still have their provenance, and which snapshots were read.
func sqlNamesProvenance(t *testing.T, d *sqlNames, key *signer) {
	t.Helper()

	f := newFilled(t, d.s, "teller", key.token("teller"))
	f.loaded("", "id,region\n1,north\n2,south\n")

	for _, statement := range []string{
		"SELECT id FROM %[2]s.orders WHERE id = 2",
		"SELECT id FROM teller.%[2]s.orders WHERE teller.%[2]s.orders.id = 2",
		"SELECT %[2]s.orders.id FROM %[2]s.orders WHERE %[2]s.orders.id IN (SELECT max(id) FROM %[1]s.%[2]s.orders)",
		"SELECT o.* FROM teller.%[2]s.orders o WHERE id = 2",
	} {
		text := fmt.Sprintf(statement, "teller", identifier(f.namespace))

		var found queried

		answer := d.ask(t, f.bearer, text, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &found)

		require.Len(t, found.Data, 1, text)
		require.Equal(t, map[string]any{"score": 1.0, "source": map[string]any{"file": "file 0", "row": 2.0}}, found.Data[0]["__metadata"], text)
		require.Equal(t, text, found.Metadata.ExecutedQuery)
		require.Len(t, found.Metadata.Snapshots, 1)
		require.Equal(t, f.path(), found.Metadata.Snapshots[0].Dataset)
	}
}

func identifier(name string) string { return `"` + name + `"` }
