package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// lend shares a connection.
func (s *service) lend(t *testing.T, owner, connection, grantee string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/connections/"+connection+"/shares", owner, fmt.Sprintf(`{"username": %q}`, grantee))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

// takeBack ends what lend began.
func (s *service) takeBack(t *testing.T, owner, connection, grantee string) {
	t.Helper()

	answer := call(t, http.MethodDelete, s.url+"/connections/"+connection+"/shares", owner, fmt.Sprintf(`{"username": %q}`, grantee))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

// borrowed makes a source with a connection of somebody else.
func borrowed(t *testing.T, s *service, owner, bearer, connection string, there *place) *sourceOf {
	t.Helper()

	o := &sourceOf{filled: &filled{t, s, bearer, owner, "n-" + uuid.NewString(), "orders"}, there: there, model: map[int64]int{}}
	answer := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s", "connectionId": %q, "namespace": %q, "datasetName": "orders"}`, connection, o.namespace))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	var made sourced

	answer.json(t, &made)
	o.id = made.ID

	return o
}

func (s *service) usable(t *testing.T, bearer string) (names []string) {
	t.Helper()

	var page struct {
		Data []struct{ Name, Owner string }
	}

	call(t, http.MethodGet, s.url+"/connections?limit=100", bearer, "").json(t, &page)

	for _, one := range page.Data {
		names = append(names, one.Owner+"/"+one.Name)
	}

	return names
}

// TestConnectionShares checks what those may do with whom a connection is shared, and what happens when that ends.
func TestConnectionShares(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	owner, helper, other := key.token("lender"), key.token("helper"), key.token("other")
	there := newBucket(t)
	connection := s.connect(t, owner, "nightly", there)
	at := s.url + "/connections/" + connection

	// A person who has not signed in yet, a group, and a name in another case.
	s.lend(t, owner, connection, "HELPER")
	s.lend(t, owner, connection, "@analysts")
	s.lend(t, owner, connection, "newcomer")
	require.JSONEq(t, `[{"username": "@analysts"}, {"username": "helper", "pending": true}, {"username": "newcomer", "pending": true}]`, call(t, http.MethodGet, at+"/shares", owner, "").body)

	o := borrowed(t, s, "helper", helper, connection, there)
	s.lend(t, owner, connection, "helper") // again, now to the account
	require.JSONEq(t, `[{"username": "@analysts"}, {"username": "helper"}, {"username": "newcomer", "pending": true}]`, call(t, http.MethodGet, at+"/shares", owner, "").body)
	there.put("a.csv", o.numbers(5))

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	o.requireModel()
	require.Equal(t, []string{"lender/nightly"}, s.usable(t, helper))
	require.Equal(t, []string{"/nightly"}, s.usable(t, owner))
	require.Empty(t, s.usable(t, other))

	seen := call(t, http.MethodGet, at, helper, "")
	require.Contains(t, seen.body, `"owner":"lender"`)
	require.NotContains(t, seen.body, stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"))
	require.Contains(t, call(t, http.MethodGet, at+"/files", helper, "").body, "a.csv")

	// Neither changed, nor tested, nor shared by those who only use it. Others are not told that it exists.
	for bearer, status := range map[string]int{helper: http.StatusForbidden, other: http.StatusNotFound} {
		for _, c := range []struct{ method, path, body string }{
			{http.MethodPatch, "", `{"name": "mine"}`},
			{http.MethodDelete, "", ""},
			{http.MethodPost, "/test", ""},
			{http.MethodGet, "/shares", ""},
			{http.MethodPost, "/shares", `{"username": "x"}`},
			{http.MethodDelete, "/shares", `{"username": "helper"}`},
		} {
			require.Equal(t, status, call(t, c.method, at+c.path, bearer, c.body).status, c)
		}
	}

	for body, status := range map[string]int{`{"username": "lender"}`: http.StatusUnprocessableEntity, `{"username": "a b"}`: http.StatusUnprocessableEntity, `{"username": "@"}`: http.StatusUnprocessableEntity} {
		require.Equal(t, status, call(t, http.MethodPost, at+"/shares", owner, body).status, body)
	}

	for _, name := range []string{"other", "@others", "a b"} {
		require.Equal(t, http.StatusNotFound, call(t, http.MethodDelete, at+"/shares", owner, fmt.Sprintf(`{"username": %q}`, name)).status, name)
	}

	sharesMembers(t, s, key, connection, there)
	sharesEnd(t, s, owner, connection, o)
}

// sharesMembers uses a connection as a member of a group, and releases a name to which it is shared.
func sharesMembers(t *testing.T, s *service, key *signer, connection string, there *place) {
	t.Helper()

	claims := key.claims("member")
	claims["groups"] = []string{"analysts"}
	member := key.sign(claims)
	run := borrowed(t, s, "member", member, connection, there).refresh()
	require.Equal(t, "completed", run.Status, run.Reason)

	// An own connection with the same name is another one, and pages have each once.
	s.connect(t, member, "nightly", there)

	var first, second struct {
		Data       []connected
		NextCursor string
	}

	call(t, http.MethodGet, s.url+"/connections?limit=1", member, "").json(t, &first)
	call(t, http.MethodGet, s.url+"/connections?limit=1&cursor="+first.NextCursor, member, "").json(t, &second)
	require.Len(t, first.Data, 1)
	require.Equal(t, connection, first.Data[0].ID)
	require.Len(t, second.Data, 1)
	require.NotEqual(t, connection, second.Data[0].ID)
	require.Empty(t, second.NextCursor)

	// Whoever has a released name next has nothing of it.
	require.Equal(t, []string{"lender/nightly"}, s.usable(t, key.token("newcomer")))

	_, err := s.command("user", "release", "newcomer")
	require.NoError(t, err)
	require.NotContains(t, call(t, http.MethodGet, s.url+"/connections/"+connection+"/shares", key.token("lender"), "").body, `"newcomer"`)
	require.Equal(t, 3, s.count(`SELECT count(*) FROM directory_connections`))
	require.Equal(t, 0, s.count(`SELECT count(*) FROM directory_connections WHERE subject_kind = 'name'`))
}

// sharesEnd takes the connection back while it is used, gives it again, and deletes it.
func sharesEnd(t *testing.T, s *service, owner, connection string, o *sourceOf) {
	t.Helper()

	// During a run, which stops before it loads another file.
	const files = 16
	for i := range files {
		o.there.put(fmt.Sprintf("b/%02d.csv", i), o.numbers(2))
	}

	answer := o.begin()
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)

	var run sourceRun

	answer.json(t, &run)
	await(t, "a file is loaded", func() bool { return o.get().LastRun.Files > 0 })
	s.takeBack(t, owner, connection, "helper")

	run = o.ended(run.ID)
	require.Equal(t, "stopped", run.Status)
	require.Less(t, run.Files, int64(files))
	require.Contains(t, run.Reason, "no longer shared with you")
	require.Equal(t, "connection", o.get().ReasonCode)
	require.Empty(t, s.usable(t, o.bearer))
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/connections/"+connection, o.bearer, "").status)

	// Resuming alone does not help.
	o.set(true)
	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.EqualValues(t, 0, run.Files)

	// It is given again: nothing was lost, and nothing is loaded twice.
	s.lend(t, owner, connection, "helper")
	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	o.requireModel()

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/connections/"+connection, owner, "").status)
	require.Equal(t, "stopped", o.refresh().Status)
	require.Equal(t, 0, s.count(`SELECT count(*) FROM directory_connections WHERE connection_id = $1`, connection))
}

// TestConnectionShareCommands shares a connection and uses it as two people at terminals do.
func TestConnectionShareCommands(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	terminal := func(name string) *cli {
		return s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token(name), `{"name": "terminal", "role": "owner"}`)))
	}
	ada, bob, eve := terminal("ada"), terminal("bob"), terminal("eve")
	there := newBucket(t)
	create := func(by *cli) {
		made := by.feed(stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")+"\n", "connection", "create", "nightly", "--endpoint", there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"),
			"--bucket", there.bucket, "--prefix", there.prefix, "--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"))
		require.Zero(t, made.code, made.err)
	}

	create(ada)
	require.Contains(t, ada.run("connection", "shares", "nightly"), "The connection is not shared.")
	require.Equal(t, "bob may now use the connection nightly.\n", ada.run("connection", "share", "nightly", "bob"))
	require.Contains(t, ada.run("connection", "shares", "nightly"), "bob")
	require.Equal(t, 5, ada.try("connection", "unshare", "nightly", "eve").code)
	require.Contains(t, bob.run("connection", "list"), "ada/nightly")
	require.Equal(t, 5, eve.try("connection", "files", "nightly").code)

	// What a right on a connection needs is another command than a role on a dataset.
	adas := func(role string) *cli {
		return s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("ada"), fmt.Sprintf(`{"name": "less-%s", "role": %q}`, role, role))))
	}
	for _, refused := range []printed{bob.try("connection", "delete", "ada/nightly"), bob.try("connection", "share", "ada/nightly", "eve"), adas("editor").try("connection", "share", "nightly", "eve")} {
		require.Equal(t, 4, refused.code, refused.err)
		require.Contains(t, refused.err, "`quern connection share`")
		require.NotContains(t, refused.err, "`quern share`")
	}

	refused := adas("viewer").try("connection", "test", "nightly")
	require.Equal(t, 4, refused.code, refused.err)
	require.Contains(t, refused.err, "`quern token create NAME --role ROLE`")
	require.NotContains(t, refused.err, "`quern share`")

	there.put("in/a.csv", "id;total\n1;5\n2;7\n")
	require.Contains(t, bob.run("connection", "files", "nightly"), "in/a.csv")
	bob.run("source", "add", "orders", "shop/orders", "--connection", "ada/nightly", "--prefix", "in/", "--delimiter", ";")
	require.Equal(t, "Loaded 1 file with 2 rows.\n", bob.run("source", "run", "orders"))

	// A file names it by its owner, and does not make it.
	text := bob.run("source", "export")
	require.Contains(t, text, "    connection: ada/nightly\n")
	require.NotContains(t, text, "connections:")

	file := filepath.Join(t.TempDir(), "bob.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Contains(t, bob.run("source", "apply", file), "Nothing differs.")

	// An own connection comes first. Two of others with the same name must be told apart.
	create(eve)
	eve.run("connection", "share", "nightly", "bob")
	refused = bob.try("connection", "files", "nightly")
	require.Equal(t, 2, refused.code)
	require.Contains(t, refused.err, "ada/nightly or eve/nightly")
	create(bob)
	require.Contains(t, bob.run("connection", "test", "nightly"), "It works.")

	require.Contains(t, ada.run("connection", "unshare", "nightly", "bob"), "bob may no longer use the connection nightly.")
	stopped := bob.try("source", "run", "orders")
	require.Equal(t, 9, stopped.code)
	require.Contains(t, stopped.err, "no longer shared with you")

	// What cannot be exported is told, and does not keep the rest from it.
	bob.run("source", "add", "own", "shop/own", "--connection", "nightly")
	part := bob.try("source", "export")
	require.Equal(t, 6, part.code)
	require.Contains(t, part.out, "  - name: own\n    connection: nightly\n")
	require.NotContains(t, part.out, "name: orders")
	require.Contains(t, part.err, "left out, because their connections were deleted or are no longer shared with you: orders")
	require.Equal(t, printed{"", part.err, 6}, bob.try("source", "export", "orders"))

	// The file of somebody else says what is missing, and who can help.
	refused = bob.try("source", "apply", "--dry-run", file)
	require.Equal(t, 5, refused.code)
	require.Contains(t, refused.err, "the source orders uses the connection ada/nightly, which does not exist or is not shared with you")
	require.Contains(t, refused.err, "`quern connection share nightly bob`")

	foreign := filepath.Join(t.TempDir(), "foreign.yaml")
	require.NoError(t, os.WriteFile(foreign, []byte("sources: [{name: foreign, connection: nightly, dataset: ada/shop/all}]"), 0o600))

	refused = bob.try("source", "apply", "--dry-run", foreign)
	require.Equal(t, 5, refused.code)
	require.Contains(t, refused.err, "the source foreign loads into the dataset ada/shop/all, which does not exist or is not shared with you")
	require.Contains(t, refused.err, "`quern share ada/shop/all bob --role editor`")

	ada.run("dataset", "create", "shop/all")
	ada.run("share", "shop/all", "bob", "--role", "viewer")

	refused = bob.try("source", "apply", foreign)
	require.Equal(t, 4, refused.code)
	require.Contains(t, refused.err, "the source foreign loads into the dataset ada/shop/all, which you may not change")
	require.Contains(t, refused.err, "`quern share ada/shop/all bob --role editor`")
	ada.run("share", "shop/all", "bob", "--role", "editor")
	require.Equal(t, "source foreign: made\n", bob.run("source", "apply", foreign))
}
