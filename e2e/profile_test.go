package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

type profile struct {
	SnapshotID string
	RowCount   int64
	Columns    []struct {
		Name, Type      string
		Nulls, Distinct int64
		DistinctExact   bool
		Min, Max        any
		Shape           string
		TopValues       []struct {
			Value any
			Count int64
		}
		Examples []any
	}
	CandidateKeys [][]string
	Joins         []struct{ Column, Username, Namespace, Dataset, OtherColumn string }
}

// profiled waits for the profile of the current snapshot.
func (d *filled) profiled() (found profile) {
	d.t.Helper()

	await(d.t, "the profile of "+d.path(), func() bool {
		answer := d.call(http.MethodGet, "/profile", "")
		if answer.status == http.StatusNotFound {
			return false
		}

		require.Equal(d.t, http.StatusOK, answer.status, answer.body)

		found = profile{}
		answer.json(d.t, &found)

		return found.SnapshotID == d.snapshots()[0].SnapshotID
	})

	return found
}

// foundBy reports whether a search for a word finds the dataset.
func (d *filled) foundBy(word string) bool {
	d.t.Helper()

	answer := call(d.t, http.MethodGet, d.s.url+"/schema/datasets/all?q="+word, d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	return strings.Contains(answer.body, d.namespace)
}

func TestProfileScenarios(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"a profile and a draft":     profileStory,
		"joins that others may see": profileJoins,
		"rows that are gone":        profileGone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func profileStory(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "surveyor", key.token("surveyor"))
	requireFault(t, "without rows", d.call(http.MethodGet, "/profile", ""), http.StatusNotFound, "NOT_FOUND")
	requireFault(t, "without rows", d.call(http.MethodPost, "/inferDefinition/draft", ""), http.StatusUnprocessableEntity, "INVALID_STATE")

	var rows strings.Builder

	rows.WriteString("id,code,region,day,note\n")

	for i := range 500 {
		fmt.Fprintf(&rows, "%d,AB-%03d,%s,2024-01-%02d,%s\n", i+1, i%300, []string{"north", "south", "east"}[i%3], i%28+1, strings.Repeat("x", i%4))
	}

	loaded := d.loaded("", rows.String())
	found := d.profiled()
	require.Equal(t, loaded.SnapshotID, found.SnapshotID)
	require.EqualValues(t, 500, found.RowCount)
	require.Equal(t, [][]string{{"id"}}, found.CandidateKeys)

	for _, c := range found.Columns {
		want := d.result(fmt.Sprintf(`SELECT count(*) - count(%[1]q) AS a, count(DISTINCT %[1]q) AS b, min(%[1]q) AS c, max(%[1]q) AS d FROM orders`, c.Name), "").rows()[0]
		require.Equal(t, want, []any{float64(c.Nulls), float64(c.Distinct), c.Min, c.Max}, c.Name)
		require.True(t, c.DistinctExact)

		top := d.result(fmt.Sprintf(`SELECT %[1]q AS v, count(*) AS n FROM orders WHERE %[1]q IS NOT NULL GROUP BY v ORDER BY n DESC, v LIMIT 10`, c.Name), "").rows()
		require.Len(t, c.TopValues, len(top), c.Name)

		for i, row := range top {
			require.Equal(t, row[0], c.TopValues[i].Value, c.Name)
			require.EqualValues(t, row[1], c.TopValues[i].Count, c.Name)
		}
	}

	require.Equal(t, "AA-999", found.Columns[1].Shape)
	require.True(t, d.foundBy("south"))
	require.False(t, d.foundBy("west"))

	var draft struct {
		DataDescription  string
		SchemaDefinition map[string]string
	}

	answer := d.call(http.MethodPost, "/inferDefinition/draft", "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &draft)

	require.Equal(t, `One row for each id. 500 rows with 5 columns: id, code, region, day, note. day goes from "2024-01-01" to "2024-01-28".`, draft.DataDescription)
	require.Equal(t, "Whole number, different in every row. From 1 to 500, 250.5 on average.", draft.SchemaDefinition["id"])
	require.Contains(t, draft.SchemaDefinition["code"], "Text. Looks like AA-999, where A and a are letters and 9 is a digit. For example ")
	require.Equal(t, `Text. One of "north" (33 %), "south" (33 %), "east" (33 %).`, draft.SchemaDefinition["region"])
	require.Equal(t, `Date. From "2024-01-01" to "2024-01-28".`, draft.SchemaDefinition["day"])
	require.Equal(t, `Text. One of "x" (33 %), "xx" (33 %), "xxx" (33 %). Empty in 25 % of the rows.`, draft.SchemaDefinition["note"])

	// The draft is not saved by itself, and can be saved unchanged.
	var saved struct{ DataDescription string }

	d.call(http.MethodGet, "/inferDefinition", "").json(t, &saved)
	require.Empty(t, saved.DataDescription)
	require.Equal(t, http.StatusCreated, d.call(http.MethodPut, "/inferDefinition", answer.body).status)

	// After rows are appended, a profile is still returned, the old or already a new one. It states its snapshot.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"id": 501, "region": "west"}]}`).status)

	var before profile

	d.call(http.MethodGet, "/profile", "").json(t, &before)
	require.Contains(t, []string{loaded.SnapshotID, d.snapshots()[0].SnapshotID}, before.SnapshotID)
	require.EqualValues(t, 501, d.profiled().RowCount)
}

// profileJoins checks that joins with a dataset that the caller may not see are missing in answers to that caller, and present in
// answers to others.
func profileJoins(t *testing.T, s *service, key *signer) {
	t.Helper()

	var customers, orders []string

	for i := range 200 {
		customers = append(customers, fmt.Sprintf(`{"id": %d, "email": "user%d@example.org"}`, 1000+i*7, i))
		orders = append(orders, fmt.Sprintf(`{"order_id": %d, "customer_id": %d, "email": "USER%d@Example.org", "n": %d}`, i, 1000+(i%150)*7, i%120, i%5))
	}

	d := newFilled(t, s, "joiner", key.token("joiner"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [`+strings.Join(orders, ",")+`]}`).status)
	d.profiled()

	// This dataset is created later, and the joins are found from both sides.
	other := d.beside("customers", `{"data": [`+strings.Join(customers, ",")+`]}`)
	require.Len(t, other.profiled().Joins, 2)

	seen := func(bearer string) []string {
		t.Helper()

		var joins []string

		for _, j := range d.by(bearer).profiled().Joins {
			joins = append(joins, j.Column+" "+j.Username+"/"+j.Namespace+"/"+j.Dataset+" "+j.OtherColumn)
		}

		return joins
	}

	both := []string{"customer_id " + other.path() + " id", "email " + other.path() + " email"}
	half, whole := key.token("half"), key.token("whole")
	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/orders", "half", "viewer")
	share(t, s, d.bearer, "namespaces/self/"+d.namespace, "whole", "viewer")

	require.ElementsMatch(t, both, seen(d.bearer))
	require.ElementsMatch(t, both, seen(whole))
	require.Empty(t, seen(half))

	for bearer, yes := range map[string]bool{d.bearer: true, whole: true, half: false} {
		for _, answer := range []*answer{d.by(bearer).call(http.MethodGet, "/profile", ""), d.by(bearer).call(http.MethodPost, "/inferDefinition/draft", "")} {
			require.Equal(t, http.StatusOK, answer.status, answer.body)
			require.Equal(t, yes, strings.Contains(answer.body, "customers"), answer.body)
		}
	}

	renamed := call(t, http.MethodPatch, other.url(), d.bearer, `{"name": "clients"}`)
	require.Equal(t, http.StatusOK, renamed.status, renamed.body)

	other.name = "clients"
	require.ElementsMatch(t, []string{"customer_id " + other.path() + " id", "email " + other.path() + " email"}, seen(whole))

	share(t, s, d.bearer, "datasets/self/"+d.namespace+"/clients", "half", "viewer")
	require.Len(t, seen(half), 2)
	unshare(t, s, d.bearer, "datasets/self/"+d.namespace+"/clients", "half")
	require.Empty(t, seen(half))

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, other.url(), d.bearer, "").status)
	require.Empty(t, seen(whole))
	requireFault(t, "a stranger", d.by(key.token("nobody")).call(http.MethodGet, "/profile", ""), http.StatusNotFound, "NOT_FOUND")
}

// profileGone checks that no answer shows values of rows from the moment in which the rows are removed.
func profileGone(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "leaver", key.token("leaver"))
	first := d.loaded("", "who,n\nsecret-one,1\nsecret-two,2\n")

	gone := func(how string) {
		t.Helper()

		for _, answer := range []*answer{d.call(http.MethodGet, "/profile", ""), d.call(http.MethodPost, "/inferDefinition/draft", "")} {
			require.NotContains(t, answer.body, "secret", how)
		}

		require.False(t, d.foundBy("secret-one"), how)
	}

	require.Equal(t, "secret-one", d.profiled().Columns[0].Min)
	require.True(t, d.foundBy("secret-one"))

	d.loaded(`"mode": "replace"`, "who,n\npublic,1\n")
	gone("replaced")
	require.Equal(t, "public", d.profiled().Columns[0].Min)
	gone("replaced and profiled")

	restored := d.call(http.MethodPost, "/snapshots/"+first.SnapshotID+"/restore", "")
	require.Equal(t, http.StatusOK, restored.status, restored.body)
	require.NotContains(t, d.call(http.MethodGet, "/profile", "").body, "public")
	require.Equal(t, "secret-one", d.profiled().Columns[0].Min)

	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	gone("cleared")

	require.Zero(t, d.profiled().RowCount)
	gone("cleared and profiled")

	d.loaded("", "who,n\nnew,1\n")
	require.Equal(t, "new", d.profiled().Columns[0].Min)
	gone("filled again")
}

// TestProfileWhen checks that a dataset is profiled after a quiet period, and without one when it has grown by a tenth.
func TestProfileWhen(t *testing.T) {
	t.Parallel()

	const quiet = 4 * time.Second

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD="+quiet.String(), "QUERN_MAINTENANCE_INTERVAL=1s")
	d := newFilled(t, s, "grower", s.newKey().token("grower"))

	rows := func(n int) string {
		return `{"data": [` + strings.TrimSuffix(strings.Repeat(`{"a": 1},`, n), ",") + `]}`
	}

	of := func() int64 {
		var found profile

		answer := d.call(http.MethodGet, "/profile", "")
		require.NoError(t, json.Unmarshal([]byte(answer.body), &found))

		return found.RowCount
	}

	require.Equal(t, http.StatusOK, d.post(rows(1000)).status)
	require.Zero(t, of(), "it is quiet only after a while")
	d.profiled()
	require.EqualValues(t, 1000, of())

	for last, i := time.Now(), 0; i < 16; i++ { // twice the quiet period
		require.Equal(t, http.StatusOK, d.post(rows(1)).status)
		time.Sleep(500 * time.Millisecond)

		found := of()
		if time.Since(last) > quiet { // the machine was so busy that the dataset was quiet
			t.Log("no rows came for", time.Since(last))

			break
		}

		require.EqualValues(t, 1000, found, "it is not quiet")

		last = time.Now()
	}

	require.Equal(t, http.StatusOK, d.post(rows(200)).status)

	grown := time.Now()

	for of() < 1200 {
		require.Less(t, time.Since(grown), patience)
		require.Equal(t, http.StatusOK, d.post(rows(1)).status)
		time.Sleep(500 * time.Millisecond)
	}

	t.Log("profiled after it had grown, while rows came:", time.Since(grown).Round(100*time.Millisecond))
}

// TestProfileKill kills the process repeatedly. The next process must compute the profile, and every object must have a row.
func TestProfileKill(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	s := start(t, "QUERN_MAINTENANCE_QUIET_PERIOD=1ms", "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()
	d := newFilled(t, s, "killer", key.token("killer"))

	rows := 0

	for i := range rounds(30) {
		kill.Round(t)
		require.Equal(t, http.StatusOK, d.post(fmt.Sprintf(`{"data": [{"n": %d, "s": "value %d"}]}`, i, i)).status)
		rows++

		pause(1700 * time.Millisecond)
		s.kill()
		s.restart()
	}

	require.EqualValues(t, rows, d.profiled().RowCount)

	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck", "--age", "0s"))
}
