package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// other is a database of somebody else, with a role that only reads.
type other struct {
	t                    *testing.T
	admin                string // address for the owner
	host, name, password string
	port                 int
}

// newOther creates a database and a role of the same name in the PostgreSQL server of the stack.
func newOther(t *testing.T) *other {
	t.Helper()

	address, err := url.Parse(stack.Env(t, "QUERN_TEST_DATABASE_URL"))
	require.NoError(t, err)

	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)

	o := &other{t: t, host: address.Hostname(), port: port, name: "erp_" + strings.ReplaceAll(uuid.NewString(), "-", ""), password: "pw'\\ " + uuid.NewString()}
	server := address.String()
	run := func(ctx context.Context, at string, statements ...string) {
		conn, err := pgx.Connect(ctx, at)
		require.NoError(t, err)

		defer func() { _ = conn.Close(ctx) }()

		for _, statement := range statements {
			_, err := conn.Exec(ctx, statement)
			require.NoError(t, err, statement)
		}
	}

	run(t.Context(), server, "CREATE DATABASE "+o.name, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD E'%s'`, o.name, strings.NewReplacer(`'`, `\'`, `\`, `\\`).Replace(o.password)))
	t.Cleanup(func() {
		run(context.WithoutCancel(t.Context()), server, "DROP DATABASE "+o.name+" WITH (FORCE)", "DROP ROLE "+o.name)
	})

	address.Path = "/" + o.name
	o.admin = address.String()

	return o
}

// run runs statements as the owner of the database.
func (o *other) run(statements ...string) {
	o.t.Helper()
	withDatabase(o.t, o.admin, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range statements {
			_, err := connection.Exec(ctx, statement)
			require.NoError(o.t, err, statement)
		}
	})
}

// settings returns the settings of a connection to the database, with other values for some of them.
func (o *other) settings(others map[string]any) string {
	o.t.Helper()

	all := map[string]any{"host": o.host, "port": o.port, "database": o.name, "user": o.name, "password": o.password, "sslMode": "disable"}
	maps.Copy(all, others)

	text, err := json.Marshal(all)
	require.NoError(o.t, err)

	return string(text)
}

// hosts is the setting with which a service may reach the database.
func (o *other) hosts() string { return fmt.Sprintf("QUERN_SOURCE_HOSTS=%s:%d", o.host, o.port) }

// connectTo makes a connection to a database and returns its id.
func (s *service) connectTo(t *testing.T, bearer string, to *other) string {
	t.Helper()

	var made connected

	answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "erp", "kind": "postgresql", "postgresql": %s}`, to.settings(nil)))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)

	return made.ID
}

func TestConnectionsPostgres(t *testing.T) {
	t.Parallel()

	there := newOther(t)
	s := start(t, there.hosts(), "QUERN_LOG_LEVEL=debug")
	key := s.newKey()
	owner := key.token("owner")
	wrong := "WRONG" + uuid.NewString()
	id := s.connectTo(t, owner, there)

	var said []string

	listen := func(a *answer) *answer { said = append(said, a.body); return a }

	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/connections/"+id, key.token("other"), "").status)
	require.Equal(t, http.StatusUnprocessableEntity, call(t, http.MethodGet, s.url+"/connections/"+id+"/files", owner, "").status)

	// What does not work is not made, and the reason is told.
	for _, c := range []struct {
		reason string
		others map[string]any
	}{
		{"refused the user or the password", map[string]any{"password": wrong}},
		{"refused the user or the password", map[string]any{"user": "nobody"}},
		{"no such database", map[string]any{"database": "none"}},
		{"no such database", map[string]any{"database": "x' sslmode=disable host=/tmp"}},
		{"refused the user or the password", map[string]any{"user": "postgres host=/var/run/postgresql password=x"}},
		{"does not allow this host", map[string]any{"port": there.port + 1}},
		{"does not allow this host", map[string]any{"host": "localhost"}},
		{"The TLS connection failed", map[string]any{"sslMode": "verify-full"}},
		{"contains the character U+0000", map[string]any{"database": "a\x00b"}},
	} {
		answer := listen(call(t, http.MethodPost, s.url+"/connections", owner, fmt.Sprintf(`{"name": "broken", "kind": "postgresql", "postgresql": %s}`, there.settings(c.others))))
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
		require.Contains(t, answer.body, c.reason)
	}

	for _, body := range []string{
		`{"name": "a", "kind": "postgresql"}`, `{"name": "a", "kind": "s3", "postgresql": ` + there.settings(nil) + `}`,
		fmt.Sprintf(`{"name": "a", "kind": "postgresql", "postgresql": %s, "s3": %s}`, there.settings(nil), s.place.s3Settings()),
	} {
		require.Equal(t, http.StatusUnprocessableEntity, listen(call(t, http.MethodPost, s.url+"/connections", owner, body)).status, body)
	}

	// A password is tested before it replaces the old one, and belongs to this kind.
	for _, body := range []string{fmt.Sprintf(`{"password": %q}`, wrong), `{"accessKeyId": "a", "secretAccessKey": "b"}`} {
		require.Equal(t, http.StatusUnprocessableEntity, listen(call(t, http.MethodPatch, s.url+"/connections/"+id, owner, body)).status, body)
	}

	old := there.password
	there.password = "new-" + uuid.NewString()
	there.run(fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", there.name, there.password))

	var tested connected

	listen(call(t, http.MethodPost, s.url+"/connections/"+id+"/test", owner, "")).json(t, &tested)
	require.Equal(t, "refused", tested.Problem.Code)

	answer := listen(call(t, http.MethodPatch, s.url+"/connections/"+id, owner, fmt.Sprintf(`{"password": %q}`, there.password)))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Contains(t, answer.body, `"postgresql"`)
	require.NotContains(t, answer.body, `"problem"`)
	listen(call(t, http.MethodGet, s.url+"/connections", owner, ""))
	listen(call(t, http.MethodGet, s.url+"/audit", owner, ""))

	stored := s.text(`SELECT string_agg(c::text, '') FROM connections c`) + s.text(`SELECT string_agg(encode(sealed, 'escape') || encode(wrapped, 'escape'), '') FROM connections`) +
		s.text(`SELECT coalesce(string_agg(r::text, ''), '') FROM audit r`)

	for _, hidden := range []string{old, there.password, wrong} {
		for where, text := range map[string]string{"log": s.log(), "rows": stored, "answers": strings.Join(said, "")} {
			require.NotContains(t, text, hidden, where)
		}
	}

	// As a person at a terminal does.
	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", owner, `{"name": "terminal", "role": "owner"}`)))
	made := c.feed(there.password+"\n", "connection", "create", "second", "--postgres-host", there.host, "--postgres-port", strconv.Itoa(there.port), "--database", there.name, "--user", there.name,
		"--ssl-mode", "disable")
	require.Zero(t, made.code, made.err)
	require.Contains(t, c.run("connection", "list"), fmt.Sprintf("%s@%s:%d/%s", there.name, there.host, there.port, there.name))
	made = c.feed(there.password+"\n", "connection", "rekey", "second", "--password-file", "-")
	require.Zero(t, made.code, made.err)
	require.Contains(t, c.run("connection", "test", "second"), "It works.")
}

// TestSourceSSRFPostgres checks that no host or trick leads a connection to a database to a server that the operator does not allow.
func TestSourceSSRFPostgres(t *testing.T) {
	t.Parallel()

	var reached atomic.Int64

	trap, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	defer func() { _ = trap.Close() }()

	go func() {
		for {
			conn, err := trap.Accept()
			if err != nil {
				return
			}

			reached.Add(1)
			_ = conn.Close()
		}
	}()

	_, text, err := net.SplitHostPort(trap.Addr().String())
	require.NoError(t, err)

	port, err := strconv.Atoi(text)
	require.NoError(t, err)

	// The operator allows names, but no network.
	strict := start(t, fmt.Sprintf("QUERN_SOURCE_HOSTS=*.db.example:%d,localhost:%d,127.0.0.1:%d,[::1]:%d,localhost", port, port, port, port), "QUERN_SOURCE_ALLOWED_NETWORKS=", "QUERN_SOURCE_TIMEOUT=2s")
	open := start(t, fmt.Sprintf("QUERN_SOURCE_HOSTS=127.0.0.1:%d", port), "QUERN_SOURCE_TIMEOUT=2s")
	there := &other{t: t, host: "127.0.0.1", port: port, name: "x", password: "x"}
	owner := strict.newKey().token("owner")

	tricks := []string{
		"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "::1", "[::1]", "::ffff:127.0.0.1", "0", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "017700000001", "127.000.000.001",
		"/var/run/postgresql", "/tmp", "@abstract", "./socket", "a.db.example,127.0.0.1", "127.0.0.1,a.db.example", "a.db.example 127.0.0.1", "a.db.example host=127.0.0.1",
		"a.db.example' host='127.0.0.1", "a.db.example:5432", "a.db.example:5432,127.0.0.1", "x@127.0.0.1", "a.db.example@127.0.0.1", "127.0.0.1#.db.example", "127.0.0.1?.db.example",
		"127.0.0.1/.db.example", `127.0.0.1\.db.example`, "127.0.0.1%00.db.example", "127.0.0.1\x00.db.example", "127.0.0.1\n.db.example", "postgres://127.0.0.1", "db.example", ".db.example",
		"evildb.example", "fe80::1%lo", "fe80::1", "169.254.169.254", "10.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1", " 127.0.0.1", "127.0.0.1 ", "metadata.google.internal", "64:ff9b::7f00:1", "2002:7f00:1::",
	}

	for _, mode := range []string{"disable", "verify-full"} {
		for _, trick := range tricks {
			body := fmt.Sprintf(`{"name": "t", "kind": "postgresql", "postgresql": %s}`, there.settings(map[string]any{"host": trick, "sslMode": mode}))
			answer := call(t, http.MethodPost, strict.url+"/connections", owner, body)
			require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusBadRequest}, answer.status, "%s: %s", trick, answer.body)
		}
	}

	require.Zero(t, reached.Load(), "a trick reached the trap")
	// The trap can be reached: only the rules kept the connections away.
	_ = call(t, http.MethodPost, open.url+"/connections", open.newKey().token("owner"), fmt.Sprintf(`{"name": "t", "kind": "postgresql", "postgresql": %s}`, there.settings(nil)))
	require.Positive(t, reached.Load())
	t.Logf("%d tricks, none reached", 2*len(tricks))
}
