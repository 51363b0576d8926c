package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSourceHTTPS loads files behind addresses of an HTTPS server with a private authority, and compares the dataset with a model after each run.
func TestSourceHTTPS(t *testing.T) {
	t.Parallel()

	follows, keeps, broken, forbidden := newAddresses(t, "h2"), newAddresses(t, "h2"), newAddresses(t, "http/1.1"), newAddresses(t, "h2")

	s := start(t, "QUERN_SOURCE_HOSTS="+strings.Join([]string{follows.host, keeps.host, broken.host, strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://")}, ","), "QUERN_SOURCE_TIMEOUT=2s", "QUERN_UPLOAD_MAX_FILE=1MiB", "QUERN_LOG_LEVEL=debug")
	key := s.newKey()

	t.Run("files that change and go", func(t *testing.T) {
		t.Parallel()
		httpsFollow(t, newAddressSource(t, s, follows, "follower", key.token("follower"), `, "changed": "replace", "deleted": "remove"`, csvPaths(12)...))
	})
	t.Run("rows that stay", func(t *testing.T) {
		t.Parallel()
		httpsKeep(t, newAddressSource(t, s, keeps, "keeper", key.token("keeper"), "", "a.csv", "folder/b%20c.csv", "d.csv?year=2026"))
	})
	t.Run("answers that are not files", func(t *testing.T) {
		t.Parallel()
		httpsBroken(t, newAddressSource(t, s, broken, "patient", key.token("patient"), "", "a.csv", "b.csv"), forbidden)
	})
	t.Run("what is refused", func(t *testing.T) {
		t.Parallel()
		httpsRefused(t, s, keeps, key.token("refused"))
	})
}

func csvPaths(count int) (paths []string) {
	for i := range count {
		paths = append(paths, fmt.Sprintf("%02d.csv", i))
	}

	return paths
}

func hoursAgo(hours int) string {
	return time.Now().Add(-time.Duration(hours) * time.Hour).UTC().Format(http.TimeFormat)
}

// validators returns a header that a server sends with a file. i says which validators it has.
func validators(i int) http.Header {
	switch id := uuid.NewString(); i % 4 {
	case 0:
		return http.Header{"Etag": {`"` + id + `"`}}
	case 1:
		return http.Header{"Etag": {`W/"` + id + `"`}}
	case 2:
		return http.Header{"Last-Modified": {hoursAgo(1 + rand.IntN(100_000))}}
	default:
		return http.Header{}
	}
}

func httpsFollow(t *testing.T, o *sourceOf) {
	t.Helper()

	put := func(i, count int) {
		path := fmt.Sprintf("%02d.csv", i)
		o.put(path, count)
		o.web.serve(path, served{content: o.web.files[path].content, header: validators(i)})
	}

	for i := range 8 {
		put(i, 3+i)
	}

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 8, run.Files)
	o.requireModel()

	for path, times := range o.web.count() {
		require.Equal(t, 1, times, "%s: each file is sent once", path)
	}

	// Nothing has changed: a server that knows its files does not send them again.
	before := o.snapshots()
	run = o.refresh()
	require.Equal(t, []int64{0, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	require.Equal(t, before, o.snapshots())

	counted := o.web.count()
	for i := range 12 {
		status := []int{304, 304, 304, 200}[i%4]
		if i >= 8 {
			status = 404
		}

		require.Equal(t, 1, counted[fmt.Sprintf("%02d.csv %d", i, status)], "%d: %v", i, counted)
	}

	// The same content with another validator is no change, and is not sent again after this.
	o.web.serve("00.csv", served{content: o.web.files["00.csv"].content, header: validators(0)})

	for _, status := range []int{200, 304} {
		o.web.count()

		run = o.refresh()
		require.Equal(t, []int64{0, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
		require.Equal(t, 1, o.web.count()[fmt.Sprintf("00.csv %d", status)])
	}

	random := rand.New(rand.NewPCG(3, 4))

	for range loops(50) {
		for range 1 + random.IntN(4) {
			i := random.IntN(12)
			if path := fmt.Sprintf("%02d.csv", i); len(o.files) > 1 && random.IntN(3) == 0 {
				o.remove(path)
			} else {
				put(i, 1+random.IntN(50))
			}
		}

		before := o.snapshots()
		run := o.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)
		o.requireModel()
		require.LessOrEqual(t, o.snapshots()-before, int(run.Files)+1, "each file is replaced in one snapshot, and all removals are one")
	}

	// 410 is gone too. If no file is left, nothing is removed.
	put(0, 5)
	put(1, 5)
	require.Equal(t, "completed", o.refresh().Status)
	o.remove("00.csv")
	o.web.serve("00.csv", served{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }})

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 1, run.Deleted)
	o.requireModel()

	kept := maps.Clone(o.model)
	for _, path := range slices.Sorted(maps.Keys(o.files)) {
		o.remove(path)
	}

	o.model = kept
	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, "gone", o.get().ReasonCode)
	o.requireModel()

	// A file that is no longer in the list keeps its rows.
	o.change(`{"paths": ["20.csv"], "active": true}`)
	o.put("20.csv", 4)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{1, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()
}

func httpsKeep(t *testing.T, o *sourceOf) {
	t.Helper()

	o.put("a.csv", 3)
	o.put("folder/b c.csv", 4)
	o.put("d.csv", 5)

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 3, run.Files)
	o.requireModel()

	var uploads struct {
		Data []struct{ Files []struct{ Filename string } }
	}

	call(t, http.MethodGet, o.s.url+"/file-upload?limit=10", o.bearer, "").json(t, &uploads)

	var names []string
	for _, one := range uploads.Data {
		names = append(names, one.Files[0].Filename)
	}

	require.ElementsMatch(t, []string{"a.csv", "folder/b c.csv", "d.csv"}, names)

	// A change is told once, and the new content is not asked for again.
	kept := maps.Clone(o.model)
	o.put("a.csv", 2)

	changed := o.model
	o.model = kept
	run = o.refresh()
	require.Equal(t, []int64{0, 1, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.web.count()

	run = o.refresh()
	require.Equal(t, []int64{0, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	require.Equal(t, 1, o.web.count()["a.csv 304"])
	o.requireModel()

	// From when it is told to, it follows changes that it has told.
	o.model = changed
	o.change(`{"changed": "replace"}`)

	run = o.refresh()
	require.Equal(t, []int64{1, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()

	kept = maps.Clone(o.model)
	o.remove("d.csv")
	o.model = kept

	run = o.refresh()
	require.Equal(t, []int64{0, 0, 1}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()
}

func httpsBroken(t *testing.T, o *sourceOf, forbidden *addresses) {
	t.Helper()

	o.put("a.csv", 3)
	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	answers := func(path string, answer http.HandlerFunc) { o.web.serve(path, served{answer: answer}) }
	csv := strings.Repeat("n\n-1\n", 1000)

	// What is not the file stops the source. Nothing of it is loaded, and the other files are.
	for reason, answer := range map[string]http.HandlerFunc{
		"ended the file before its end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte(csv))
		},
		"sent a page for people": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html><body><table><tr><th>n</th></tr><tr><td>-1</td></tr></table></body></html>"))
		},
		"sent JSON instead of the file": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`[{"n": -1}]`))
		},
		"sent the file compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte(csv))
		},
		"larger than the service accepts": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat(csv, 300))) },
	} {
		answers("a.csv", answer)
		o.put("b.csv", 2)
		o.change(`{"changed": "replace", "paths": ["a.csv", "b.csv"]}`)

		run := o.refresh()
		require.Equal(t, "stopped", run.Status, reason)
		require.Contains(t, run.Reason, reason)
		require.Contains(t, run.Reason, `"a.csv"`)
		require.EqualValues(t, 1, run.Files, reason)

		now := o.get()
		require.Equal(t, []string{"stopped", "file"}, []string{now.Status, now.ReasonCode})
		o.requireModel()
		o.set(true)
	}

	// What may pass fails the run, and the source stays active.
	for reason, answer := range map[string]http.HandlerFunc{
		"did not answer in time": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/data/a.csv" { // a body that does not go on
				_, _ = w.Write([]byte(csv))
				_ = http.NewResponseController(w).Flush()
			}

			<-r.Context().Done()
		},
		"refused the credentials": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"an error or a redirect":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"Redirects are not followed": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, forbidden.server.URL+"/data/a.csv", http.StatusFound)
		},
		"redirect. Redirects are not": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/data/b.csv", http.StatusMovedPermanently)
		},
	} {
		answers("a.csv", answer)

		begun := o.begin()
		require.Equal(t, http.StatusAccepted, begun.status, begun.body)

		var run sourceRun

		begun.json(t, &run)
		awaitFor(t, longEnough, "the run has ended", func() bool { return o.get().LastRun.FinishedAt != "" })
		run = *o.get().LastRun
		require.Equal(t, "failed", run.Status, "%s: %s", reason, run.Reason)
		require.Contains(t, run.Reason, reason)
		require.Equal(t, "active", o.get().Status)
		o.requireModel()
	}

	require.Empty(t, forbidden.count(), "a redirect was followed")

	// When it is well again, it continues.
	o.put("a.csv", 2)
	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()
}

func httpsRefused(t *testing.T, s *service, web *addresses, bearer string) {
	t.Helper()

	otherCA, _ := newAuthority(t)
	create := func(settings string) *answer {
		return call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "c-%s", "kind": "https", "https": %s}`, uuid.NewString(), settings))
	}

	for _, c := range []struct {
		others map[string]any
		reason string
	}{
		{map[string]any{"caCertificate": nil}, "TLS connection failed"},
		{map[string]any{"caCertificate": otherCA}, "TLS connection failed"},
		{map[string]any{"caCertificate": "no certificate"}, "certificates in PEM"},
		{map[string]any{"caCertificate": web.ca + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}, "and nothing else"},
		{map[string]any{"baseUrl": strings.Replace(web.server.URL, "127.0.0.1", "localhost", 1)}, "does not allow this host"},
		{map[string]any{"baseUrl": web.server.URL + "/a/../b"}, "without empty parts"},
		{map[string]any{"baseUrl": web.server.URL + "/?a=b"}, "query"},
		{map[string]any{"token": "with space"}, "printable ASCII"},
		{map[string]any{"token": "x", "user": "y", "password": "z"}, "either token"},
		{map[string]any{"user": "y"}, "either token"},
		{map[string]any{"user": "a:b", "password": "z"}, "colon"},
	} {
		answer := create(web.settings(c.others))
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, c.reason)
	}

	// Sources of the kinds have what their kind has.
	address, bucket := s.connectAddresses(t, bearer, web, nil), s.connect(t, bearer, "bucket", newPlace(t))
	source := func(connection, more string) *answer {
		return call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": "n", "datasetName": "d"%s}`, uuid.NewString(), connection, more))
	}

	for connection, bodies := range map[string][]string{
		address: {
			"", `, "paths": []`, `, "paths": ["../a.csv"]`, `, "paths": ["/a.csv"]`, `, "paths": ["a.csv", "a.csv"]`, `, "paths": ["a.csv"], "prefix": "a"`, `, "paths": ["a.csv"], "pattern": "a"`,
			`, "paths": ["https://127.0.0.1/a.csv#"]`, `, "paths": ["a.csv"], "postgresql": {"mode": "full", "table": "a"}`,
		},
		bucket: {`, "paths": ["a.csv"]`},
	} {
		for _, body := range bodies {
			answer := source(connection, body)
			require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", body, answer.body)
		}
	}

	many, err := json.Marshal(csvPaths(100))
	require.NoError(t, err)

	var ofAddresses, ofBucket struct {
		ID    string
		Paths []string
	}

	answer := source(address, `, "paths": `+string(many))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &ofAddresses)
	require.Len(t, ofAddresses.Paths, 100)
	source(bucket, "").json(t, &ofBucket)

	for id, bodies := range map[string][]string{ofAddresses.ID: {`{"prefix": "a"}`, `{"pattern": "*"}`, `{"paths": ["a", "a"]}`, `{"paths": ["a//b"]}`}, ofBucket.ID: {`{"paths": ["a"]}`}} {
		for _, body := range bodies {
			require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodPatch, s.url+"/sources/"+id, bearer, body).status, body)
		}
	}

	require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodGet, s.url+"/connections/"+address+"/files", bearer, "").status)
}

// TestConnectionsHTTPS checks how credentials are sent, and that they are nowhere else.
func TestConnectionsHTTPS(t *testing.T) {
	t.Parallel()

	web := newAddresses(t, "h2")
	s := start(t, web.hosts(), "QUERN_LOG_LEVEL=debug")
	key := s.newKey()
	owner := key.token("owner")
	token, next, password, wrong := "TOKEN"+uuid.NewString(), "NEXT"+uuid.NewString(), "pass: ä "+uuid.NewString(), "WRONG"+uuid.NewString()

	var said []string

	listen := func(a *answer) *answer { said = append(said, a.body); return a }
	wants := func(value string) {
		web.mu.Lock()
		defer web.mu.Unlock()

		web.wanted = value
	}

	wants("Bearer " + token)

	body := func(name, settings string) string {
		return fmt.Sprintf(`{"name": %q, "kind": "https", "https": %s}`, name, settings)
	}
	answer := listen(call(t, http.MethodPost, s.url+"/connections", owner, body("a", web.settings(map[string]any{"token": wrong}))))
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "refused the credentials")

	answer = listen(call(t, http.MethodPost, s.url+"/connections", owner, body("a", web.settings(map[string]any{"token": token}))))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	require.Contains(t, answer.body, `"auth":"bearer"`)
	require.Contains(t, answer.body, `"baseUrl":"`+web.server.URL+`/data/"`)

	var made connected

	answer.json(t, &made)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/connections/"+made.ID, key.token("other"), "").status)

	// The server takes another token: the problem is told, and the new token is tried before it is kept.
	wants("Bearer " + next)

	var tested connected

	listen(call(t, http.MethodPost, s.url+"/connections/"+made.ID+"/test", owner, "")).json(t, &tested)
	require.Equal(t, "refused", tested.Problem.Code)

	for text, status := range map[string]int{
		`{"token": "` + wrong + `"}`: http.StatusUnprocessableEntity, `{"password": "` + wrong + `"}`: http.StatusUnprocessableEntity, `{"token": "a b"}`: http.StatusUnprocessableEntity,
		`{"token": "x", "password": "y"}`: http.StatusUnprocessableEntity, `{"token": "` + next + `"}`: http.StatusOK,
	} {
		answer := listen(call(t, http.MethodPatch, s.url+"/connections/"+made.ID, owner, text))
		require.Equal(t, status, answer.status, answer.body)
	}

	listen(call(t, http.MethodPost, s.url+"/connections/"+made.ID+"/test", owner, "")).json(t, &tested)

	// A user with a password.
	request, err := http.NewRequest(http.MethodGet, web.server.URL, nil)
	require.NoError(t, err)
	request.SetBasicAuth("reader", password)
	wants(request.Header.Get("Authorization"))

	answer = listen(call(t, http.MethodPost, s.url+"/connections", owner, body("b", web.settings(map[string]any{"user": "reader", "password": password}))))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	require.Contains(t, answer.body, `"user":"reader"`)

	listen(call(t, http.MethodGet, s.url+"/connections", owner, ""))
	listen(call(t, http.MethodGet, s.url+"/audit", owner, ""))

	// A server that is not there.
	web.server.Close()
	listen(call(t, http.MethodPost, s.url+"/connections/"+made.ID+"/test", owner, "")).json(t, &tested)
	require.Equal(t, "connect", tested.Problem.Code)

	stored := s.text(`SELECT string_agg(c::text, '') FROM connections c`) + s.text(`SELECT string_agg(encode(sealed, 'escape') || encode(wrapped, 'escape'), '') FROM connections`)
	kept := s.text(`SELECT coalesce(string_agg(r::text, ''), '') FROM audit r`) + s.text(`SELECT coalesce(string_agg(r::text, ''), '') FROM idempotency r`)

	for _, hidden := range []string{token, next, password, wrong, request.Header.Get("Authorization")} {
		for where, text := range map[string]string{"log": s.log(), "row": stored + kept, "answers": strings.Join(said, "")} {
			require.NotContains(t, text, hidden, where)
		}
	}
}
