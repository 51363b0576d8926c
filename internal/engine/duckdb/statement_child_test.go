package duckdb

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/sandbox"
)

// intruder represents an attacker who has got past the check and past DuckDB's settings. The program runs any
// statements in a DuckDB without restrictions. Only the kernel restricts it.
const intruder = "intruder"

type intrusion struct {
	Steps []string
}

type intruded struct {
	Error  string
	Ruined bool // the instance no longer answers
}

func prepareIntruder(sandbox.Folder) (sandbox.Serve, error) {
	db, err := unlocked()
	if err != nil {
		return nil, err
	}

	return func(conn *sandbox.Conn) error {
		var what intrusion
		if err := conn.Receive(&what); err != nil {
			return err
		}

		said := what.run(db, conn.Data)
		duckdb.Disconnect(&db.conn)
		duckdb.Close(&db.db)

		return conn.Send(said)
	}, nil
}

// intrudeFreely does the same without a sandbox. It writes the rows to standard output and the outcome to standard
// error.
func intrudeFreely() {
	db, err := unlocked()
	if err != nil {
		panic(err)
	}

	var what intrusion
	if err := json.NewDecoder(os.Stdin).Decode(&what); err != nil {
		panic(err)
	}

	said := what.run(db, os.Stdout)
	duckdb.Disconnect(&db.conn)
	duckdb.Close(&db.db)

	if err := json.NewEncoder(os.Stderr).Encode(said); err != nil {
		panic(err)
	}
}

// run runs the steps and writes the rows of the last one.
func (i intrusion) run(db *database, to io.Writer) (said intruded) {
	out := bufio.NewWriter(to)

	err := db.exec(`CREATE VIEW notes AS FROM read_parquet('../in/0.parquet')`)
	for n, step := range i.Steps {
		if err == nil {
			err = last(db, step, n == len(i.Steps)-1, out)
		}
	}

	if err = errors.Join(err, out.Flush()); err != nil {
		said.Error = err.Error()
	}

	said.Ruined = db.exec(`SELECT 42`) != nil

	return said
}

func last(db *database, step string, isLast bool, out *bufio.Writer) error {
	if !isLast || !asks(step) {
		return db.exec(step)
	}

	err := db.lines("SELECT CAST(to_json(__row) AS VARCHAR) FROM (\n"+step+"\n) __row", func(line []byte) bool {
		_, err := out.WriteString(string(line) + "\n")

		return err == nil
	})
	if err != nil && strings.HasPrefix(err.Error(), "Parser Error") { // several statements in one step
		return db.exec(step)
	}

	return err
}

var asking = regexp.MustCompile(`(?is)^(\s|/\*.*?\*/|--[^\n]*\n|\()*(select|from|with|values|table|describe|show|summarize|unpivot)\b`)

// asks reports whether a step can be used in a FROM.
func asks(step string) bool { return asking.MatchString(step) }
