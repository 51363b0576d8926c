package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask runs a statement in the dataset's namespace.
func (d *filled) ask(statement, more string, headers ...string) *answer {
	d.t.Helper()

	return send(d.t, d.question(statement, more, headers...))
}

// question returns the request of ask. more contains further members of its body.
func (d *filled) question(statement, more string, headers ...string) *http.Request {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	return newRequest(d.t, http.MethodPost, d.s.url+"/query", d.bearer,
		fmt.Sprintf(`{"username": %q, "namespace": %q, "query": %s%s}`, d.owner, d.namespace, encode(d.t, statement), more), headers...)
}

// by returns the same dataset for another caller.
func (d *filled) by(bearer string) *filled {
	other := *d
	other.bearer = bearer

	return &other
}

// beside creates another dataset in the namespace, with rows.
func (d *filled) beside(name, body string) *filled {
	d.t.Helper()

	other := *d
	other.name = name

	made := call(d.t, http.MethodPost, d.s.url+"/ingest/new/"+d.namespace+"/"+name, d.bearer, "")
	require.Equal(d.t, http.StatusCreated, made.status, made.body)

	if body != "" {
		postRows(d.t, d.s, d.bearer, other.path(), body)
	}

	return &other
}

// queried is the result of a statement.
type queried struct {
	Columns  []struct{ Name, Type string }
	Data     []map[string]any
	Metadata struct {
		Count         int
		Truncated     bool
		ExecutedQuery string
		Snapshots     []struct{ Dataset, SnapshotID string }
		Engine        string
	}
}

// result runs a statement that must succeed.
func (d *filled) result(statement, more string) (found queried) {
	d.t.Helper()

	return d.resultOf(d.ask(statement, more))
}

func (d *filled) resultOf(answer *answer) (found queried) {
	d.t.Helper()
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)
	require.Len(d.t, found.Data, found.Metadata.Count)

	return found
}

// rows returns the cells of a result in the order of its columns.
func (q queried) rows() (rows [][]any) {
	for _, row := range q.Data {
		var cells []any
		for _, column := range q.Columns {
			cells = append(cells, row[column.Name])
		}

		rows = append(rows, cells)
	}

	return rows
}

// noDataset is the answer to a name that is not a visible dataset: with candidates, or with where to look for one.
func noDataset(name string, more ...string) string {
	next := ""
	if len(more) == 1 {
		next = " " + listAll
	}

	return `{"error_code": "QUERY_INVALID", "message": "There is no dataset ` + strings.ReplaceAll(encodeText(name), `"`, `\"`) + ` that you can see.` + next + `", "error_message": "",
		"sub_errors": [` + strings.Join(more, ", ") + `]}`
}

const listAll = "Choose one of GET /schema/datasets/all, or ask the owner to share it with you."

func encodeText(text string) string {
	encoded, _ := json.Marshal(text)

	return string(encoded)
}

func at(column int) string {
	return fmt.Sprintf(`{"code": "position", "message": "line 1, column %d"}`, column)
}

func TestQueryScenarios(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"a CSV goes in, SQL comes out":          queryStory,
		"shared and revoked between statements": querySharing,
		"restricted tokens":                     queryTokens,
		"one dataset of a namespace":            queryOneOfMany,
		"limited to a dataset":                  queryLimited,
		"renamed and deleted while it runs":     queryMoves,
		"the moment of the data":                queryAsOf,
		"replaced between pages":                queryPages,
		"pages of 10,000 rows":                  queryLongPages,
		"a dataset without rows":                queryEmpty,
		"without a store":                       queryStoreDown,
		"without a database":                    queryDatabaseDown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func queryStory(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "teller", key.token("teller"))
	loaded := d.loaded("", "id,region,total,day\n1,north,19.90,2026-01-02\n2,south,5.00,2026-02-03\n3,north,7.25,\n")

	const statement = "SELECT region, count(*) AS n, sum(total) AS sum, max(day) AS last FROM orders GROUP BY region ORDER BY region"

	found := d.result(statement, "")
	require.Equal(t, []struct{ Name, Type string }{{"region", "varchar"}, {"n", "bigint"}, {"sum", "double"}, {"last", "date"}}, found.Columns)
	require.Equal(t, [][]any{{"north", 2.0, 27.15, "2026-01-02"}, {"south", 1.0, 5.0, "2026-02-03"}}, found.rows())
	require.Equal(t, []struct{ Dataset, SnapshotID string }{{d.path(), loaded.SnapshotID}}, found.Metadata.Snapshots)
	require.Equal(t, statement, found.Metadata.ExecutedQuery)
	require.Equal(t, "duckdb", found.Metadata.Engine)
	require.False(t, found.Metadata.Truncated)
	require.Equal(t, map[string]any{"score": 1.0}, found.Data[0]["__metadata"])

	found = d.result("SELECT id FROM orders WHERE total < 6", "")
	require.Equal(t, map[string]any{"score": 1.0, "source": map[string]any{"file": "file 0", "row": 2.0}}, found.Data[0]["__metadata"])

	table := d.ask("FROM orders ORDER BY id", "", "Accept: text/csv")
	require.Equal(t, "text/csv", table.header.Get("Content-Type"))
	require.Equal(t, "id,region,total,day\n1,north,19.9,2026-01-02\n2,south,5.0,2026-02-03\n3,north,7.25,\n", table.body)
	require.Contains(t, table.header.Get("X-Quern-Result"), loaded.SnapshotID)

	plan := d.result("SELECT count(*) FROM orders WHERE id = 1", `"explain": true`)
	require.Contains(t, fmt.Sprint(plan.Data), "AGGREGATE")
	require.Equal(t, loaded.SnapshotID, plan.Metadata.Snapshots[0].SnapshotID)

	cut := d.result("FROM range(20000)", "")
	require.True(t, cut.Metadata.Truncated)
	require.Equal(t, 10_000, cut.Metadata.Count)
	require.Equal(t, 20_000, d.result("FROM range(30000) LIMIT 20000", "").Metadata.Count)

	for statement, words := range map[string]string{
		"SELECT regoin FROM orders":         `"region"`,
		"SELECT * FROM ordres":              `"orders"`,
		"DELETE FROM orders":                "DELETE is not allowed",
		"SELECT 1; SELECT 2":                "several statements",
		"SELECT * FROM read_text('/x')":     "read_text",
		"SELECT region::int FROM orders":    "north",
		"SELECT getenv('PATH') FROM orders": "getenv",
	} {
		refused := d.ask(statement, "")
		requireFault(t, statement, refused, http.StatusUnprocessableEntity, "QUERY_INVALID")
		require.Contains(t, refused.body, words)
	}

	require.Equal(t, http.StatusNotAcceptable, d.ask("SELECT 1", "", "Accept: image/png").status)
}

// querySharing grants and revokes access in each way. Every statement must see the grants at the time of its request.
func querySharing(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "giver", key.token("giver"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	claims := key.claims("taker")
	claims["groups"] = []string{"others", "takers"}
	taker := d.by(key.sign(claims))
	alone := d.by(key.token("alone"))
	own := newFilled(t, s, "taker", taker.bearer)
	require.Equal(t, http.StatusOK, own.post(`{"data": [{"n": 1, "own": "yes"}]}`).status)

	byName := fmt.Sprintf(`SELECT own FROM orders JOIN "%s" USING (n)`, d.path())

	sees := func(yes bool) {
		t.Helper()

		answer, named := taker.ask("SELECT n FROM orders", ""), own.ask(byName, "")

		if yes {
			require.Equal(t, [][]any{{1.0}}, d.resultOf(answer).rows())
			require.Equal(t, [][]any{{"yes"}}, d.resultOf(named).rows())
		} else {
			require.Equal(t, http.StatusNotFound, answer.status)
			require.JSONEq(t, noNamespace(d), answer.body)
			require.Equal(t, http.StatusUnprocessableEntity, named.status)
			require.JSONEq(t, noDataset(d.path(), at(29)), named.body)
		}

		require.JSONEq(t, noNamespace(d), alone.ask("SELECT n FROM orders", "").body)
	}

	for _, path := range []string{"namespaces/self/" + d.namespace, "datasets/self/" + d.namespace + "/orders"} {
		for _, grantee := range []string{"taker", "@takers"} {
			sees(false)
			share(t, s, d.bearer, path, grantee, "viewer")
			sees(true)
			unshare(t, s, d.bearer, path, grantee)
		}
	}

	sees(false)
}

func queryTokens(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "carrier", key.token("carrier"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	d.beside("notes", `{"data": [{"n": 2}]}`)

	elsewhere := newFilled(t, s, "carrier", d.bearer)
	require.Equal(t, http.StatusOK, elsewhere.post(`{"data": [{"n": 3}]}`).status)

	one := d.by(restrictedToken(t, s, d.bearer, target("self", d.namespace, "orders")))
	all := d.by(restrictedToken(t, s, d.bearer, target("self", d.namespace, "")))
	other := d.by(restrictedToken(t, s, d.bearer, target("self", elsewhere.namespace, "")))
	_, viewer := newToken(t, s, d.bearer, "viewer")

	const both = "SELECT o.n + m.n AS n FROM orders o, notes m"

	require.Equal(t, [][]any{{3.0}}, d.result(both, "").rows())
	require.Equal(t, [][]any{{3.0}}, d.by(viewer).result(both, "").rows())
	require.Equal(t, [][]any{{3.0}}, all.result(both, "").rows())
	require.Equal(t, [][]any{{1.0}}, one.result("FROM orders", "").rows())
	require.JSONEq(t, strings.Replace(noDataset("notes", at(38)), listAll, "You can see: orders.", 1), one.ask(both, "").body)
	require.JSONEq(t, noNamespace(d, elsewhere.namespace), other.ask("FROM orders", "").body)
	require.JSONEq(t, noNamespace(d, elsewhere.namespace), other.ask("SELECT 1", "").body)

	far := fmt.Sprintf(`FROM "%s/orders"`, elsewhere.namespace)
	require.Equal(t, [][]any{{3.0}}, d.result(far, "").rows())
	require.JSONEq(t, noDataset(elsewhere.namespace+"/orders", at(6)), all.ask(far, "").body)
	require.JSONEq(t, noDataset("carrier/"+elsewhere.namespace+"/orders", at(6)), one.ask(fmt.Sprintf(`FROM "carrier/%s/orders"`, elsewhere.namespace), "").body)

	revokedID, revoked := newToken(t, s, d.bearer, "viewer")
	require.Equal(t, http.StatusOK, d.by(revoked).ask("FROM orders", "").status)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+revokedID, d.bearer, "").status)
	require.Equal(t, http.StatusUnauthorized, d.by(revoked).ask("FROM orders", "").status)
}

// queryOneOfMany shares only one dataset of a namespace. The others must not even be suggested for a wrong name.
func queryOneOfMany(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "keeper", key.token("keeper"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	d.beside("orderx", `{"data": [{"hidden": 2}]}`)
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/orders", "peeker", "viewer")

	guest := d.by(key.token("peeker"))
	require.Equal(t, [][]any{{1.0}}, guest.result("FROM orders", "").rows())
	require.Equal(t, [][]any{{1.0}}, guest.result("SELECT 1", "").rows())

	candidate := func(name string) string { return `{"code": "candidate", "message": "` + name + `"}` }

	require.JSONEq(t, noDataset("ordery", at(6), candidate("orders"), candidate("orderx")), d.ask("FROM ordery", "").body)
	require.JSONEq(t, noDataset("ordery", at(6), candidate("orders")), guest.ask("FROM ordery", "").body)
	require.JSONEq(t, noDataset("orderx", at(6), candidate("orders")), guest.ask("FROM orderx", "").body)

	for _, name := range []string{"%s", d.namespace + "/%s", "keeper/" + d.namespace + "/%s", "KEEPER/" + d.namespace + "/%s"} {
		hidden, missing := fmt.Sprintf(name, "orderx"), fmt.Sprintf(name, "orderq")
		seen, unseen := guest.ask(fmt.Sprintf("FROM %q", hidden), ""), guest.ask(fmt.Sprintf("FROM %q", missing), "")
		require.Equal(t, http.StatusUnprocessableEntity, seen.status)
		require.Equal(t, unseen.body, strings.ReplaceAll(seen.body, hidden+`\"`, missing+`\"`), "but for the name that was asked for")
	}

	require.JSONEq(t, plainFault("NOT_FOUND", `There is no dataset \"orderx\" that you can see. Did you mean orders?`), guest.ask("SELECT hidden FROM orders", `"dataset": "orderx"`).body)
	require.NotContains(t, guest.ask("SELECT hiddem FROM orders", "").body, `"hidden"`)
}

func queryLimited(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "limiter", key.token("limiter"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	d.beside("notes", `{"data": [{"n": 2}]}`)

	for _, name := range []string{"orders", "ORDERS", d.namespace + "/orders", "limiter/" + d.namespace + "/Orders", "self/" + d.namespace + "/orders"} {
		require.Equal(t, [][]any{{1.0}}, d.result(fmt.Sprintf("FROM %q", name), `"dataset": "Orders"`).rows(), name)
	}

	for _, statement := range []string{"FROM notes", "FROM orders, notes", fmt.Sprintf(`FROM orders WHERE n IN (SELECT n FROM "%s/notes")`, d.namespace)} {
		refused := d.ask(statement, `"dataset": "orders"`)
		requireFault(t, statement, refused, http.StatusUnprocessableEntity, "QUERY_INVALID")
		require.Contains(t, refused.body, "limits the statement to the dataset orders")
	}

	require.Equal(t, [][]any{{2.0}}, d.result("WITH orders AS (FROM notes) FROM orders", `"dataset": "notes"`).rows())
	require.JSONEq(t, plainFault("NOT_FOUND", `There is no dataset \"missing\" that you can see. You can see: orders, notes.`), d.ask("SELECT 1", `"dataset": "missing"`).body)

	self := *d
	self.owner = "self"
	found := self.result("SELECT n FROM orders", "")
	require.Equal(t, [][]any{{1.0}}, found.rows())
	require.Equal(t, d.path(), found.Metadata.Snapshots[0].Dataset, "answers give the real name")

	another := self.by(key.token("another"))
	another.owner = "self"
	message := strings.Replace(noNamespace(d), " of "+d.owner+" ", " of another ", 1)
	require.JSONEq(t, message, another.ask("SELECT n FROM orders", "").body)
}

// noNamespace is the error for a namespace that the caller cannot see. seen are those that the caller can see.
func noNamespace(d *filled, seen ...string) string {
	message := fmt.Sprintf(`There is no namespace \"%s\" of %s that you can see.`, d.namespace, d.owner)
	if len(seen) > 0 {
		message += " You can see: " + strings.Join(seen, ", ") + "."
	}

	return plainFault("NOT_FOUND", message)
}
