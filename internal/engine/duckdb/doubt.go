package duckdb

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"quern.dev/quern/internal/engine"
)

// maxBeside is how many members an object around rows has beside them. One with more is a thing of its own.
const maxBeside = 10

// doubtWrapped tells of one object that has its rows in one of its members, as answers of many services do.
func (p *program) doubtWrapped(s *source, members []member) error {
	lists := 0
	at := -1

	for i, m := range members {
		if slices.Equal(m.Types, []string{"ARRAY"}) {
			lists++
			at = i
		}
	}

	if s.records != 1 || s.file.format != engine.FormatJSON || lists != 1 || len(members) > maxBeside+1 {
		return nil
	}

	type element struct {
		Kind  string
		Count int64
	}

	list := s.columns[at].raw

	found, err := rows[element](p.db, fmt.Sprintf(`SELECT coalesce(json_type(%[1]s, '$[0]'), '') AS "Kind", json_array_length(%[1]s) AS "Count" FROM %[2]s WHERE %[3]s`,
		list, s.relation(""), s.counts()))
	if err != nil || len(found) == 0 || found[0].Kind != "OBJECT" {
		return explain(err)
	}

	s.doubts = append(s.doubts, engine.Doubt{
		Column: s.columns[at].name, Option: "rowsAt", Code: engine.WrappedRows,
		Message: fmt.Sprintf("The file is one object, so it becomes one row. Its member %q has %d objects that may be the rows: the option rowsAt takes them.",
			shorten(members[at].Name), found[0].Count),
	})

	return nil
}

// totals are words that a row of totals begins with.
var totals = []string{ //nolint:gochecknoglobals // a constant
	"total", "totals", "grand total", "subtotal", "sub total", "sub-total", "sum", "summe", "gesamt", "gesamtsumme", "insgesamt", "zwischensumme",
}

const longestTotal = 24 // bytes of a cell that can be such a word

// isTotal tells whether a record begins with a word for a total.
func (d dialect) isTotal(line []byte) bool {
	line = bytes.TrimLeft(line, " \t"+d.quote)
	if len(line) == 0 || strings.IndexByte("tgsiz", line[0]|' ') < 0 {
		return false
	}

	end := bytes.Index(line, []byte(d.delimiter))
	if end < 0 || end > longestTotal {
		return false
	}

	return slices.Contains(totals, strings.ToLower(strings.Trim(string(line[:end]), " :\t"+d.quote)))
}

// doubtTotals tells of rows that look like totals of others, if there is something to add up.
func (s *source) doubtTotals(seen survey) {
	counts := slices.ContainsFunc(s.columns, func(c column) bool { return c.kind == engine.Bigint || c.kind == engine.Double })
	if seen.totals == 0 || seen.records < 2 || !counts {
		return
	}

	message := fmt.Sprintf("Row %d looks like a total of others, and is loaded as a row. Sums would count it twice.", seen.firstTotal)
	if seen.totals > 1 {
		message = fmt.Sprintf("%d rows look like totals of others, the first is row %d. They are loaded as rows. Sums would count them twice.", seen.totals, seen.firstTotal)
	}

	s.doubts = append(s.doubts, engine.Doubt{Message: message})
}

const (
	titleLines = 20 // at most
	titleProof = 3  // records in a row with the same number of cells
)

// titles is how many lines stand above a table: each has text in one cell at most, and then come records that have the same number of
// cells, more than one.
func (d dialect) titles(data []byte) (lines int) {
	for rest := data; lines < titleLines; lines++ {
		cells, after, whole := splitRecord(rest, d.delimiter, d.quote)
		if !whole {
			return 0
		}

		if filled(cells) > 1 {
			break
		}

		rest, data = after, after
	}

	if lines == 0 || lines == titleLines {
		return 0
	}

	width := 0

	for n := range titleProof {
		cells, after, whole := splitRecord(data, d.delimiter, d.quote)
		if n == 0 {
			width = len(cells)
		}

		if len(cells) != width || width < 2 || (n == 0 && filled(cells) < width) || (!whole && n < titleProof-1) {
			return 0
		}

		data = after
	}

	return lines
}

// filled is how many cells have something in them.
func filled(cells []string) (n int) {
	for _, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			n++
		}
	}

	return n
}

// doubtTitles tells of the lines above the header that nobody asked to skip.
func (s *source) doubtTitles(data []byte, lines int) {
	first := ""

	for range lines {
		line, _ := firstLine(data)
		data = data[len(line):]

		if text := strings.TrimSpace(string(line)); first == "" && !strings.HasPrefix(strings.ToLower(text), "sep=") {
			first = text
		}
	}

	if first == "" { // blank lines
		return
	}

	s.doubts = append(s.doubts, engine.Doubt{Option: "skipRows", Message: fmt.Sprintf(
		"The first lines of the file (%d) stand above the table and were left out. They begin with %q.", lines, shorten(first))})
}

const (
	proseLines = 4 // at least
	proseWords = 5 // of a line
)

// isProse tells whether a text is sentences and not a table: its first line is more than names, and most lines have several words, with
// another number of cells each or no delimiter at all.
func (d dialect) isProse(data []byte) bool {
	var (
		lines, wordy int
		widths       = map[int]int{}
	)

	first, _ := firstLine(data)
	if head := strings.TrimSpace(string(first)); len(strings.Fields(head)) < 2 || !sentence(head) {
		return false
	}

	for rest := data; len(rest) > 0 && lines < headRecords; {
		line, _ := firstLine(rest)
		rest = rest[len(line):]

		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}

		lines++
		widths[strings.Count(text, d.delimiter)]++

		if len(strings.Fields(text)) >= proseWords && letters(text) {
			wordy++
		}
	}

	even := 0
	for _, n := range widths {
		even = max(even, n)
	}

	return lines >= proseLines && 3*wordy >= lines && (len(widths) == 1 && widths[0] == lines || 5*even < 4*lines)
}

// sentence: a first line that is no list of names ends like a sentence or a greeting, or has more words than names have.
func sentence(line string) bool {
	return strings.ContainsRune(".,:;!?", rune(line[len(line)-1])) || len(strings.Fields(line)) >= proseWords
}

// letters: most of a text is letters and blanks.
func letters(text string) bool {
	count, all := 0, 0

	for _, r := range text {
		all++

		if unicode.IsLetter(r) || r == ' ' {
			count++
		}
	}

	return 10*count >= 8*all
}
