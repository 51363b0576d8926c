package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fromDBT is what the converter of the Ossie project writes for a project of dbt: names of fields differ from those of columns, entities
// are keys, and metrics can have conditions and quotients.
const fromDBT = `
version: 0.2.0.dev0
dialects: [ANSI_SQL]
semantic_model:
- name: jaffle
  description: All sales
  ai_context: {instructions: Use it for sales, synonyms: [sales], mood: good}
  datasets:
  - name: order_items
    source: analytics.prod.lines
    primary_key: [line_id]
    ai_context: {synonyms: [items]}
    fields:
    - name: item
      expression: {dialects: [{dialect: ANSI_SQL, expression: PRODUCT_ID}]}
    - name: pieces
      label: fact
      datatype: Integer
      expression: {dialects: [{dialect: SNOWFLAKE, expression: "quantity::int"}, {dialect: ANSI_SQL, expression: quantity}]}
      ai_context: {synonyms: [units]}
    - name: gross
      expression: {dialects: [{dialect: ANSI_SQL, expression: 'quantity * "Unit Price"'}]}
    - name: label
      expression: {dialects: [{dialect: ANSI_SQL, expression: "upper(note)"}]}
    - name: gone
      expression: {dialects: [{dialect: ANSI_SQL, expression: gone}]}
      ai_context: {synonyms: [away]}
    - name: sold
      expression: {dialects: [{dialect: ANSI_SQL, expression: sold}]}
      dimension: {is_time: true}
      custom_extensions: [{vendor_name: DBT, data: '{"granularity": "day"}'}]
  - name: products
    source: analytics.prod.products
    unique_keys: [[id]]
    fields:
    - name: item
      expression: {dialects: [{dialect: ANSI_SQL, expression: id}]}
      colour: red
  - name: shops
    source: analytics.prod.shops
  relationships:
  - {name: order_items__products__item, from: order_items, to: products, from_columns: [item], to_columns: [item]}
  - {name: order_items__shops, from: order_items, to: shops, from_columns: [item], to_columns: [id]}
  metrics:
  - name: revenue
    expression: {dialects: [{dialect: ANSI_SQL, expression: "sum( order_items.pieces * products.price )"}]}
    datatype: Decimal
    ai_context: {synonyms: [turnover]}
  - name: gross
    expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(order_items.gross) }]}
  - name: products_sold
    expression: {dialects: [{dialect: ANSI_SQL, expression: COUNT(DISTINCT order_items.product_id)}]}
  - name: average_price
    expression: {dialects: [{dialect: ANSI_SQL, expression: (SUM(order_items.gross)) / (SUM(order_items.pieces))}]}
  - name: big
    expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(CASE WHEN order_items.quantity > 3 THEN 1 END)"}]}
  - name: shouted
    expression: {dialects: [{dialect: ANSI_SQL, expression: MAX(order_items.label)}]}
  - name: brands
    expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(products.brand)}]}
  - name: rows
    expression: {dialects: [{dialect: ANSI_SQL, expression: COUNT(*)}]}
  - name: tableau
    expression: {dialects: [{dialect: TABLEAU, expression: "SUM([x])"}]}
  - name: lost
    expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(shops.area)}]}
`

func exchangeOther(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := shopOf(t, s, "exdbt", key.token("exdbt"))
	would := d.imports(fromDBT, true)
	done := d.imports(fromDBT, false)
	require.Equal(t, would, withDryRun(done))

	require.ElementsMatch(t, []string{
		"lines|column|quantity||count, also units",
		"lines|join|PRODUCT_ID||with products (id)",
		"lines|measure|revenue||sum(quantity * products.price), also turnover",
		`lines|measure|gross||sum(quantity * "Unit Price")`,
		"lines|measure|products_sold||countDistinct(product_id)",
	}, done.changes())

	refused := done.refused()
	require.Contains(t, refused["metric average_price"], "Only one SUM, AVG")
	require.Contains(t, refused["metric big"], "Only one SUM, AVG")
	require.Contains(t, refused["metric shouted"], "field order_items.label is computed")
	require.Contains(t, refused["products: measure brands"], "need numbers")
	require.Contains(t, refused["metric rows"], "COUNT(*) does not say which")
	require.Contains(t, refused["metric tableau"], "no expression in ANSI_SQL")
	require.Equal(t, "The namespace has no dataset shops that you may edit.", refused["metric lost"])
	require.Contains(t, refused["relationship order_items__shops"], "no dataset shops")
	require.Contains(t, refused["field order_items.label"], "computed")
	require.Contains(t, refused["field order_items.gross"], "computed")
	require.Equal(t, "The dataset has no column gone.", refused["lines: column gone"])
	require.Contains(t, refused["field of products item"], "The key colour is not part of the format.")
	require.Equal(t, "Synonyms of datasets are not kept.", refused["dataset order_items"])
	require.Equal(t, "Synonyms of models are not kept.", refused["model jaffle"])
	require.Len(t, refused, 14, "%v", refused)

	// What was imported answers. The profile says that the key of the join is unique.
	d.indexed()

	run := d.asks("What is the total turnover?", `"datasets": ["lines", "products"]`)
	require.Contains(t, run.Result.Response, "62.3", "%+v", run.Result)

	require.Empty(t, d.imports(fromDBT, false).changes())
}

func withDryRun(done imported) imported {
	done.DryRun = true

	return done
}

func exchangeHostile(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := shopOf(t, s, "exhost", key.token("exhost"))
	head := "version: 0.1.1\nsemantic_model:\n- name: m\n  datasets:\n  - name: lines\n    source: a.b.lines\n"

	bomb := []string{"version: 0.1.1", "a: &a [x, x]"}
	for i := range 20 {
		bomb = append(bomb, fmt.Sprintf("%c: &%c [*%c, *%c]", 'b'+i, 'b'+i, 'a'+i, 'a'+i))
	}

	for name, document := range map[string]string{
		"aliases":         strings.Join(bomb, "\n"),
		"a merge key":     "x: &x {a: 1}\ny: {<<: *x}\n",
		"depth":           "version: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"depth by lines":  nested(3000),
		"a tag":           "version: !!python/object:os.system 0.1.1\n",
		"two documents":   head + "---\n" + head,
		"no YAML":         "a: [b\n\tc: }",
		"no text":         " ",
		"a key twice":     "version: 0.1.1\nversion: 0.1.1\nsemantic_model: []\n",
		"another version": strings.Replace(head, "0.1.1", "9.0", 1),
		"no format":       "hello: world\n",
		"a wrong kind":    "version: 0.1.1\nsemantic_model: {name: m}\n",
		"no name":         "version: 0.1.1\nsemantic_model:\n- datasets: [{source: x}]\n",
		"many values":     "version: 0.1.1\nx: [" + strings.Repeat("1,", 150_000) + "1]\n",
		"NUL":             "version: \"0.1.1\\0\"\nsemantic_model: []\n",
	} {
		answer := d.sendDocument(document, false)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %.300s", name, answer.body)
		require.Less(t, len(answer.body), 1000, name)
		require.Contains(t, answer.body, `"document"`, name)
	}

	require.Equal(t, http.StatusUnprocessableEntity, d.sendDocument(strings.Repeat("x", 700_001), false).status)
	require.Equal(t, http.StatusRequestEntityTooLarge, d.sendDocument(strings.Repeat("x", 2<<20), false).status)

	// Entries that no body of the API could have, and what would be SQL.
	long := strings.Repeat("x", 300)
	done := d.imports(head+`    custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"row": "`+long+`"}}'}]
    fields:
    - {name: quantity, ai_context: {synonyms: ["`+long+`"]}, expression: {dialects: [{dialect: ANSI_SQL, expression: quantity}]}}
    - {name: note, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"role": "amount"}}'}]}
    - {name: sold, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"role": "admin"}}'}]}
    - {name: product_id, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"role": "code", "unit": "a\u001b[31m"}}'}]}
    - {name: Unit Price, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"role": "price", "grants": "all"}}'}]}
    - {name: `+long+`, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"role": "price"}}'}]}
  metrics:
  - {name: a, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM((SELECT 1 FROM secrets))"}]}}
  - {name: b, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(quantity); DROP TABLE lines"}]}}
  - {name: c, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(quantity"}]}}
  - {name: d, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(`+strings.Repeat("(", 400)+`quantity`+strings.Repeat(")", 400)+`)"}]}}
  - {name: e, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(quantity)"}]}, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"dataset": "lines", "unit": "`+long+`"}}'}]}
  - {name: f, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(secret.quantity)"}]}}
  - {name: g, expression: {dialects: [{dialect: ANSI_SQL, expression: "read_csv('/etc/passwd')"}]}}
  - {name: fine, expression: {dialects: [{dialect: ANSI_SQL, expression: "SUM(quantity)"}]}}
  custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"verified": [
    {"question": "What is the clock?", "query": "SELECT now() AS n FROM lines"},
    {"question": "What else is there?", "query": "SELECT * FROM read_csv(''/etc/passwd'')"},
    {"question": "Who is missing here?", "query": "SELECT * FROM nothing"},
    {"question": "Two words", "query": ""},
    {"question": "How many lines exist?", "query": "SELECT count(*) AS n FROM lines"}]}}'}]
`, false)
	require.Equal(t, []string{"lines|measure|fine||sum(quantity)", "added|How many lines exist?"}, done.changes())
	require.Len(t, done.NotImported, 18, "%v", done.refused())

	for _, one := range done.NotImported {
		require.Less(t, len(one.Entry)+len(one.Reason), 700, one.Entry)
	}

	require.Len(t, d.listVerified(""), 1)

	// 1,000 datasets that do not exist, each with a metric.
	many := []string{"version: 0.1.1\nsemantic_model:\n- name: m\n  datasets:"}
	for i := range 1000 {
		many = append(many, fmt.Sprintf("  - {name: n%d, source: x, fields: [{name: a, ai_context: {synonyms: [b]}}]}", i))
	}

	require.Len(t, d.imports(strings.Join(many, "\n"), false).NotImported, 501, "the report is bounded")
}

// nested returns an object in an object, n times.
func nested(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(strings.Repeat(" ", i%400) + "a:\n")
	}

	return text.String()
}
