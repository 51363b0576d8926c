package duckdb

import (
	"strings"

	"quern.dev/quern/internal/engine"
)

// describeParquet takes the columns as the file has them. The file is always written anew, so nothing of it
// but the values reaches the table.
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

// parquetNames are the names of the columns as they stand in the file: DuckDB renames what is empty or there
// twice without telling.
func (p *program) parquetNames(file plainFile) (names []string, err error) {
	type element struct {
		Name     string
		Children int
	}

	list, err := rows[element](p.db, `SELECT name AS "Name", coalesce(num_children, 0) AS "Children" FROM parquet_schema(`+path(file.path)+`)`)
	if err != nil {
		return nil, explain(err)
	}

	// The elements stand in the order of the tree, the root first.
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

// native is our type for one of DuckDB's, and SQL that has it.
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
