package query

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// trees returns recorded statements with DuckDB's trees. A test of the engine keeps the records current.
func trees(tb testing.TB, name string) map[string]json.RawMessage {
	tb.Helper()

	content, err := os.ReadFile(filepath.Join("testdata", "trees", name+".json"))
	require.NoError(tb, err)

	var found map[string]json.RawMessage
	require.NoError(tb, json.Unmarshal(content, &found))

	return found
}

// checked returns a recorded statement, checked. It removes the statement from known, so each can be used only once.
func checked(t *testing.T, known map[string]json.RawMessage, text string) *statement {
	t.Helper()

	require.Contains(t, known, text)
	s, err := check(known[text])
	require.NoError(t, err, text)
	delete(known, text)

	return s
}

func TestCheckAllows(t *testing.T) {
	t.Parallel()

	known := trees(t, "allowed")

	for text, tables := range map[string]string{
		"SELECT 1":                           "",
		"VALUES (1), (2)":                    "",
		"FROM orders":                        "orders",
		"TABLE orders":                       "orders",
		"SELECT * FROM orders":               "orders",
		`SELECT * FROM "ann/sales/orders" o`: "ann/sales/orders",
		"SELECT * FROM Orders, orders":       "Orders orders",

		"SELECT * FROM shop.orders":                                               "shop.orders",
		"SELECT * FROM bob.sales.leads l":                                         "bob.sales.leads",
		`SELECT * FROM "my.shop"."a-b"`:                                           `"my.shop"."a-b"`,
		"SELECT orders.id, shop.orders.id, ada.shop.orders.id FROM shop . orders": "shop.orders",
		"WITH orders AS (SELECT 1) SELECT * FROM orders, shop.orders":             "shop.orders",
		"SELECT * FROM main.orders":                                               "main.orders",
		"SELECT * FROM memory.main.orders":                                        "memory.main.orders",
		"SELECT * FROM information_schema.tables":                                 "information_schema.tables",
		"DESCRIBE shop.orders":                                                    "shop.orders",
		"SHOW TABLES":                                                             "",
		"SHOW ALL TABLES":                                                         "",
		"SHOW TABLES FROM shop":                                                   "",
		"SHOW TABLES FROM ada.shop":                                               "",
		"SELECT tables.table_name, information_schema.tables.table_name FROM information_schema.tables WHERE table_catalog = 'ada' AND 'shop' = table_schema": "information_schema.tables",
		"SELECT * FROM INFORMATION_SCHEMA.COLUMNS LIMIT 5":                            "INFORMATION_SCHEMA.COLUMNS",
		"DESC bob.sales.leads":                                                        "bob.sales.leads",
		"SELECT * FROM shop.orders JOIN lab.orders ON shop.orders.id = lab.orders.id": "lab.orders shop.orders",

		"SELECT count(*) FROM orders GROUP BY ALL HAVING count(*) > 1 ORDER BY 1": "orders",
		"SELECT DISTINCT ON (id) * FROM orders ORDER BY id, moment DESC":          "orders",

		"SELECT o.id FROM orders o JOIN items i USING (id) LEFT JOIN people p ON p.id = o.buyer":               "items orders people",
		"SELECT * FROM orders, LATERAL (SELECT * FROM items WHERE items.id = orders.id)":                       "items orders",
		"SELECT * FROM orders POSITIONAL JOIN items":                                                           "items orders",
		"SELECT * FROM orders ASOF JOIN items ON orders.at >= items.at":                                        "items orders",
		"SELECT id FROM orders UNION ALL SELECT id FROM items EXCEPT SELECT id FROM people INTERSECT SELECT 1": "items orders people",

		// Subqueries in every clause.
		"SELECT (SELECT max(id) FROM items), EXISTS (SELECT 1 FROM people), 1 IN (SELECT id FROM goods) FROM orders":                                                                                                                                                                  "goods items orders people",
		"SELECT * FROM orders WHERE id > ANY (SELECT id FROM items) ORDER BY (SELECT 1 FROM people) LIMIT (SELECT 5 FROM goods)":                                                                                                                                                      "goods items orders people",
		"SELECT count(*) FILTER (WHERE (SELECT true FROM items)), sum(id) OVER (PARTITION BY (SELECT 1 FROM people) ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders GROUP BY (SELECT 1 FROM goods) HAVING (SELECT true FROM tags) QUALIFY (SELECT true FROM towns)": "goods items orders people tags towns",
		"SELECT * FROM orders JOIN items ON (SELECT true FROM people)":                                                                                                                                                                                                                "items orders people",
		"SELECT CASE WHEN id IN (SELECT id FROM items) THEN (FROM people SELECT 1) ELSE [x FOR x IN (SELECT [1] FROM goods)] END FROM orders":                                                                                                                                         "goods items orders people",
		"SELECT * FROM (SELECT * FROM (SELECT * FROM (SELECT * FROM orders)))":                                                                                                                                                                                                        "orders",

		// The name of a common table expression hides a dataset only where the expression is visible in DuckDB.
		"WITH a AS (SELECT * FROM orders), b AS MATERIALIZED (SELECT * FROM a JOIN items USING (id)) SELECT * FROM b, A": "items orders",
		"WITH orders AS (SELECT * FROM orders) SELECT * FROM orders":                                                     "orders",
		"WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a":                                                   "b",
		"SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a":                                                        "a",
		"WITH a AS (WITH b AS (SELECT * FROM orders) SELECT * FROM b) SELECT * FROM a, b":                                "b orders",
		"WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 9) SELECT * FROM a":                  "",
		"WITH RECURSIVE a AS (SELECT id FROM orders UNION SELECT id FROM a JOIN items USING (id)) SELECT * FROM a":       "items orders",
		"WITH RECURSIVE a AS (SELECT * FROM a UNION ALL SELECT * FROM a) SELECT * FROM a":                                "a",
		"WITH RECURSIVE a AS (SELECT * FROM a) SELECT * FROM a":                                                          "a",
		"WITH \"boo\u212as\" AS (SELECT 1) SELECT * FROM books":                                                          "books",
		"WITH A AS (SELECT 1) SELECT * FROM a":                                                                           "",

		"SELECT * FROM range(3), generate_series(1, (SELECT max(id) FROM orders)), unnest([1]), json_each('{}'), json_tree('{}')": "orders",
		"SELECT unnest(tags) FROM orders":                          "orders",
		"FROM orders PIVOT (sum(amount) FOR year IN (2024, 2025))": "orders",
		"FROM orders UNPIVOT (v FOR n IN (a, b))":                  "orders",
		"SELECT * FROM (DESCRIBE orders)":                          "orders",
		"SELECT * FROM (SUMMARIZE orders)":                         "orders",
		"DESCRIBE orders":                                          "orders",
		"SUMMARIZE orders":                                         "orders",
		"DESCRIBE SELECT * FROM orders":                            "orders",
		"SHOW orders":                                              "orders",
		"SELECT * FROM main.range(3)":                              "",
		"SELECT * FROM orders TABLESAMPLE 10%":                     "orders",
		"SELECT * FROM orders USING SAMPLE 5 ROWS":                 "orders",
		"SELECT lower(name), main.upper(name), name ~ 'x', list_transform(l, lambda x: x + 1) FROM orders": "orders",
		`SELECT 'SELECT * FROM secret', '{"class":"FUNCTION","sample":null}'`:                              "",
		"SELECT * FROM 'file.csv'": "file.csv",
		"SELECT COLUMNS('a.*'), * EXCLUDE (a) REPLACE (b AS c), * LIKE 'x%' FROM orders": "orders",
	} {
		s := checked(t, known, text)

		var names []string
		for _, found := range s.tables {
			names = append(names, found.String())

			if found.at >= 0 {
				written := strings.Trim(strings.ReplaceAll(text[found.at:], " . ", "."), `"'`)
				require.True(t, strings.HasPrefix(written, strings.Trim(found.String(), `"`)), "%s at %d", text, found.at)
			}
		}

		require.ElementsMatch(t, strings.Fields(tables), names, text)
	}

	require.Empty(t, known, "recorded, but not expected")
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()

	for text, tree := range trees(t, "refused") {
		_, err := check(tree)
		require.True(t, fault.Is(err, fault.QueryInvalid), "%s: %v", text, err)

		said := fault.From(err).Message

		switch {
		case text == "":
			require.Contains(t, said, "no statement")
		case strings.Contains(text, "1; "):
			require.Contains(t, said, "several statements")
		case strings.Contains(text, "SELECT $"):
			require.Regexp(t, `^The name of a parameter|^A statement has at most 1000 parameters`, said)
		case strings.HasPrefix(text, "SHOW") || strings.Contains(text, "(SHOW"):
			require.Contains(t, said, "This form of SHOW is not supported")
		case strings.Contains(text, "information_schema"):
			require.Contains(t, said, "information_schema.tables")
		case strings.Contains(text, " AT "):
			require.Contains(t, said, "asOf")
		default:
			require.Regexp(t, `^The (table )?function [a-zA-Z_]+ is not supported`, said, text)
		}
	}
}

// TestCheckOfNoTrees checks output of a sealed process that is not a tree, or is a tree of an unknown version of DuckDB.
func TestCheckOfNoTrees(t *testing.T) {
	t.Parallel()

	select1 := string(trees(t, "allowed")["SELECT 1"])
	table := string(trees(t, "allowed")["FROM orders"])
	parameter := string(trees(t, "parameters")["SELECT $1"])

	for _, tree := range []string{
		``, `[]`, `null`, `7`, `{}`, `{"statements":7}`, `{"statements":[7]}`, `{"statements":[{}]}`, `{"statements":[{"node":null}]}`,
		strings.Replace(select1, "SELECT_NODE", "STATEMENT_NODE", 1),
		strings.Replace(select1, `"EMPTY"`, `"COLUMN_DATA"`, 1),
		strings.Replace(table, `"BASE_TABLE"`, `"DELIM_GET"`, 1),
		strings.Replace(table, `"from_table":`, `"from_elsewhere":`, 1), // the walk does not visit it, but count counts it
		strings.Replace(parameter, `"VALUE_PARAMETER"`, `"VALUE_ELSE"`, 1),
		strings.Replace(parameter, `"identifier":"1"`, `"identifier":7`, 1),
		strings.Replace(parameter, `"identifier":"1"`, `"identifier":"2"`, 1),
		strings.Replace(parameter, `"key":"1"`, `"key":"2"`, 1),
		strings.Replace(parameter, `"class":"PARAMETER"`, `"class":"CONSTANT"`, 1), // declared, but not in the tree
		strings.Replace(parameter, `"named_param_map"`, `"param_map"`, 1),
	} {
		_, err := check(json.RawMessage(tree))
		require.Error(t, err, tree)
	}
}
