package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// tableCatalog is an Iceberg REST catalog with TLS and a private authority, whose tables PyIceberg writes. Its files are in a place of their own.
type tableCatalog struct {
	t      *testing.T
	there  *place
	direct string // address of the catalog without TLS, for commands
	server *httptest.Server
	host   string
	ca     string
	token  string
	client string
	secret string

	lies *lies
}

// lies are what a catalog does to its answers.
type lies struct {
	mu    sync.Mutex
	alter func(path string, answer []byte) (status int, changed []byte) // nil if it tells the truth
}

// with returns the catalog for a part of a test.
func (c *tableCatalog) with(t *testing.T) *tableCatalog {
	t.Helper()

	copied, there := *c, *c.there
	there.t, copied.t, copied.there = t, t, &there

	return &copied
}

func newTableCatalog(t *testing.T) *tableCatalog {
	t.Helper()

	c := &tableCatalog{t: t, there: newPlace(t), token: "TOKEN" + uuid.NewString(), client: "reader", secret: "SECRET" + uuid.NewString(), lies: &lies{}}

	program := exec.CommandContext(t.Context(), filepath.Join(installed(t, "pyiceberg"), "bin", "python"), "peers/pyiceberg/catalog.py")
	program.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "AWS_REQUEST_CHECKSUM_CALCULATION=when_required", // not every store knows the checksums that are new
		"WAREHOUSE=s3://"+c.there.bucket+"/"+strings.TrimSuffix(c.there.prefix, "/"), "TOKEN="+c.token, "CLIENT_ID="+c.client, "CLIENT_SECRET="+c.secret,
		"S3_ENDPOINT="+stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), "S3_REGION="+stack.Env(t, "QUERN_TEST_S3_REGION"),
		"S3_ACCESS_KEY="+stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), "S3_SECRET_KEY="+stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"))
	program.Stderr = os.Stderr

	said, err := program.StdoutPipe()
	require.NoError(t, err)

	alive, err := program.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		_ = alive.Close()
		_ = program.Wait()
	})

	port, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)

	c.direct = "http://127.0.0.1:" + strings.TrimSpace(port)
	c.serve()

	return c
}

// serve begins to answer at an address of its own.
func (c *tableCatalog) serve() {
	c.t.Helper()

	to, err := url.Parse(c.direct)
	require.NoError(c.t, err)

	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: c.answer}
	c.server = httptest.NewUnstartedServer(proxy)
	ca, certificate := newAuthority(c.t)
	c.ca, c.server.TLS = ca, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	c.server.StartTLS()
	c.host = strings.TrimPrefix(c.server.URL, "https://")
	c.t.Cleanup(c.server.Close)
}

// mirror returns the same catalog at another address, where it lies by itself.
func (c *tableCatalog) mirror() *tableCatalog {
	c.t.Helper()

	copied := *c
	copied.lies = &lies{}
	copied.serve()

	return &copied
}

// answer changes an answer of the catalog as the test wants it.
func (c *tableCatalog) answer(r *http.Response) error {
	c.lies.mu.Lock()
	alter := c.lies.alter
	c.lies.mu.Unlock()

	if alter == nil {
		return nil
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}

	status, changed := alter(r.Request.URL.Path, body)
	r.StatusCode, r.Body, r.ContentLength = status, io.NopCloser(bytes.NewReader(changed)), int64(len(changed))
	r.Header.Set("Content-Length", strconv.Itoa(len(changed)))

	return nil
}

func (c *tableCatalog) lie(alter func(path string, answer []byte) (status int, changed []byte)) {
	c.lies.mu.Lock()
	defer c.lies.mu.Unlock()

	c.lies.alter = alter
}

// replaced lies about the metadata of a table.
func (c *tableCatalog) replaced(old, by string) {
	c.lie(func(path string, answer []byte) (int, []byte) {
		if !strings.Contains(path, "/tables/") {
			return http.StatusOK, answer
		}

		require.Contains(c.t, string(answer), old)

		return http.StatusOK, bytes.ReplaceAll(answer, []byte(old), []byte(by))
	})
}

// do lets PyIceberg do something.
func (c *tableCatalog) do(command string, arguments map[string]any) []byte {
	c.t.Helper()

	text, err := json.Marshal(arguments)
	require.NoError(c.t, err)

	answer, err := http.Post(c.direct+"/do/"+command, "application/json", bytes.NewReader(text))
	require.NoError(c.t, err)

	defer func() { _ = answer.Body.Close() }()

	body, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, answer.StatusCode, string(body))

	return body
}

// read is what PyIceberg reads of a table.
type pyRead struct {
	Snapshot string
	Files    []string
	Rows     []map[string]*string
	Columns  []string
}

func (c *tableCatalog) read(table string) (found pyRead) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal(c.do("read", map[string]any{"table": table}), &found))

	return found
}

// settings returns the settings of a connection to the catalog, with other values for some of them.
func (c *tableCatalog) settings(others map[string]any) string {
	c.t.Helper()

	var store map[string]any
	require.NoError(c.t, json.Unmarshal([]byte(c.there.s3Settings()), &store))

	all := map[string]any{"uri": c.server.URL, "warehouse": "main", "token": c.token, "caCertificate": c.ca, "store": store}
	maps.Copy(all, others)

	for name, value := range all {
		if value == nil {
			delete(all, name)
		}
	}

	text, err := json.Marshal(all)
	require.NoError(c.t, err)

	return string(text)
}

// hosts is the setting that allows a service to reach the catalog and the store.
func (c *tableCatalog) hosts() string {
	return "QUERN_SOURCE_HOSTS=" + c.host + "," + strings.TrimPrefix(stack.Env(c.t, "QUERN_TEST_S3_ENDPOINT"), "http://")
}

// connectCatalog makes a connection to a catalog and returns its id.
func (s *service) connectCatalog(t *testing.T, bearer string, to *tableCatalog, others map[string]any) string {
	t.Helper()

	var made connected

	answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "c-%s", "kind": "iceberg", "iceberg": %s}`, uuid.NewString(), to.settings(others)))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)
	require.Nil(t, made.Problem)

	return made.ID
}

// attached is a source that attaches a table, and the table.
type attached struct {
	*sourceOf

	catalog    *tableCatalog
	table      string
	connection string
}

// attach makes a source that attaches a table as a dataset that does not exist.
func attach(t *testing.T, s *service, c *tableCatalog, owner, bearer, connection, table string) *attached {
	t.Helper()

	a := &attached{&sourceOf{filled: &filled{t, s, bearer, owner, "n-" + uuid.NewString(), "shown"}}, c, table, connection}

	var made sourced

	answer := a.create(connection, table)
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)

	a.id = made.ID

	return a
}

// with returns the source for a part of a test.
func (a *attached) with(t *testing.T) *attached {
	t.Helper()

	of, rows := *a.sourceOf, *a.filled
	rows.t, of.filled = t, &rows

	return &attached{&of, a.catalog.with(t), a.table, a.connection}
}

func (a *attached) create(connection, table string) *answer {
	a.t.Helper()

	at := strings.LastIndex(table, ".")

	return call(a.t, http.MethodPost, a.s.url+"/sources", a.bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": %q, "datasetName": %q, "iceberg": {"namespace": %q, "table": %q}}`,
		uuid.NewString(), connection, a.namespace, a.name, table[:at], table[at+1:]))
}

// pinned returns the snapshot that the last run has attached.
func (a *attached) pinned() string {
	a.t.Helper()

	var found struct {
		LastRun struct{ SnapshotID string }
	}

	call(a.t, http.MethodGet, a.s.url+"/sources/"+a.id, a.bearer, "").json(a.t, &found)

	return found.LastRun.SnapshotID
}

// requireSame checks that the dataset has the rows that PyIceberg reads, and that the run has attached its snapshot.
func (a *attached) requireSame(run sourceRun) {
	a.t.Helper()
	require.Equal(a.t, "completed", run.Status, run.Reason)

	want := a.catalog.read(a.table)
	require.Equal(a.t, want.Snapshot, a.pinned())
	require.EqualValues(a.t, len(want.Rows), run.Rows)
	require.EqualValues(a.t, len(want.Files), run.Files)
	require.ElementsMatch(a.t, rowTexts(want), a.texts(want.Columns))
}

// rowTexts returns the rows of a table as PyIceberg writes them.
func rowTexts(read pyRead) (rows []string) {
	for _, row := range read.Rows {
		var cells []string

		for _, name := range read.Columns {
			cell := "null"
			if row[name] != nil {
				cell = *row[name]
			}

			cells = append(cells, cell)
		}

		rows = append(rows, strings.Join(cells, "|"))
	}

	return rows
}

// texts returns the rows of the dataset in the same form. The engine writes them as text.
func (a *attached) texts(columns []string) (rows []string) {
	a.t.Helper()

	var list []string
	for n, name := range columns {
		list = append(list, fmt.Sprintf(`CAST("%s" AS VARCHAR) AS c%d`, name, n))
	}

	for _, row := range a.rowsOf("SELECT " + strings.Join(list, ", ") + " FROM " + a.name + " LIMIT 100000") {
		var cells []string

		for n := range columns {
			cell := "null"
			if text, isText := row[fmt.Sprintf("c%d", n)].(string); isText {
				cell = text
			}

			cells = append(cells, cell)
		}

		rows = append(rows, strings.Join(cells, "|"))
	}

	return rows
}

// statement runs SQL in the namespace of the dataset.
func (a *attached) statement(sql string) *answer {
	a.t.Helper()

	return call(a.t, http.MethodPost, a.s.url+"/query", a.bearer, fmt.Sprintf(`{"username": %q, "query": %s, "namespace": %q}`, a.owner, encode(a.t, sql), a.namespace))
}

func (a *attached) rowsOf(sql string) []map[string]any {
	a.t.Helper()

	answer := a.statement(sql)
	require.Equal(a.t, http.StatusOK, answer.status, answer.body)

	var found struct{ Data []map[string]any }

	answer.json(a.t, &found)

	return found.Data
}
