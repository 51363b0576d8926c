package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSourceMove gives sources of files another connection.
func TestSourceMove(t *testing.T) {
	t.Parallel()

	was, will := newAddresses(t, "h2"), newAddresses(t, "h2")
	s := start(t, "QUERN_SOURCE_HOSTS="+strings.Join([]string{was.host, will.host, strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://")}, ","))
	key := s.newKey()

	t.Run("a bucket", func(t *testing.T) {
		t.Parallel()
		moveBucket(t, s, key, was)
	})
	t.Run("addresses", func(t *testing.T) {
		t.Parallel()
		moveAddresses(t, s, key.token("webber"), was, will)
	})
	t.Run("at a terminal", func(t *testing.T) {
		t.Parallel()
		moveCommands(t, s, key)
	})
}

// moves requests that the source uses another connection.
func (o *sourceOf) moves(connection string) *answer {
	o.t.Helper()

	return call(o.t, http.MethodPatch, o.s.url+"/sources/"+o.id, o.bearer, fmt.Sprintf(`{"connectionId": %q}`, connection))
}

func moveBucket(t *testing.T, s *service, key *signer, web *addresses) {
	t.Helper()

	o := newSource(t, s, "mover", key.token("mover"), `, "prefix": "in/", "changed": "replace", "deleted": "remove"`)
	there := newBucket(t)

	for i := range 3 {
		path, content := fmt.Sprintf("in/%d.csv", i), o.numbers(2)
		o.there.put(path, content)
		there.put(path, content)
	}

	require.EqualValues(t, 3, o.refresh().Files)

	var before struct{ ConnectionID string }

	call(t, http.MethodGet, s.url+"/sources/"+o.id, o.bearer, "").json(t, &before)

	// Only to a connection of the same kind that the owner of the source may use.
	answer := o.moves(s.connectAddresses(t, o.bearer, web, nil))
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "connectionId")
	require.Equal(t, http.StatusNotFound, o.moves(s.connect(t, key.token("stranger"), "theirs", there)).status)

	// The first connection goes. What is the same in the other bucket is not loaded again, and is in no doubt.
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/connections/"+before.ConnectionID, o.bearer, "").status)

	stopped := o.refresh()
	require.Equal(t, "stopped", stopped.Status)
	require.Contains(t, stopped.Reason, "quern source change --connection")

	answer = o.moves(s.connect(t, o.bearer, "other", there))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, "connection", o.get().ReasonCode, "it is resumed by its owner")
	o.set(true)
	there.put("in/3.csv", o.numbers(4))

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{1, 4, 0, 0, 0, 0}, []int64{run.Files, run.Rows, run.Changed, run.Deleted, run.FilesReplaced, run.FilesRemoved})
	o.requireModel()

	// From then on it follows the other bucket.
	o.there = there
	o.remove("in/0.csv")

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{0, 1, 2}, []int64{run.Files, run.FilesRemoved, run.RowsRemoved})
}

func moveAddresses(t *testing.T, s *service, bearer string, was, will *addresses) {
	t.Helper()

	o := newAddressSource(t, s, was, "webber", bearer, `, "changed": "replace"`, "a.csv", "b.csv")
	one, two := o.numbers(2), o.numbers(3)
	was.put("a.csv", one)
	was.put("b.csv", two)
	require.EqualValues(t, 2, o.refresh().Files)

	// The other server gives another content the ETag that the first one gave: only the content counts.
	will.put("a.csv", one)
	will.serve("b.csv", served{content: two + "100\n", answer: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)

			return
		}

		_, _ = fmt.Fprint(w, two+"100\n")
	}})

	answer := o.moves(s.connectAddresses(t, bearer, will, nil))
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	o.model[100]++

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{1, 1}, []int64{run.Files, run.FilesReplaced})
	o.requireModel()
}

func moveCommands(t *testing.T, s *service, key *signer) {
	t.Helper()

	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("typist"), `{"name": "terminal", "role": "owner"}`)))
	there := newBucket(t)
	create := func(name string) {
		made := c.feed(stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")+"\n", "connection", "create", name, "--endpoint", there.endpoint, "--region", stack.Env(t, "QUERN_TEST_S3_REGION"),
			"--bucket", there.bucket, "--prefix", there.prefix, "--path-style", "--access-key-id", stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"))
		require.Zero(t, made.code, made.err)
	}

	create("old")
	create("new")
	there.put("a.csv", "id;total\n1;5\n2;7\n")
	c.run("source", "add", "orders", "shop/orders", "--connection", "old", "--delimiter", ";")
	c.run("source", "add", "more", "shop/more", "--connection", "old")
	c.run("connection", "share", "old", "bob")
	require.Equal(t, "Loaded 1 file with 2 rows.\n", c.run("source", "run", "orders"))

	// A program must say that it means it. It is told what stops.
	refused := c.try("connection", "delete", "old")
	require.Equal(t, 2, refused.code)
	require.Contains(t, refused.err, "Sources that stop: orders (typist/shop/orders), more (typist/shop/more). People with whom it is shared, whose sources stop too: bob. Delete the connection old with its secret?")
	require.Contains(t, refused.err, "--yes")
	require.Contains(t, c.run("connection", "list"), "old")

	editor := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("typist"), `{"name": "less", "role": "editor"}`)))
	refused = editor.try("connection", "delete", "old")
	require.Equal(t, 2, refused.code, refused.err)
	require.Contains(t, refused.err, "needs a token with the role owner")

	require.Contains(t, c.run("source", "change", "orders", "--connection", "new"), "The next run uses it.")
	require.Equal(t, 5, c.try("source", "change", "orders", "--connection", "none").code)
	require.NotContains(t, c.try("connection", "delete", "old").err, "orders")
	require.Equal(t, "Deleted the connection.\n", c.run("connection", "delete", "old", "--yes"))
	require.Contains(t, c.run("source", "run", "orders"), "Found no new file")
	require.Equal(t, 9, c.try("source", "run", "more").code)
	require.Contains(t, c.run("source", "change", "more", "--connection", "new"), "It is stopped: `quern source resume more`")
	c.run("source", "resume", "more")
	c.run("source", "run", "more")
}
