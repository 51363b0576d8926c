package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitStatements(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]string{
		"":                              {""},
		"SELECT 1":                      {"SELECT 1"},
		"SELECT 1;":                     {"SELECT 1", ""},
		"SELECT 1; SELECT 2 ;\nSELECT":  {"SELECT 1", "SELECT 2", "\nSELECT"},
		";; SELECT 1;":                  {"SELECT 1", ""},
		"-- a; b\n;SELECT 1;":           {"SELECT 1", ""},
		"SELECT ';' ; x":                {"SELECT ';'", " x"},
		"SELECT 'it''s; ' ; x":          {"SELECT 'it''s; '", " x"},
		`SELECT E'\'; ' ; x`:            {`SELECT E'\'; '`, " x"},
		`SELECT "a;b""c" ; x`:           {`SELECT "a;b""c"`, " x"},
		"SELECT $$;$$ ; x":              {"SELECT $$;$$", " x"},
		"SELECT $a$;$b$;$a$ ; x":        {"SELECT $a$;$b$;$a$", " x"},
		"SELECT $1; SELECT $name;":      {"SELECT $1", "SELECT $name", ""},
		"SELECT 1 -- ;\n+ 1; x":         {"SELECT 1 -- ;\n+ 1", " x"},
		"SELECT /* ; /* ; */ ; */ 1; x": {"SELECT /* ; /* ; */ ; */ 1", " x"},
		"SELECT 'open ;":                {"SELECT 'open ;"},
		"SELECT /* open ;":              {"SELECT /* open ;"},
	} {
		statements, rest := splitStatements(text)
		require.Equal(t, want, append(statements, rest), "%q", text)
	}

	require.True(t, isBlank(" -- x\n /* ; */\t"))
	require.False(t, isBlank(" -- x\n1"))
}

// FuzzSplitStatements checks that splitting ends, loses no part, and that a statement is not split again.
func FuzzSplitStatements(f *testing.F) {
	for _, text := range []string{"a;b", "'", `"`, "$$", "$a$;", "/*/**/;", "--;", "e'\\", "\x00;\xff"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		statements, rest := splitStatements(text)

		for _, one := range statements {
			require.Contains(t, text, one)

			again, _ := splitStatements(one)
			require.Empty(t, again, "%q of %q", one, text)
		}

		require.True(t, strings.HasSuffix(text, rest))
	})
}

func TestHistory(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "quern", "sql_history")
	h := openHistory(path)
	require.Zero(t, h.Len())

	for _, line := range []string{"SELECT 1;", "", "  ", " SELECT 'secret';", "SELECT 2;", "SELECT 2;"} {
		h.Add(line)
	}

	h = openHistory(path)
	require.Equal(t, 2, h.Len())
	require.Equal(t, "SELECT 2;", h.At(0))
	require.Equal(t, "SELECT 1;", h.At(1))

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	for range keptLines {
		h.Add("SELECT 3;")
		h.Add("SELECT 4;")
	}

	require.Equal(t, keptLines, openHistory(path).Len())
}

func TestComplete(t *testing.T) {
	t.Parallel()

	s := &sqlSession{names: &sqlNames{[]string{"FROM", "ORDER", "orders", "SELECT", `shop."a-b"`, "shop.orders", "shop.order_lines", "Total"}}}

	for typed, want := range map[string]string{
		"sel|":                  "SELECT|",
		"SELECT to|, 1":         "SELECT Total|, 1",
		"SELECT 1 FROM sh|":     "SELECT 1 FROM shop.|",
		"SELECT 1 FROM shop.o|": "SELECT 1 FROM shop.order|",
		`FROM shop."|`:          `FROM shop."a-b"|`,
		"FROM orde|":            "FROM orders|",
		"ORDE|":                 "ORDER|",
		"FROM x|":               "FROM x|",
		"FROM |":                "FROM |",
	} {
		before, after, _ := strings.Cut(typed, "|")
		line, at, ok := s.complete(t.Context(), new(bytes.Buffer), before+after, len(before), '\t')
		require.True(t, ok, typed)
		require.Equal(t, want, line[:at]+"|"+line[at:], typed)
	}

	shown := new(bytes.Buffer)
	line, _, _ := s.complete(t.Context(), shown, "shop.order", len("shop.order"), '\t')
	require.Equal(t, "shop.order", line)
	require.Equal(t, "shop.order_lines  shop.orders\n", shown.String())

	_, _, ok := s.complete(t.Context(), shown, "sel", 3, 'x')
	require.False(t, ok, "other keys are typed")
}

func TestKeyReader(t *testing.T) {
	t.Parallel()

	keys := &keyReader{from: strings.NewReader("SELECT\x03rest")}
	buffer := make([]byte, 256)

	n, err := keys.Read(buffer)
	require.NoError(t, err)
	require.Equal(t, "SELECT\x05\x15\r", string(buffer[:n]))
	require.True(t, keys.taken())
	require.False(t, keys.taken())
}
