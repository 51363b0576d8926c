package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// found reads the hits of a search page by page.
func (b *bundle) found(t tester, who auth.Principal, want Search) (list []Item) {
	t.Helper()

	for range maxPages {
		page, next, err := b.catalog.Search(t.Context(), who, want)
		require.NoError(t, err)

		list = append(list, page...)
		if next == nil {
			return list
		}

		require.Len(t, page, want.Limit, "only the last page is short")

		want.After = *next
	}

	require.FailNow(t, "the hits do not end")

	return nil
}

// hits returns the names of the datasets found, the best first.
func (b *bundle) hits(t tester, who auth.Principal, words string) (list []string) {
	t.Helper()

	for _, item := range b.found(t, who, Search{Words: words, Limit: 100}) {
		list = append(list, item.Name)
	}

	return list
}

// thing describes a dataset of a test.
type thing struct {
	name, description string
	columns           []string
	values            []string
}

func (b *bundle) add(t tester, who auth.Principal, made thing) Description {
	t.Helper()

	dataset, err := b.catalog.CreateDataset(t.Context(), who, NewDataset{
		Namespace: "n", Name: made.name, Definition: Change{DataDescription: &made.description},
	})
	require.NoError(t, err)

	b.fill(t, dataset.Dataset, made.columns, made.values)

	return dataset
}

// fill sets columns and values as an ingestion and the profile after it do.
func (b *bundle) fill(t tester, d Dataset, columns, values []string) {
	t.Helper()

	content := Content{Snapshot: uuid.New(), Columns: []Column{}}
	for _, name := range columns {
		content.Columns = append(content.Columns, Column{Name: name, Type: "VARCHAR"})
	}

	require.NoError(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		fits, err := b.catalog.SetContentTx(t.Context(), tx, d, content)
		require.NoError(t, err)
		require.True(t, fits)

		return b.catalog.SetValuesTx(t.Context(), tx, d.Account, d.ID, values)
	}))
}

// TestSearchRanks checks which datasets are found, and in which order.
//
//nolint:gosmopolitan // people write in every script
func TestSearchRanks(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	for _, made := range []thing{
		{name: "by_value", values: []string{"Invoice", "Zürich HB", "Müller & Söhne"}},
		{name: "by_description", description: "What every invoice says, une journée à la mairie; Straße, Łódź, Øresund."},
		{name: "by_column", columns: []string{"id", "invoiceNumber", "shipped_to"}},
		{name: "invoice_lines", description: "Lines."},
		{name: "invoice", columns: []string{"id", "region"}},
		{name: "customers", description: "People who buy."},
		{name: "OrderItems2024", columns: []string{"quantity"}},
		{name: "regional-sales", columns: []string{"region", "amount"}, description: "Sales per region and month."},
		{name: "sales", columns: []string{"amount"}},
		{name: "kunden", description: "Alle Rechnungen der Kunden, 顧客の注文一覧"},
		{name: "categories"},
		{name: "заказы", description: "Список заказов"},
	} {
		if strings.ContainsRune(made.name, 'з') {
			made.name, made.columns = "cyrillic", []string{made.name}
		}

		b.add(t, ada, made)
	}

	for words, want := range map[string][]string{
		"invoice":                  {"invoice", "invoice_lines", "by_column", "by_description", "by_value"},
		"INVOICES":                 {"invoice", "invoice_lines", "by_column", "by_description", "by_value"},
		"invioce":                  {"invoice_lines", "invoice", "by_column"},
		"invoce":                   {"invoice_lines", "invoice", "by_column"},
		"invoicce":                 {"invoice_lines", "invoice", "by_column"},
		"invo":                     {"invoice_lines", "invoice"},
		"customer":                 {"customers"},
		"custumers":                {"customers"},
		"category":                 {"categories"},
		"order items":              {"OrderItems2024"},
		"items 2024 order":         {"OrderItems2024"},
		"orderitems2024":           {"OrderItems2024"},
		"quantities":               {"OrderItems2024"},
		"zurich":                   {"by_value"},
		"ZÜRICH":                   {"by_value"},
		"muller":                   {"by_value"},
		"journee mairie":           {"by_description"},
		"strasse":                  {"by_description"},
		"lodz":                     {"by_description"},
		"oresund":                  {"by_description"},
		"sales per region":         {"regional-sales", "sales", "invoice"},
		"regionalsales":            {"regional-sales"},
		"sales regio":              {"regional-sales", "sales", "invoice"},
		"region amount":            {"regional-sales", "invoice", "sales"},
		"amount region":            {"regional-sales", "invoice", "sales"},
		"Rechnung":                 {"kunden"},
		"kunde":                    {"kunden"},
		"注文":                       {"kunden"},
		"客":                        {"kunden"},
		"注客":                       nil,
		"ЗАКАЗЫ":                   {"cyrillic"},
		"nothing like this at all": nil,
	} {
		got := b.hits(t, ada, words)
		if words == "nothing like this at all" {
			require.NotContains(t, got, "invoice", words)

			continue
		}

		if strings.HasPrefix(words, "inv") && words != "invoice" {
			require.ElementsMatch(t, want, got, words) // these match equally well
			continue
		}

		require.Equal(t, want, got, words)
	}
}

// TestSearchMatchedIn checks that a hit says in which parts of the dataset its words are, on every page.
func TestSearchMatchedIn(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	b.add(t, ada, thing{name: "orders", columns: []string{"id", "region"}, description: "Every sale.", values: []string{"north"}})
	b.add(t, ada, thing{name: "items", columns: []string{"order_id"}, description: "Of the north."})

	for words, want := range map[string][]string{
		"orders":            {"orders: name", "items: column"},
		"oders":             {"orders: name", "items: column"},
		"region":            {"orders: column"},
		"sale":              {"orders: description"},
		"north":             {"items: description", "orders: value"},
		"north sale orders": {"orders: name, description, value", "items: column, description"},
		"north absent":      {"items: description", "orders: value"},
	} {
		var told []string
		for _, hit := range b.found(t, ada, Search{Words: words, Limit: 1}) {
			told = append(told, hit.Name+": "+strings.Join(hit.MatchedIn, ", "))
		}

		require.Equal(t, want, told, words)
	}

	all, _, err := b.catalog.All(t.Context(), ada, Position{}, 10)
	require.NoError(t, err)
	require.Empty(t, all[0].MatchedIn, "a list is no search")
}

// TestSearchFollows checks that a changed dataset is found by its new content at once.
func TestSearchFollows(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	at := Path{Username: "ada", Namespace: "n", Dataset: "alpha"}
	made := b.create(t, ada, "n", "alpha")
	require.Equal(t, []string{"alpha"}, b.hits(t, ada, "alpha"))

	_, err := b.catalog.UpdateDataset(t.Context(), ada, at, DatasetChange{Name: "bravo"})
	require.NoError(t, err)
	require.Empty(t, b.hits(t, ada, "alpha"))
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "bravo"))

	at.Dataset = "bravo"
	_, err = b.catalog.PutDefinition(t.Context(), ada, at, Change{
		DataDescription: new("charlie"), SchemaDefinition: &map[string]string{"c": "delta"},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "charlie"))
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "delta"))

	_, err = b.catalog.PutDefinition(t.Context(), ada, at, Change{DataDescription: new("other")}, nil)
	require.NoError(t, err)
	require.Empty(t, b.hits(t, ada, "charlie"))

	b.fill(t, made.Dataset, []string{"echo"}, []string{"foxtrot"})
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "echo"))
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "foxtrot"))
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "delta foxtrot echo bravo"))

	require.Empty(t, b.hits(t, bob, "echo"))
	b.share(t, ada, at, "bob", auth.Viewer)
	require.Equal(t, []string{"bravo"}, b.hits(t, bob, "echo"))
	require.NoError(t, b.catalog.Unshare(t.Context(), ada, at, "bob"))
	require.Empty(t, b.hits(t, bob, "echo"))

	// Delete, restore and transfer the dataset with its values.
	require.NoError(t, b.catalog.DeleteDataset(t.Context(), ada, at))
	require.Empty(t, b.hits(t, ada, "foxtrot"))
	require.NoError(t, b.catalog.RestoreDataset(t.Context(), at))
	require.Equal(t, []string{"bravo"}, b.hits(t, ada, "foxtrot delta"))
	require.NoError(t, b.catalog.TransferDataset(t.Context(), at, "bob", moveTable))
	require.Empty(t, b.hits(t, ada, "foxtrot"))
	require.Equal(t, []string{"bravo"}, b.hits(t, bob, "foxtrot"))

	// Values are removed together with the rows that have them.
	at.Username = "bob"
	_, err = clearAlone(b.catalog, t.Context(), bob, at)
	require.NoError(t, err)
	require.Empty(t, b.hits(t, bob, "foxtrot"))
	require.Equal(t, []string{"bravo"}, b.hits(t, bob, "echo"))
	b.requireSound(t)
}

// TestSearchWithin checks searches in one namespace by callers who see all, some or none of its datasets.
func TestSearchWithin(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob, cyd := b.signIn(t, "ada"), b.signIn(t, "bob"), b.signIn(t, "cyd")

	for _, namespace := range []string{"n", "m"} {
		for i := range 3 {
			b.create(t, ada, namespace, fmt.Sprint("orders-", i))
		}
	}

	n := Path{Username: "ada", Namespace: "n"}
	one := Path{Username: "ada", Namespace: "n", Dataset: "orders-1"}
	b.share(t, ada, Path{Username: "ada", Namespace: "m"}, "bob", auth.Viewer)
	b.share(t, ada, one, "bob", auth.Viewer)

	require.Len(t, b.found(t, ada, Search{Words: "orders", In: n, Limit: 20}), 3)
	require.Len(t, b.found(t, bob, Search{Words: "orders", In: n, Limit: 20}), 1)
	require.Len(t, b.found(t, bob, Search{Words: "orders", Limit: 20}), 4)
	require.Empty(t, b.found(t, bob, Search{Words: "customers", In: n, Limit: 20}))

	_, _, err := b.catalog.Search(t.Context(), cyd, Search{Words: "orders", In: n, Limit: 20})
	require.ErrorContains(t, err, `There is no namespace "n" of ada that you can see.`)

	_, _, err = b.catalog.Search(t.Context(), cyd, Search{Words: "orders", In: Path{Username: "ada", Namespace: "absent"}, Limit: 20})
	require.ErrorContains(t, err, `There is no namespace "absent" of ada that you can see.`)

	_, _, err = b.catalog.Search(t.Context(), ada, Search{Words: "orders", In: Path{Username: "ada", Namespace: "nn"}, Limit: 20})
	require.ErrorContains(t, err, `There is no namespace "nn" of ada that you can see. Did you mean n?`)

	require.Len(t, b.found(t, b.token(t, ada, auth.Viewer, n), Search{Words: "orders", Limit: 20}), 3)
	require.Len(t, b.found(t, b.token(t, ada, auth.Viewer, one), Search{Words: "orders", Limit: 20}), 1)
	require.Len(t, b.found(t, b.token(t, bob, auth.Viewer, one), Search{Words: "orders", Limit: 20}), 1)
}

// TestSearchBackfill checks datasets that existed before the search, and datasets written by programs that do not
// support it.
func TestSearchBackfill(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	home := b.create(t, ada, "n", "alpha").NamespaceID

	// Write as the previous release does: only the rows of datasets.
	for i := range indexBatch + 5 {
		b.exec(t, `
			INSERT INTO datasets (account_id, id, namespace_id, name, name_key, data_description, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $4, 'written by others', now(), now())`, ada.Account, uuid.Must(uuid.NewV7()), home, fmt.Sprint("old-", i))
	}

	b.exec(t, `UPDATE datasets SET name = 'omega', name_key = 'omega' WHERE name = 'alpha'`)
	b.exec(t, `UPDATE datasets SET deleted_at = now() WHERE name = 'old-3'`)

	for {
		made, err := b.catalog.indexStale(t.Context())
		require.NoError(t, err)

		if made == 0 {
			break
		}
	}

	require.Len(t, b.found(t, ada, Search{Words: "written by others", Limit: 100}), indexBatch+4)
	require.Equal(t, []string{"omega"}, b.hits(t, ada, "omega"))
	require.Empty(t, b.hits(t, ada, "alpha"))
	require.NotContains(t, b.hits(t, ada, "old 3"), "old-3")
	b.requireSound(t)
}

// TestSearchFrequent checks that words of every dataset do not hide the word that distinguishes one dataset.
func TestSearchFrequent(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	home := b.create(t, ada, "n", "alpha").NamespaceID

	b.exec(t, `
		INSERT INTO datasets (account_id, id, namespace_id, name, name_key, data_description, created_at, updated_at)
		SELECT $1, gen_random_uuid(), $2, 'dataset-' || i, 'dataset-' || i, 'region of the order', now(), now() FROM generate_series(1, $3::int) i`,
		ada.Account, home, 2*maxCandidates)

	for made := 1; made > 0; {
		var err error

		made, err = b.catalog.indexStale(t.Context())
		require.NoError(t, err)
	}

	for _, words := range []string{"region of order 777", "dataset 777", "777", "datasets orders 777 region", "dataset777"} {
		require.Equal(t, "dataset-777", b.hits(t, ada, words)[0], words)
	}

	require.Len(t, b.hits(t, ada, "order"), MaxHits)
}

// TestSearchLeavesPostsAlone checks that adding rows without changing the columns does not write the search document.
func TestSearchLeavesPostsAlone(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	made := b.add(t, ada, thing{name: "alpha", columns: []string{"a", "b"}}).Dataset
	version := func() int { return b.count(t, `SELECT xmin::text::bigint FROM dataset_search`) }
	before := version()

	made.Columns = []Column{{Name: "a", Type: "VARCHAR"}, {Name: "b", Type: "VARCHAR"}}
	set := func(content Content) {
		require.NoError(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
			_, err := b.catalog.SetContentTx(t.Context(), tx, made, content)

			return err
		}))
	}

	set(Content{Columns: made.Columns, Rows: 7, Snapshot: uuid.New()})
	require.Equal(t, before, version())

	set(Content{Columns: append(made.Columns, Column{Name: "c", Type: "VARCHAR"}), Rows: 7, Snapshot: uuid.New()})
	require.NotEqual(t, before, version())
	b.requireSound(t)
}

// TestSearchHostile checks that no search text causes a failure.
//
//nolint:gosmopolitan // people write in every script
func TestSearchHostile(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	made := b.add(t, ada, thing{
		name: "a", description: strings.Repeat(`注文 '\ & | ! <-> :* `, 500), columns: []string{`'; DROP TABLE datasets; --`, `\`, "ﷺﷺﷺ"},
		values: []string{"''", "\x00", "\xff", strings.Repeat("ﷺ", 5000), "zulu"},
	})
	b.share(t, ada, Path{Username: "ada", Namespace: "n", Dataset: "a"}, "bob", auth.Viewer)

	for _, words := range []string{
		"", "\x00", "a\x00b", strings.Repeat("'", 200), strings.Repeat(`"`, 200), strings.Repeat(`\`, 200), "a & b | !c <-> d:*", "!", "!!a", "(",
		"((((", "a:", "a:A", "'a':B", ":*", "%", "_", "$1", "...", "a", "Ａ", "注文", "注", "ไทย", "한국어", "😀", "👩‍👩‍👧", "\xff\xfe", "\u202e", "ﷺ",
		strings.Repeat("ﷺ", 66), strings.Repeat("注", 66), strings.Repeat("x", 200), strings.Repeat("word ", 40), "a b c d e f g h i j k l m n o p",
		"=a", "<a", "~a", "+a", "@a", "@a" + strings.ReplaceAll(ada.Account.String(), "-", ""), "е\u0301", strings.Repeat("e\u0301", 60),
		"İstanbul", "ǅ", "½", "x\n\ty", "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november",
	} {
		for _, who := range []auth.Principal{ada, bob} {
			_, _, err := b.catalog.Search(t.Context(), who, Search{Words: words, Limit: 10})
			require.NoError(t, err, "%q", words)
		}
	}

	require.Equal(t, []string{"a"}, b.hits(t, bob, "注文"))
	require.Equal(t, []string{"a"}, b.hits(t, bob, "zulu"))
	require.Empty(t, b.hits(t, bob, "@n"+strings.ReplaceAll(made.NamespaceID.String(), "-", "")))

	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprint("value", i)
	}

	require.Len(t, bounded(many), maxValues)
	require.Len(t, bounded([]string{strings.Repeat("x", 1<<20)})[0], lexicon.MaxLetters)
}

// TestSearchRaces checks that concurrent changes of a dataset leave the document of its final content.
func TestSearchRaces(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	made := b.create(t, ada, "n", "alpha")

	for i := range loops(200) {
		from, to := Path{Username: "ada", Namespace: "n", Dataset: "alpha"}, "bravo"
		if i%2 == 1 {
			from.Dataset, to = "bravo", "alpha"
		}

		var all errgroup.Group

		all.Go(func() error {
			_, err := b.catalog.UpdateDataset(t.Context(), ada, from, DatasetChange{Name: to})

			return err
		})
		all.Go(func() error {
			return b.db.InTx(t.Context(), func(tx postgres.Tx) error {
				return b.catalog.SetValuesTx(t.Context(), tx, made.Account, made.ID, []string{fmt.Sprint("value", i)})
			})
		})
		all.Go(func() error {
			_, err := b.catalog.PutDefinition(t.Context(), ada, from, Change{DataDescription: new(fmt.Sprint("text", i))}, nil)
			if fault.Is(err, fault.NotFound) {
				return nil // it was renamed before
			}

			return err
		})
		all.Go(func() error {
			_, err := b.catalog.indexStale(t.Context())

			return err
		})
		require.NoError(t, all.Wait())

		require.Equal(t, []string{to}, b.hits(t, ada, fmt.Sprintf("%s value%d", to, i)))
		b.requireSound(t)

		before := b.documents(t)
		b.exec(t, `UPDATE dataset_search SET stale = true, document = ''`)

		_, err := b.catalog.indexStale(t.Context())
		require.NoError(t, err)
		require.Equal(t, b.documents(t), before, "it is the document that the dataset has now")
	}
}

func (b *bundle) documents(t tester) (all string) {
	t.Helper()

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT string_agg(document::text, ';' ORDER BY account_id, dataset_id) FROM dataset_search`).Scan(&all)
	}))

	return all
}
