package duckdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"quern.dev/quern/internal/engine"
)

// linesOf returns a relation of rows that an earlier statement returned as JSON. Each value has the type of its column.
// Nested values stay JSON, because the name of a nested type does not describe its structure.
func (p *program) linesOf(view engine.View) (string, error) {
	var (
		paths  = make([]string, len(view.Files))
		size   = int64(1)
		raw    = make([]string, len(view.Columns))
		values = make([]string, len(view.Columns))
	)

	for i, file := range view.Files {
		full := filepath.Join(p.in, filepath.Base(file))

		info, err := os.Stat(full)
		if err != nil {
			return "", err
		}

		paths[i], size = path(full), max(size, info.Size())
	}

	for i, c := range view.Columns {
		raw[i] = name(c.Name) + `: 'JSON'`
	}

	from := fmt.Sprintf(`read_json([%s], format = 'newline_delimited', compression = 'uncompressed', maximum_object_size = %d, columns = {%s})`,
		strings.Join(paths, ", "), size, strings.Join(raw, ", "))

	for i, c := range view.Columns {
		value, err := p.given(c, from)
		if err != nil {
			return "", err
		}

		values[i] = value + ` AS ` + name(c.Name)
	}

	return `SELECT ` + strings.Join(values, ", ") + ` FROM ` + from, nil
}

// given returns SQL that converts JSON written by kind.asJSON back to the original value.
func (p *program) given(c engine.Column, from string) (string, error) {
	said := `(` + name(c.Name) + ` ->> '$')`

	switch {
	case c.Type == engine.JSON || strings.HasSuffix(c.Type, "]") || strings.HasPrefix(c.Type, "struct(") || strings.HasPrefix(c.Type, "map("):
		return `CASE WHEN json_type(` + name(c.Name) + `) <> 'NULL' THEN ` + name(c.Name) + ` END`, nil
	case c.Type == "blob":
		return `from_base64(` + said + `)`, nil
	case c.Type == engine.Timestamp:
		fine, err := p.db.value(`SELECT CAST(coalesce(bool_or(regexp_matches(` + said + `, '\.[0-9]{7}')), false) AS VARCHAR) FROM ` + from)
		if fine == "true" {
			return momentOf(said, "TIMESTAMP_NS"), err
		}

		return momentOf(said, "TIMESTAMP"), err
	case c.Type == "timestamp with time zone":
		return momentOf(said, "TIMESTAMPTZ"), nil
	}

	if _, _, isDecimal := engine.DecimalOf(c.Type); isDecimal || castable[c.Type] {
		return `CAST(` + said + ` AS ` + sqlType(c.Type) + `)`, nil
	}

	return said, nil // files contain values of this type as text in any case
}

// momentOf reverses isoText.
func momentOf(said, kind string) string {
	return `CAST(replace(` + said + `, 'T', ' ') AS ` + kind + `)`
}

// castable contains the types whose text form DuckDB can both write and read.
var castable = map[string]bool{ //nolint:gochecknoglobals // read only
	"boolean": true, "tinyint": true, "smallint": true, "integer": true, "bigint": true, "utinyint": true, "usmallint": true, "uinteger": true,
	"ubigint": true, "hugeint": true, "float": true, "double": true, "date": true, "time": true, "uuid": true,
}
