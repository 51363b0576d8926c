package exchange //nolint:testpackage // tests what has no exported form

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

// itemOf returns a dataset of a namespace.
func itemOf(name string, columns ...string) catalog.Item {
	item := catalog.Item{Owner: "ada", Dataset: catalog.Dataset{ID: uuid.New(), Namespace: "shop", Name: name}}
	for _, column := range columns {
		item.Columns = append(item.Columns, catalog.Column{Name: column, Type: "bigint"})
	}

	return item
}

// gather reads a document about datasets that the caller may all edit.
func gather(t *testing.T, text string, items ...catalog.Item) gathering {
	t.Helper()

	found, issues, err := read(text)
	require.NoError(t, err)

	g := gathering{visible: map[string]catalog.Item{}, may: func(catalog.Item) bool { return true }, issues: issues}
	for _, item := range items {
		g.visible[strings.ToLower(item.Name)] = item
	}

	for _, m := range found.Models {
		g.model(m)
	}

	return g
}

// TestRound checks that what is written is read as the same.
func TestRound(t *testing.T) {
	t.Parallel()

	lines, products := itemOf("lines", "product_id", "quantity", "Unit Price", "1st"), itemOf("products", "id", "price")
	saved := meaning.Saved{Meaning: meaning.Meaning{
		Row: "order: line # 'x'",
		Columns: map[string]meaning.Column{
			"quantity": {Role: meaning.Count, Unit: "pieces", Synonyms: []string{"yes", "1", "a: b", "- c"}}, "1st": {Role: meaning.Text, NotForFigures: true},
		},
		Joins: []meaning.Join{
			{Columns: []string{"product_id"}, To: "products", Keys: []string{"id"}}, {Columns: []string{"product_id"}, To: "bob/stock/products", Keys: []string{"id"}},
		},
		Measures: []meaning.Measure{
			{Name: "revenue", Function: "sum", Expression: `-(quantity - 1) * ("Unit Price" + "bob/stock/products".price) / 2.5`, Unit: "EUR", Synonyms: []string{"turnover"}},
			{Name: "rows", Function: "count"},
			{Name: "firsts", Function: "countDistinct", Expression: `"1st"`},
			{Name: "middle", Function: "median", Expression: "quantity"},
		},
	}, RejectedMeasures: []meaning.Measure{{Name: "wrong", Function: "sum", Expression: "product_id"}}}

	w := writer{names: map[string]int{}}
	require.NoError(t, w.dataset(lines, query.Said{Saved: saved}))
	require.NoError(t, w.dataset(products, query.Said{Saved: meaning.Saved{Meaning: meaning.Meaning{Measures: []meaning.Measure{{Name: "Revenue", Function: "max", Expression: "price"}}}}}))
	w.keys()
	w.model.Name = "shop"

	text, err := document{version, []model{w.model}}.text()
	require.NoError(t, err)
	require.Contains(t, text, `SUM(-(lines.quantity - 1) * (lines."Unit Price" + "bob/stock/products".price) / 2.5)`)

	g := gather(t, text, lines, products)
	require.Empty(t, g.issues)
	require.Len(t, g.found, 2)

	got := g.found[0]
	require.Equal(t, saved.Row, got.row)
	require.Equal(t, saved.Joins, got.joins)
	require.Equal(t, saved.RejectedMeasures, got.rejectedMeasures)
	require.Equal(t, saved.Measures, got.measures)
	require.Equal(t, "Revenue", g.found[1].measures[0].Name, "names of metrics are unique, names of measures only in their dataset")

	for _, c := range got.columns {
		want := saved.Columns[c.name]
		require.Equal(t, want, meaning.Column{Role: c.whole.Role, Unit: c.whole.Unit, Synonyms: c.words, NotForFigures: c.whole.NotForFigures})
	}

	// Over nothing it adds all, and over itself nothing.
	now := query.Semantics{Columns: map[string]query.Entry[meaning.Column]{}}
	for _, c := range lines.Columns {
		now.Columns[c.Name] = query.Entry[meaning.Column]{Value: meaning.Column{Role: meaning.Unknown}, Origin: query.Drafted}
	}

	first := merge(got, now)
	require.Len(t, first.changes(), 1+2+2+5)
	require.Empty(t, merge(got, first.want).changes())
	require.Empty(t, first.issues)
}

// TestDrop checks that an entry that the checks refuse is left out with its reason, and that what stood there before stays.
func TestDrop(t *testing.T) {
	t.Parallel()

	lines := itemOf("lines", "a", "b")
	about := &said{
		item: lines, columns: []saidColumn{{name: "A", whole: &fieldExtension{Role: meaning.Price}}, {name: "nothing", words: []string{"x"}}},
		joins:    []meaning.Join{{Columns: []string{"a"}, To: "x", Keys: []string{"id"}}, {Columns: []string{"b"}, To: "y", Keys: []string{"id"}}},
		measures: []meaning.Measure{{Name: "m", Function: "sum", Expression: "x.c"}, {Name: "n", Function: "sum", Expression: "a"}, {Name: "o", Function: "mode", Expression: "a"}},
	}
	now := query.Semantics{
		Columns:  map[string]query.Entry[meaning.Column]{"a": {Value: meaning.Column{Role: meaning.Amount}, Origin: query.Confirmed}, "b": {Value: meaning.Column{Role: meaning.Unknown}, Origin: query.Drafted}},
		Measures: []query.Entry[meaning.Measure]{{Value: meaning.Measure{Name: "M", Function: "sum", Expression: "b"}, Origin: query.Confirmed}},
	}

	m := merge(about, now)
	require.Len(t, m.issues, 2)
	require.Len(t, m.changes(), 5)

	require.True(t, m.drop([]fault.Sub{{Code: "joins.0.to", Message: "no"}, {Code: "measures.0.expression", Message: "no"}, {Code: "columns.a.role", Message: "no"}}))
	require.Equal(t, []Change{{Join, "b", "", "with y (id)"}, {Measure, "n", "", "sum(a)"}}, m.changes())
	require.Equal(t, "b", m.want.Measures[0].Value.Expression)
	require.Equal(t, meaning.Amount, m.want.Columns["a"].Value.Role)
	require.Len(t, m.issues, 5)

	require.False(t, m.drop([]fault.Sub{{Code: "measures.0.expression", Message: "it is not from the document"}}))
}

func TestAggregate(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"SUM(a)": "sum a", " sum ( a * 2 ) ": "sum a * 2", "COUNT(*)": "count", "count(distinct a)": "countDistinct a", "Count(\nDISTINCT\na)": "countDistinct a",
		"AVG(x.\"y z\")": `average x."y z"`, "MEDIAN(a)": "median a", "MIN(a)": "min a", "MAX((a + b))": "max a + b", "COUNT(a)": "count a",
		"SUM(a) / SUM(b)": "", "(SUM(a))": "", "SUM(DISTINCT a)": "", "SUM(a) FILTER (WHERE b)": "", "STDDEV(a)": "", "SUM(CASE WHEN a THEN b END)": "", "SUM(*)": "",
		"SUM()": "", "": "", "a": "", "SUM(a": "", "SUM(a))": "", "SUM(f(a))": "", "SUM('a')": "", "SUM(a); DROP TABLE b": "", "SUM(a) -- ": "", "SUM(a % 2)": "",
		"SUM(" + strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100) + ")": "", "SUM(" + strings.Repeat("a+", 600) + "a)": "",
	} {
		function, of, err := readAggregate(text)

		got := function
		if of != nil {
			got += " " + of.String()
		}

		require.Equal(t, want, got, text)
		require.Equal(t, want == "", err != nil, text)
	}
}

// TestFieldsThatMultiply checks that fields that are computed from others cannot make an expression without bounds.
func TestFieldsThatMultiply(t *testing.T) {
	t.Parallel()

	wide := "f" + strings.Repeat(" + f", 150)
	text := "version: 0.2.0\nsemantic_model: [{name: m, datasets: [{name: d, source: d, fields: [{name: f, expression: {dialects: [{dialect: ANSI_SQL, expression: " +
		strings.Repeat("a + ", 200) + "a}]}}]}], metrics: [{name: n, expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(" + wide + ")}]}}]}]"

	g := gather(t, text, itemOf("d", "a"))
	require.Empty(t, g.found)
	require.Contains(t, g.issues[len(g.issues)-1].Reason, "more than 200 columns")
}

func TestContentLimits(t *testing.T) {
	t.Parallel()

	fine := verified.Content{Question: "How many?", Query: "SELECT 1"}
	require.Empty(t, contentProblem(fine))

	for name, change := range map[string]func(*verified.Content){
		"no query":       func(c *verified.Content) { c.Query = "" },
		"wordings":       func(c *verified.Content) { c.Wordings = make([]string, 21) },
		"empty wording":  func(c *verified.Content) { c.Wordings = []string{""} },
		"long":           func(c *verified.Content) { c.Question = strings.Repeat("ä", 501) },
		"statement":      func(c *verified.Content) { c.Query = strings.Repeat("x", 100_001) },
		"interpretation": func(c *verified.Content) { c.Interpretation = strings.Repeat("x", 1001) },
		"escape":         func(c *verified.Content) { c.Question = "a \x1b[31m b" },
		"parameters":     func(c *verified.Content) { c.Parameters = make(verified.Parameters, 5) },
		"period": func(c *verified.Content) {
			c.Parameters = verified.Parameters{{Name: "a", Type: "date", Period: "week", Default: "1"}}
		},
	} {
		bad := fine
		change(&bad)
		require.NotEmpty(t, contentProblem(bad), name)
	}
}

// FuzzRead checks that no text makes the reader fail otherwise than with a fault, and that what it reads can be gathered.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"version: 0.1.1\nsemantic_model: []\n", `{"version": "0.2.0", "semantic_model": [{"name": "m", "datasets": [{"name": "lines", "source": "a.b.lines"}]}]}`,
		"version: 0.1.1\nsemantic_model:\n- name: m\n  datasets:\n  - {name: lines, source: lines, fields: [{name: a, ai_context: {synonyms: [b]}}]}\n  metrics:\n  - {name: n, expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(lines.a)}]}}\n",
		"version: 0.1.1\nsemantic_model:\n- name: m\n  relationships: [{name: r, from: lines, to: lines, from_columns: [a], to_columns: [b]}]\n  datasets: [{name: lines, source: x}]\n",
		"a: &a [*a]", "a: &a b\nc: *a", "? [a]\n: b", "--- a\n--- b", "\xff", "- - - - -", "version: !!binary aGk=", "{a: b, a: c}", "<<: {a: b}", "version: 0.1.1\nsemantic_model: [{}]",
		`{version: 0.1.1, semantic_model: [{name: m, custom_extensions: [{vendor_name: COMMON, data: '{"quern": {"verified": [{}]}}'}]}]}`, "%YAML 1.2\n---\nversion: 0.1.1", "\"\\0\"", "",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, text string) {
		found, _, err := read(text)
		if err != nil {
			require.True(t, fault.Is(err, fault.ValidationFailed))
			require.Less(t, len(err.Error()), 2000)

			return
		}

		g := gathering{visible: map[string]catalog.Item{"lines": itemOf("lines", "a", "b")}, may: func(item catalog.Item) bool { return item.Role(auth.Principal{}) == "" }}
		for _, m := range found.Models {
			g.model(m)
		}

		for _, about := range g.found {
			m := merge(about, query.Semantics{Columns: map[string]query.Entry[meaning.Column]{"a": {Value: meaning.Column{Role: meaning.Unknown}, Origin: query.Drafted}}})
			_ = m.changes()
			require.Empty(t, merge(about, m.want).changes(), "a repeated import changes nothing")
		}
	})
}
