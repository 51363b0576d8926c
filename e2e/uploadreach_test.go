package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestRestrictedUploads checks that a token that is limited to one dataset can load files into it, and nowhere else. To the
// token, every session that it did not prepare itself looks absent.
func TestRestrictedUploads(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))
	other := d.beside("notes", `{"data": [{"n": 2}]}`)

	limited := restrictedToken(t, s, d.bearer, target("self", d.namespace, "orders"))
	twin := restrictedToken(t, s, d.bearer, target("self", d.namespace, "orders"))
	one := d.by(limited)

	// Its own session, in all operations, and with the same answer for the account.
	session := prepare(t, s, limited, 4)
	address := s.url + "/file-upload/" + session.SessionID
	renewed := call(t, http.MethodPost, address+"/files/"+session.Files[0].FileID+"/urls", limited, `{"partNumbers": [1]}`)
	require.Equal(t, http.StatusOK, renewed.status, renewed.body)
	require.Equal(t, http.StatusOK, put(t, session.Files[0].PresignedURLs[0].URL, "n\n1\n").status)
	require.Equal(t, http.StatusOK, session.finish(t, s, limited, 0).status)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, address+"/files", limited, "").status)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, address, d.bearer, "").status, "the account sees it")

	aborted := call(t, http.MethodPost, s.url+"/file-upload/"+prepare(t, s, limited, 1).SessionID+"/abort", limited, "")
	require.Equal(t, http.StatusOK, aborted.status, aborted.body)

	// Another dataset looks absent, also one that does not exist yet.
	for _, name := range []string{other.name, "new"} {
		elsewhere := *one
		elsewhere.name = name
		require.Equal(t, http.StatusNotFound, elsewhere.create(session.SessionID, "").status, name)
	}

	// Sessions of other credentials: of the account, and of a token with the same target.
	ofAccount, ofTwin := uploadFiles(t, s, d.bearer, "n\n2\n"), uploadFiles(t, s, twin, "n\n3\n")
	seen := call(t, http.MethodGet, s.url+"/file-upload", limited, "").body
	require.Contains(t, seen, session.SessionID)
	require.NotContains(t, seen, ofAccount)
	require.NotContains(t, seen, ofTwin)

	absentSession := one.create(uuid.NewString(), "")
	require.Equal(t, http.StatusNotFound, absentSession.status, absentSession.body)

	for _, id := range []string{ofAccount, ofTwin} {
		for _, door := range []struct{ method, path string }{{http.MethodGet, ""}, {http.MethodGet, "/files"}, {http.MethodPost, "/abort"}} {
			requireAbsent(t, call(t, door.method, s.url+"/file-upload/"+id+door.path, limited, ""), door.path)
		}

		require.JSONEq(t, absentSession.body, one.create(id, "").body)
	}

	require.Equal(t, "completed", one.wait(one.accepted(one.create(session.SessionID, "")).ID).Status)
	require.Len(t, d.table().rows, 1)

	// A token whose role is viewer uploads nothing.
	viewer := call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "v", "role": "viewer", "accessRestrictedTo": [`+target("self", d.namespace, "orders")+`]}`)
	requireFault(t, "viewer", call(t, http.MethodPost, s.url+"/file-upload/prepare", value(t, viewer), prepareBody(1)), http.StatusForbidden, "FORBIDDEN")

	// With a token for a namespace, an upload can create a dataset in it.
	c := s.signedIn(t, restrictedToken(t, s, d.bearer, target("self", d.namespace, "")))
	file := filepath.Join(c.home, "more.csv")
	require.NoError(t, os.WriteFile(file, []byte("n\n4\n5\n"), 0o600))
	require.Contains(t, c.run("upload", file, d.namespace+"/made"), "Loaded 2 rows of 1 file into "+d.namespace+"/made.")

	// The command line, with a token for the dataset.
	c = s.signedIn(t, limited)
	require.Contains(t, c.run("upload", file, d.namespace+"/orders"), "Loaded 2 rows of 1 file into "+d.namespace+"/orders.")
	require.Len(t, d.table().rows, 3)

	refused := c.try("upload", file, d.namespace+"/notes")
	require.Equal(t, 5, refused.code, refused.err)
	require.Len(t, other.table().rows, 1)
}
