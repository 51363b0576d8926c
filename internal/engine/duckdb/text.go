package duckdb

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document"
	"quern.dev/quern/internal/engine/xlsx"
)

// dialect describes how delimited text is written.
type dialect struct {
	delimiter, quote string
	header           bool
	skip             int   // lines before the header
	single           bool  // there is one column
	longest          int64 // bytes of the longest record
	oneByOne         bool  // DuckDB must not read in parallel
}

const (
	neverADelimiter = "\x01"
	delimiters      = ",;\t|" // delimiters that can be detected
	bufferSize      = 32 << 20
)

// sizes returns size options for DuckDB's CSV reader. The reader allocates whole buffers, even for a file of ten lines.
// It counts more bytes for a record than the record has. It loses a record at the end of each buffer whose size is odd.
func (d dialect) sizes(file plainFile) string {
	const page = 4 << 10

	longest := 2*min(d.longest, file.size) + page
	buffer := max(min(file.size, bufferSize), longest)

	return fmt.Sprintf(`max_line_size = %d, buffer_size = %d`, longest, (buffer/page+1)*page)
}

// relation returns SQL for all records as texts, in columns c0, c1, ….
func (d dialect) relation(file plainFile, columns int, rejects string) string {
	names := make([]string, columns)
	for i := range names {
		names[i] = fmt.Sprintf("'c%d': 'VARCHAR'", i)
	}

	errors := `ignore_errors = true`
	if rejects != "" {
		errors = `store_rejects = true, rejects_limit = 0, rejects_table = '` + rejects + `', rejects_scan = '` + rejects + `_scans'`
	}

	return fmt.Sprintf(`read_csv(%s, auto_detect = false, delim = %s, quote = %s, escape = %s, header = %t, skip = %d,
		columns = {%s}, nullstr = '', allow_quoted_nulls = false, strict_mode = true, parallel = %t, %s, %s)`,
		path(file.path), text(d.delimiter), text(d.quote), text(d.quote), d.header, d.skip, strings.Join(names, ", "), !d.oneByOne, d.sizes(file), errors)
}

// checkOptions rejects options with which no file can be read.
func checkOptions(o engine.Options) error {
	if found := o.Check(); found != nil {
		return &failure{code: engine.InvalidOptions, message: found.Option + ": " + found.Problem + "."}
	}

	return nil
}

// describeText detects the dialect, the names and the types of delimited text. It checks the bytes of the whole file in
// parallel. If the check fails, the result of the detection is discarded. If the lines end in different ways, or in \r
// alone, the detection is repeated.
func (p *program) describeText(s *source, name string) error {
	var (
		whole    = s.file
		ends     lineEnds
		bad      error
		checking sync.WaitGroup
	)

	checking.Go(func() { ends, bad = whole.check() })

	err := p.describeRecords(s)

	checking.Wait()

	switch {
	case bad != nil:
		return bad
	case ends.mixed():
		if err := whole.oneLineEnd(p.tmp, name, p.givenDialect(whole)); err != nil {
			return err
		}
	case !whole.onlyCR:
		return err
	}

	*s = source{file: whole}

	return p.describeRecords(s)
}

// givenDialect returns the dialect that the options specify. The texts of sheets and documents always have the dialects of
// their packages.
func (p *program) givenDialect(file plainFile) dialect {
	switch {
	case file.sheet != nil:
		return dialect{delimiter: xlsx.Delimiter, quote: xlsx.Quote, longest: p.bounds.Record + 2}
	case file.paper != nil:
		return dialect{delimiter: document.Delimiter, quote: document.Quote, longest: p.bounds.Record + 2}
	}

	d := dialect{delimiter: p.options.Delimiter, quote: `"`, skip: p.options.SkipRows, longest: p.bounds.Record + 2}
	if p.options.Quote != nil {
		d.quote = *p.options.Quote
	}

	return d
}

// describeRecords detects the dialect, names and types of a text in which all lines end in the same way.
func (p *program) describeRecords(s *source) (err error) {
	d := new(p.givenDialect(s.file))
	s.dialect = d

	if s.sample, err = s.file.sample(p.tmp, p.bounds.Record); err != nil {
		return err
	}

	// DuckDB must not receive bytes that were not checked.
	if _, err := s.sample.check(); err != nil {
		return err
	}

	if err := p.findDialect(s.sample, d); err != nil {
		return err
	}

	data, err := os.ReadFile(s.sample.path)
	if err != nil {
		return err
	}

	data = bytes.TrimPrefix(data, []byte(mark))
	above := p.skipTitles(s, d, data)

	first, rest, skip := d.firstRecord(data)
	if len(first) == 1 && strings.TrimSpace(first[0]) == "" {
		return invalid("The file contains only blanks.")
	}

	d.skip, d.single = skip, len(first) == 1
	if d.header = isHeader(first); p.header(s) != nil {
		d.header = *p.header(s)
	}

	if len(first) > p.bounds.Columns {
		return tooMany(len(first), p.bounds)
	}

	for i := range first {
		s.columns = append(s.columns, column{raw: fmt.Sprintf("c%d", i)})
	}

	if err := p.findNames(s, first, rest); err != nil {
		return err
	}

	s.doubts = append(above, s.doubts...)

	if d.single && p.options.Delimiter != "" && s.file.sheet == nil && s.file.paper == nil {
		s.doubtDelimiter(data)
	}

	return p.survey(s, d)
}

// skipTitles skips title lines above the table if no option says where the table starts. It returns a doubt about these
// lines, or about a text that does not look like a table.
func (p *program) skipTitles(s *source, d *dialect, data []byte) []engine.Doubt {
	found := source{}

	switch {
	case s.file.sheet != nil, s.file.paper != nil:
	case p.options.Delimiter == "" && p.options.Header == nil && p.options.SkipRows == 0 && d.isProse(data):
		found.doubts = append(found.doubts, engine.Doubt{Code: engine.NotATable, Message: "The file does not look like a table: it has sentences and no columns."})
	case p.options.SkipRows == 0 && p.options.Header == nil:
		d.skip = max(d.skip, d.titles(data))
		found.doubtTitles(data, d.skip)
	}

	return found.doubts
}

// header returns whether the first row contains the names, if the option or the merged cells of a sheet say so, and nil
// otherwise. The text of a document always has them.
func (p *program) header(s *source) *bool {
	switch {
	case s.file.paper != nil:
		return new(true)
	case p.options.Header == nil && s.file.sheet != nil:
		return s.file.sheet.Header
	default:
		return p.options.Header
	}
}

// survey checks all records. DuckDB reads text in parallel, and silently loses or invents rows if it meets a line end
// in quotes or a record that is longer than its buffer.
func (p *program) survey(s *source, d *dialect) error {
	seen, err := s.file.look(*d, nil)

	switch {
	case err != nil:
		return err
	case seen.unclosed >= 0:
		return invalid("A quote that is opened in line %d or later is never closed.", s.file.lineAt(seen.unclosed))
	case seen.longest > p.bounds.Record+2: // the 2 bytes are the line end
		return &failure{code: engine.LineTooLong, message: fmt.Sprintf("A record has more than %d bytes.", p.bounds.Record)}
	}

	s.records, s.blanks, d.longest, d.oneByOne = seen.records, seen.blank > 0, seen.longest, seen.inQuotes
	s.doubtTotals(seen)

	return nil
}

// findDialect detects the delimiter with DuckDB's sniffer, unless an option specifies it.
func (p *program) findDialect(sample plainFile, d *dialect) error {
	if d.delimiter != "" {
		return nil
	}

	if line, _ := firstLine(sample.text()); bytes.HasPrefix(bytes.ToLower(line), []byte("sep=")) {
		if sign := strings.TrimRight(string(line[4:]), "\r\n"); len(sign) == 1 {
			d.delimiter, d.skip = sign, d.skip+1

			return nil
		}
	}

	// Check the number of columns first: the sniffer tries all dialects and needs much memory for a line that contains
	// only delimiters.
	line, _ := firstLine(sample.text())
	for _, sign := range []byte(delimiters) {
		if columns := bytes.Count(line, []byte{sign}) + 1; columns > 2*p.bounds.Columns {
			return tooMany(columns, p.bounds)
		}
	}

	type sniffed struct {
		Delimiter string
		SkipRows  int
	}

	extra := ""
	if d.skip > 0 {
		extra = `, skip = ` + strconv.Itoa(d.skip)
	}

	found, err := row[sniffed](p.db, fmt.Sprintf(`SELECT "Delimiter", "SkipRows" FROM sniff_csv(%s, all_varchar = true, header = false,
		ignore_errors = true, sample_size = 2048, %s%s)`, path(sample.path), d.sizes(sample), extra))
	if isMemory(err) {
		return explain(err)
	}

	// Use a comma if there is only one column or the sniffer finds no dialect.
	d.delimiter = ","
	if err != nil {
		return nil //nolint:nilerr // what is wrong with the file shows when it is read
	}

	if len(found.Delimiter) == 1 && strings.Contains(delimiters, found.Delimiter) {
		d.delimiter = found.Delimiter
	}

	if steadier := d.steadier(sample.text()); steadier != d.delimiter {
		d.delimiter = steadier
	} else if p.options.SkipRows == 0 {
		d.skip = max(d.skip, found.SkipRows)
	}

	return nil
}

// steadyRecords is how many records of a sample are compared to choose a delimiter.
const steadyRecords = 200

// steadier returns a delimiter that splits more records into the same number of cells than the one that DuckDB's sniffer chose, and
// not into fewer cells. If numbers have decimal commas, the sniffer can take the comma for the delimiter and the header for a title,
// because only the header has no comma.
func (d dialect) steadier(sample []byte) string {
	best := d.delimiter
	records, width := d.steady(sample)

	for _, sign := range delimiters {
		d.delimiter = string(sign)
		if more, wider := d.steady(sample); more > records && wider >= width {
			best, records, width = d.delimiter, more, wider
		}
	}

	return best
}

// steady returns how many of the records that the delimiter splits have the most frequent number of cells, and that number.
func (d dialect) steady(sample []byte) (records, width int) {
	counts := map[int]int{}

	for range steadyRecords {
		cells, rest, whole := splitRecord(sample, d.delimiter, d.quote)
		if !whole {
			break
		}

		if sample = rest; len(cells) > 1 {
			counts[len(cells)]++
		}
	}

	for cells, count := range counts {
		if count > records || count == records && cells > width {
			records, width = count, cells
		}
	}

	return records, width
}

// firstRecord returns the cells of the first record after the lines to skip, the data after it, and the number of lines
// skipped, which includes blank lines before the record.
func (d dialect) firstRecord(data []byte) (cells []string, rest []byte, skipped int) {
	for {
		line, more := firstLine(data)
		if more && (skipped < d.skip || len(bytes.TrimSpace(line)) == 0) {
			data = data[len(line):]
			skipped++

			continue
		}

		if skipped < d.skip {
			data = nil
		}

		cells, rest, _ = splitRecord(data, d.delimiter, d.quote)

		return cells, rest, max(skipped, d.skip)
	}
}

// isHeader reports whether the cells look like names: no cell has a typed value, and at least half of the cells are not
// empty.
func isHeader(cells []string) bool {
	named := 0
	values, _ := candidates(engine.Options{}) // without options there is no error

	for _, cell := range cells {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}

		if slices.ContainsFunc(values, func(c candidate) bool { return c.takes(cell) }) {
			return false
		}

		named++
	}

	return named > 0 && 2*named >= len(cells)
}

// findNames sets the names and types of the columns. If all columns are text, the first row is not a header if its
// cells appear again in other rows.
func (p *program) findNames(s *source, first []string, rest []byte) error {
	if s.dialect.header {
		for i := range first {
			s.columns[i].name = first[i]
		}
	}

	s.rename()

	if err := p.findTypes(s, rest); err != nil || p.header(s) != nil {
		return err
	}

	doubt := func(message string) {
		s.doubts = append(s.doubts, engine.Doubt{Option: "header", Message: message})
	}

	switch typed := slices.ContainsFunc(s.columns, func(c column) bool { return c.kind != engine.Varchar && c.kind != "" }); {
	case !s.dialect.header:
		doubt("The first row does not look like names, so it is loaded as data.")
	case typed:
	case s.dialect.comesAgain(first, rest):
		s.dialect.header = false
		s.doubts = nil

		for i := range s.columns {
			s.columns[i].name = ""
		}

		s.rename()
		doubt("The cells of the first row occur again in other rows, so it is loaded as data.")
	default:
		doubt("The file contains only text, so the first row may be data. It is used as the header.")
	}

	return nil
}

// comesAgain reports whether every cell of the first row appears again in its column, and not only in copies of the
// whole row. Such copies are headers in the middle of concatenated files.
func (d dialect) comesAgain(first []string, rest []byte) bool {
	again, apart := make([]bool, len(first)), false

	for range headRecords {
		var cells []string

		if cells, rest, _ = splitRecord(rest, d.delimiter, d.quote); len(cells) != len(first) {
			continue
		}

		same := 0

		for i, cell := range cells {
			if cell == first[i] {
				again[i] = true
				same++
			}
		}

		apart = apart || (same > 0 && same < len(first))
	}

	return apart && !slices.Contains(again, false)
}

// The limits of the records and cells that are checked in Go before DuckDB is used.
const (
	headRecords = 200
	headCells   = 20_000
)
