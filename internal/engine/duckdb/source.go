package duckdb

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/engine"
)

// source is a file as a relation of raw values: texts, JSON values, or the values of a Parquet file.
type source struct {
	file    plainFile
	sample  plainFile // of text and JSON files
	dialect *dialect  // of delimited text
	lines   dialect   // of JSON
	records int64     // of text and JSON files
	blanks  bool      // the file has blank records, which are not rows
	columns []column
	doubts  []engine.Doubt
}

// column says where the raw values of a column are and how they are parsed.
type column struct {
	name   string
	raw    string // SQL expression
	native string // the type, if raw already has it
	isJSON bool   // raw is a JSON value
	wide   bool   // one of very many columns: each step of an expression needs its own memory
	kind   string // the detected type; "" if the column has no value
	parser parser // of the texts, unless the type is varchar, json or native
	likely parser // for a column that is text because of a few values: the parser that accepts the others
}

// describe detects the format and the columns of a file.
func (p *program) describe(s engine.Source) (*source, error) {
	file, err := p.unpack(s)
	if err != nil {
		return nil, err
	}

	found := &source{file: file}

	switch file.format {
	case engine.FormatParquet:
		err = p.describeParquet(found)
	case engine.FormatJSON, engine.FormatRows:
		err = p.describeJSON(found, s.Name)
	default:
		err = p.describeText(found, s.Name)
	}

	if err != nil {
		return nil, err
	}

	found.doubts = append(file.doubts(), found.doubts...)

	for forced, kind := range p.options.Types {
		i := slices.IndexFunc(found.columns, func(c column) bool { return strings.EqualFold(c.name, forced) })
		if i < 0 {
			return nil, &failure{code: engine.InvalidOptions, message: fmt.Sprintf("types: the file has no column %q.", forced)}
		}

		c := &found.columns[i]
		c.parser, c.kind = c.parserFor(kind, p.options), kind
	}

	for i := range found.columns {
		found.columns[i].wide = len(found.columns) > wideFile
	}

	return found, nil
}

func tooMany(columns int, bounds engine.Bounds) error {
	return &failure{code: engine.TooManyColumns, message: fmt.Sprintf("The file has %d columns; %d are allowed.", columns, bounds.Columns)}
}

// relation returns SQL for the rows of the file. DuckDB stores records that do not fit the dialect in a table with the
// name rejects.
func (s *source) relation(rejects string) string { return s.rows(s.file, rejects) }

// sampled returns SQL for the rows of the sample, without records that do not fit the dialect.
func (s *source) sampled() string {
	if s.file.format == engine.FormatParquet {
		return s.relation("")
	}

	return s.rows(s.sample, "")
}

func (s *source) rows(file plainFile, rejects string) string {
	switch {
	case file.format == engine.FormatParquet:
		return `read_parquet(` + path(file.path) + `)`
	case s.dialect != nil:
		return s.dialect.relation(file, len(s.columns), rejects)
	default:
		return s.objects(file, rejects)
	}
}

// counts returns a SQL condition that is true for rows and false for blank records. A record that contains only blanks
// or delimiters is blank.
func (s *source) counts() string {
	switch {
	case !s.blanks:
		return "true"
	case s.dialect == nil:
		return `trim(c0, e' \t\r') <> ''`
	}

	there := make([]string, len(s.columns))
	for i, c := range s.columns {
		there[i] = c.raw + ` IS NOT NULL`
	}

	return `(` + strings.Join(there, " OR ") + `)`
}

const (
	maxName  = 255
	wideFile = 300 // columns
)

// rename gives every column a unique name.
func (s *source) rename() {
	taken := map[string]bool{}

	for i := range s.columns {
		given := s.columns[i].name
		clean := cleanName(given)

		if clean == "" {
			clean = fmt.Sprintf("column_%d", i+1)
		}

		unique := clean
		for n := 1; taken[strings.ToLower(unique)]; n++ {
			unique = unreserved(fmt.Sprintf("%s_%d", clean, n)) // a second column "_" would otherwise start with "__"
		}

		taken[strings.ToLower(unique)] = true
		s.columns[i].name = unique

		if unique != strings.TrimSpace(given) && s.named() {
			s.doubts = append(s.doubts, engine.Doubt{Column: unique, Message: fmt.Sprintf("The column %q is renamed to %q.", shorten(given), unique)})
		}
	}
}

// named reports whether the file contains names for its columns.
func (s *source) named() bool { return s.dialect == nil || s.dialect.header }

// unreserved changes names that start with two underscores, which are reserved for Quern.
func unreserved(name string) string {
	if strings.HasPrefix(name, "__") {
		return "x" + name
	}

	return name
}

func cleanName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}

		return r
	}, name))

	name = unreserved(name)

	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}

	return strings.TrimSpace(name)
}

const shown = 100

// shorten cuts a value for use in a message.
func shorten(value string) string {
	if utf8.RuneCountInString(value) <= shown {
		return value
	}

	return string([]rune(value)[:shown]) + "…"
}
