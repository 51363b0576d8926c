package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// connected is a connection as the API returns it.
type connected struct {
	ID, Name, Kind string
	Problem        *struct{ Code, Message string }
}

// s3Settings returns the settings of a connection to the location.
func (p *place) s3Settings() string {
	p.t.Helper()

	return fmt.Sprintf(`{"endpoint": %q, "region": %q, "bucket": %q, "prefix": %q, "pathStyle": true, "accessKeyId": %q, "secretAccessKey": %q}`,
		p.endpoint, stack.Env(p.t, "QUERN_TEST_S3_REGION"), p.bucket, p.prefix, stack.Env(p.t, "QUERN_TEST_S3_ACCESS_KEY"), stack.Env(p.t, "QUERN_TEST_S3_SECRET_KEY"))
}

// put writes an object.
func (p *place) put(path, content string) {
	p.t.Helper()

	_, err := p.client.PutObject(p.t.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: new(p.prefix + path), Body: strings.NewReader(content)})
	require.NoError(p.t, err)
}

// remove removes objects.
func (p *place) remove(paths ...string) {
	p.t.Helper()

	for _, path := range paths {
		_, err := p.client.DeleteObject(p.t.Context(), &s3.DeleteObjectInput{Bucket: &p.bucket, Key: new(p.prefix + path)})
		require.NoError(p.t, err)
	}
}

// connect makes a connection to a location and returns its id.
func (s *service) connect(t *testing.T, bearer, name string, to *place) string {
	t.Helper()

	var made connected

	answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": %q, "kind": "s3", "s3": %s}`, name, to.s3Settings()))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)
	require.Nil(t, made.Problem)

	return made.ID
}

func TestConnections(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	owner, other := key.token("owner"), key.token("other")
	there := newPlace(t)
	id := s.connect(t, owner, "nightly", there)

	// A name is used once, in any case. Others see nothing.
	answer := call(t, http.MethodPost, s.url+"/connections", owner, fmt.Sprintf(`{"name": "NIGHTLY", "kind": "s3", "s3": %s}`, there.s3Settings()))
	require.Equal(t, http.StatusConflict, answer.status, answer.body)

	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		require.Equal(t, http.StatusNotFound, call(t, method, s.url+"/connections/"+id, other, "").status)
	}

	// What does not work is not made, and the reason is told.
	for _, c := range []struct{ old, by, reason string }{
		{there.bucket, "no-such-bucket-" + uuid.NewString()[:8], "no such bucket"},
		{stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), "wrong-secret", "refused the access key"},
		{there.bucket, "../escape", "not the name of a bucket"},
		{there.endpoint, "https://elsewhere.example", "does not allow this host"},
	} {
		body := strings.Replace(fmt.Sprintf(`{"name": "broken", "kind": "s3", "s3": %s}`, there.s3Settings()), fmt.Sprintf("%q", c.old), fmt.Sprintf("%q", c.by), 1)
		answer := call(t, http.MethodPost, s.url+"/connections", owner, body)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, c.reason)
	}

	// A wrong key is not taken over.
	answer = call(t, http.MethodPatch, s.url+"/connections/"+id, owner, `{"accessKeyId": "x", "secretAccessKey": "wrong"}`)
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)

	var tested connected

	call(t, http.MethodPost, s.url+"/connections/"+id+"/test", owner, "").json(t, &tested)
	require.Nil(t, tested.Problem)

	// The files are listed page by page, each once, and only what is below the prefix of the connection.
	want := []string{}

	for i := range 23 {
		path := fmt.Sprintf("2026/%03d/%s ä&?.csv", i, strings.Repeat("long path/", 40))
		there.put(path, "a\n1\n")

		want = append(want, path)
	}

	there.put("2027/other.csv", "a\n")

	got := []string{}

	for cursor := ""; ; {
		var page struct {
			Data []struct {
				Path string
				Size int64
			}
			NextCursor string
		}

		answer := call(t, http.MethodGet, s.url+"/connections/"+id+"/files?prefix=2026/&limit=5"+cursor, owner, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &page)

		for _, file := range page.Data {
			require.EqualValues(t, 4, file.Size)

			got = append(got, file.Path)
		}

		if page.NextCursor == "" {
			break
		}

		cursor = "&cursor=" + page.NextCursor
	}

	require.Equal(t, want, got)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/connections/"+id+"/files", other, "").status)
	require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodGet, s.url+"/connections/"+id+"/files?cursor=AAAA", owner, "").status)

	// Until the operator turns them on there are none.
	off := start(t, "QUERN_SOURCE_HOSTS=")
	answer = call(t, http.MethodPost, off.url+"/connections", off.newKey().token("owner"), fmt.Sprintf(`{"name": "a", "kind": "s3", "s3": %s}`, there.s3Settings()))
	require.Equal(t, http.StatusForbidden, answer.status, answer.body)
}

// TestSourceSecrets checks that the secret of a connection is nowhere but in the store that it is for, and that the key can be changed while the service runs.
func TestSourceSecrets(t *testing.T) {
	t.Parallel()

	first, second := strings.Repeat("first key ", 4), strings.Repeat("second key ", 4)
	web, token := newAddresses(t, "h2"), "TOKEN"+uuid.NewString()
	web.wanted = "Bearer " + token

	s := start(t, "QUERN_SOURCE_KEY="+first, "QUERN_SOURCE_OTHER_KEY="+second, "QUERN_LOG_LEVEL=debug", web.hosts()+","+strings.TrimPrefix(stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "http://"))
	owner, there := s.newKey().token("owner"), newPlace(t)
	secret := stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")
	wrong := "WRONG" + uuid.NewString()

	var said []string

	listen := func(a *answer) *answer { said = append(said, a.body); return a }

	var ids []string
	for i := range 3 {
		ids = append(ids, s.connect(t, owner, fmt.Sprintf("c%d", i), there))
	}

	ids = append(ids, s.connectAddresses(t, owner, web, map[string]any{"token": token}))

	listen(call(t, http.MethodPatch, s.url+"/connections/"+ids[3], owner, fmt.Sprintf(`{"token": %q}`, wrong)))
	listen(call(t, http.MethodPost, s.url+"/connections", owner, strings.Replace(fmt.Sprintf(`{"name": "w", "kind": "s3", "s3": %s}`, there.s3Settings()), secret, wrong, 1)))
	listen(call(t, http.MethodPatch, s.url+"/connections/"+ids[0], owner, fmt.Sprintf(`{"accessKeyId": "x", "secretAccessKey": %q}`, wrong)))
	listen(call(t, http.MethodPost, s.url+"/connections", owner, fmt.Sprintf(`{"name": 5, "s3": {"secretAccessKey": %q}}`, wrong)))
	listen(call(t, http.MethodGet, s.url+"/connections", owner, ""))
	listen(call(t, http.MethodGet, s.url+"/audit", owner, ""))

	works := func(bearer string) {
		t.Helper()

		for _, id := range ids {
			var tested connected

			answer := listen(call(t, http.MethodPost, s.url+"/connections/"+id+"/test", bearer, ""))
			require.Equal(t, http.StatusOK, answer.status, answer.body)
			answer.json(t, &tested)
			require.Nil(t, tested.Problem)
		}
	}
	works(owner)

	// The operator changes the key: both are known, then the keys are sealed anew while requests run, then the first is forgotten.
	was := slices.Clone(s.settings)
	s.settings = slices.Concat(was, []string{"QUERN_SOURCE_KEY=" + second, "QUERN_SOURCE_OTHER_KEY=" + first})
	s.stop()
	s.restart()

	var sealed, again string

	over := make(chan struct{})

	go func() {
		defer close(over)

		sealed, _ = s.command("connection", "rewrap")
		again, _ = s.command("connection", "rewrap")
	}()

	rounds := 0

	for isOver := false; !isOver; rounds++ {
		works(owner)

		select {
		case <-over:
			isOver = true
		default:
		}
	}

	require.Contains(t, sealed, "4 secrets")
	require.Contains(t, again, "0 secrets")
	t.Logf("%d rounds of tests while the key was changed", rounds)

	s.settings = slices.Concat(was, []string{"QUERN_SOURCE_KEY=" + second, "QUERN_SOURCE_OTHER_KEY="})
	s.stop()
	s.restart()
	works(owner)

	// With the first key alone nothing opens, and the problem is told.
	s.settings = slices.Concat(was, []string{"QUERN_SOURCE_KEY=" + first, "QUERN_SOURCE_OTHER_KEY="})
	s.stop()
	s.restart()

	var tested connected

	listen(call(t, http.MethodPost, s.url+"/connections/"+ids[0]+"/test", owner, "")).json(t, &tested)
	require.Equal(t, "key", tested.Problem.Code)

	stored := s.text(`SELECT string_agg(c::text, '') FROM connections c`)
	hexed := s.text(`SELECT string_agg(encode(sealed, 'escape') || encode(wrapped, 'escape'), '') FROM connections`)
	kept := s.text(`SELECT coalesce(string_agg(r::text, ''), '') FROM audit r`) + s.text(`SELECT coalesce(string_agg(r::text, ''), '') FROM idempotency r`)

	for _, hidden := range []string{secret, token, wrong, first, second} {
		for where, text := range map[string]string{"log": s.log(), "row": stored + hexed + kept, "answers": strings.Join(said, "")} {
			require.NotContains(t, text, hidden, where)
		}
	}
}

// text returns a text from the database.
func (s *service) text(query string) (text string) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(s.t, connection.QueryRow(ctx, query).Scan(&text))
	})

	return text
}

// TestSourceSSRF checks that no address or trick leads a connection to a server that the operator does not allow.
func TestSourceSSRF(t *testing.T) {
	t.Parallel()

	var reached atomic.Int64

	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(http.StatusOK)
	}))
	defer trap.Close()

	// An allowed server that redirects to the trap.
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, trap.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()

	// An allowed server that has no files.
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()

	_, port, err := net.SplitHostPort(strings.TrimPrefix(trap.URL, "http://"))
	require.NoError(t, err)

	allowed := strings.TrimPrefix(redirecting.URL, "http://")
	s := start(t, "QUERN_SOURCE_HOSTS="+allowed+","+strings.TrimPrefix(silent.URL, "http://")+",*.store.example,localhost:"+port+",127.0.0.1.nip.example", "QUERN_SOURCE_TIMEOUT=2s")
	// The operator allows names, but no network: nothing on this machine is reached although localhost is on the list.
	strict := start(t, "QUERN_SOURCE_HOSTS=*.store.example,localhost,localhost:"+port+",127.0.0.1:"+port+",[::1]:"+port, "QUERN_SOURCE_ALLOWED_NETWORKS=", "QUERN_SOURCE_TIMEOUT=2s")

	tricks := []string{
		"http://127.0.0.1:PORT", "https://127.0.0.1:PORT", "http://localhost:PORT", "https://localhost:PORT", "http://[::1]:PORT", "https://[::1]:PORT", "https://[::ffff:127.0.0.1]:PORT",
		"https://[::127.0.0.1]:PORT", "https://[0:0:0:0:0:ffff:7f00:1]:PORT", "https://0.0.0.0:PORT", "https://0:PORT", "https://127.1:PORT", "https://127.0.1:PORT", "https://2130706433:PORT",
		"https://0x7f000001:PORT", "https://0x7f.1:PORT", "https://0177.0.0.1:PORT", "https://017700000001:PORT", "https://127.000.000.001:PORT", "https://localhost.:PORT", "https://LOCALHOST:PORT",
		"https://store.example@127.0.0.1:PORT", "https://a.store.example@127.0.0.1:PORT", "https://a.store.example:443@127.0.0.1:PORT", "https://127.0.0.1:PORT#a.store.example",
		"https://127.0.0.1:PORT?a.store.example", "https://127.0.0.1:PORT/a.store.example", `https://127.0.0.1:PORT\\@a.store.example`, `https://a.store.example\\@127.0.0.1:PORT`,
		"https://127.0.0.1:PORT%23@a.store.example", "https://127.0.0.1%3aPORT", "https://a.store.example.127.0.0.1:PORT", "https://store.example:PORT", "https://evilstore.example:PORT",
		"https://.store.example", "https://a.store.example:PORT", "https://a.store.example:80", "https://169.254.169.254", "http://169.254.169.254", "https://[fd00:ec2::254]",
		"https://[fe80::1%25lo]:PORT", "https://metadata.google.internal", "https://10.0.0.1", "https://192.168.0.1", "https://172.16.0.1", "https://100.64.0.1", "https://[64:ff9b::7f00:1]:PORT",
		"https://[2002:7f00:1::]:PORT", "https://①②⑦.⓪.⓪.①:PORT", "https://127。0。0。1:PORT", "https://localhost\u0000.store.example", "https://localhost%00.store.example:PORT",
		"gopher://127.0.0.1:PORT", "file:///etc/passwd", "ftp://127.0.0.1:PORT", "unix:///var/run/postgresql", "//127.0.0.1:PORT", "127.0.0.1:PORT", "https:127.0.0.1:PORT", "https:///127.0.0.1:PORT",
		" https://127.0.0.1:PORT", "https://127.0.0.1:PORT\r\nHost: a.store.example", "jar:https://127.0.0.1:PORT", "https://[::]:PORT", "https://127.0.0.1:0PORT",
	}
	require.GreaterOrEqual(t, len(tricks), 60)

	owner := strict.newKey().token("owner")
	elsewhere := `{"endpoint": "https://a.store.example", "region": "x", "bucket": "bucket", "pathStyle": true, "accessKeyId": "x", "secretAccessKey": "x"}`

	for i, trick := range tricks {
		endpoint, err := json.Marshal(strings.ReplaceAll(trick, "PORT", port))
		require.NoError(t, err)

		for _, body := range []string{
			fmt.Sprintf(`{"name": "t%d", "kind": "s3", "s3": {"endpoint": %s, "region": "x", "bucket": "bucket", "pathStyle": true, "accessKeyId": "x", "secretAccessKey": "x"}}`, i, endpoint),
			fmt.Sprintf(`{"name": "h%d", "kind": "https", "https": {"baseUrl": %s, "token": "x"}}`, i, endpoint),
			fmt.Sprintf(`{"name": "u%d", "kind": "iceberg", "iceberg": {"uri": %s, "token": "x", "store": %s}}`, i, endpoint, elsewhere),
			fmt.Sprintf(`{"name": "k%d", "kind": "iceberg", "iceberg": {"uri": "https://a.store.example", "clientId": "x", "clientSecret": "x", "tokenUri": %s, "store": %s}}`, i, endpoint, elsewhere),
			fmt.Sprintf(`{"name": "b%d", "kind": "iceberg", "iceberg": {"uri": "https://a.store.example", "token": "x", "store": %s}}`, i, strings.Replace(elsewhere, `"https://a.store.example"`, string(endpoint), 1)),
		} {
			answer := call(t, http.MethodPost, strict.url+"/connections", owner, body)
			require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusBadRequest}, answer.status, "%s: %s", trick, answer.body)
		}
	}

	// The bucket cannot become another host, and a redirect is not followed.
	user := s.newKey().token("owner")
	for _, c := range []struct{ endpoint, bucket string }{{redirecting.URL, "bucket"}, {"https://a.store.example", "127.0.0.1:" + port + "/"}, {"https://a.store.example", "x@127.0.0.1"}} {
		body := fmt.Sprintf(`{"name": "r", "kind": "s3", "s3": {"endpoint": %q, "region": "x", "bucket": %q, "pathStyle": true, "accessKeyId": "x", "secretAccessKey": "x"}}`, c.endpoint, c.bucket)
		answer := call(t, http.MethodPost, s.url+"/connections", user, body)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	}

	answer := call(t, http.MethodPost, s.url+"/connections", user, fmt.Sprintf(`{"name": "r", "kind": "https", "https": {"baseUrl": %q, "token": "x"}}`, redirecting.URL))
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)

	// No address of a file leads elsewhere.
	var base connected

	answer = call(t, http.MethodPost, s.url+"/connections", user, fmt.Sprintf(`{"name": "base", "kind": "https", "https": {"baseUrl": %q, "token": "x"}}`, silent.URL))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &base)

	here := strings.TrimPrefix(trap.URL, "http://")
	paths := []string{
		trap.URL, "//" + here, "//" + here + "/a", "/" + here, here, "@" + here, "x@" + here, ":80@" + here, `\\` + here, "/\\" + here, "../" + here, "a/../../" + here, "%2e%2e/" + here, "%2f%2f" + here, "http:" + here,
		"http:%2f%2f" + here, "a?@" + here, "a#@" + here, "a%0d%0aHost: " + here, ".." + here, "a\r\nHost: " + here, "\u2025/" + here,
	}

	for i, path := range paths {
		text, err := json.Marshal([]string{path})
		require.NoError(t, err)

		answer := call(t, http.MethodPost, s.url+"/sources", user, fmt.Sprintf(`{"name": "p%d", "connectionId": %q, "namespace": "n", "datasetName": "d%d", "paths": %s}`, i, base.ID, i, text))
		if answer.status != http.StatusCreated {
			require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusBadRequest}, answer.status, "%q: %s", path, answer.body)

			continue
		}

		var made sourced

		answer.json(t, &made)

		o := &sourceOf{filled: &filled{t: t, s: s, bearer: user}, id: made.ID}
		require.Equal(t, "completed", o.refresh().Status, "%q", path)
	}

	require.Zero(t, reached.Load(), "a trick reached the trap")
	// The trap can be reached: only the rules kept the requests away.
	body := fmt.Sprintf(`{"name": "r", "kind": "s3", "s3": {"endpoint": "http://localhost:%s", "region": "x", "bucket": "bucket", "pathStyle": true, "accessKeyId": "x", "secretAccessKey": "x"}}`, port)
	_ = call(t, http.MethodPost, s.url+"/connections", user, body)
	require.Positive(t, reached.Load())
	t.Logf("%d tricks, none reached", 5*len(tricks)+4+len(paths))
}
