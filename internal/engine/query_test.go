package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/sandbox"
)

// TestMain also runs as the hostile child.
func TestMain(m *testing.M) {
	if os.Args[0] == sandbox.Name {
		os.Exit(sandbox.Main(os.Args[1:], "", map[string]sandbox.Program{hostile: {Prepare: func(sandbox.Folder) (sandbox.Serve, error) { return lie, nil }}}))
	}

	os.Exit(m.Run())
}

const hostile = "hostile"

// lie answers a request with a wrong response. The text of the statement selects which one.
func lie(conn *sandbox.Conn) error {
	for {
		var request Request
		if err := conn.Receive(&request); err != nil {
			return err
		}

		if request.Parse != nil {
			if err := lies()[request.Parse.Statement].tell(conn); err != nil {
				return err
			}

			continue
		}

		if request.Profile != nil {
			return conn.Send(json.RawMessage(request.Profile.View.Name)) // the name of the view is the lie
		}

		if request.Values != nil {
			return valueLies()[request.Values.View.Name].tell(conn)
		}

		return lies()[request.Query.Statement].tell(conn)
	}
}

// falsehood is what a hostile child sends: answers, then rows, then more answers.
type falsehood struct {
	answers []string
	rows    func(io.Writer) error
	end     []string
}

func (f falsehood) tell(conn *sandbox.Conn) error {
	for _, answer := range f.answers {
		if err := conn.Send(json.RawMessage(answer)); err != nil {
			return err
		}
	}

	if f.rows != nil {
		if err := f.rows(conn.Data); err != nil {
			return err
		}
	}

	for _, answer := range f.end {
		if err := conn.Send(json.RawMessage(answer)); err != nil {
			return err
		}
	}

	return nil
}

const (
	described       = `{"described":{"columns":[{"name":"a","type":"bigint"}]}}`
	describedTraced = `{"described":{"columns":[{"name":"a","type":"bigint"}],"traced":true}}`
)

func said(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)

		return err
	}
}

// endless writes until the reader closes the connection.
func endless(text string) func(io.Writer) error {
	block := bytes.Repeat([]byte(text), 1<<20/len(text))

	return func(w io.Writer) error {
		for {
			if _, err := w.Write(block); err != nil {
				return err
			}
		}
	}
}

func lies() map[string]falsehood {
	ran := []string{`{"ran":{"rows":1}}`}
	columns := strings.TrimSuffix(strings.Repeat(`{"name":"a","type":"b"},`, maxNames+1), ",")
	manyColumns := strings.TrimSuffix(strings.Repeat(`{},`, 1_000_000), ",")

	return map[string]falsehood{
		"nothing":                 {},
		"an empty answer":         {answers: []string{`{}`}},
		"another answer":          {answers: []string{`{"inspection":{}}`}},
		"a number":                {answers: []string{`7`}},
		"columns of another kind": {answers: []string{`{"described":{"columns":7}}`}},
		"too many columns":        {answers: []string{`{"described":{"columns":[` + columns + `]}}`}},
		"a million columns":       {answers: []string{`{"described":{"columns":[` + manyColumns + `]}}`}},
		"an end before it began":  {answers: ran},

		"no JSON":            {answers: []string{described}, rows: said("{\"a\":}\n"), end: ran},
		"no object":          {answers: []string{described}, rows: said("[1]\n"), end: ran},
		"two objects":        {answers: []string{described}, rows: said("{}{}\n"), end: ran},
		"an empty line":      {answers: []string{described}, rows: said("\n"), end: ran},
		"half a row":         {answers: []string{described}, rows: said(`{"a":1`), end: ran},
		"a row without end":  {answers: []string{described}, rows: said(`{"a":1}`), end: ran},
		"no UTF-8":           {answers: []string{described}, rows: said("{\"a\":\"\xff\"\n"), end: ran},
		"deep nesting":       {answers: []string{described}, rows: said(`{"a":` + strings.Repeat("[", 1<<20) + "\n"), end: ran},
		"too many rows":      {answers: []string{described}, rows: said(strings.Repeat("{}\n", 11)), end: ran},
		"rows without end":   {answers: []string{described}, rows: endless("{}\n")},
		"too many bytes":     {answers: []string{described}, rows: said(`{"a":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"), end: ran},
		"a line without end": {answers: []string{described}, rows: endless("x")},
		"a long row":         {answers: []string{described}, rows: endless(`{"a":"`)},

		"no source":             {answers: []string{describedTraced}, rows: said("{}\n"), end: ran},
		"no row of the source":  {answers: []string{describedTraced}, rows: said("1 {}\n"), end: ran},
		"no object traced":      {answers: []string{describedTraced}, rows: said("1 2\n"), end: ran},
		"a file beyond numbers": {answers: []string{describedTraced}, rows: said("99999999999999999999 0 {}\n"), end: ran},

		"no end":         {answers: []string{described}, rows: said("{}\n")},
		"an empty end":   {answers: []string{described}, rows: said("{}\n"), end: []string{`{}`}},
		"negative rows":  {answers: []string{described}, end: []string{`{"ran":{"rows":-1}}`}},
		"a file outside": {answers: []string{described}, end: []string{`{"ran":{"rows":1,"file":"../../../../etc/passwd"}}`}},
		"no file":        {answers: []string{described}, end: ran},
		"a huge refusal": {answers: []string{`{"refused":{"kind":"binder","message":"` + strings.Repeat(`\u0000x`, 1<<20) + `","candidates":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 1000), ",") + `]}}`}},
		"truth":          {answers: []string{described}, rows: said("{\"a\":1}\n"), end: ran},
		"truth, traced":  {answers: []string{describedTraced}, rows: said("1 2 {\"a\":1}\n"), end: ran},
		"no tree":        {answers: []string{`{}`}},
	}
}

// sessions returns an engine whose children lie. Its limit for rows is far out of reach, so that only the limits of the
// result can stop a lie.
func sessions(t *testing.T) *Engine {
	t.Helper()

	s, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(t.TempDir(), "jobs"), Binary: "/proc/self/exe", MinIsolation: sandbox.Reduced, Idle: 1, Programs: []string{hostile}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)

	return New(Config{Sandbox: s, Program: hostile, Log: slog.New(slog.DiscardHandler), Sessions: 2, Memory: 64 << 20, Threads: 1, Disk: 1 << 20, Data: 1 << 50})
}

// told runs a statement to its end and returns its rows.
func told(t *testing.T, e *Engine, q Query) (rows []Row, err error) {
	t.Helper()

	session, err := e.Open(t.Context(), 20*time.Second)
	require.NoError(t, err)

	defer session.Close()

	result, err := session.Run(q)
	if err != nil {
		return nil, err
	}

	if q.Form != Rows {
		if _, err := result.Finish(); err != nil {
			return nil, err
		}

		_, err := result.Take(filepath.Join(t.TempDir(), "taken"))

		return nil, err
	}

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}

		if err != nil {
			return rows, err
		}

		row.JSON = bytes.Clone(row.JSON)
		rows = append(rows, row)
	}
}

func TestLies(t *testing.T) {
	t.Parallel()

	e := sessions(t)

	for name := range lies() {
		for _, bytes := range []int64{1 << 20, 0} { // 0 as for an export, which has no limit
			q := Query{Statement: name, Form: Rows, Rows: 10, Bytes: bytes}

			switch name {
			case "no tree":
				continue
			case "a file outside", "no file":
				q.Form = CSV
			case "too many bytes", "deep nesting":
				if bytes == 0 {
					continue
				}
			}

			var before, after runtime.MemStats

			runtime.ReadMemStats(&before)
			rows, err := told(t, e, q)
			runtime.ReadMemStats(&after)

			require.LessOrEqual(t, len(rows), 10, name)
			require.Less(t, after.HeapSys-min(before.HeapSys, after.HeapSys), uint64(1<<30), "%s, %d bytes", name, bytes)

			if strings.HasPrefix(name, "truth") {
				require.NoError(t, err)
				require.Equal(t, `{"a":1}`, string(rows[0].JSON))

				continue
			}

			require.Error(t, err, name)

			refusal, isRefusal := errors.AsType[*StatementError](err)
			require.Equal(t, name == "a huge refusal", isRefusal, "%s: %v", name, err)

			if isRefusal {
				require.LessOrEqual(t, len(refusal.Message), maxMessage)
				require.Len(t, refusal.Candidates, 20)
				require.NotContains(t, refusal.Message, "\x00")

				continue
			}

			known := fault.From(err)
			require.Contains(t, []fault.Code{fault.Internal, fault.LimitExceeded, fault.QueryInvalid}, known.Code, "%s: %v", name, err)
			require.NotContains(t, known.Message, "invalid data")
		}
	}
}

func TestNoTree(t *testing.T) {
	t.Parallel()

	e := sessions(t)

	for _, name := range []string{"no tree", "another answer", "a number"} {
		session, err := e.Open(t.Context(), 5*time.Second)
		require.NoError(t, err)

		_, err = session.Parse(name)
		require.True(t, fault.Is(err, fault.Internal), "%s: %v", name, err)
		session.Close()
	}
}

func FuzzTracedLine(f *testing.F) {
	for _, seed := range []string{"0 0 {}", "1 2 {\"a\":1}", "", " ", "  ", "-1 -1 {}", "1", "1 2", "9999999999999999999 0 {}", "0x1 1_0 {}"} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, line []byte) {
		row, err := parseRow(line)
		if err != nil {
			return
		}

		require.True(t, bytes.HasSuffix(line, row.JSON))

		again, err := parseRow(fmt.Appendf(nil, "%d %d %s", row.File, row.Number, row.JSON))
		require.NoError(t, err)
		require.Equal(t, row.File, again.File)
		require.Equal(t, row.Number, again.Number)
		require.True(t, bytes.Equal(row.JSON, again.JSON))
	})
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff")
	f.Add(strings.Repeat("ä", maxMessage))

	f.Fuzz(func(t *testing.T, text string) {
		shown := clean(text)
		require.LessOrEqual(t, len(shown), maxMessage)
		require.NotContains(t, shown, "\x00")
		require.Equal(t, strings.ToValidUTF8(shown, "?"), shown)
	})
}
