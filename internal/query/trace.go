package query

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// plain is the one dataset in the outermost FROM of a statement whose rows are rows of that dataset: no join, set
// operation, DISTINCT, GROUP BY, window or derived table. That it has no aggregate either only DuckDB can tell; the
// usual ones are known here, because to ask takes longer than many of them.
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

// aggregates tells whether an expression has a usual aggregate, subqueries aside.
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

// names tells whether a reference names a dataset and not a subquery.
func (s *statement) names(from object) bool {
	return slices.ContainsFunc(s.tables, func(t table) bool { return t.name == from["table_name"] && t.at == place(from) })
}

// trace gives the statement as a tree that also says which file and row each row comes from; nil if its rows are
// not rows of one dataset. The table that it reads is given back.
func (s *statement) trace() (tree json.RawMessage, name string) {
	from, ok := s.plain()
	if !ok {
		return nil, ""
	}

	name, _ = from["table_name"].(string)

	alias, _ := from["alias"].(string)
	if alias == "" {
		alias = name
	}

	isStar := func(o object) bool { return o["class"] == "STAR" }

	switch {
	case contains(s.root["modifiers"], isStar): // ORDER BY ALL would order by what we add
		return nil, ""
	case contains(s.root, func(o object) bool { return isStar(o) && (o["columns"] == true || o["expr"] != nil) }):
		return nil, ""
	case slices.ContainsFunc(items(s.root["select_list"]), func(o object) bool { return !isStar(o) && contains(o, isStar) }): // * LIKE '%'
		return nil, ""
	case contains(s.root, func(o object) bool { return isWholeRow(o, alias) || isOurs(o) }):
		return nil, ""
	}

	changed, err := s.copy()
	if err != nil {
		return nil, ""
	}

	root := child(items(changed["statements"])[0], "node")
	columns := list(root["select_list"])

	for _, column := range items(root["select_list"]) {
		if isStar(column) {
			column["exclude_list"] = append(list(column["exclude_list"]), engine.TracedFile, engine.TracedRow)
		}
	}

	for _, added := range []string{engine.TracedFile, engine.TracedRow} {
		columns = append(columns, object{
			"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "column_names": []any{alias, added},
		})
	}

	root["select_list"] = columns
	table := child(root, "from_table")
	table["table_name"], table["alias"] = engine.TracedView, alias

	tree, err = json.Marshal(changed)
	if err != nil {
		return nil, ""
	}

	return tree, name
}

// isWholeRow: the name of a table can stand for all its columns.
func isWholeRow(o object, alias string) bool {
	names := list(o["column_names"])
	if o["class"] != "COLUMN_REF" || len(names) != 1 {
		return false
	}

	name, _ := names[0].(string)

	return strings.EqualFold(name, alias)
}

// isOurs: what is added must not become known by its name.
func isOurs(o object) bool {
	return o["class"] == "COLUMN_REF" && slices.ContainsFunc(list(o["column_names"]), func(part any) bool {
		name, _ := part.(string)

		return strings.EqualFold(name, engine.TracedFile) || strings.EqualFold(name, engine.TracedRow)
	})
}

func (s *statement) copy() (tree object, err error) {
	text, err := json.Marshal(s.tree)
	if err != nil {
		return nil, err
	}

	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()

	return tree, decoder.Decode(&tree)
}

// limit is how many rows the statement itself asks for at most, and after how many; false if it does not say.
func (s *statement) limit() (rows, offset int64, ok bool) {
	for _, modifier := range items(s.root["modifiers"]) {
		if modifier["type"] != "LIMIT_MODIFIER" {
			continue
		}

		rows, ok = wholeNumber(child(modifier, "limit"))
		if modifier["offset"] == nil {
			return rows, 0, ok
		}

		offset, hasOffset := wholeNumber(child(modifier, "offset"))

		return rows, offset, ok && hasOffset
	}

	return 0, 0, false
}

// firstRows is how many of the first rows of its dataset are enough for a statement; false if it may need all.
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

// wholeNumber is the value of a constant.
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

// contains tells whether a part of a tree is so.
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
