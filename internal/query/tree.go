package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// object is a node of DuckDB's syntax tree of a statement.
type object = map[string]any

// statement is a checked statement.
type statement struct {
	written    json.RawMessage // the tree as DuckDB wrote it
	tree       object          // the whole tree, with the list of statements
	root       object          // the node of the only statement
	tables     []table
	columns    []column                    // the column references with several parts
	show       *show                       // nil unless the statement is SHOW TABLES, which has no tables and does not run as written
	parameters []string                    // names of the parameters, or their numbers, each once
	values     map[string]engine.Parameter // of the parameters, by folded name
}

// check reads the tree of a statement and refuses everything except a single query that reads datasets by their names.
//
// Faults: QueryInvalid.
func check(tree json.RawMessage) (*statement, error) {
	whole, err := decoded(tree)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "The server could not check the statement because of an internal error.")
	}

	list := items(whole["statements"])

	switch len(list) {
	case 0:
		return nil, invalid(-1, "There is no statement. Write one SELECT.")
	case 1:
	default:
		return nil, invalid(position(child(child(list[1], "node"), "from_table")), "There are several statements. Send one at a time.")
	}

	s := &statement{written: tree, tree: whole, root: child(list[0], "node")}
	w := walker{}

	if s.show = showOf(s.root); s.show != nil {
		return s, nil
	}

	if err := w.node(s.root, nil); err != nil {
		return nil, err
	}

	// A part that the walk did not visit was not checked.
	if count(whole) != w.met || !declares(list[0], w.parameters) {
		return nil, invalid(-1, "The statement has a part that is not supported.")
	}

	slices.SortStableFunc(w.tables, func(a, b table) int { return cmp.Compare(a.at, b.at) })
	s.tables, s.columns, s.parameters = w.tables, w.columns, w.parameters

	return s, nil
}

// walker visits and checks every part of a tree, always in the same order, so that of several faults the same one is
// always reported.
type walker struct {
	tables     []table
	columns    []column
	parameters []string
	seen       map[string]bool // folded names of the parameters
	met        tally
}

// tally counts the parts of a tree that must be checked.
type tally struct{ nodes, refs, calls, parameters int }

// node checks a query. names are the names of the common table expressions that are visible in it.
func (w *walker) node(n object, names []string) error {
	// count recognises a query by this member. If the walk also counted queries without it, both counts could be equal
	// although the walk missed a query.
	if _, counted := n["cte_map"]; !counted {
		return unsupported(n, "This kind of query")
	}

	w.met.nodes++

	kind, _ := n["type"].(string)

	switch kind {
	case "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE":
	default:
		return unsupported(n, "This kind of query")
	}

	names = slices.Clone(names)

	for _, cte := range items(child(n, "cte_map")["map"]) {
		name, _ := cte["key"].(string)
		query := child(child(child(cte, "value"), "query"), "node")

		if err := w.node(query, names); err != nil {
			return err
		}

		names = append(names, folded(name))
	}

	// The name of a recursive query is visible only in its recursive part. In its first part the name means something else.
	own := names
	if name, isNamed := n["cte_name"].(string); isNamed {
		own = append(slices.Clone(names), folded(name))
	}

	for _, key := range slices.Sorted(maps.Keys(n)) {
		var err error

		switch key {
		case "cte_map":
		case "from_table":
			err = w.reference(child(n, key), names)
		case "right", "child":
			err = w.anything(n[key], own)
		default:
			err = w.anything(n[key], names)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// reference checks an item of a FROM clause.
func (w *walker) reference(r object, names []string) error {
	// count recognises a reference by this member. If the walk also counted references without it, both counts could be equal
	// although the walk missed a reference.
	if _, counted := r["sample"]; !counted {
		return unsupported(r, "This item in FROM")
	}

	w.met.refs++

	kind, _ := r["type"].(string)

	switch kind {
	case "BASE_TABLE":
		return w.table(r, names)
	case "TABLE_FUNCTION":
		return w.tableFunction(r, names)
	case "SUBQUERY", "EXPRESSION_LIST", "EMPTY", "EMPTY_FROM", "JOIN", "PIVOT":
	case "SHOW_REF":
		if show, _ := r["show_type"].(string); (show != "DESCRIBE" && show != "SUMMARY") || r["query"] == nil {
			return invalid(position(r), "This form of SHOW is not supported. SHOW TABLES, SHOW TABLES FROM namespace and SHOW ALL TABLES list datasets, DESCRIBE lists the columns of one. In a FROM, read information_schema.tables or information_schema.columns.")
		}
	default:
		return unsupported(r, "This item in FROM")
	}

	for _, key := range slices.Sorted(maps.Keys(r)) {
		var err error

		switch key {
		case "left", "right", "source":
			err = w.reference(child(r, key), names)
		default:
			err = w.anything(r[key], names)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

func (w *walker) table(r object, names []string) error {
	name, _ := r["table_name"].(string)
	namespace, _ := r["schema_name"].(string)
	owner, _ := r["catalog_name"].(string)
	alias, _ := r["alias"].(string)

	switch {
	case name == "":
		return unsupported(r, "A table without a name")
	case r["at_clause"] != nil:
		return invalid(position(r), "AT is not supported. Use asOf to read the data of an earlier time.")
	case namespace == "" && slices.Contains(names, folded(name)):
		return w.anything(r["sample"], names)
	}

	found := table{owner: owner, namespace: namespace, name: name, at: position(r), isAliased: alias != ""}
	if found.isInfo() && folded(name) != infoTables && folded(name) != infoColumns {
		return noInfo(found)
	}

	w.tables = append(w.tables, found)

	return nil
}

// folded returns a name in the form in which DuckDB compares names: only ASCII letters ignore case.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}

		return r
	}, name)
}

// tableFunctions are the table functions that read nothing but their arguments.
var tableFunctions = []string{"unnest", "generate_series", "range", "json_each", "json_tree"} //nolint:gochecknoglobals // read only

func (w *walker) tableFunction(r object, names []string) error {
	call := child(r, "function")
	name, _ := call["function_name"].(string)

	if !slices.Contains(tableFunctions, strings.ToLower(name)) {
		return invalid(position(r), fmt.Sprintf("The table function %s is not supported; the supported ones are %s. A statement reads datasets, not files: load a file with quern upload, and write the name of the dataset after FROM.", name, strings.Join(tableFunctions, ", ")))
	}

	return w.anything(r["function"], names)
}

// anything visits a part of the tree that is neither a query nor a FROM item, and checks the queries and calls inside.
func (w *walker) anything(value any, names []string) error {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			if err := w.anything(inner, names); err != nil {
				return err
			}
		}
	case object:
		if _, isNode := value["cte_map"]; isNode {
			return w.node(value, names)
		}

		class, _ := value["class"].(string)

		switch class {
		case "CONSTANT":
			return nil
		case "FUNCTION", "WINDOW":
			if err := w.call(value); err != nil {
				return err
			}
		case "COLUMN_REF":
			w.column(value)
		case "PARAMETER":
			return w.parameter(value)
		}

		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := w.anything(value[key], names); err != nil {
				return err
			}
		}
	}

	return nil
}

// call checks the name of a function. Functions cannot reach any data, but some reveal details of the machine, and some only
// wait, which would occupy a slot at no cost to the caller.
func (w *walker) call(f object) error {
	w.met.calls++

	name, _ := f["function_name"].(string)
	schema, _ := f["schema"].(string)
	catalog, _ := f["catalog"].(string)
	name = strings.ToLower(name)

	if catalog != "" || (schema != "" && schema != "main") || isForbidden(name) {
		return invalid(position(f), fmt.Sprintf("The function %s is not supported.", name))
	}

	return nil
}

func isForbidden(name string) bool {
	for _, prefix := range []string{"duckdb_", "pg_", "pragma_", "read_", "sniff_", "parquet_", "json_execute", "json_serialize", "json_deserialize", "enable_", "disable_", "query_", "current_s", "in_search", "txid_", "add_", "sleep"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}

	return slices.Contains([]string{
		"query", "getenv", "getvariable", "nextval", "currval", "write_log", "glob", "has_schema_privilege", "has_database_privilege", "inet_client_addr",
		"current_database", "current_catalog", "current_query", "current_connection_id", "current_query_id", "current_transaction_id", "set_config", "checkpoint", "force_checkpoint", "sql_auto_complete", "from_substrait", "test_all_types", "repeat_row", "arrow_scan",
	}, name)
}

// count counts the queries, references to tables and calls in a tree. It visits every value without using the structure of
// the tree, so that it also finds the parts that the walk does not visit.
func count(value any) (found tally) {
	add := func(inner any) {
		more := count(inner)
		found = tally{found.nodes + more.nodes, found.refs + more.refs, found.calls + more.calls, found.parameters + more.parameters}
	}

	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			add(inner)
		}
	case object:
		class, isExpression := value["class"].(string)
		_, hasSample := value["sample"]
		_, hasNames := value["cte_map"]

		switch {
		case class == "CONSTANT":
			return tally{}
		case class == "FUNCTION" || class == "WINDOW":
			found.calls++
		case class == "PARAMETER":
			found.parameters++
		case hasNames:
			found.nodes++
		case !isExpression && hasSample:
			found.refs++
		}

		for _, inner := range value {
			add(inner)
		}
	}

	return found
}

// child returns a member of an object that is an object itself; nil if there is none.
func child(o object, key string) object {
	inner, _ := o[key].(object)

	return inner
}

// items returns the objects of a list.
func items(value any) (list []object) {
	found, _ := value.([]any)
	for _, item := range found {
		if o, ok := item.(object); ok {
			list = append(list, o)
		}
	}

	return list
}

// position returns the byte offset of a node in the text of the statement; -1 if unknown.
func position(o object) int {
	number, _ := o["query_location"].(json.Number)

	at, err := number.Int64()
	if err != nil || at < 0 || at > math.MaxInt32 {
		return -1
	}

	return int(at)
}

func unsupported(o object, what string) error {
	return invalid(position(o), what+" is not supported.")
}
