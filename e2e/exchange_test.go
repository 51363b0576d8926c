package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type imported struct {
	DryRun   bool
	Datasets []struct {
		Dataset string
		Changes []struct{ Kind, Name, From, To string }
	}
	Verified    []struct{ Question, Change string }
	NotImported []struct{ Entry, Reason string }
	More        bool
}

// changes returns the changes as text.
func (i imported) changes() (list []string) {
	for _, d := range i.Datasets {
		for _, c := range d.Changes {
			list = append(list, strings.Join([]string{d.Dataset, c.Kind, c.Name, c.From, c.To}, "|"))
		}
	}

	for _, q := range i.Verified {
		list = append(list, q.Change+"|"+q.Question)
	}

	return list
}

// refused returns what is not imported, by entry.
func (i imported) refused() map[string]string {
	found := map[string]string{}
	for _, one := range i.NotImported {
		found[one.Entry] = one.Reason
	}

	return found
}

func (d *filled) exchange() string { return d.s.url + "/semantics/" + d.owner + "/" + d.namespace }

// exportedMeaning returns the document of the namespace.
func (d *filled) exportedMeaning() string {
	d.t.Helper()

	var found struct{ Document string }

	answer := call(d.t, http.MethodGet, d.exchange(), d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)

	return found.Document
}

func (d *filled) sendDocument(document string, dryRun bool) *answer {
	d.t.Helper()

	body, err := json.Marshal(map[string]any{"document": document, "dryRun": dryRun})
	require.NoError(d.t, err)

	return call(d.t, http.MethodPost, d.exchange(), d.bearer, string(body))
}

// imports sends a document.
func (d *filled) imports(document string, dryRun bool) (done imported) {
	d.t.Helper()

	answer := d.sendDocument(document, dryRun)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &done)
	require.Equal(d.t, dryRun, done.DryRun)

	return done
}

func TestSemanticsExchange(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"there and back":         exchangeRound,
		"a file of another tool": exchangeOther,
		"hostile documents":      exchangeHostile,
		"who may":                exchangeRights,
		"the terminal":           exchangeTerminal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

// shopOf loads lines of orders and products, and says what they mean.
func shopOf(t *testing.T, s *service, who, bearer string) (lines *filled) {
	t.Helper()

	other := newFilled(t, s, who, bearer)
	lines = other.beside("lines", `{"data": [{"product_id": 7, "quantity": 2, "sold": "2026-01-02", "Unit Price": 3.5, "note": "a"}, {"product_id": 9, "quantity": 5, "sold": "2026-02-02", "Unit Price": 1, "note": "b"}]}`)
	lines.beside("products", `{"data": [{"id": 7, "price": 19.9, "brand": "Acme"}, {"id": 9, "price": 4.5, "brand": "Bolt"}]}`)

	return lines
}

const linesMeaning = `{"row": "order line",
	"columns": {"quantity": {"role": "count", "unit": "pieces", "synonyms": ["number of items", "it's: a \"trap\" # {"]}, "Unit Price": {"role": "price", "unit": "EUR"}, "note": {"role": "text", "notForFigures": true}},
	"joins": [{"columns": ["product_id"], "to": "products", "keys": ["id"]}],
	"measures": [{"name": "revenue", "synonyms": ["turnover"], "function": "sum", "expression": "quantity * products.price", "unit": "EUR"},
		{"name": "lines sold", "function": "count"}, {"name": "kinds", "function": "countDistinct", "expression": "\"Unit Price\""}]}`

func (d *filled) besideNamed(name string) *filled {
	return &filled{d.t, d.s, d.bearer, d.owner, d.namespace, name}
}

func exchangeRound(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := shopOf(t, s, "exa", key.token("exa"))
	d.mean(linesMeaning)
	d.besideNamed("products").mean(`{"measures": [{"name": "Revenue", "function": "max", "expression": "price"}]}`)
	d.verify(`{"question": "How many pieces of $brand were sold?", "wordings": ["Pieces sold of $brand"],
		"query": "SELECT sum(quantity) AS n\nFROM lines JOIN products ON id = product_id WHERE brand = $brand",
		"parameters": [{"name": "brand", "type": "varchar", "column": "products.brand", "default": "Acme"}]}`)

	document := d.exportedMeaning()
	requireInterchange(t, document)
	require.Contains(t, document, "SUM(lines.quantity * products.price)")
	require.Contains(t, document, `expression: '"Unit Price"'`)
	require.Contains(t, document, "- How many pieces of Acme were sold?")
	require.Equal(t, document, d.exportedMeaning(), "the same content has the same text")

	// The same document changes nothing, and makes no revision.
	_, before := d.semantics()
	again := d.imports(document, false)
	require.Empty(t, again.changes())
	require.Empty(t, again.NotImported)

	_, after := d.semantics()
	require.Equal(t, before, after)

	// Elsewhere it says the same. A dry run says so and changes nothing.
	to := shopOf(t, s, "exbert", key.token("exbert"))
	would := to.imports(document, true)
	require.Empty(t, would.NotImported)
	require.Contains(t, would.changes(), "lines|measure|revenue||sum(quantity * products.price) in EUR, also turnover")
	require.Contains(t, would.changes(), "added|How many pieces of $brand were sold?")
	_, etag := to.semantics()
	require.Equal(t, `"0"`, etag)
	require.Empty(t, to.listVerified(""))

	require.Equal(t, would.changes(), to.imports(document, false).changes())
	require.Equal(t, strings.ReplaceAll(document, "exa."+d.namespace, "exbert."+to.namespace), strings.ReplaceAll(to.exportedMeaning(), "name: "+to.namespace, "name: "+d.namespace))

	_, etag = to.semantics()
	require.Equal(t, `"1"`, etag, "a dataset is changed in one revision")
	require.Empty(t, to.imports(document, false).changes())

	// What came in a document is marked, and has the importer as its author, until somebody verifies it here.
	require.Len(t, to.listVerified(""), 1)
	kept := to.listVerified("")[0]
	require.Equal(t, "exbert", kept.Author)
	require.Contains(t, to.verified(http.MethodGet, kept.ID, "").body, `"imported":true`)
	require.NotContains(t, to.verified(http.MethodPatch, kept.ID, `{"status": "verified"}`).body, `"imported"`)

	// What people said here stays, and the file wins where it says something else.
	to.mean(strings.Replace(linesMeaning, `"row": "order line"`, `"row": "position"`, 1))
	require.Equal(t, []string{"lines|row||position|order line"}, to.imports(document, true).changes())
	to.mean(strings.Replace(linesMeaning, `"kinds"`, `"sorts"`, 1))
	require.Equal(t, []string{"lines|measure|kinds||countDistinct(\"Unit Price\")"}, to.imports(document, false).changes())

	found, _ := to.semantics()
	require.Len(t, found.Measures, 4)
}

// requireInterchange checks a document against the rules of the format.
func requireInterchange(t *testing.T, document string) {
	t.Helper()

	type context struct {
		Instructions string   `yaml:"instructions"`
		Synonyms     []string `yaml:"synonyms"`
		Examples     []string `yaml:"examples"`
	}

	type expression struct {
		Dialects []struct {
			Dialect    string `yaml:"dialect"`
			Expression string `yaml:"expression"`
		} `yaml:"dialects"`
	}

	type extensions []struct {
		Vendor string `yaml:"vendor_name"`
		Data   string `yaml:"data"`
	}

	var found struct {
		Version string `yaml:"version"`
		Models  []struct {
			Name     string  `yaml:"name"`
			Context  context `yaml:"ai_context"`
			Datasets []struct {
				Name        string     `yaml:"name"`
				Source      string     `yaml:"source"`
				Description string     `yaml:"description"`
				PrimaryKey  []string   `yaml:"primary_key"`
				UniqueKeys  [][]string `yaml:"unique_keys"`
				Context     context    `yaml:"ai_context"`
				Extensions  extensions `yaml:"custom_extensions"`
				Fields      []struct {
					Name        string     `yaml:"name"`
					Expression  expression `yaml:"expression"`
					Description string     `yaml:"description"`
					Dimension   struct {
						IsTime bool `yaml:"is_time"`
					} `yaml:"dimension"`
					Context    context    `yaml:"ai_context"`
					Extensions extensions `yaml:"custom_extensions"`
				} `yaml:"fields"`
			} `yaml:"datasets"`
			Relationships []struct {
				Name string   `yaml:"name"`
				From string   `yaml:"from"`
				To   string   `yaml:"to"`
				Own  []string `yaml:"from_columns"`
				Keys []string `yaml:"to_columns"`
			} `yaml:"relationships"`
			Metrics []struct {
				Name       string     `yaml:"name"`
				Expression expression `yaml:"expression"`
				Context    context    `yaml:"ai_context"`
				Extensions extensions `yaml:"custom_extensions"`
			} `yaml:"metrics"`
			Extensions extensions `yaml:"custom_extensions"`
		} `yaml:"semantic_model"`
	}

	decoder := yaml.NewDecoder(strings.NewReader(document))
	decoder.KnownFields(true) // the format allows no others
	require.NoError(t, decoder.Decode(&found))
	require.Equal(t, "0.1.1", found.Version)

	for _, m := range found.Models {
		names, metrics := map[string]bool{}, map[string]bool{}

		require.NotEmpty(t, m.Datasets)

		for _, d := range m.Datasets {
			require.NotEmpty(t, d.Source)
			require.False(t, names[d.Name], d.Name)
			names[d.Name] = true

			for _, f := range d.Fields {
				require.Equal(t, "ANSI_SQL", f.Expression.Dialects[0].Dialect)
				require.NotEmpty(t, f.Expression.Dialects[0].Expression)
			}
		}

		for _, r := range m.Relationships {
			require.True(t, names[r.From] && names[r.To], r.Name)
			require.Len(t, r.Keys, len(r.Own))
		}

		for _, one := range m.Metrics {
			require.False(t, metrics[strings.ToLower(one.Name)], one.Name)
			metrics[strings.ToLower(one.Name)] = true
			require.Equal(t, "ANSI_SQL", one.Expression.Dialects[0].Dialect)
			require.True(t, json.Valid([]byte(one.Extensions[0].Data)))
		}
	}
}

func exchangeRights(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := shopOf(t, s, "exown", key.token("exown"))
	d.mean(linesMeaning)
	d.besideNamed("products").mean(`{"row": "secretive product"}`)
	d.verify(`{"question": "How many products are there?", "query": "SELECT count(*) AS n FROM products"}`)

	document := d.exportedMeaning()
	partly, viewer, nobody := d.by(key.token("expart")), d.by(key.token("exview")), d.by(key.token("exnone"))
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/lines", "expart", "editor")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "exview", "viewer")

	// A viewer exports what the owner exports, and imports nothing.
	require.Equal(t, document, viewer.exportedMeaning())
	requireFault(t, "viewer", viewer.sendDocument(document, true), http.StatusForbidden, "FORBIDDEN")

	// Who may not see the namespace gets what a namespace that does not exist gets, also for a document that is not valid.
	for _, text := range []string{document, "x: ["} {
		requireFault(t, "nobody", nobody.sendDocument(text, false), http.StatusNotFound, "NOT_FOUND")
	}

	requireFault(t, "nobody", call(t, http.MethodGet, d.exchange(), nobody.bearer, ""), http.StatusNotFound, "NOT_FOUND")

	// Who may see one dataset exports that one, without joins and measures of the other.
	seen := partly.exportedMeaning()
	require.Contains(t, seen, "name: lines")
	require.NotContains(t, seen, "products")
	require.NotContains(t, seen, "secretive")
	require.NotContains(t, seen, "How many products")

	// A dataset that exists and one that does not are the same for them, and nothing of the owner is lost.
	changed := strings.ReplaceAll(document, "order line", "position")
	changed = strings.ReplaceAll(changed, "secretive product", "thing")
	changed = strings.Replace(changed, "- How many products", "- How many nothing", 1)
	done := partly.imports(changed, false)
	require.Equal(t, []string{"lines|row||order line|position"}, done.changes())
	require.Equal(t, "The namespace has no dataset products that you may edit.", done.refused()["dataset products"])

	missing := partly.imports(strings.ReplaceAll(changed, "products", "nothings"), true)
	require.Equal(t, "The namespace has no dataset nothings that you may edit.", missing.refused()["dataset nothings"])
	require.Len(t, missing.NotImported, len(done.NotImported))

	found, _ := d.semantics()
	require.Equal(t, "position", found.Row)
	require.Len(t, found.Joins, 1)
	require.Len(t, found.Measures, 3)

	found, _ = d.besideNamed("products").semantics()
	require.Equal(t, "secretive product", found.Row)

	// An editor of one dataset verifies nothing for the namespace.
	for entry, reason := range done.refused() {
		if strings.HasPrefix(entry, "verified question") {
			require.Equal(t, "This needs the role editor on the namespace as a whole.", reason)
		}
	}

	// A role that is withdrawn ends it.
	unshare(t, s, d.bearer, "datasets/self/"+d.namespace+"/lines", "expart")
	requireFault(t, "revoked", partly.sendDocument(document, false), http.StatusNotFound, "NOT_FOUND")
}

func exchangeTerminal(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := shopOf(t, s, "exterm", key.token("exterm"))
	d.mean(linesMeaning)

	c := s.signedIn(t, d.apiToken())
	about := "exterm/" + d.namespace
	document := c.run("semantics", "export", about)
	require.Equal(t, d.exportedMeaning(), document)

	file := filepath.Join(t.TempDir(), "model.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(document, "order line", "position")+"extra: 1\n"), 0o600))

	would := c.run("semantics", "import", about, file, "--dry-run")
	require.Contains(t, would, "order line")
	require.Contains(t, would, "position")
	require.Contains(t, would, "The key extra is not part of the format.")
	require.Contains(t, would, "Nothing was changed.")
	require.Contains(t, c.run("semantics", "import", about, file), "position")
	require.Contains(t, c.run("semantics", "import", about, file), "Nothing changes.")

	// 60 verified questions take several requests.
	var list []map[string]string
	for i := range 60 {
		list = append(list, map[string]string{"question": fmt.Sprintf("How many lines have %d pieces?", i), "query": fmt.Sprintf("SELECT count(*) AS n FROM lines WHERE quantity = %d", i)})
	}

	data, err := json.Marshal(map[string]any{"quern": map[string]any{"verified": list}})
	require.NoError(t, err)

	text, err := json.Marshal(map[string]any{"version": "0.1.1", "semantic_model": []any{map[string]any{
		"name": "m", "datasets": []any{}, "custom_extensions": []any{map[string]string{"vendor_name": "COMMON", "data": string(data)}},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.True(t, d.imports(string(text), true).More)
	c.run("semantics", "import", about, file)
	require.Len(t, d.listVerified("?limit=100"), 60)
}
