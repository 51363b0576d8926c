package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// deletedItem is an entry of the list of what can be restored.
type deletedItem struct {
	ID, Kind, Username, Namespace, Dataset string
	DeletedAt, ErasedAt                    time.Time
}

func (d deletedItem) String() string {
	return strings.TrimSuffix(d.Kind+" "+d.Username+"/"+d.Namespace+"/"+d.Dataset, "/")
}

// deletedList reads the list of what the bearer can restore, in pages of the given size.
func deletedList(t *testing.T, s *service, bearer string, limit int) (list []deletedItem) {
	t.Helper()

	for cursor := ""; ; {
		var page struct {
			Data       []deletedItem
			NextCursor string
		}

		answer := call(t, http.MethodGet, fmt.Sprintf("%s/schema/deleted?limit=%d%s", s.url, limit, cursor), bearer, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &page)

		list = append(list, page.Data...)
		if page.NextCursor == "" {
			return list
		}

		require.Len(t, page.Data, limit)

		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// deleteDataset deletes a dataset of the bearer and returns the id under which it can be restored. path is OWNER/NAMESPACE/NAME.
func deleteDataset(t *testing.T, s *service, bearer, path string) (id string) {
	t.Helper()

	answer := call(t, http.MethodDelete, s.url+"/data/"+path, bearer, "")
	require.Equal(t, http.StatusNoContent, answer.status, answer.body)

	_, name, _ := strings.Cut(path, "/")

	for _, one := range deletedList(t, s, bearer, 100) {
		if one.Kind == "dataset" && one.Namespace+"/"+one.Dataset == name {
			return one.ID
		}
	}

	require.Fail(t, "what was deleted is not in the list", path)

	return ""
}

func restore(t *testing.T, s *service, bearer, id, body string) *answer {
	t.Helper()

	return call(t, http.MethodPost, s.url+"/schema/deleted/"+id+"/restore", bearer, body)
}

// TestRestoreDeleted checks that owners restore what they deleted, with everything that belongs to it, over HTTP and at the
// command line.
func TestRestoreDeleted(t *testing.T) {
	t.Parallel()

	s := start(t, scripted, "QUERN_DELETE_GRACE=48h")
	key := s.newKey()

	t.Run("a dataset", func(t *testing.T) {
		t.Parallel()
		checkRestoredDataset(t, s, key)
	})
	t.Run("a namespace", func(t *testing.T) {
		t.Parallel()
		checkRestoredNamespace(t, s, key)
	})
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		checkDeletedPages(t, s, key.token("pia"))
	})
	t.Run("the command line", func(t *testing.T) {
		t.Parallel()
		checkRestoreCommand(t, s, key.token("carl"))
	})
}

func checkRestoredDataset(t *testing.T, s *service, key *signer) {
	t.Helper()

	owner, friend := key.token("olga"), key.token("fred")
	d := &filled{t: t, s: s, bearer: owner, owner: "olga", namespace: makeDataset(t, s, owner), name: "orders"}

	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", friend, "").status)
	postRows(t, s, owner, d.path(), `{"data": [{"n": 1}]}`)
	postRows(t, s, owner, d.path(), `{"data": [{"n": 2}]}`)
	share(t, s, owner, "datasets/"+d.path(), "fred", "editor")
	require.Equal(t, http.StatusCreated, d.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "Orders.", "schemaDefinition": {"n": "Number"}}`).status)
	require.Equal(t, http.StatusOK, d.call(http.MethodPatch, "", `{"exposure": "rows"}`).status)

	var run asked

	call(t, http.MethodPost, s.url+"/query/ask", owner, d.script("nl2ql", `{"steps": [{"instruction": "read", "queries": ["FROM orders"]}]}`, ""), "Accept: application/json").json(t, &run)

	state := func() (all []string) {
		for _, path := range []string{
			"/data/" + d.path(), "/data/" + d.path() + "/inferDefinition", "/data/" + d.path() + "/snapshots", "/data/" + d.path() + "/rows",
			"/permissions/datasets/" + d.path() + "/shares", "/query/runs/" + run.RunID,
		} {
			answer := call(t, http.MethodGet, s.url+path, owner, "")
			all = append(all, fmt.Sprint(answer.status, answer.body))
		}

		return all
	}

	before := state()
	id := deleteDataset(t, s, owner, d.path())
	require.Equal(t, http.StatusNotFound, d.call(http.MethodGet, "", "").status)
	require.Contains(t, call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, owner, "").body, "withheld")

	one := deletedList(t, s, owner, 10)[0]
	require.Equal(t, "dataset "+d.path(), one.String())
	require.Equal(t, 48*time.Hour, one.ErasedAt.Sub(one.DeletedAt))

	// Nobody else restores it, and nobody else learns that it exists.
	require.Empty(t, deletedList(t, s, friend, 10))

	none := uuid.NewString()
	absent := restore(t, s, friend, none, "")
	theirs := restore(t, s, friend, id, "")
	require.Equal(t, http.StatusNotFound, theirs.status)
	require.Equal(t, absent.body, strings.ReplaceAll(theirs.body, id, none))

	first := restore(t, s, owner, id, "")
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.JSONEq(t, fmt.Sprintf(`{"id": %q, "kind": "dataset", "username": "olga", "namespace": %q, "dataset": "orders"}`, id, d.namespace), first.body)

	again := restore(t, s, owner, id, `{"name": "orders"}`)
	require.Equal(t, []any{http.StatusOK, first.body}, []any{again.status, again.body})
	require.Equal(t, before, state())
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, d.url(), friend, "").status)
	require.Empty(t, deletedList(t, s, owner, 10))

	// Rows that come afterwards are added to those that came back.
	postRows(t, s, owner, d.path(), `{"data": [{"n": 3}]}`)
	require.Equal(t, [][]any{{1.0}, {2.0}, {3.0}}, d.result("SELECT n FROM orders ORDER BY n", "").rows())

	// The name is taken.
	id = deleteDataset(t, s, owner, d.path())
	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/"+d.namespace+"/Orders", owner, "").status)

	taken := restore(t, s, owner, id, "")
	requireFault(t, "the name is taken", taken, http.StatusConflict, "CONFLICT")
	require.Contains(t, taken.body, "Another dataset is named "+d.namespace+"/orders now. Rename or delete it, or restore this one under another name.")
	require.Len(t, deletedList(t, s, owner, 10), 1, "nothing happened")
	require.Equal(t, []string{"name"}, requireFault(t, "a bad name", restore(t, s, owner, id, `{"name": "a b"}`), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

	require.Equal(t, http.StatusOK, restore(t, s, owner, id, `{"name": "before"}`).status)
	requireFault(t, "yet another name", restore(t, s, owner, id, `{"name": "third"}`), http.StatusConflict, "CONFLICT")

	d.name = "before"
	require.Equal(t, [][]any{{1.0}, {2.0}, {3.0}}, d.result("SELECT n FROM before ORDER BY n", "").rows())
}

func checkRestoredNamespace(t *testing.T, s *service, key *signer) {
	t.Helper()

	owner, friend := key.token("nora"), key.token("nils")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", friend, "").status)

	namespace := makeDataset(t, s, owner)
	share(t, s, owner, "namespaces/self/"+namespace, "nils", "viewer")
	require.Equal(t, http.StatusOK, call(t, http.MethodPatch, s.url+"/schema/self/namespaces/"+namespace, owner, `{"exposure": "rows"}`).status)
	postRows(t, s, owner, "self/"+namespace+"/orders", `{"data": [{"n": 1}]}`)

	before := call(t, http.MethodGet, s.url+"/schema/self/namespaces", owner, "").body
	dataset := deleteDataset(t, s, owner, "self/"+namespace+"/orders")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/schema/self/namespaces/"+namespace, owner, "").status)

	list := deletedList(t, s, owner, 10)
	require.Len(t, list, 2)
	require.Equal(t, "namespace nora/"+namespace, list[0].String())
	require.JSONEq(t, `{"data": []}`, call(t, http.MethodGet, s.url+"/schema/nora/namespaces", friend, "").body)

	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/schema/self/namespaces", owner, `{"name": "`+namespace+`"}`).status)

	taken := restore(t, s, owner, list[0].ID, "")
	requireFault(t, "the name is taken", taken, http.StatusConflict, "CONFLICT")
	require.Contains(t, taken.body, "Another namespace is named "+namespace+" now. Rename or delete it, or restore this one under another name.")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/schema/self/namespaces/"+namespace, owner, "").status)

	first := restore(t, s, owner, list[0].ID, "")
	require.Equal(t, http.StatusOK, first.status, first.body)
	require.JSONEq(t, fmt.Sprintf(`{"id": %q, "kind": "namespace", "username": "nora", "namespace": %q}`, list[0].ID, namespace), first.body)
	require.Equal(t, first.body, restore(t, s, owner, list[0].ID, "").body)
	require.JSONEq(t, before, call(t, http.MethodGet, s.url+"/schema/self/namespaces", owner, "").body)
	require.JSONEq(t, `[`+shareBody("nils", "viewer")+`]`, call(t, http.MethodGet, s.url+"/permissions/namespaces/self/"+namespace+"/shares", owner, "").body)

	// The dataset was deleted on its own before, and stays deleted until it is restored.
	require.JSONEq(t, `{"data": []}`, call(t, http.MethodGet, s.url+"/schema/self/"+namespace+"/datasets", owner, "").body)
	require.Equal(t, http.StatusOK, restore(t, s, owner, dataset, "").status)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/data/nora/"+namespace+"/orders/rows", friend, "").status)
}

func checkDeletedPages(t *testing.T, s *service, bearer string) {
	t.Helper()

	namespace := makeDataset(t, s, bearer)

	var want []string

	for range 5 { // the same name again and again: each has its own entry
		want = append([]string{deleteDataset(t, s, bearer, "self/"+namespace+"/orders")}, want...)

		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/orders", bearer, "").status)
	}

	for _, limit := range []int{1, 2, 5, 100} {
		var got []string
		for _, one := range deletedList(t, s, bearer, limit) {
			got = append(got, one.ID)
		}

		require.Equal(t, want, got, "pages of %d", limit)
	}
}

func checkRestoreCommand(t *testing.T, s *service, bearer string) {
	t.Helper()

	c := s.signedIn(t, bearer)
	require.Equal(t, "Nothing to restore.\n", c.run("deleted"))

	for _, text := range []string{"first", "second"} {
		c.run("dataset", "create", "shop/orders", "--description", text)
		require.Equal(t, "Deleted shop/orders. `quern restore shop/orders` restores it; `quern deleted` shows until when.\n", c.run("dataset", "delete", "shop/orders", "--yes"))
	}

	lines := strings.Split(strings.TrimSpace(c.run("deleted", "-o", "csv")), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "id,kind,name,deleted,erased", lines[0])

	second, first := strings.Split(lines[1], ","), strings.Split(lines[2], ",")
	require.Equal(t, []string{"dataset", "shop/orders"}, second[1:3])

	// A name means what was deleted last; an id means any.
	require.Equal(t, "Restored shop/orders.\n", c.run("restore", "Shop/Orders"))
	require.Contains(t, c.run("dataset", "show", "shop/orders"), "second")

	taken := c.try("restore", first[0])
	require.Equal(t, printed{
		err: "quern: Another dataset is named shop/orders now. Rename or delete it, or restore this one under another name.\n" +
			"`quern restore --as NEW_NAME` restores it under another name.\n", code: 6,
	}, taken)
	require.Equal(t, "Restored shop/older.\n", c.run("restore", first[0][:18], "--as", "older"))
	require.Contains(t, c.run("dataset", "show", "shop/older"), "first")

	for _, name := range []string{"orders", "older"} {
		c.run("dataset", "delete", "shop/"+name, "--yes")
	}

	c.run("namespace", "delete", "shop")
	require.Equal(t, "Restored shop.\n", c.run("restore", "shop"))
	require.JSONEq(t, fmt.Sprintf(`{"id": %q, "kind": "dataset", "username": "carl", "namespace": "shop", "dataset": "older"}`, first[0]), c.run("restore", "carl/shop/older", "-o", "json"))

	nothing := c.try("restore", "shop/nothing")
	require.Equal(t, printed{err: "quern: you deleted nothing named \"shop/nothing\" that can still be restored\n`quern deleted` lists what can be restored.\n", code: 5}, nothing)
	require.Equal(t, 5, c.try("restore", uuid.NewString()).code)
}
