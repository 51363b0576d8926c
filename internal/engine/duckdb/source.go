package duckdb

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/engine"
)

// source is a file as a relation of raw values: texts, JSON values, or what Parquet has.
type source struct {
	file    plainFile
	sample  plainFile // of text and JSON
	dialect *dialect  // of delimited text
	lines   dialect   // of JSON
	records int64     // of text and JSON
	blanks  bool      // it has records that do not count
	columns []column
	doubts  []engine.Doubt
}

// column is where a column's raw values are, and how they are read.
type column struct {
	name    string
	raw     string  // SQL
	native  string  // the type if raw has it already
	isJSON  bool    // raw is a JSON value
	wide    bool    // one of very many: each step of an expression takes memory for itself
	kind    string  // the type that was found out, "" if there is no value to tell
	reading reading // of the texts, unless the type is varchar, json or native
	likely  reading // of a column that is text because of a few values: how the others are read
}

// describe finds out what a file is and which columns it has.
func (p *program) describe(s engine.Source) (*source, error) {
	file, err := unpack(filepath.Join(p.in, s.Name), p.tmp, s, p.options, p.bounds, &p.read)
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

	if file.sheet != nil {
		found.doubts = append(file.sheet.Doubts, found.doubts...)
	}

	for forced, kind := range p.options.Types {
		if !isType(kind) {
			return nil, &failure{engine.InvalidOptions, fmt.Sprintf(
				"types: %q is not a type. Use boolean, bigint, double, decimal(p,s), date, timestamp, time, varchar or json.", kind)}
		}

		i := slices.IndexFunc(found.columns, func(c column) bool { return strings.EqualFold(c.name, forced) })
		if i < 0 {
			return nil, &failure{engine.InvalidOptions, fmt.Sprintf("types: the file has no column %q.", forced)}
		}

		c := &found.columns[i]
		c.reading, c.kind = c.readingFor(kind, p.options), kind
	}

	for i := range found.columns {
		found.columns[i].wide = len(found.columns) > wideFile
	}

	return found, nil
}

func tooMany(columns int, bounds engine.Bounds) error {
	return &failure{engine.TooManyColumns, fmt.Sprintf("The file has %d columns; %d are allowed.", columns, bounds.Columns)}
}

// relation is SQL for the rows of the file. Text that breaks the dialect is kept in DuckDB's table of
// rejects of that name.
func (s *source) relation(rejects string) string { return s.rows(s.file, rejects) }

// sampled is SQL for the rows of the sample, without those that break the dialect.
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

// counts is the condition for the rows that count: a blank line, or one of nothing but delimiters, does not.
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

// rename gives every column a name that is its own.
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
			unique = unreserved(fmt.Sprintf("%s_%d", clean, n)) // of two columns "_" one would begin with "__"
		}

		taken[strings.ToLower(unique)] = true
		s.columns[i].name = unique

		if unique != strings.TrimSpace(given) && s.named() {
			s.doubts = append(s.doubts, engine.Doubt{Column: unique, Message: fmt.Sprintf("The column %q is called %q here.", shorten(given), unique)})
		}
	}
}

// named tells whether the file gave its columns names.
func (s *source) named() bool { return s.dialect == nil || s.dialect.header }

// unreserved keeps names of users apart from the service's own, which begin with two underscores.
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

// shorten is a value for a message.
func shorten(value string) string {
	if utf8.RuneCountInString(value) <= shown {
		return value
	}

	return string([]rune(value)[:shown]) + "…"
}
