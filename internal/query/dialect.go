package query

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

// A statement that reads a dataset on Trino is written in DuckDB's dialect, and is checked by the same rules as every statement. Its tree is
// then translated. The translation is closed: it contains what has the same result on both engines, and refuses everything else. Names of
// datasets, columns and aliases are not part of the translated text.

// translated is a statement in Trino's dialect.
type translated struct {
	text    string
	values  []engine.Parameter // one for each ? in the text
	columns []string           // types of the result
	limited bool               // the statement has a LIMIT
}

// translation is the state while a statement is translated.
type translation struct {
	s       *statement
	reads   []resolved
	schema  string   // schema in Trino; the name of a table in it is t and the index of its dataset
	with    []string // WITH items
	aliases int
}

// translate returns the statement in Trino's dialect.
//
// Faults: QueryInvalid for what is not known to have the same result on both engines.
func translate(s *statement, reads []resolved, schema string) (t translated, err error) {
	tr := &translation{s: s, reads: reads, schema: schema}

	found, err := tr.node(s.root, nil, map[string]relation{})
	if err != nil {
		return t, err
	}

	if t.text = found.sql; len(tr.with) > 0 {
		t.text = "WITH " + strings.Join(tr.with, ", ") + " " + found.sql
	}

	if len(t.text) > maxTranslated {
		return t, unlike(s.root, "A statement of this length", "Split it.")
	}

	for _, c := range found.columns {
		t.columns = append(t.columns, c.kind)
	}

	t.limited = found.limited
	t.text, t.values = placed(t.text, s)

	return t, nil
}

// maxTranslated is below Trino's limit for the length of a statement, query.max-length.
const maxTranslated = 900_000

// unlike returns the fault for a part of a statement that the translation does not contain.
func unlike(o object, what, instead string) error {
	return invalid(position(o), strings.TrimSpace(what+" is not supported for a dataset that Trino reads. "+instead))
}

// A parameter is marked in the text, because its place in the text is known only at the end. No text of a statement contains the mark.
const mark = "\x00"

var marks = regexp.MustCompile(mark + "([0-9]+)" + mark)

// placed replaces the marks of parameters by ? and returns the values in the order of the text.
func placed(text string, s *statement) (string, []engine.Parameter) {
	var values []engine.Parameter

	text = marks.ReplaceAllStringFunc(text, func(found string) string {
		number, _ := strconv.Atoi(strings.Trim(found, mark))
		values = append(values, s.values[folded(s.parameters[number])])

		return "?"
	})

	return text, values
}

// relation is a translated query.
type relation struct {
	sql     string
	order   string // the ORDER BY at its end
	columns []field
	limited bool
}

// field is a column of a relation or an item in FROM.
type field struct {
	name   string // folded; empty if it has none
	sql    string
	kind   string
	merged bool // a column of USING that the left side has too
}

// source is an item in FROM.
type source struct {
	names  []string // folded: of its alias, or of the dataset with its namespace and owner
	fields []field
}

// scope is what a name can mean in an expression.
type scope struct {
	sources []*source
	outer   *scope
	ctes    map[string]relation
	items   []item // of the select list that were translated
}

// item is an expression of a select list.
type item struct {
	name string // folded
	typed
}

func (tr *translation) alias() string {
	tr.aliases++

	return "a" + strconv.Itoa(tr.aliases)
}

// node translates a query.
func (tr *translation) node(n object, outer *scope, ctes map[string]relation) (relation, error) {
	ctes, err := tr.ctes(n, ctes)
	if err != nil {
		return relation{}, err
	}

	switch n["type"] {
	case "SELECT_NODE":
		return tr.selection(n, outer, ctes)
	case "SET_OPERATION_NODE":
		return tr.union(n, outer, ctes)
	default:
		return relation{}, unlike(n, "A recursive query", "")
	}
}

// ctes translates the queries of a WITH clause and returns all that are visible.
func (tr *translation) ctes(n object, known map[string]relation) (map[string]relation, error) {
	list := items(child(n, "cte_map")["map"])
	if len(list) == 0 {
		return known, nil
	}

	visible := maps.Clone(known)

	for _, cte := range list {
		name, _ := cte["key"].(string)
		given := child(cte, "value")

		found, err := tr.node(child(child(given, "query"), "node"), nil, visible)
		if err != nil {
			return nil, err
		}

		if len(items(given["key_targets"])) > 0 {
			return nil, unlike(n, "A recursive query", "")
		}

		if found.columns, err = renamed(n, found.columns, given["aliases"]); err != nil {
			return nil, err
		}

		alias := "w" + strconv.Itoa(len(tr.with))
		tr.with = append(tr.with, alias+" AS ("+found.sql+")")
		visible[folded(name)] = relation{sql: alias, columns: found.columns}
	}

	return visible, nil
}

// renamed returns columns with the names of a list of aliases.
func renamed(n object, columns []field, aliases any) ([]field, error) {
	columns = slices.Clone(columns)

	for i, one := range list(aliases) {
		name, _ := one.(string)
		if i >= len(columns) {
			return nil, unlike(n, "A list of aliases that is longer than the list of columns", "")
		}

		columns[i].name = folded(name)
	}

	return columns, nil
}

// selection translates a SELECT.
func (tr *translation) selection(n object, outer *scope, ctes map[string]relation) (relation, error) {
	switch {
	case n["sample"] != nil:
		return relation{}, unlike(n, "USING SAMPLE", "Use LIMIT.")
	case len(list(n["group_sets"])) > 1:
		return relation{}, unlike(n, "GROUPING SETS, ROLLUP and CUBE", "Write one SELECT for each, and join them with UNION ALL.")
	}

	in := &scope{outer: outer, ctes: ctes}

	from, err := tr.from(child(n, "from_table"), in)
	if err != nil {
		return relation{}, err
	}

	if err := tr.selectList(n, in); err != nil {
		return relation{}, err
	}

	where, err := tr.clause(n, "where_clause", " WHERE ", in)
	if err != nil {
		return relation{}, err
	}

	group, err := tr.group(n, in)
	if err != nil {
		return relation{}, err
	}

	having, err := tr.clause(n, "having", " HAVING ", in)
	if err != nil {
		return relation{}, err
	}

	var (
		found   relation
		written []string
	)

	for i, one := range in.items {
		name := "c" + strconv.Itoa(i)
		written = append(written, one.sql+" AS "+name)
		found.columns = append(found.columns, field{name: one.name, sql: name, kind: one.kind})
	}

	inside := from + where + group + having

	if n["qualify"] != nil {
		return tr.qualified(n, in, found, written, inside)
	}

	end, err := tr.modifiers(n, in, &found)
	if err != nil {
		return relation{}, err
	}

	found.sql = "SELECT " + end.distinct + strings.Join(written, ", ") + inside + found.order + end.limit

	return found, nil
}

// qualified translates QUALIFY, which Trino does not have: the condition is a column of a subquery. So are the expressions of ORDER BY.
func (tr *translation) qualified(n object, in *scope, found relation, written []string, inside string) (relation, error) {
	condition, err := tr.boolean(child(n, "qualify"), in)
	if err != nil {
		return relation{}, err
	}

	end, err := tr.modifiers(n, in, &found)
	if err != nil {
		return relation{}, err
	}

	columns := make([]string, len(written))
	for i := range columns {
		columns[i] = "c" + strconv.Itoa(i)
	}

	for i, key := range end.keys {
		if _, err := strconv.Atoi(key.sql); err != nil {
			end.keys[i].sql = "k" + strconv.Itoa(i)
			written = append(written, key.sql+" AS "+end.keys[i].sql)
		}
	}

	found.order = orderOf(end.keys)

	found.sql = "SELECT " + end.distinct + strings.Join(columns, ", ") + " FROM (SELECT " + strings.Join(append(written, condition+" AS q"), ", ") + inside + ") AS " +
		tr.alias() + " WHERE q" + found.order + end.limit

	return found, nil
}

// clause translates a condition.
func (tr *translation) clause(n object, key, keyword string, in *scope) (string, error) {
	if n[key] == nil {
		return "", nil
	}

	condition, err := tr.boolean(child(n, key), in)
	if err != nil {
		return "", err
	}

	return keyword + condition, nil
}

func (tr *translation) boolean(o object, in *scope) (string, error) {
	found, err := tr.condition(o, in)

	return found.sql, err
}

// condition translates an expression that must be boolean.
func (tr *translation) condition(o object, in *scope) (typed, error) {
	found, err := tr.expression(o, in)
	if err != nil {
		return typed{}, err
	}

	if found.kind != engine.Boolean && found.kind != nullKind {
		return typed{}, unlike(o, "A condition of type "+found.kind, "Compare the value: x <> 0.")
	}

	return found, nil
}

// selectList translates the select list to the items of a scope.
func (tr *translation) selectList(n object, in *scope) error {
	for _, one := range items(n["select_list"]) {
		if one["class"] == "STAR" {
			if err := tr.star(one, in); err != nil {
				return err
			}

			continue
		}

		found, err := tr.expression(one, in)
		if err != nil {
			return err
		}

		if found.kind == intervalKind {
			return unlike(one, "An interval as a result", "Use date_diff('day', from, to).")
		}

		in.items = append(in.items, item{name: nameOf(one), typed: found})
	}

	return nil
}

// nameOf returns the folded name of a column of a result: its alias, or that of the column that it is; empty for other expressions.
func nameOf(o object) string {
	alias, _ := o["alias"].(string)
	if parts := list(o["column_names"]); alias == "" && len(parts) > 0 {
		alias, _ = parts[len(parts)-1].(string)
	}

	return folded(alias)
}

// star adds the columns of *.
func (tr *translation) star(o object, in *scope) error {
	if o["columns"] == true || o["expr"] != nil || len(items(o["replace_list"])) > 0 || len(list(o["rename_list"])) > 0 || len(list(o["qualified_exclude_list"])) > 0 {
		return unlike(o, "This form of *", "Name the columns, or leave some out with * EXCLUDE (column).")
	}

	of, _ := o["relation_name"].(string)
	excluded := map[string]bool{}

	for _, one := range list(o["exclude_list"]) {
		name, _ := one.(string)
		excluded[folded(name)] = true
	}

	for _, from := range in.sources {
		if of != "" && (len(from.names) == 0 || from.names[len(from.names)-1] != folded(of)) {
			continue
		}

		for _, f := range from.fields {
			if !excluded[f.name] && (of != "" || !f.merged) {
				in.items = append(in.items, item{name: f.name, typed: typed{sql: f.sql, kind: f.kind}})
			}
		}
	}

	return nil
}

// group translates GROUP BY. Expressions of the select list are named by their number, because Trino does not recognise two equal
// expressions that contain parameters.
func (tr *translation) group(n object, in *scope) (string, error) {
	var keys []string

	if n["aggregate_handling"] == "FORCE_AGGREGATES" {
		for i, one := range in.items {
			if !one.aggregate {
				keys = append(keys, strconv.Itoa(i+1))
			}
		}
	}

	for _, one := range items(n["group_expressions"]) {
		if number, ok := ordinal(one); ok {
			keys = append(keys, strconv.Itoa(number))

			continue
		}

		found, err := tr.expression(one, in)
		if err != nil {
			return "", err
		}

		key := in.numbered(found.sql)
		if found.constant && key == found.sql {
			return "", unlike(one, "GROUP BY with a constant", "Leave it out.")
		}

		keys = append(keys, key)
	}

	if len(keys) == 0 {
		return "", nil
	}

	return " GROUP BY " + strings.Join(keys, ", "), nil
}

// numbered returns the number of an item of the select list that equals an expression, or the expression.
func (in *scope) numbered(sql string) string {
	for i, one := range in.items {
		if one.sql == sql {
			return strconv.Itoa(i + 1)
		}
	}

	return sql
}

// ordinal returns the number of a column in GROUP BY or ORDER BY.
func ordinal(o object) (int, bool) {
	if o["class"] != "CONSTANT" || child(child(o, "value"), "type")["id"] != "INTEGER" {
		return 0, false
	}

	number, err := strconv.Atoi(fmt.Sprint(child(o, "value")["value"]))

	return number, err == nil
}
