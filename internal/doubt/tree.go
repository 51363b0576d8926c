package doubt

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// object is a node of DuckDB's syntax tree of a statement.
type object = map[string]any

// ref names a column as a statement does.
type ref struct{ alias, column string }

// source is an item of a FROM clause.
type source struct {
	alias string
	table string  // empty for a subquery
	inner *choice // nil for a dataset
}

// aggregate is a call of an aggregate function.
type aggregate struct {
	function string // in lower case; count of rows is count_star
	refs     []ref
	direct   bool // the argument is nothing but a column
	distinct bool
}

// constant is a value that a statement contains.
type constant struct {
	text     string
	number   float64
	isNumber bool
	day      time.Time // zero if it is not a day
}

// filter is a condition.
type filter struct {
	refs    []ref
	is      string // =, <>, <, <=, >, >=, like, empty, filled
	values  []constant
	part    string // function that takes a part of the date: year, month, quarter
	opaque  bool   // a value could not be calculated
	negated bool
}

// order is an order of rows.
type order struct {
	refs    []ref
	isDown  bool
	isCount bool // by an aggregate
}

// choice is one SELECT.
type choice struct {
	sources    []source
	pairs      [][2]ref // columns that are compared for equality, from ON and WHERE
	using      []string
	filters    []filter
	groups     []ref
	grouped    bool // it has GROUP BY
	aggregates []aggregate
	outputs    []ref
	orders     []order
	limit      float64 // -1 if there is none
	distinct   bool
	calls      []string // other functions, in lower case
	windows    bool
	figures    bool              // the result shows an aggregate
	shown      map[string]object // expressions of the result by alias
}

// outline lists the parts of a statement that are compared with the question, for each SELECT.
type outline struct {
	choices []*choice
	outer   *choice
	named   map[string]*choice // common table expressions by folded name
	others  []string           // kinds of queries that are not a SELECT
}

// readTree reads the tree of a statement. It returns nil if the tree is not that of one query.
func readTree(tree json.RawMessage) *outline {
	var whole struct {
		Statements []struct {
			Node object `json:"node"`
		} `json:"statements"`
	}

	decoder := json.NewDecoder(bytes.NewReader(tree))
	decoder.UseNumber()

	if decoder.Decode(&whole) != nil || len(whole.Statements) != 1 {
		return nil
	}

	o := &outline{named: map[string]*choice{}}
	o.outer = o.query(whole.Statements[0].Node)

	if o.outer == nil {
		return nil
	}

	return o
}

// query reads a query and returns its SELECT, or the first of several.
func (o *outline) query(n object) *choice {
	for _, cte := range items(child(n, "cte_map")["map"]) {
		o.named[strings.ToLower(text(cte["key"]))] = o.query(child(child(child(cte, "value"), "query"), "node"))
	}

	switch kind := text(n["type"]); kind {
	case "":
		return nil
	case "SELECT_NODE":
		return o.choose(n)
	default:
		o.others = append(o.others, kind+" "+text(n["setop_type"]))
		first := o.query(child(n, "left"))
		o.query(child(n, "right"))
		o.query(child(n, "child"))

		return first
	}
}

func (o *outline) choose(n object) *choice {
	c := &choice{limit: -1, shown: map[string]object{}}
	o.choices = append(o.choices, c)

	r := reader{o, c}
	r.from(child(n, "from_table"))

	for _, one := range items(n["select_list"]) {
		if alias := text(one["alias"]); alias != "" {
			c.shown[strings.ToLower(alias)] = one
		}
	}

	for _, key := range []string{"where_clause", "having", "qualify"} {
		r.condition(child(n, key), false)
	}

	r.group(n)

	for _, one := range items(n["select_list"]) {
		c.figures = c.figures || hasAggregate(one)
		c.outputs = append(c.outputs, r.value(one)...)
	}

	for _, one := range items(n["modifiers"]) {
		r.modify(one)
	}

	return c
}

// reader reads the parts of one SELECT.
type reader struct {
	*outline

	in *choice
}

func (r reader) from(f object) {
	switch text(f["type"]) {
	case "BASE_TABLE":
		name := text(f["table_name"])
		one := source{alias: firstOf(text(f["alias"]), name), table: name}

		if inner := r.named[strings.ToLower(name)]; inner != nil && text(f["schema_name"]) == "" {
			one.table, one.inner = "", inner
		}

		r.in.sources = append(r.in.sources, one)
	case "SUBQUERY":
		r.in.sources = append(r.in.sources, source{alias: text(f["alias"]), inner: r.query(child(child(f, "subquery"), "node"))})
	case "JOIN":
		r.from(child(f, "left"))
		r.from(child(f, "right"))
		r.condition(child(f, "condition"), false)

		columns, _ := f["using_columns"].([]any)
		for _, column := range columns {
			r.in.using = append(r.in.using, text(column))
		}
	}
}

// group reads GROUP BY. Numbers and aliases stand for what the result shows; GROUP BY ALL for everything that is not
// aggregated.
func (r reader) group(n object) {
	shown := items(n["select_list"])
	list := items(n["group_expressions"])
	r.in.grouped = len(list) > 0

	if text(n["aggregate_handling"]) == "FORCE_AGGREGATES" {
		r.in.grouped = true

		for _, one := range shown {
			if !hasAggregate(one) {
				list = append(list, one)
			}
		}
	}

	for _, one := range list {
		if number, ok := constantOf(one); ok && number.isNumber && int(number.number) >= 1 && int(number.number) <= len(shown) {
			one = shown[int(number.number)-1]
		}

		r.in.groups = append(r.in.groups, r.value(r.resolved(one))...)
	}
}

// resolved returns what an alias of the result stands for.
func (r reader) resolved(one object) object {
	if text(one["class"]) == "COLUMN_REF" {
		if found := r.in.shown[strings.ToLower(refOf(one).column)]; found != nil && text(found["class"]) != "COLUMN_REF" {
			return found
		}
	}

	return one
}

func (r reader) modify(m object) {
	switch text(m["type"]) {
	case "DISTINCT_MODIFIER":
		r.in.distinct = true
	case "LIMIT_MODIFIER":
		if limit, ok := constantOf(child(m, "limit")); ok && limit.isNumber {
			r.in.limit = limit.number
		}
	case "ORDER_MODIFIER":
		for _, one := range items(m["orders"]) {
			by := child(one, "expression")
			if by == nil {
				continue
			}

			by = r.resolved(by)
			r.in.orders = append(r.in.orders, order{refs: r.value(by), isDown: text(one["type"]) == "DESCENDING", isCount: hasAggregate(by)})
		}
	}
}

// isAggregate reports whether a function aggregates rows.
func isAggregate(name string) bool {
	return slices.Contains([]string{"count", "count_star", "sum", "avg", "mean", "median", "min", "max", "mode", "quantile_cont", "quantile_disc", "quantile", "arg_max", "arg_min", "max_by", "min_by", "count_if", "string_agg", "list", "any_value", "first", "last", "stddev", "fsum", "sum_no_overflow", "approx_count_distinct"}, name)
}

// hasAggregate reports whether an expression contains an aggregate function that is not part of a subquery.
func hasAggregate(value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, hasAggregate)
	case object:
		if text(value["class"]) == "SUBQUERY" {
			return false
		}

		if class := text(value["class"]); class == "FUNCTION" && isAggregate(strings.ToLower(text(value["function_name"]))) {
			return true
		}

		for _, inner := range value {
			if hasAggregate(inner) {
				return true
			}
		}
	}

	return false
}

// value reads an expression and returns its columns, except those inside an aggregate.
func (r reader) value(e any) (refs []ref) {
	switch e := e.(type) {
	case []any:
		for _, inner := range e {
			refs = append(refs, r.value(inner)...)
		}
	case object:
		switch text(e["class"]) {
		case "COLUMN_REF":
			return []ref{refOf(e)}
		case "SUBQUERY":
			r.subquery(e)

			return r.value(e["child"])
		case "FUNCTION":
			return r.call(e)
		case "WINDOW":
			r.in.windows = true
			r.in.groups = append(r.in.groups, r.value(e["partitions"])...)
			r.call(e)

			return nil
		case "CASE":
			for _, check := range items(e["case_checks"]) {
				r.condition(child(check, "when_expr"), false)
				refs = append(refs, r.value(check["then_expr"])...)
			}

			return append(refs, r.value(e["else_expr"])...)
		case "COMPARISON", "BETWEEN", "CONJUNCTION":
			r.condition(e, false)

			return nil
		}

		for _, key := range sortedKeys(e) {
			refs = append(refs, r.value(e[key])...)
		}
	}

	return refs
}

// subquery reads a query inside of an expression.
func (r reader) subquery(e object) { r.query(child(child(e, "subquery"), "node")) }

// call reads a function call. It returns the columns in its arguments, except those of an aggregate.
func (r reader) call(e object) []ref {
	name := strings.ToLower(text(e["function_name"]))
	children := items(e["children"])

	var refs []ref
	for _, one := range children {
		refs = append(refs, r.value(one)...)
	}

	r.condition(child(e, "filter"), false)

	if !isAggregate(name) {
		r.in.calls = append(r.in.calls, name)

		return refs
	}

	direct := len(children) == 1 && text(children[0]["class"]) == "COLUMN_REF"
	isDistinct, _ := e["distinct"].(bool)
	r.in.aggregates = append(r.in.aggregates, aggregate{function: name, refs: refs, direct: direct, distinct: isDistinct})

	return nil
}

func refOf(e object) ref {
	names, _ := e["column_names"].([]any)

	switch n := len(names); n {
	case 0:
		return ref{}
	case 1:
		return ref{column: text(names[0])}
	default:
		return ref{alias: text(names[n-2]), column: text(names[n-1])}
	}
}
