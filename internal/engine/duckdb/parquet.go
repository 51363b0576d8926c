package duckdb

import (
	"strings"

	"quern.dev/quern/internal/engine"
)

// describeParquet takes the columns from the file. Only the values of the file reach the table, because the file is
// always rewritten.
func (p *program) describeParquet(s *source) error {
	type described struct {
		Name string `json:"column_name"`
		Type string `json:"column_type"`
	}

	list, err := rows[described](p.db, `SELECT column_name, column_type FROM (DESCRIBE FROM `+s.relation("")+`)`)
	if err != nil {
		return explain(err)
	}

	switch {
	case len(list) == 0:
		return invalid("The Parquet file has no columns.")
	case len(list) > p.bounds.Columns:
		return tooMany(len(list), p.bounds)
	}

	names, err := p.parquetNames(s.file)
	if err != nil {
		return err
	}

	for i, d := range list {
		kind, value := native(d.Type, name(d.Name))
		c := column{name: d.Name, raw: value, native: kind, kind: kind}

		if len(names) == len(list) {
			c.name = names[i]
		}

		s.columns = append(s.columns, c)
	}

	s.rename()

	return nil
}

// parquetNames returns the names of the columns as stored in the file. DuckDB silently renames empty and duplicate
// names.
func (p *program) parquetNames(file plainFile) (names []string, err error) {
	type element struct {
		Name     string
		Children int
	}

	list, err := rows[element](p.db, `SELECT name AS "Name", coalesce(num_children, 0) AS "Children" FROM parquet_schema(`+path(file.path)+`)`)
	if err != nil {
		return nil, explain(err)
	}

	// The elements are in depth-first order, starting with the root.
	inner := 0
	for _, e := range list[min(1, len(list)):] {
		if inner == 0 {
			names = append(names, e.Name)
		} else {
			inner--
		}

		inner += max(e.Children, 0)
	}

	return names, nil
}

// native returns Quern's type for a DuckDB type, and SQL that converts the value to it.
func native(kind, value string) (ours, sql string) {
	switch base, _, _ := strings.Cut(kind, "("); {
	case strings.HasSuffix(kind, "]") || strings.HasPrefix(kind, "STRUCT") || strings.HasPrefix(kind, "MAP") || strings.HasPrefix(kind, "UNION"):
		return engine.JSON, `CAST(to_json(` + value + `) AS VARCHAR)`
	case base == "DECIMAL":
		return strings.ToLower(strings.ReplaceAll(kind, " ", "")), value
	case kind == "BOOLEAN" || kind == "DATE" || kind == "TIME" || kind == "DOUBLE" || kind == "VARCHAR" || kind == "BIGINT":
		return strings.ToLower(kind), value
	case kind == "TINYINT" || kind == "SMALLINT" || kind == "INTEGER" || kind == "UTINYINT" || kind == "USMALLINT" || kind == "UINTEGER":
		return engine.Bigint, `CAST(` + value + ` AS BIGINT)`
	case kind == "UBIGINT":
		return "decimal(20,0)", `CAST(` + value + ` AS DECIMAL(20, 0))`
	case kind == "FLOAT":
		return engine.Double, `CAST(` + value + ` AS DOUBLE)`
	case kind == "TIMESTAMP WITH TIME ZONE":
		return engine.Timestamp, `timezone('UTC', ` + value + `)`
	case strings.HasPrefix(kind, "TIMESTAMP"):
		return engine.Timestamp, `CAST(` + value + ` AS TIMESTAMP)`
	case strings.HasPrefix(kind, "TIME"):
		return engine.Time, `CAST(` + value + ` AS TIME)`
	case kind == "JSON":
		return engine.JSON, `CAST(` + value + ` AS VARCHAR)`
	case kind == "BLOB":
		return engine.Varchar, `lower(hex(` + value + `))`
	default:
		return engine.Varchar, `CAST(` + value + ` AS VARCHAR)`
	}
}
