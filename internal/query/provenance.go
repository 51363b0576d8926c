package query

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// plain returns the dataset in the outermost FROM if the rows of the statement are rows of that dataset: no join, set
// operation, DISTINCT, GROUP BY, window or derived table. Only DuckDB can decide whether a function is an aggregate. The
// usual aggregates are recognised here, because asking DuckDB takes longer than running many such statements.
func (s *statement) plain() (from object, ok bool) {
	n := s.root
	from = child(n, "from_table")

	switch {
	case n["type"] != "SELECT_NODE" || from["type"] != "BASE_TABLE" || len(s.tables) == 0 || !s.names(from):
		return nil, false
	case len(items(child(n, "cte_map")["map"])) > 0 || len(list(n["group_expressions"])) > 0 || len(list(n["group_sets"])) > 0:
		return nil, false
	case n["having"] != nil || n["qualify"] != nil || n["sample"] != nil || from["sample"] != nil || len(list(from["column_name_alias"])) > 0:
		return nil, false
	case n["aggregate_handling"] != "STANDARD_HANDLING" || contains(n, func(o object) bool { return o["class"] == "WINDOW" }):
		return nil, false
	case slices.ContainsFunc(list(n["select_list"]), aggregates):
		return nil, false
	}

	for _, modifier := range items(n["modifiers"]) {
		if kind := modifier["type"]; kind != "ORDER_MODIFIER" && kind != "LIMIT_MODIFIER" && kind != "LIMIT_PERCENT_MODIFIER" {
			return nil, false
		}
	}

	return from, true
}

// aggregates reports whether an expression contains a usual aggregate outside of subqueries.
func aggregates(value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, aggregates)
	case object:
		if value["class"] == "SUBQUERY" {
			return false
		}

		switch value["function_name"] {
		case "count_star", "count", "sum", "avg", "min", "max":
			return true
		}

		for _, inner := range value {
			if aggregates(inner) {
				return true
			}
		}
	}

	return false
}

// names reports whether a reference names a dataset and not a subquery.
func (s *statement) names(from object) bool {
	return slices.ContainsFunc(s.tables, func(t table) bool { return t.name == from["table_name"] && t.at == position(from) })
}

// withProvenance returns the tree of the statement with two more columns, the data file and the row in it that each row
// comes from, and the dataset that it reads. The tree is nil if the rows are not rows of one dataset.
func (s *statement) withProvenance() (tree json.RawMessage, of table) {
	from, ok := s.plain()
	if !ok {
		return nil, of
	}

	if of = s.tables[slices.IndexFunc(s.tables, func(t table) bool { return t.at == position(from) })]; of.isInfo() {
		return nil, of
	}

	name, _ := from["table_name"].(string)
	schema, _ := from["schema_name"].(string)

	alias, _ := from["alias"].(string)
	if alias == "" {
		alias = name
	}

	isStar := func(o object) bool { return o["class"] == "STAR" }

	switch {
	case contains(s.root["modifiers"], isStar): // ORDER BY ALL would also order by the added columns
		return nil, of
	case contains(s.root, func(o object) bool { return isStar(o) && (o["columns"] == true || o["expr"] != nil) }):
		return nil, of
	case slices.ContainsFunc(items(s.root["select_list"]), func(o object) bool { return !isStar(o) && contains(o, isStar) }): // * LIKE '%'
		return nil, of
	case contains(s.root, func(o object) bool { return isWholeRow(o, schema, alias) || isOurs(o) }):
		return nil, of
	}

	changed, err := s.copy()
	if err != nil {
		return nil, of
	}

	root := child(items(changed["statements"])[0], "node")
	columns := list(root["select_list"])

	for _, column := range items(root["select_list"]) {
		if isStar(column) {
			column["exclude_list"] = append(list(column["exclude_list"]), engine.ProvenanceFile, engine.ProvenanceRow)
		}
	}

	for _, added := range []string{engine.ProvenanceFile, engine.ProvenanceRow} {
		columns = append(columns, object{
			"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "column_names": []any{alias, added},
		})
	}

	root["select_list"] = columns
	view := child(root, "from_table")
	view["table_name"], view["schema_name"], view["catalog_name"], view["alias"] = engine.ProvenanceView, "", "", alias

	if schema != "" {
		unqualify(root, schema, alias)
	}

	tree, err = json.Marshal(changed)
	if err != nil {
		return nil, of
	}

	return tree, of
}

// unqualify removes the schema from the columns of a table: a view without a schema takes the place of the table.
func unqualify(root object, schema, table string) {
	contains(root, func(o object) bool {
		if names := list(o["column_names"]); o["class"] == "COLUMN_REF" && len(names) > 2 && isName(names[0], schema) && isName(names[1], table) {
			o["column_names"] = names[1:]
		}

		return false
	})
}

// isWholeRow reports whether a column reference is the name of the table, which SQL accepts for all its columns together.
func isWholeRow(o object, schema, alias string) bool {
	names := list(o["column_names"])

	switch {
	case o["class"] != "COLUMN_REF":
		return false
	case len(names) == 2:
		return schema != "" && isName(names[0], schema) && isName(names[1], alias)
	default:
		return len(names) == 1 && isName(names[0], alias)
	}
}

func isName(value any, name string) bool {
	text, _ := value.(string)

	return strings.EqualFold(text, name)
}

// isOurs reports whether a column reference names one of the added columns. A statement must not be able to read them.
func isOurs(o object) bool {
	return o["class"] == "COLUMN_REF" && slices.ContainsFunc(list(o["column_names"]), func(part any) bool {
		name, _ := part.(string)

		return strings.EqualFold(name, engine.ProvenanceFile) || strings.EqualFold(name, engine.ProvenanceRow)
	})
}

func (s *statement) copy() (tree object, err error) {
	text, err := json.Marshal(s.tree)
	if err != nil {
		return nil, err
	}

	return decoded(text)
}

// limit returns the LIMIT and OFFSET of the statement. ok is false if there is no LIMIT or either is not a constant.
func (s *statement) limit() (rows, offset int64, ok bool) {
	for _, modifier := range items(s.root["modifiers"]) {
		if modifier["type"] != "LIMIT_MODIFIER" {
			continue
		}

		rows, ok = wholeNumber(s.valued(child(modifier, "limit")))
		if modifier["offset"] == nil {
			return rows, 0, ok
		}

		offset, hasOffset := wholeNumber(s.valued(child(modifier, "offset")))

		return rows, offset, ok && hasOffset
	}

	return 0, 0, false
}

// firstRows returns how many of the first rows of its dataset a statement needs; false if it may need all rows.
func (s *statement) firstRows() (rows int64, ok bool) {
	_, isPlain := s.plain()
	limit, offset, isLimited := s.limit()

	if !isPlain || !isLimited || limit > math.MaxInt64-offset || s.root["where_clause"] != nil || len(items(s.root["modifiers"])) != 1 || len(s.tables) != 1 {
		return 0, false
	}

	for _, column := range items(s.root["select_list"]) {
		if column["class"] != "COLUMN_REF" && column["class"] != "CONSTANT" && (column["class"] != "STAR" || len(list(column["replace_list"])) > 0 || column["expr"] != nil) {
			return 0, false
		}
	}

	return limit + offset, true
}

// wholeNumber returns the value of a constant; false if it is not a non-negative whole number.
func wholeNumber(o object) (int64, bool) {
	value := child(o, "value")
	kind, _ := child(value, "type")["id"].(string)
	number, isNumber := value["value"].(json.Number)

	if o["class"] != "CONSTANT" || !isNumber || (kind != "INTEGER" && kind != "BIGINT") {
		return 0, false
	}

	n, err := number.Int64()

	return n, err == nil && n >= 0
}

// contains reports whether so returns true for any object in a tree.
func contains(value any, so func(object) bool) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return contains(inner, so) })
	case object:
		if so(value) {
			return true
		}

		for _, inner := range value {
			if contains(inner, so) {
				return true
			}
		}
	}

	return false
}

func list(value any) []any {
	found, _ := value.([]any)

	return found
}
