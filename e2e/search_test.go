package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// library is many datasets of many users, with a model in plain Go of who may see what. The first user owns half of the datasets.
type library struct {
	s       *service
	key     *signer
	people  []reader
	shelves []shelf
	books   []book
	chance  *rand.Rand
}

type reader struct {
	name    string
	account uuid.UUID
	group   string
	grants  map[uuid.UUID]bool // ids of namespaces and datasets
}

type shelf struct {
	id    uuid.UUID
	owner int
	name  string
}

type book struct {
	id          uuid.UUID
	shelf       int
	name        string
	description string
	column      string
	values      []string
}

const (
	readers   = 100
	vocabular = 3000 // number of words, of which a few are frequent
	groups    = 5
)

// word returns the i-th word. Any two words differ in at least two letters.
func word(i int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"

	var text strings.Builder
	for n := i*7919 + 1_000_003; n > 0; n /= len(consonants) * len(vowels) {
		text.WriteByte(consonants[n%len(consonants)])
		text.WriteByte(vowels[n/len(consonants)%len(vowels)])
	}

	return text.String()
}

// anyWord returns a random word. Words with a small index are more frequent.
func (l *library) anyWord() string {
	return word(int(float64(vocabular) * l.chance.Float64() * l.chance.Float64() * l.chance.Float64()))
}

func newLibrary(t *testing.T, s *service, size int) *library {
	t.Helper()

	l := &library{s: s, key: s.newKey(), chance: rand.New(rand.NewPCG(8, 5))} // a fixed seed, so that the data is always the same

	for i := range readers {
		who := reader{name: fmt.Sprint("reader", i), group: fmt.Sprint("group", i%groups), grants: map[uuid.UUID]bool{}}

		var me struct{ ID uuid.UUID }

		call(t, http.MethodGet, s.url+"/user/me", l.token(who), "").json(t, &me)
		who.account = me.ID
		l.people = append(l.people, who)
	}

	for i := range size / 50 {
		owner := 0
		if i%2 == 1 {
			owner = 1 + i/2%(readers-1)
		}

		l.shelves = append(l.shelves, shelf{id: uuid.Must(uuid.NewV7()), owner: owner, name: fmt.Sprint("shelf", i)})
	}

	for i := range size {
		l.books = append(l.books, book{
			id: uuid.Must(uuid.NewV7()), shelf: l.chance.IntN(len(l.shelves)), name: fmt.Sprintf("%s_%s_%d", l.anyWord(), l.anyWord(), i),
			description: strings.Join([]string{"The", l.anyWord(), "of", l.anyWord(), "and", l.anyWord()}, " "),
			column:      l.anyWord() + "_" + l.anyWord(), values: []string{l.anyWord(), l.anyWord()},
		})
	}

	return l
}

func (l *library) token(who reader) string {
	claims := l.key.claims(who.name)
	claims["groups"] = []string{who.group}

	return l.key.sign(claims)
}

// share creates different grants for every user: from a few to thousands.
func (l *library) share(connection *pgx.Conn, ctx context.Context) error { //nolint:revive // as withDatabase gives them
	var rows [][]any

	grant := func(subject, id string, at shelf, dataset uuid.UUID, to ...int) {
		rows = append(rows, []any{subject, id, l.people[at.owner].account, at.id, dataset})

		target := dataset
		if target == uuid.Nil {
			target = at.id
		}

		for _, i := range to {
			l.people[i].grants[target] = true
		}
	}

	for i, who := range l.people {
		shelves, books := []int{0, 1, 3, 20, 200}[i%5], []int{0, 5, 50, 500, 5000}[i/5%5]

		for _, k := range l.chance.Perm(len(l.shelves))[:min(shelves, len(l.shelves)/4)] {
			grant("account", who.account.String(), l.shelves[k], uuid.Nil, i)
		}

		for _, k := range l.chance.Perm(len(l.books))[:min(books, len(l.books)/4)] {
			grant("account", who.account.String(), l.shelves[l.books[k].shelf], l.books[k].id, i)
		}
	}

	for g := range groups {
		var members []int
		for i := g; i < readers; i += groups {
			members = append(members, i)
		}

		grant("group", fmt.Sprint("group", g), l.shelves[l.chance.IntN(len(l.shelves))], uuid.Nil, members...)
	}

	_, err := connection.CopyFrom(ctx, pgx.Identifier{"directory_grants"},
		[]string{"subject_kind", "subject_id", "account_id", "namespace_id", "dataset_id"}, pgx.CopyFromRows(rows))
	if err != nil {
		return err
	}

	_, err = connection.Exec(ctx, `
		INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at)
		SELECT account_id, CASE dataset_id WHEN $1 THEN namespace_id ELSE dataset_id END, subject_kind, subject_id, 'viewer', now() FROM directory_grants`, uuid.Nil)

	return err
}

// write inserts the library into the database, as years of single requests would.
func (l *library) write(t *testing.T) {
	t.Helper()

	var shelves, books [][]any
	for _, s := range l.shelves {
		shelves = append(shelves, []any{l.people[s.owner].account, s.id, s.name, s.name, time.Now()})
	}

	for _, b := range l.books {
		at := l.shelves[b.shelf]
		books = append(books, []any{
			l.people[at.owner].account, b.id, at.id, b.name, b.name, b.description,
			[]map[string]any{{"name": b.column, "type": "VARCHAR", "nullable": true}},
			time.Now(), time.Now(),
		})
	}

	withDatabase(t, l.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.CopyFrom(ctx, pgx.Identifier{"namespaces"},
			[]string{"account_id", "id", "name", "name_key", "created_at"}, pgx.CopyFromRows(shelves))
		require.NoError(t, err)

		_, err = connection.CopyFrom(ctx, pgx.Identifier{"datasets"},
			[]string{"account_id", "id", "namespace_id", "name", "name_key", "data_description", "columns", "created_at", "updated_at"}, pgx.CopyFromRows(books))
		require.NoError(t, err)

		_, err = connection.Exec(ctx, `CREATE TEMP TABLE example (id uuid, examples text[])`)
		require.NoError(t, err)

		var examples [][]any
		for _, b := range l.books {
			examples = append(examples, []any{b.id, b.values})
		}

		_, err = connection.CopyFrom(ctx, pgx.Identifier{"example"}, []string{"id", "examples"}, pgx.CopyFromRows(examples))
		require.NoError(t, err)

		_, err = connection.Exec(ctx, `UPDATE dataset_search h SET examples = e.examples FROM example e WHERE e.id = h.dataset_id`)
		require.NoError(t, err)

		require.NoError(t, l.share(connection, ctx))
	})
}

// awaitIndex waits until the job has created all search documents. The job starts within a minute, or with the service.
func (l *library) awaitIndex(t *testing.T) {
	t.Helper()
	l.s.stop()
	l.s.cleanAtStart()
	l.s.restart()

	began := time.Now()

	awaitFor(t, 10*time.Minute, "all documents are made", func() bool { return l.s.count(`SELECT count(*) FROM dataset_search WHERE stale`) == 0 })

	t.Logf("%d documents were made within %v", len(l.books), time.Since(began).Round(time.Second))

	withDatabase(t, l.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `VACUUM (ANALYZE)`)
		require.NoError(t, err)
	})
}

func (l *library) sees(i int, b book) bool {
	at := l.shelves[b.shelf]

	return at.owner == i || l.people[i].grants[at.id] || l.people[i].grants[b.id]
}

// any returns a random dataset, or one that the user sees.
func (l *library) any(i int, isSeen bool) book {
	for range 1000 {
		if b := l.books[l.chance.IntN(len(l.books))]; !isSeen || l.sees(i, b) {
			return b
		}
	}

	return l.books[0]
}

// search returns the results of one page.
func (l *library) search(t *testing.T, i int, words string, limit int) (names []string, took time.Duration) {
	t.Helper()

	address := l.s.url + "/schema/datasets/all?limit=" + strconv.Itoa(limit) + "&q=" + url.QueryEscape(words)
	request := newRequest(t, http.MethodGet, address, l.token(l.people[i]), "")
	began := time.Now()
	answer, err := try(request)
	took = time.Since(began)

	require.NoError(t, err)
	validate(t, request, answer)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var page struct {
		Data []struct{ Username, Namespace, Name string }
	}

	answer.json(t, &page)

	for _, item := range page.Data {
		names = append(names, item.Name)
	}

	return names, took
}

// TestSearch searches datasets as 100 users who see different parts of them. There are 2,000 datasets. A full run has 100,000 and
// also checks the times; `make bench NAME=search` measures them.
func TestSearch(t *testing.T) {
	t.Parallel()

	datasets := 2_000
	if full() {
		datasets = 100_000
	}

	l := newLibrary(t, start(t), datasets)
	l.write(t)
	l.awaitIndex(t)

	byName := map[string]book{}
	for _, b := range l.books {
		byName[b.name] = b
	}

	var times, others []time.Duration

	seen, forbidden := 0, 0

	for round := range max(9, loops(20)) {
		for i := range l.people {
			b := l.any(i, (round+i)%2 == 0)
			first, second, _ := strings.Cut(b.name, "_")
			second, number, _ := strings.Cut(second, "_")
			words := []string{
				b.name, first, number + " " + second, l.anyWord() + " " + l.anyWord(), strings.ToUpper(b.column), first[:len(first)-1], b.values[0],
				"the " + b.description, second + " of " + b.values[1] + " and nothing else " + number,
			}[round%9]

			names, took := l.search(t, i, words, 25)
			times = append(times, took)

			began := time.Now()
			_, err := try(newRequest(t, http.MethodGet, l.s.url+"/user/me", l.token(l.people[i]), ""))
			require.NoError(t, err)

			others = append(others, time.Since(began))

			for _, name := range names {
				require.True(t, l.sees(i, byName[name]), "%s looks for %q and finds %s", l.people[i].name, words, name)
			}

			if form := round % 9; form == 0 || form == 2 { // only this dataset has the number
				require.Equal(t, l.sees(i, b), len(names) > 0 && names[0] == b.name, "%s looks for %q and finds %v", l.people[i].name, words, names)

				if l.sees(i, b) {
					seen++
				} else {
					forbidden++
				}
			}
		}
	}

	slices.Sort(times)
	slices.Sort(others)
	t.Logf("%d searches: p50 %v, p95 %v, p99 %v, the slowest %v; GET /user/me beside them: p50 %v; %d were for what can be seen, %d for what cannot",
		len(times), times[len(times)/2], times[len(times)*95/100], times[len(times)*99/100], times[len(times)-1], others[len(others)/2], seen, forbidden)

	if full() {
		require.Less(t, times[len(times)/2], 30*time.Millisecond)
	}

	require.NotZero(t, seen)
	require.NotZero(t, forbidden)
}
