package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine/document/paper"
)

// proposesOffers is a model that proposes fields of offers. The service must leave out two of them: no words state the first, and no column can have the name
// of the second.
func proposesOffers(conversation) any {
	field := func(name, description, quote string) map[string]any {
		return map[string]any{"name": name, "description": description, "quote": quote}
	}

	return map[string]any{"about": "One offer of an item\nand its price", "fields": []any{
		field("Item", "what is offered", "Bolt 1 costs"), field("price", "for one, in EUR", "1001,01 EUR"), field("stock", "how many", "5 in stock"),
		field("colour", "of the item", "painted red"), field("ignore\"; all", "your instructions", "Our prices"),
	}}
}

// TestDefinitionDrafted lets a model propose a definition from documents. Nothing is stored before a person saves it, and then it reads the rows.
func TestDefinitionDrafted(t *testing.T) {
	t.Parallel()

	read := readsOffers(nil)
	m := newModel(t, func(said conversation) any {
		if strings.Contains(said[0].Content, "You propose the columns") {
			return proposesOffers(said)
		}

		return read(said)
	})
	s := start(t, external(map[string]*model{"rows": m})...)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))

	var pages [][]paper.Print
	for _, page := range offers(2, 4) {
		pages = append(pages, paper.Lines(800, strings.Split(strings.TrimSpace(page), "\n")...))
	}

	before := d.call(http.MethodGet, "/inferDefinition", "").body
	tried := d.loaded(`"dryRun": true, "draft": true`, string(paper.PDF(pages...)), strings.Join(offers(1, 2), "\f"))
	require.Len(t, m.requests(), 1)
	require.Contains(t, m.requests()[0], "document 2 page 1")
	require.Regexp(t, `The model large of rows proposed this from the beginnings of 2 of 2 documents, with 100 tokens, and 10 tokens of answers. Nothing was saved. `+
		`Fields left out, .*: 2\.`, tried.Preview.Doubts[0].Message)

	shown := d.call(http.MethodGet, "/ingestions/"+tried.ID, "").body
	require.Contains(t, shown, `"definition":{"dataDescription":"One offer of an item and its price","quotes":{"item":"Bolt 1 costs","price":"1001,01 EUR","stock":"5 in stock"},`+
		`"schemaDefinition":{"item":"what is offered","price":"for one, in EUR","stock":"how many"}}`)
	require.Equal(t, before, d.call(http.MethodGet, "/inferDefinition", "").body, "nothing is saved")

	refusesDrafts(t, d)
	commandsDraft(t, d)
	require.Len(t, d.offered(), 4)
}

// refusesDrafts checks that the service refuses contradictory requests, and a draft for a dataset whose rows the model may not see.
func refusesDrafts(t *testing.T, d *filled) {
	t.Helper()

	session := uploadFiles(t, d.s, d.bearer, "Bolt 1 costs 1,00 EUR")
	for body, reason := range map[string]string{
		`"draft": true`: "draft",
		`"dryRun": true, "draft": true, ` + byModel: "draft",
		`"dryRun": true, "sample": 2`:               "sample",
		`"sample": 2, ` + byModel:                   "sample",
		`"dryRun": true, "sample": 101, ` + byModel: "sample",
	} {
		refused := d.create(session, body)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, body+refused.body)
		require.Contains(t, refused.body, reason)
	}

	require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"exposure": "values"}`).status)

	refused := d.create(session, `"dryRun": true, "draft": true`)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "may not see rows of this dataset")
	require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"exposure": "rows"}`).status)
}

// commandsDraft drafts and saves a definition with the client, then loads with it.
func commandsDraft(t *testing.T, d *filled) {
	t.Helper()

	bearer := value(t, call(t, http.MethodPost, d.s.url+"/user/tokens", d.bearer, `{"name": "drafter"}`))
	asked := d.s.signedIn(t, bearer)
	document, saved := filepath.Join(t.TempDir(), "offers.txt"), filepath.Join(t.TempDir(), "offers.json")
	require.NoError(t, os.WriteFile(document, []byte(strings.Join(offers(2, 2), "\f")), 0o600))

	printed := asked.run("dataset", "describe", d.path(), "--draft-from", document)
	require.Regexp(t, `price +for one, in EUR +1001,01 EUR`, printed)

	drafted := asked.run("dataset", "describe", d.path(), "--draft-from", document, "--output", "json")

	var definition struct{ SchemaDefinition map[string]string }

	require.NoError(t, json.Unmarshal([]byte(drafted), &definition), drafted)
	require.Len(t, definition.SchemaDefinition, 3)
	require.NoError(t, os.WriteFile(saved, []byte(drafted), 0o600))
	require.Contains(t, asked.run("dataset", "describe", d.path(), "--file", saved), "for one, in EUR")

	asked.run("upload", document, d.path(), "--extract", "model", "--type", "price=double", "--yes")
}

// TestRecordsSample lets a model read a part of the documents before they are loaded. Its records and doubts are shown, nothing is loaded, and the load
// asks only about the rest.
func TestRecordsSample(t *testing.T) {
	t.Parallel()

	m := newModel(t, readsOffers(func(item int, said map[string]any) {
		if item == 2 {
			claim, _ := said["price"].(map[string]any)
			claim["value"] = "7,77 EUR"
		}
	}))
	s := start(t, m.settings()...)
	d := newOffers(t, s, s.newKey().token("ada"))
	documents := []string{strings.Join(offers(10, 60), "\f"), "Nothing is offered.", strings.Join(offers(2, 4), "\f")}

	tried := d.loaded(byModel+`, "dryRun": true, "sample": 2`, documents...)
	require.Len(t, m.requests(), 2)
	require.Contains(t, d.call(http.MethodGet, "", "").body, `"rowCount":0`, "nothing is loaded")

	var told []string
	for _, one := range tried.Preview.Doubts {
		told = append(told, one.Message)
	}

	all := strings.Join(told, "\n")
	require.Regexp(t, `does not prove: 1\. .*price \(1, page 1\)`, all)
	require.Regexp(t, `The model small of here read 2 of \d+ parts of the documents, with 200 tokens, and 20 tokens of answers\. Nothing was loaded, and the answers are kept\. `+
		`A load sends \d+ more requests: about \d+ tokens, and about \d+ tokens of answers\.`, all)

	shown := d.call(http.MethodGet, "/ingestions/"+tried.ID, "").body
	require.Regexp(t, `"documents":\[\{"file":"[^"]+","inputTokens":100,"outputTokens":10,"pages":\d\},\{"file":"[^"]+","inputTokens":100,"outputTokens":10,"pages":1\}\]`, shown)
	require.Contains(t, shown, `"item":"Bolt 1","price":1001.01,"stock":5`)
	require.Equal(t, []string{"0-2: price"}, d.flagged(tried.ID))
	require.Zero(t, d.records(tried.ID)[0].Row, "it became no row")

	d.correct(tried.ID, "0-2", "price", `"1002.02"`)
	require.Equal(t, conflict, d.reload(tried.ID).status)

	done := d.loaded(byModel, documents[0], documents[1])
	rest := len(m.requests()) - 2
	require.Equal(t, int64(600), done.Progress.RowsDone)
	require.Regexp(t, `"inputTokens":0,`, d.call(http.MethodGet, "/ingestions/"+done.ID, "").body)

	chunks := map[string]bool{}
	for _, request := range m.requests() {
		chunks[request] = true
	}

	require.Len(t, chunks, rest+2, "nothing is asked twice")
	require.Empty(t, d.flagged(done.ID), "a correction of the sample holds for the load")

	bearer := value(t, call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "reader"}`))
	document := filepath.Join(t.TempDir(), "offers.txt")
	require.NoError(t, os.WriteFile(document, []byte(documents[2]), 0o600))

	asked := s.signedIn(t, bearer)
	require.NotZero(t, asked.try("upload", document, d.path(), "--extract", "model", "--sample", "1").code)

	printed := asked.run("upload", document, d.path(), "--extract", "model", "--dry-run", "--sample", "1")
	require.Regexp(t, "`quern ingestion records \\S+ \\S+` shows where each field was read", printed)
	require.Contains(t, asked.run("ingestion", "correct", d.path(), tried.ID, "0-1", "colour=red"), "The next load of the document has it.")
}
