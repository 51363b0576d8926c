package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type semantics struct {
	Row       string                     `json:"row"`
	RowSource string                     `json:"rowSource"`
	Columns   map[string]columnSemantics `json:"columns"`
	Joins     []joinSemantics            `json:"joins"`
	Measures  []measureSemantics         `json:"measures"`
}

type columnSemantics struct {
	Role          string   `json:"role"`
	Unit          string   `json:"unit"`
	Synonyms      []string `json:"synonyms"`
	NotForFigures bool     `json:"notForFigures"`
	Source        string   `json:"source"`
}

type joinSemantics struct {
	Columns []string `json:"columns"`
	To      string   `json:"to"`
	Keys    []string `json:"keys"`
	Source  string   `json:"source"`
}

type measureSemantics struct {
	Name       string   `json:"name"`
	Synonyms   []string `json:"synonyms"`
	Function   string   `json:"function"`
	Expression string   `json:"expression"`
	Unit       string   `json:"unit"`
	Source     string   `json:"source"`
}

// semantics returns the semantics of the dataset, and their ETag.
func (d *filled) semantics() (found semantics, etag string) {
	d.t.Helper()

	answer := d.call(http.MethodGet, "/semantics", "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)

	return found, answer.header.Get("ETag")
}

// mean sets the semantics of the dataset.
func (d *filled) mean(body string) (saved semantics) {
	d.t.Helper()

	answer := d.call(http.MethodPut, "/semantics", body)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &saved)

	return saved
}

// joined returns the joins as text.
func (s semantics) joined() (list []string) {
	for _, j := range s.Joins {
		list = append(list, strings.Join(j.Columns, ",")+" "+j.To+" "+strings.Join(j.Keys, ",")+" "+j.Source)
	}

	return list
}

// measured returns the measures as text.
func (s semantics) measured() (list []string) {
	for _, m := range s.Measures {
		list = append(list, m.Name+" = "+m.Function+" "+m.Expression+" "+m.Source)
	}

	return list
}

func TestSemantics(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"a draft, and what a person says": semanticsStory,
		"joins that others may see":       semanticsJoins,
		"what is refused":                 semanticsRefused,
		"two people at once":              semanticsRevisions,
		"datasets that come and go":       semanticsLife,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

// sold loads orders and the customers that they name.
func sold(t *testing.T, s *service, key *signer, who string) (orders, customers *filled) {
	t.Helper()

	var rows, others []string

	for i := range 200 {
		others = append(others, fmt.Sprintf(`{"id": %d, "name": "secretive%d", "discount": 0.5}`, 1000+i*7, i))
		rows = append(rows, fmt.Sprintf(`{"order_id": %d, "customer_id": %d, "quantity": %d, "unit price": 2.5, "note": "secretive%d"}`, i, 1000+(i%150)*7, i%5, i%9))
	}

	orders = newFilled(t, s, who, key.token(who))
	require.Equal(t, http.StatusOK, orders.post(`{"data": [`+strings.Join(rows, ",")+`]}`).status)

	customers = orders.beside("customers", `{"data": [`+strings.Join(others, ",")+`]}`)

	return orders, customers
}

func semanticsStory(t *testing.T, s *service, key *signer) {
	t.Helper()

	d, customers := sold(t, s, key, "meaner")

	// Before the first profile the draft follows from names and types.
	early, etag := d.semantics()
	require.Equal(t, `"0"`, etag)
	require.Len(t, early.Columns, 5)
	require.Equal(t, "drafted", early.Columns["note"].Source)

	d.profiled()
	customers.profiled()

	await(t, "the drafted join", func() bool {
		found, _ := d.semantics()

		return len(found.Joins) == 1
	})

	drafted, _ := d.semantics()
	require.Equal(t, []string{"customer_id customers id drafted"}, drafted.joined())

	for name, c := range drafted.Columns {
		require.Equal(t, "drafted", c.Source, name)
	}

	require.NotContains(t, d.call(http.MethodGet, "/semantics", "").body, "secretive", "a draft shows no values")

	saved := d.mean(`{"row": "order", "columns": {"UNIT PRICE": {"role": "price", "unit": "EUR", "synonyms": ["price"]}, "order_id": {"role": "identifier", "notForFigures": true}},
		"joins": [{"columns": ["Customer_ID"], "to": "CUSTOMERS", "keys": ["ID"]}],
		"measures": [{"name": "revenue", "synonyms": ["turnover"], "function": "sum", "expression": "Quantity*\"unit price\"*(1-customers.discount)", "unit": "EUR"},
			{"name": "orders", "function": "count"}]}`)
	found, etag := d.semantics()
	require.Equal(t, saved, found)
	require.Equal(t, `"1"`, etag)
	require.Equal(t, "order", found.Row)
	require.Equal(t, "confirmed", found.RowSource)
	require.Equal(t, columnSemantics{Role: "price", Unit: "EUR", Synonyms: []string{"price"}, Source: "confirmed"}, found.Columns["unit price"])
	require.Equal(t, columnSemantics{Role: "identifier", Synonyms: []string{}, NotForFigures: true, Source: "confirmed"}, found.Columns["order_id"])
	require.Equal(t, drafted.Columns["quantity"], found.Columns["quantity"])
	require.Equal(t, []string{"customer_id customers id confirmed"}, found.joined())
	require.Equal(t, []string{`revenue = sum quantity * "unit price" * (1 - customers.discount) confirmed`, "orders = count  confirmed"}, found.measured())

	// What was read can be sent back: drafts stay drafts.
	require.Equal(t, found, d.mean(d.call(http.MethodGet, "/semantics", "").body))

	// A draft that was changed and still says that it is one would be lost.
	changed := strings.Replace(d.call(http.MethodGet, "/semantics", "").body, `"quantity":{"notForFigures":false`, `"quantity":{"notForFigures":true`, 1)
	refused := d.call(http.MethodPut, "/semantics", changed)
	requireFault(t, "a changed draft", refused, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	require.Contains(t, refused.body, "columns.quantity")

	rejected := d.mean(`{"joins": [{"columns": ["customer_id"], "to": "customers", "keys": ["id"], "source": "rejected"}]}`)
	require.Equal(t, []string{"customer_id customers id rejected"}, rejected.joined())

	// Nothing said is the draft again.
	require.Equal(t, drafted, d.mean(`{}`))
}

// semanticsJoins checks that joins follow what the caller may see, and stay when somebody who does not see them makes a change.
func semanticsJoins(t *testing.T, s *service, key *signer) {
	t.Helper()

	d, other := sold(t, s, key, "binder")
	d.mean(`{"joins": [{"columns": ["customer_id"], "to": "customers", "keys": ["id"]}],
		"measures": [{"name": "granted", "function": "sum", "expression": "quantity * customers.discount"}, {"name": "pieces", "function": "sum", "expression": "quantity"}]}`)

	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/orders", "blind", "editor")
	blind := d.by(key.token("blind"))

	seen, _ := blind.semantics()
	require.Empty(t, seen.Joins)
	require.Equal(t, []string{"pieces = sum quantity confirmed"}, seen.measured())
	require.NotContains(t, blind.call(http.MethodGet, "/semantics", "").body, "customers")

	// The same words for what is not there and for what is not shown.
	for _, name := range []string{"customers", "nothing"} {
		refused := blind.call(http.MethodPut, "/semantics", `{"joins": [{"columns": ["customer_id"], "to": "`+name+`", "keys": ["id"]}]}`)
		requireFault(t, name, refused, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		require.Contains(t, refused.body, fmt.Sprintf(`There is no dataset \"%s\" that you can see.`, name))
		require.NotContains(t, refused.body, "has no column")
	}

	blind.mean(`{"row": "sale"}`)

	found, _ := d.semantics()
	require.Equal(t, "sale", found.Row)
	require.Equal(t, []string{"customer_id customers id confirmed"}, found.joined())
	require.Equal(t, []string{"granted = sum quantity * customers.discount confirmed"}, found.measured())

	// Names are the current ones.
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, other.url(), d.bearer, `{"name": "clients"}`).status)
	found, _ = d.semantics()
	require.Equal(t, []string{"customer_id clients id confirmed"}, found.joined())
	require.Equal(t, []string{"granted = sum quantity * clients.discount confirmed"}, found.measured())

	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/schema/self/namespaces", d.bearer, `{"name": "`+d.namespace+`-2"}`).status)
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, d.s.url+"/data/self/"+d.namespace+"/clients", d.bearer, `{"namespace": "`+d.namespace+`-2"}`).status)
	found, _ = d.semantics()
	require.Equal(t, []string{"customer_id " + d.namespace + "-2/clients id confirmed"}, found.joined())
	require.Equal(t, found, d.mean(d.call(http.MethodGet, "/semantics", "").body))

	// A dataset of somebody else, and a token that is limited to the orders.
	theirs := newFilled(t, s, "lender", key.token("lender"))
	require.Equal(t, http.StatusOK, theirs.post(`{"data": [{"id": 1, "rate": 2}]}`).status)
	share(t, s, theirs.bearer, "datasets/self/"+theirs.namespace+"/orders", "binder", "viewer")

	lent := d.mean(`{"joins": [{"columns": ["customer_id"], "to": "` + theirs.path() + `", "keys": ["id"]}], "measures": [{"name": "x", "function": "max", "expression": "orders.rate * 2"}]}`)
	require.Equal(t, []string{"customer_id " + theirs.path() + " id confirmed"}, lent.joined())
	require.Equal(t, []string{"x = max orders.rate * 2 confirmed"}, lent.measured())

	unshare(t, s, theirs.bearer, "datasets/self/"+theirs.namespace+"/orders", "binder")
	found, _ = d.semantics()
	require.NotContains(t, strings.Join(found.joined(), " "), "lender")
	require.Empty(t, found.Measures)
}

func semanticsRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	d, _ := sold(t, s, key, "refuser")

	for body, want := range map[string][2]string{
		`{"columns": {"quantty": {"role": "count"}}}`:                                                           {"columns.quantty", "orders has no column quantty; did you mean quantity?"},
		`{"columns": {"quantity": {"role": "sums"}}}`:                                                           {"columns.quantity.role", "must be one of: identifier, code, year"},
		`{"columns": {"quantity": {}}}`:                                                                         {"columns.quantity.role", "is required"},
		`{"columns": {"quantity": {"role": "count", "units": "x"}}}`:                                            {"columns.quantity.units", "is not a field of this request; did you mean \"unit\"?"},
		`{"columns": {"quantity": {"role": "count"}, "QUANTITY": {"role": "count"}}}`:                           {"columns.quantity", "names the same column as another entry"},
		`{"columns": {"note": {"role": "amount"}}}`:                                                             {"columns.note.role", "the role amount needs a column of numbers; note is varchar"},
		`{"columns": {"note": {"role": "text", "source": "rejected"}}}`:                                         {"columns.note.source", "must be one of: drafted, confirmed"},
		`{"columns": {"note": {"role": "text", "synonyms": ["a", "b\u001b[31m"]}}}`:                             {"columns.note.synonyms.1", "contains a control character"},
		`{"row": "` + strings.Repeat("x", 201) + `"}`:                                                           {"row", "must have at most 200 characters"},
		`{"row": "order", "rowSource": "drafted", "columns": {}, "joins": [], "measures": [{"name": "x"}]}`:     {"measures.0.function", "is required"},
		`{"joins": [{"columns": ["customer_id"], "to": "customer", "keys": ["id"]}]}`:                           {"joins.0.to", "There is no dataset \"customer\" that you can see. Did you mean customers?"},
		`{"joins": [{"columns": ["customer_id"], "to": "a/b/c/d", "keys": ["id"]}]}`:                            {"joins.0.to", "There is no dataset"},
		`{"joins": [{"columns": ["customer_id"], "to": "customers", "keys": ["ids"]}]}`:                         {"joins.0.keys.0", "customers has no column ids; did you mean id?"},
		`{"joins": [{"columns": ["customer"], "to": "customers", "keys": ["id"]}]}`:                             {"joins.0.columns.0", "orders has no column customer; did you mean customer_id?"},
		`{"joins": [{"columns": ["customer_id", "note"], "to": "customers", "keys": ["id"]}]}`:                  {"joins.0.keys", "must have as many entries as columns"},
		`{"joins": [{"columns": ["note", "note"], "to": "customers", "keys": ["id", "name"]}]}`:                 {"joins.0.columns.1", "names the same column as another entry"},
		`{"joins": [{"columns": ["note"], "to": "customers", "keys": ["name"], "source": "drafted"}]}`:          {"joins.0", "is marked as drafted, but the draft says something else"},
		`{"measures": [{"name": "x", "function": "sum"}]}`:                                                      {"measures.0.expression", "is required; only count works without it"},
		`{"measures": [{"name": "x", "function": "total", "expression": "quantity"}]}`:                          {"measures.0.function", "must be one of: sum, average"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "quantity *"}]}`:                          {"measures.0.expression", "the expression ends where a column, a number or a parenthesis is expected, at character 11"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "quantty * 2"}]}`:                         {"measures.0.expression", "orders has no column quantty; did you mean quantity?"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "note"}]}`:                                {"measures.0.expression", "note is varchar; calculations, sum, average and median need numbers"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "2 * 3"}]}`:                               {"measures.0.expression", "must name a column"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "quantity * customers.discount"}]}`:       {"measures.0.expression", "customers is not joined"},
		`{"measures": [{"name": "x", "function": "count"}, {"name": "X", "function": "count"}]}`:                {"measures.1.name", "is the name of another measure"},
		`{"measures": [{"name": "x", "function": "sum", "expression": "quantity); DROP TABLE semantics; --"}]}`: {"measures.0.expression", "')' stands where an operator is expected, at character 9"},
	} {
		answer := d.call(http.MethodPut, "/semantics", body)
		requireFault(t, body, answer, http.StatusUnprocessableEntity, "VALIDATION_FAILED")

		var shown struct {
			SubErrors []struct{ Code, Message string } `json:"sub_errors"`
		}

		answer.json(t, &shown)
		require.Len(t, shown.SubErrors, 1, body)
		require.Equal(t, want[0], shown.SubErrors[0].Code, body)
		require.Contains(t, shown.SubErrors[0].Message, want[1], body)
	}

	_, etag := d.semantics()
	require.Equal(t, `"0"`, etag, "nothing was saved")
}

func semanticsRevisions(t *testing.T, s *service, key *signer) {
	t.Helper()

	d, _ := sold(t, s, key, "pair")

	put := func(row, etag string) *answer {
		return d.call(http.MethodPut, "/semantics", `{"row": "`+row+`"}`, "If-Match: "+etag)
	}

	require.Equal(t, http.StatusOK, put("first", `"0"`).status)
	requireFault(t, "an earlier revision", put("second", `"0"`), http.StatusPreconditionFailed, "PRECONDITION_FAILED")
	requireFault(t, "a weak tag", put("second", `W/"1"`), http.StatusPreconditionFailed, "PRECONDITION_FAILED")
	require.Equal(t, `"2"`, put("second", `"7", "1"`).header.Get("ETag"))
	require.Equal(t, `"3"`, put("third", "*").header.Get("ETag"))

	// Of several changes to one revision one is made.
	results := make(chan int)
	for i := range 8 {
		go func() { results <- put(fmt.Sprint("racer ", i), `"3"`).status }()
	}

	counts := map[int]int{}
	for range 8 {
		counts[<-results]++
	}

	require.Equal(t, map[int]int{http.StatusOK: 1, http.StatusPreconditionFailed: 7}, counts)
}

// semanticsLife checks that semantics stay with their dataset.
func semanticsLife(t *testing.T, s *service, key *signer) {
	t.Helper()

	d, _ := sold(t, s, key, "liver")
	d.mean(`{"row": "receipt", "columns": {"note": {"role": "name"}, "quantity": {"role": "count"}}, "measures": [{"name": "pieces", "function": "sum", "expression": "quantity"}]}`)

	// Columns that are gone have no semantics, and measures of them are not shown.
	d.loaded(`"mode": "replace"`, "note,amount,quantity\nx,1,many\n")

	found, _ := d.semantics()
	require.Len(t, found.Columns, 3)
	require.Equal(t, "name", found.Columns["note"].Role)
	require.Equal(t, "drafted", found.Columns["quantity"].Source, "it is text now")

	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, d.url(), d.bearer, `{"name": "sales"}`).status)

	d.name = "sales"
	found, etag := d.semantics()
	require.Equal(t, "receipt", found.Row)
	require.Equal(t, `"1"`, etag)

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)
	requireFault(t, "deleted", d.call(http.MethodGet, "/semantics", ""), http.StatusNotFound, "NOT_FOUND")

	require.Equal(t, http.StatusOK, d.beside("sales", `{"data": [{"note": "x"}]}`).call(http.MethodGet, "/semantics", "").status)
	found, etag = d.semantics()
	require.NotEqual(t, "receipt", found.Row, "a new dataset inherits nothing")
	require.Equal(t, `"0"`, etag)

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)
	requireFault(t, "a change of what is gone", d.call(http.MethodPut, "/semantics", `{"row": "x"}`), http.StatusNotFound, "NOT_FOUND")
}
