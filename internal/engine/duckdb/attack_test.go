package duckdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/sandbox"
)

// attacker represents an attacker who has taken over the child through a vulnerability in DuckDB, so that DuckDB's
// settings do not apply. The program runs any SQL in an instance without restrictions.
const attacker = "attacker"

type attack struct {
	Statements []string
}

type attacked struct {
	Said  string // the result of the last statement
	Error string
}

func prepareAttack(sandbox.Folder) (sandbox.Serve, error) {
	db, err := unlocked()
	if err != nil {
		return nil, err
	}

	return func(conn *sandbox.Conn) error {
		for {
			var a attack
			if err := conn.Receive(&a); err != nil {
				return err
			}

			for i := range a.Statements {
				a.Statements[i] = strings.NewReplacer("{in}", conn.In, "{tmp}", conn.Tmp).Replace(a.Statements[i])
			}

			if err := conn.Send(a.run(db)); err != nil {
				return err
			}
		}
	}, nil
}

// attackFreely runs an attack without a sandbox.
func attackFreely() {
	db, err := unlocked()
	if err != nil {
		panic(err)
	}

	var a attack
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		panic(err)
	}

	if err := json.NewEncoder(os.Stdout).Encode(a.run(db)); err != nil {
		panic(err)
	}
}

func unlocked() (*database, error) {
	var d database
	if duckdb.Open(":memory:", &d.db) == duckdb.StateError || duckdb.Connect(d.db, &d.conn) == duckdb.StateError {
		return nil, errors.New("opening DuckDB")
	}

	return &d, nil
}

func (a attack) run(db *database) attacked {
	for i, statement := range a.Statements {
		if i < len(a.Statements)-1 {
			if err := db.exec(statement); err != nil {
				return attacked{Error: err.Error()}
			}

			continue
		}

		if statement == environ {
			return attacked{Said: strings.Join(os.Environ(), " ")}
		}

		if !strings.HasPrefix(statement, "SELECT") {
			if err := db.exec(statement); err != nil {
				return attacked{Error: err.Error()}
			}

			continue
		}

		list, err := rows[json.RawMessage](db, statement)
		if err != nil {
			return attacked{Error: err.Error()}
		}

		return attacked{Said: fmt.Sprintf("%s", list)}
	}

	return attacked{}
}

const (
	canary  = "canary-5f1c"
	environ = "-- environ" // not a statement: SQL cannot read the environment, but code in the process can
)

// listener is a canary that records connections.
type listener struct {
	address string
	heard   atomic.Bool
}

func listen(t *testing.T) *listener {
	t.Helper()

	socket, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })

	l := &listener{address: socket.Addr().String()}

	go func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}

			l.heard.Store(true)
			_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = conn.Close()
		}
	}()

	return l
}

// reach is an attempt to reach a canary, with a check of whether it succeeded.
type reach struct {
	name       string
	statements []string
	reached    func(attacked) bool
}

func reaches(dir string, l *listener) []reach {
	var (
		secret = filepath.Join(dir, "secret.txt")
		made   = func(name string) string { return filepath.Join(dir, name) }
		says   = func(a attacked) bool { return strings.Contains(a.Said, canary) }
		exists = func(name string) func(attacked) bool {
			return func(attacked) bool {
				_, err := os.Lstat(made(name))

				return err == nil
			}
		}
	)

	return []reach{
		{"read a file", []string{`SELECT content FROM read_text(` + text(secret) + `)`}, says},
		{"read it as CSV", []string{`SELECT column0 FROM read_csv(` + text(secret) + `, header = false)`}, says},
		{"read it as a blob", []string{`SELECT decode(content) AS content FROM read_blob(` + text(secret) + `)`}, says},
		{"read it by another name", []string{`SELECT content FROM read_text(` + text("/proc/self/root"+secret) + `)`}, says},
		{"list a folder", []string{`SELECT file FROM glob(` + text(dir+"/*") + `)`}, func(a attacked) bool { return strings.Contains(a.Said, "secret.txt") }},
		{"look at the environment", []string{environ}, says},
		{"open the environment of the parent", []string{fmt.Sprintf(`SELECT content FROM read_text('/proc/%d/environ')`, os.Getpid())}, func(a attacked) bool { return a.Error == "" && a.Said != "" }},
		{"read the passwords", []string{`SELECT content FROM read_text('/etc/passwd')`}, func(a attacked) bool { return strings.Contains(a.Said, "root") }},
		{"write a file", []string{`COPY (SELECT 1) TO ` + text(made("copied.csv"))}, exists("copied.csv")},
		{"write over a file", []string{`COPY (SELECT 1) TO ` + text(made("precious.txt")) + ` (FORMAT csv, USE_TMP_FILE false)`}, func(attacked) bool {
			content, err := os.ReadFile(made("precious.txt"))

			return err == nil && string(content) != canary
		}},
		{"attach a database", []string{`ATTACH ` + text(made("attached.db")) + ` AS attached`, `CREATE TABLE attached.t AS SELECT 1 AS a`, `CHECKPOINT attached`}, exists("attached.db")},
		{"export a database", []string{`CREATE TABLE t AS SELECT 1 AS a`, `EXPORT DATABASE ` + text(made("exported"))}, exists("exported")},
		{"write a profile", []string{`SET enable_profiling = 'json'`, `SET profiling_output = ` + text(made("profile.json")), `SELECT 42 AS a`}, exists("profile.json")},
		{"keep a secret", []string{`SET secret_directory = ` + text(made("secrets")), `CREATE PERSISTENT SECRET s (TYPE http, EXTRA_HTTP_HEADERS MAP {'a': 'b'})`}, exists("secrets")},
		{"install an extension", []string{`SET extension_directory = ` + text(made("extensions")), `INSTALL spatial FROM ` + text("http://"+l.address)}, func(attacked) bool { return l.heard.Load() }},
		{"load an extension", []string{`LOAD ` + text(made("x.duckdb_extension"))}, func(a attacked) bool { return strings.Contains(a.Error, "not a DuckDB extension") }}, // the file was read
	}
}
