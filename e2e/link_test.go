package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type linked struct {
	Links []struct {
		Dataset, Column, Value, Text, Match string
		Score                               float64
	}
	Incomplete []string
	Sampled    []struct{ Dataset, Column string }
	Truncated  bool
}

// says returns the matches as lines.
func (l linked) says() (lines []string) {
	for _, link := range l.Links {
		lines = append(lines, fmt.Sprintf("%s: %s.%s = %s (%s)", link.Text, link.Dataset, link.Column, link.Value, link.Match))
	}

	return lines
}

// asksLink requests the matches of a question in the dataset's namespace. more contains further members of the body.
func (d *filled) asksLink(question, more string) *answer {
	d.t.Helper()

	return call(d.t, http.MethodPost, d.s.url+"/query/link", d.bearer,
		fmt.Sprintf(`{"username": %q, "namespace": %q, "question": %s%s}`, d.owner, d.namespace, encode(d.t, question), more))
}

func (d *filled) link(question, more string) (found linked) {
	d.t.Helper()

	answer := d.asksLink(question, more)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)

	return found
}

// indexed waits until all datasets of the namespace have a value index.
func (d *filled) indexed() {
	d.t.Helper()
	await(d.t, "the index of "+d.namespace, func() bool { return len(d.link("anything", "").Incomplete) == 0 })
}

func TestLinkScenarios(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"words in the data":           linkStory,
		"only what the caller sees":   linkAccess,
		"nothing and nobody the same": linkAbsent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func linkStory(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "linguist", key.token("linguist"))
	require.Equal(t, linked{Links: d.link("a", "").Links, Incomplete: []string{}, Sampled: d.link("a", "").Sampled}, d.link("a", ""), "a dataset without rows has nothing to index")

	d.loaded("", "id,city,product\n1,Zürich,Laptop\n2,New York,Laptops\n3,Saint-Étienne,Phone\n4,,Deutsche Bahn Ticket\n")
	other := d.beside("customers", `{"data": [{"name": "Zurich Insurance", "age": 7, "note": "`+strings.Repeat("long ", 30)+`"}]}`)
	require.Subset(t, []string{"orders", "customers"}, d.link("zurich", "").Incomplete)

	d.indexed()

	for question, want := range map[string][]string{
		"orders from Zürich":      {"Zürich: orders.city = Zürich (exact)"},
		"orders from zurich":      {"zurich: orders.city = Zürich (folded)"},
		"orders from Zürihc":      {"Zürihc: orders.city = Zürich (typo)"},
		"SAINT ETIENNE, please":   {"SAINT ETIENNE: orders.city = Saint-Étienne (folded)"},
		"who in New York":         {"New York: orders.city = New York (exact)"},
		"price of phones":         {"phones: orders.product = Phone (plural)"},
		"trips by bahn":           {"bahn: orders.product = Deutsche Bahn Ticket (part)"},
		"what does insurance do":  {"insurance: customers.name = Zurich Insurance (part)"},
		"how old are they, 7":     nil,
		"a long note":             nil,
		"nothing that we know of": nil,
	} {
		require.Equal(t, want, d.link(question, "").says(), question)
	}

	require.Equal(t, []string{"zurich insurance: customers.name = Zurich Insurance (folded)"}, d.link("zurich insurance", `, "datasets": ["Customers"]`).says())
	requireFault(t, "another dataset", d.asksLink("zurich", `, "datasets": ["nothing"]`), http.StatusNotFound, "NOT_FOUND")
	requireFault(t, "no question", d.asksLink("", ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")

	// Values that may no longer exist are not returned.
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	require.Empty(t, d.link("Saint-Étienne New York", "").Links)
	require.NotEmpty(t, other.link("insurance", "").Links)
}

// linkAccess checks with random grants that no match comes from a dataset that the caller may not see.
func linkAccess(t *testing.T, s *service, key *signer) {
	t.Helper()

	const datasets = 6

	d := newFilled(t, s, "keeper", key.token("keeper"))
	names, secrets := []string{"orders"}, []string{"secret0"}
	postRows(t, s, d.bearer, d.path(), `{"data": [{"v": "common word"}, {"v": "secret0"}]}`)

	for i := 1; i < datasets; i++ {
		names = append(names, fmt.Sprintf("d%d", i))
		secrets = append(secrets, fmt.Sprintf("secret%d", i))
		d.beside(names[i], fmt.Sprintf(`{"data": [{"v": "common word"}, {"v": "secret%d"}]}`, i))
	}

	question := strings.Join(secrets, " ")

	d.indexed()
	require.Len(t, d.link("common word", "").Links, datasets)
	require.Len(t, d.link(question, "").Links, datasets)

	for i := range rounds(60) {
		reader := fmt.Sprintf("reader%d", i)
		may := map[string]bool{}

		for _, name := range names {
			if rand.IntN(3) == 0 {
				share(t, s, d.bearer, "datasets/keeper/"+d.namespace+"/"+name, reader, "viewer")

				may[name] = true
			}
		}

		asked := d.by(key.token(reader))

		if len(may) == 0 {
			requireFault(t, reader, asked.asksLink(question, ""), http.StatusNotFound, "NOT_FOUND")

			continue
		}

		for _, text := range []string{question, "common word"} {
			found := asked.link(text, "")
			require.Len(t, found.Links, len(may), "%s may see %v", reader, may)

			for _, link := range found.Links {
				require.True(t, may[link.Dataset], "%s sees %s", reader, link.Dataset)
			}
		}

		for _, name := range names {
			answer := asked.asksLink(question, fmt.Sprintf(`, "datasets": [%q]`, name))
			require.Equal(t, may[name], answer.status == http.StatusOK, "%s and %s: %s", reader, name, answer.body)
		}
	}
}

// linkAbsent checks that an absent namespace and a hidden one get the same answer.
func linkAbsent(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "hermit", key.token("hermit"))
	postRows(t, s, d.bearer, d.path(), `{"data": [{"v": "hidden"}]}`)

	stranger := d.by(key.token("passer-by"))
	hidden := stranger.asksLink("hidden", "")

	stranger.namespace = "no-such-namespace"
	absent := stranger.asksLink("hidden", "")

	stranger.owner = "nobody-at-all"
	nobody := stranger.asksLink("hidden", "")

	requireFault(t, "hidden", hidden, http.StatusNotFound, "NOT_FOUND")

	for _, other := range []*answer{absent, nobody} {
		require.Equal(t, withoutIDs(hidden.body), withoutIDs(other.body))
	}
}

// withoutIDs removes the id of the request from a body.
func withoutIDs(body string) string {
	parts := strings.Split(body, ",")

	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(part, "request_id") }), ",")
}
