package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"quern.dev/quern/api"
)

// keyReader reads the keys of a terminal in raw mode. Ctrl-C becomes the keys that remove the line and end it: the terminal would take
// Ctrl-C for the end of the input.
type keyReader struct {
	from      io.Reader
	cancelled bool
}

func (k *keyReader) Read(into []byte) (int, error) {
	const (
		ctrlC  = 3
		remove = "\x05\x15\r" // to the end of the line, remove all before it, Enter
	)

	// Leaves room for a Ctrl-C that becomes longer.
	n, err := k.from.Read(into[:max(1, len(into)/len(remove))])

	i := slices.Index(into[:n], ctrlC)
	if i < 0 || i+len(remove) > len(into) {
		return n, err
	}

	k.cancelled = true

	return i + copy(into[i:], remove), err // keys after Ctrl-C are dropped
}

// taken reports whether the line ended with Ctrl-C, once.
func (k *keyReader) taken() bool {
	was := k.cancelled
	k.cancelled = false

	return was
}

// history is the lines that the user typed, in a file that only the user can read.
type history struct {
	path  string
	lines []string
}

const keptLines = 1000

// openHistory reads the history. A history that cannot be read begins anew: it is a convenience.
func openHistory(path string) *history {
	content, _ := os.ReadFile(path)
	h := &history{path: path}

	for line := range strings.Lines(string(content)) {
		h.lines = append(h.lines, strings.TrimSuffix(line, "\n"))
	}

	h.lines = h.lines[max(0, len(h.lines)-keptLines):]

	return h
}

func (h *history) Len() int { return len(h.lines) }

// At returns a line; 0 is the last one.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// Add keeps a line. The file is replaced as a whole, so that it stays as short as the list.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || line[0] == ' ' || len(h.lines) > 0 && h.At(0) == line {
		return
	}

	h.lines = append(h.lines[max(0, len(h.lines)-keptLines+1):], line)

	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err == nil {
		_ = os.WriteFile(h.path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600) // the line is still there until the program ends
	}
}

// sqlNames are the words that Tab completes.
type sqlNames struct{ words []string }

// completionTime is how long Tab waits for the names of datasets and columns.
const completionTime = 5 * time.Second

// plainName is a part of a name that needs no quotes.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

const sqlKeywords = `AND AS ASC BETWEEN BY CASE COUNT CROSS DESC DESCRIBE DISTINCT ELSE END EXCEPT EXISTS EXPLAIN FALSE FROM FULL GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LEFT LIKE LIMIT MAX MIN NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION RIGHT SELECT SHOW SUM SUMMARIZE TABLES THEN TRUE UNION USING VALUES WHEN WHERE WITH`

// complete completes the word before the cursor on Tab. If several words are possible, it writes them and completes what they have in
// common.
func (s *sqlSession) complete(ctx context.Context, screen io.Writer, text string, at int, key rune) (line string, position int, ok bool) {
	if key != '\t' {
		return "", 0, false
	}

	from := at
	for from > 0 && (text[from-1] == '_' || text[from-1] == '.' || text[from-1] == '"' || isLetterOrDigit(text[from-1])) {
		from--
	}

	found := s.candidates(ctx, text[from:at])
	if from == at || len(found) == 0 {
		return text, at, true
	}

	common := found[0]
	for _, other := range found[1:] {
		for !strings.HasPrefix(strings.ToLower(other), strings.ToLower(common)) {
			common = common[:len(common)-1]
		}
	}

	if len(common) <= at-from && len(found) > 1 {
		const most = 40

		shown := strings.Join(found[:min(most, len(found))], "  ")
		if len(found) > most {
			shown += "  …"
		}

		_, _ = io.WriteString(screen, shown+"\n")

		return text, at, true
	}

	return text[:from] + common + text[at:], from + len(common), true
}

func isLetterOrDigit(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 128
}

// candidates returns the words that begin with a text, in the order of the alphabet, each once.
func (s *sqlSession) candidates(ctx context.Context, begin string) (found []string) {
	if s.names == nil {
		s.names = s.readNames(ctx)
	}

	for _, word := range s.names.words {
		if strings.HasPrefix(strings.ToLower(word), strings.ToLower(begin)) {
			found = append(found, word)
		}
	}

	// "orde" means orders and not ORDER, if there is such a dataset.
	if exact := slices.DeleteFunc(slices.Clone(found), func(word string) bool { return !strings.HasPrefix(word, begin) }); len(exact) > 0 {
		found = exact
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// readNames returns what Tab completes: keywords, and the datasets and columns that the user can see. An account that sees too much
// for one statement completes keywords alone.
func (s *sqlSession) readNames(ctx context.Context) *sqlNames {
	names := &sqlNames{strings.Fields(sqlKeywords)}

	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()

	me, err := api.Read[api.Me](s.client.GetMe(ctx))
	if err != nil {
		return names
	}

	const statement = `SELECT table_catalog AS o, table_schema AS n, table_name AS d, column_name AS c FROM information_schema.columns LIMIT 20000`

	found, err := api.Read[api.QueryResult](s.client.RunQuery(ctx, nil, api.QueryRequest{Query: statement}))
	if err != nil {
		return names
	}

	for _, row := range found.Data {
		part := func(key string) string { text, _ := row[key].(string); return quotedName(text) }
		path := part("n") + "." + part("d")

		if row["o"] != me.Username {
			path = part("o") + "." + path
		}

		names.words = append(names.words, path, part("c"))

		if namespace, _ := row["n"].(string); s.at != nil && (s.at.owner == "self" || s.at.owner == row["o"]) && strings.EqualFold(s.at.namespace, namespace) {
			names.words = append(names.words, part("d"))
		}
	}

	slices.Sort(names.words)
	names.words = slices.Compact(names.words)

	return names
}

// quotedName returns a part of a name as it is written in a statement.
func quotedName(part string) string {
	if plainName.MatchString(strings.ToLower(part)) {
		return part
	}

	return `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
}

var _ term.History = (*history)(nil)
