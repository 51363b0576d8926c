package duckdb

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"quern.dev/quern/internal/engine"
)

// maxBeside is the maximum number of other members in an object that wraps rows. An object with more members is taken
// for a row.
const maxBeside = 10

// doubtWrapped adds a doubt if the file is one object with the rows in one of its members, as in the responses of many
// services.
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
		Message: fmt.Sprintf("The file is one object, so it becomes one row. Its member %q has %d objects that may be the rows. To load these, use the option rowsAt.",
			shorten(members[at].Name), found[0].Count),
	})

	return nil
}

// totals contains the words with which a row of totals starts.
var totals = []string{ //nolint:gochecknoglobals // a constant
	"total", "totals", "grand total", "subtotal", "sub total", "sub-total", "sum", "summe", "gesamt", "gesamtsumme", "insgesamt", "zwischensumme",
}

const longestTotal = 24 // maximum bytes of a cell with such a word

// isTotal reports whether a record starts with a word for a total.
func (d dialect) isTotal(line []byte) bool {
	// This is called for each record, and bytes.TrimLeft would take most of the time.
	for len(line) > 0 && (line[0] == ' ' || line[0] == '\t' || (d.quote != "" && line[0] == d.quote[0])) {
		line = line[1:]
	}

	if len(line) == 0 || strings.IndexByte("tgsiz", line[0]|' ') < 0 {
		return false
	}

	end := bytes.Index(line, []byte(d.delimiter))
	if end < 0 || end > longestTotal {
		return false
	}

	return slices.Contains(totals, strings.ToLower(strings.Trim(string(line[:end]), " :\t"+d.quote)))
}

// doubtTotals adds a doubt about rows that look like totals of other rows, if the file has a column of numbers.
func (s *source) doubtTotals(seen survey) {
	counts := slices.ContainsFunc(s.columns, func(c column) bool { return c.kind == engine.Bigint || c.kind == engine.Double })
	if seen.totals == 0 || seen.records < 2 || !counts {
		return
	}

	message := fmt.Sprintf("Row %d looks like a total of other rows. It is loaded as a row, so sums count its values twice. Remove it from the file, or delete the row after loading.", seen.firstTotal)
	if seen.totals > 1 {
		message = fmt.Sprintf("%d rows look like totals of other rows; the first is row %d. They are loaded as rows, so sums count their values twice. Remove them from the file, or delete the rows after loading.", seen.totals, seen.firstTotal)
	}

	s.doubts = append(s.doubts, engine.Doubt{Message: message})
}

// doubtDelimiter adds a doubt about a file that has one column with the delimiter that an option specifies, and several with another one.
func (s *source) doubtDelimiter(data []byte) {
	sign := s.dialect.divider(data)
	if sign == "" {
		return
	}

	s.doubts = append(s.doubts, engine.Doubt{
		Option: "delimiter", Code: engine.NotATable, Suggestions: []string{sign},
		Message: fmt.Sprintf("With the delimiter %q the file has one column. With %q its first lines all have the same number of columns. Give this delimiter, or accept the doubt if it is one column.",
			s.dialect.delimiter, sign),
	})
}

// divider returns the delimiter that divides all of the first records into the same number of cells, although that of the dialect divides none. It returns an empty
// text if there is none, or if the signs may be part of texts or numbers: a blank follows them everywhere, or the first record with a comma does not look like names.
func (d dialect) divider(data []byte) string {
	for range d.skip {
		line, _ := firstLine(data)
		data = data[len(line):]
	}

	for _, sign := range delimiters {
		other := string(sign)
		first, _, _ := splitRecord(data, other, d.quote)

		if other != d.delimiter && len(first) > 1 && (other != "," || isHeader(first)) && isEven(data, other, d.quote) {
			return other
		}
	}

	return ""
}

// isEven reports whether a delimiter divides all of the first records into the same number of cells, of which at least one does not begin with a blank.
func isEven(data []byte, delimiter, quote string) bool {
	records, width, isTight := 0, 0, false

	for len(data) > 0 && records < steadyRecords {
		cells, rest, whole := splitRecord(data, delimiter, quote)
		data = rest

		switch {
		case len(cells) == 1 && strings.TrimSpace(cells[0]) == "":
			continue
		case records == 0:
			width = len(cells)
		case len(cells) != width:
			return !whole && records >= evenRecords && isTight // the sample may end here
		}

		records++
		isTight = isTight || slices.ContainsFunc(cells[1:], func(cell string) bool { return !strings.HasPrefix(cell, " ") })
	}

	return records >= evenRecords && isTight
}

// evenRecords is the smallest number of records that show a delimiter.
const evenRecords = 2

const (
	titleLines = 20 // maximum
	titleProof = 3  // consecutive records with the same number of cells
)

// titles returns the number of title lines above a table. A title line has text in at most one cell. The title lines
// must be followed by records that all have the same number of cells, at least two.
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

// filled returns the number of cells that are not blank.
func filled(cells []string) (n int) {
	for _, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			n++
		}
	}

	return n
}

// doubtTitles adds a doubt about the lines above the header that were skipped without an option.
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
		"The first lines of the file (%d) are above the table and were omitted. They begin with %q.", lines, shorten(first))})
}

const (
	proseLines = 4 // minimum
	proseWords = 5 // minimum words of a line
)

// isProse reports whether a text consists of sentences and is not a table. The first line must look like a sentence.
// Many lines must have several words. The lines must differ in the number of cells, or have no delimiter at all. Lines of
// equal width are sentences too if the first one is a salutation, and a blank or the end of the line follows every comma.
func (d dialect) isProse(data []byte) bool {
	var (
		lines, wordy, tight int
		widths              = map[int]int{}
	)

	first, _ := firstLine(data)

	head := strings.TrimSpace(string(first))
	if len(strings.Fields(head)) < 2 || !sentence(head) {
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
		tight += strings.Count(text, d.delimiter) - strings.Count(text+" ", d.delimiter+" ")

		if len(strings.Fields(text)) >= proseWords && letters(text) {
			wordy++
		}
	}

	even := 0
	for _, n := range widths {
		even = max(even, n)
	}

	salutation := tight == 0 && strings.HasSuffix(head, d.delimiter)

	return lines >= proseLines && 4*wordy >= lines && (len(widths) == 1 && widths[0] == lines || 5*even < 4*lines || salutation)
}

// sentence reports whether a first line looks like a sentence and not like a list of names: it ends with punctuation,
// or has more words than names usually have.
func sentence(line string) bool {
	return strings.ContainsRune(".,:;!?", rune(line[len(line)-1])) || len(strings.Fields(line)) >= proseWords
}

// letters reports whether at least 80 % of a text are letters and blanks.
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
