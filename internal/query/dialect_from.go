package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// from translates the FROM clause and adds its items to the scope.
func (tr *translation) from(r object, in *scope) (string, error) {
	if kind := r["type"]; kind == "EMPTY" || kind == "EMPTY_FROM" {
		return "", nil
	}

	found, err := tr.reference(r, in)

	return " FROM " + found, err
}

// reference translates an item in FROM.
func (tr *translation) reference(r object, in *scope) (string, error) {
	if r["sample"] != nil {
		return "", unlike(r, "TABLESAMPLE", "Use LIMIT.")
	}

	switch r["type"] {
	case "BASE_TABLE":
		return tr.base(r, in)
	case "SUBQUERY":
		query := child(child(r, "subquery"), "node")

		// A subquery sees what is outside of the whole query, but not the other items in FROM.
		found, err := tr.node(query, in.outer, in.ctes)
		if err != nil {
			return "", err
		}

		return tr.add(r, "("+found.sql+")", found.columns, nil, in)
	case "JOIN":
		return tr.join(r, in)
	case "EXPRESSION_LIST":
		return "", unlike(r, "VALUES", "Use IN (…), or CASE.")
	case "TABLE_FUNCTION":
		return "", unlike(r, "A table function", "")
	case "PIVOT":
		return "", unlike(r, "PIVOT", "Write one aggregate for each column: sum(x) FILTER (WHERE y = 1).")
	default:
		return "", unlike(r, "This item in FROM", "")
	}
}

// add adds an item to the scope and returns its text. names are those by which columns can name it without an alias.
func (tr *translation) add(r object, sql string, columns []field, names []string, in *scope) (string, error) {
	columns, err := renamed(r, columns, r["column_name_alias"])
	if err != nil {
		return "", err
	}

	if alias, _ := r["alias"].(string); alias != "" {
		names = []string{folded(alias)}
	}

	var (
		alias  = tr.alias()
		shown  []string
		fields []field
	)

	for i, c := range columns {
		name := "c" + strconv.Itoa(i)
		shown = append(shown, name)
		fields = append(fields, field{name: c.name, sql: alias + "." + name, kind: c.kind})
	}

	in.sources = append(in.sources, &source{names: names, fields: fields})

	return sql + " AS " + alias + " (" + strings.Join(shown, ", ") + ")", nil
}

// base translates the name of a dataset or of a query of WITH.
func (tr *translation) base(r object, in *scope) (string, error) {
	name, _ := r["table_name"].(string)
	namespace, _ := r["schema_name"].(string)

	at := slices.IndexFunc(tr.s.tables, func(t table) bool { return t.at == position(r) && t.name == name })

	if found, isNamed := in.ctes[folded(name)]; at < 0 && namespace == "" && isNamed {
		return tr.add(r, found.sql, found.columns, []string{folded(name)}, in)
	}

	if at < 0 {
		return "", unlike(r, "This item in FROM", "")
	}

	t := tr.s.tables[at]
	if t.isInfo() {
		return "", unlike(r, "information_schema together with datasets", "Read it in a statement of its own.")
	}

	var (
		one      = tr.reads[t.read]
		selected []string
		columns  []field
	)

	for _, c := range one.snapshot.Columns {
		selected = append(selected, identifier(c.Name))
		columns = append(columns, field{name: folded(c.Name), kind: string(c.Type)})
	}

	names := []string{folded(name)}
	if namespace != "" {
		names = []string{folded(namespace), folded(name)}
	}

	if t.owner != "" {
		names = append([]string{folded(t.owner)}, names...)
	}

	return tr.add(r, fmt.Sprintf("(SELECT %s FROM %s.t%d)", strings.Join(selected, ", "), tr.schema, t.read), columns, names, in)
}

func (tr *translation) join(r object, in *scope) (string, error) {
	kinds := map[any]string{"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "OUTER": "FULL JOIN", "FULL": "FULL JOIN"}
	keyword, isKnown := kinds[r["join_type"]]

	if ref := r["ref_type"]; !isKnown || (ref != "REGULAR" && ref != "CROSS") {
		return "", unlike(r, "This kind of join", "Use JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN or CROSS JOIN, with ON or USING. For SEMI and ANTI, write WHERE EXISTS (…).")
	}

	left, err := tr.reference(child(r, "left"), in)
	if err != nil {
		return "", err
	}

	fromLeft := len(in.sources)

	right, err := tr.reference(child(r, "right"), in)
	if err != nil {
		return "", err
	}

	if r["ref_type"] == "CROSS" {
		return "(" + left + " CROSS JOIN " + right + ")", nil
	}

	var condition string

	if using := list(r["using_columns"]); len(using) > 0 {
		if condition, err = tr.using(r, using, in, fromLeft); err != nil {
			return "", err
		}
	} else if condition, err = tr.boolean(child(r, "condition"), in); err != nil {
		return "", err
	}

	return "(" + left + " " + keyword + " " + right + " ON " + condition + ")", nil
}

// using returns the condition of USING. The column of the right side is then hidden: in an inner or a left join it has the same value.
func (tr *translation) using(r object, names []any, in *scope, fromLeft int) (string, error) {
	if kind := r["join_type"]; kind != "INNER" && kind != "LEFT" {
		return "", unlike(r, "USING in this kind of join", "Write ON a.x = b.x.")
	}

	var conditions []string

	for _, one := range names {
		text, _ := one.(string)

		left, err := only(r, &scope{sources: in.sources[:fromLeft]}, text)
		if err != nil {
			return "", err
		}

		right, err := only(r, &scope{sources: in.sources[fromLeft:]}, text)
		if err != nil {
			return "", err
		}

		condition, err := tr.comparison(r, "=", typed{sql: left.sql, kind: left.kind}, typed{sql: right.sql, kind: right.kind})
		if err != nil {
			return "", err
		}

		right.merged = true
		conditions = append(conditions, condition)
	}

	return strings.Join(conditions, " AND "), nil
}

// only returns the only column with a name.
func only(o object, in *scope, name string) (*field, error) {
	found, err := in.find(o, []string{folded(name)})
	if err == nil && found == nil {
		err = unlike(o, fmt.Sprintf("The name %q", name), "")
	}

	return found, err
}

// find returns the column of a name, or nil. The parts of the name are folded.
func (in *scope) find(o object, parts []string) (found *field, err error) {
	of, name := parts[:len(parts)-1], parts[len(parts)-1]

	for _, from := range in.sources {
		if len(of) > len(from.names) || !slices.Equal(from.names[len(from.names)-len(of):], of) {
			continue
		}

		for i := range from.fields {
			f := &from.fields[i]
			if f.name != name || (f.merged && len(of) == 0) {
				continue
			}

			if found != nil {
				return nil, unlike(o, fmt.Sprintf("The name %q, which several columns have,", name), "Give the columns different names.")
			}

			found = f
		}
	}

	return found, nil
}

// union translates a set operation. Both sides get the same types.
func (tr *translation) union(n object, outer *scope, ctes map[string]relation) (relation, error) {
	kind, _ := n["setop_type"].(string)
	keyword := kind

	switch {
	case kind == "UNION" && n["setop_all"] == true:
		keyword = "UNION ALL"
	case kind == "UNION_BY_NAME":
		return relation{}, unlike(n, "UNION BY NAME", "Write the columns in the same order.")
	case kind != "UNION" && n["setop_all"] == true:
		return relation{}, unlike(n, kind+" ALL", "Write "+kind+".")
	}

	var sides []relation

	for _, side := range []string{"left", "right"} {
		found, err := tr.node(child(n, side), outer, ctes)
		if err != nil {
			return relation{}, err
		}

		sides = append(sides, found)
	}

	if n["left"] == nil || n["right"] == nil || len(sides[0].columns) != len(sides[1].columns) {
		return relation{}, unlike(n, "This set operation", "")
	}

	found := relation{}

	for i, left := range sides[0].columns {
		kind, ok := unified(left.kind, sides[1].columns[i].kind)
		if !ok {
			return relation{}, unlike(n, fmt.Sprintf("A set operation of columns of types %s and %s", left.kind, sides[1].columns[i].kind), "Cast them to the same type.")
		}

		found.columns = append(found.columns, field{name: left.name, sql: left.sql, kind: kind})
	}

	var written []string

	for _, side := range sides {
		alias := tr.alias()

		var columns []string
		for i, c := range side.columns {
			columns = append(columns, cast(typed{sql: alias + "." + c.sql, kind: c.kind}, found.columns[i].kind)+" AS c"+strconv.Itoa(i))
		}

		written = append(written, "SELECT "+strings.Join(columns, ", ")+" FROM ("+side.sql+") AS "+alias)
	}

	for i := range found.columns {
		found.columns[i].sql = "c" + strconv.Itoa(i)
	}

	in := &scope{ctes: ctes}
	for _, c := range found.columns {
		in.items = append(in.items, item{name: c.name, typed: typed{sql: c.sql, kind: c.kind}})
	}

	end, err := tr.modifiers(n, in, &found)
	if err != nil {
		return relation{}, err
	}

	found.sql = strings.Join(written, " "+keyword+" ") + found.order + end.limit
	if end.distinct != "" {
		return relation{}, unlike(n, "DISTINCT around a set operation", "")
	}

	return found, nil
}

// ending is the part of a query that its modifiers give.
type ending struct {
	distinct, limit string
	keys            []orderKey
}

// orderKey is an expression of ORDER BY, or the number of a column.
type orderKey struct{ sql, direction string }

// modifiers translates DISTINCT, ORDER BY and LIMIT. It sets the order of the relation, and whether it has a limit.
func (tr *translation) modifiers(n object, in *scope, found *relation) (end ending, err error) {
	for _, one := range items(n["modifiers"]) {
		switch one["type"] {
		case "DISTINCT_MODIFIER":
			if len(list(one["distinct_on_targets"])) > 0 {
				return end, unlike(n, "DISTINCT ON", "Use GROUP BY with arg_max, or row_number() in a subquery.")
			}

			end.distinct = "DISTINCT "
		case "ORDER_MODIFIER":
			isStrict := n["type"] != "SELECT_NODE" || slices.ContainsFunc(items(n["modifiers"]), func(o object) bool { return o["type"] == "DISTINCT_MODIFIER" })
			if end.keys, err = tr.orderKeys(one, in, isStrict); err != nil {
				return end, err
			}

			found.order = orderOf(end.keys)
		case "LIMIT_MODIFIER":
			if end.limit, found.limited, err = tr.limit(one); err != nil {
				return end, err
			}
		default:
			return end, unlike(n, "LIMIT with a percentage", "Write a number of rows.")
		}
	}

	return end, nil
}

// limit translates LIMIT and OFFSET.
func (tr *translation) limit(o object) (sql string, limited bool, err error) {
	for _, part := range []struct{ key, format string }{{"offset", " OFFSET %d"}, {"limit", " LIMIT %d"}} {
		given := child(o, part.key)
		if given == nil {
			continue
		}

		number, ok := wholeNumber(tr.s.valued(given))
		if !ok || number < 0 {
			return "", false, unlike(given, "A LIMIT or OFFSET that is not a number", "Write the number.")
		}

		sql, limited = sql+fmt.Sprintf(part.format, number), part.key == "limit"
	}

	return sql, limited, nil
}

// orderOf returns an ORDER BY.
func orderOf(keys []orderKey) string {
	var written []string
	for _, key := range keys {
		written = append(written, key.sql+key.direction)
	}

	if len(written) == 0 {
		return ""
	}

	return " ORDER BY " + strings.Join(written, ", ")
}

// orderKeys translates ORDER BY. An order that must be one of the columns of the result is strict.
func (tr *translation) orderKeys(o object, in *scope, isStrict bool) (keys []orderKey, err error) {
	for _, one := range items(o["orders"]) {
		direction, expression := directed(one), child(one, "expression")

		if expression["class"] == "STAR" {
			for i := range in.items {
				keys = append(keys, orderKey{strconv.Itoa(i + 1), direction})
			}

			continue
		}

		key, err := tr.orderKey(expression, in)
		if err != nil {
			return nil, err
		}

		if _, err := strconv.Atoi(key); isStrict && err != nil {
			return nil, unlike(expression, "ORDER BY with an expression that is not a column of the result", "Add it to the SELECT, or name its column.")
		}

		keys = append(keys, orderKey{key, direction})
	}

	return keys, nil
}

// orderBy translates ORDER BY inside of an aggregate or a window.
func (tr *translation) orderBy(o object, in *scope) (string, error) {
	keys, err := tr.orderKeys(o, &scope{sources: in.sources, outer: in.outer, ctes: in.ctes}, false)

	return orderOf(keys), err
}

// orderKey returns the number of an item of the select list, or an expression. The name of an item comes before that of a column.
func (tr *translation) orderKey(o object, in *scope) (string, error) {
	if number, ok := ordinal(o); ok {
		return strconv.Itoa(number), nil
	}

	if parts := list(o["column_names"]); len(parts) == 1 {
		for i, one := range in.items {
			if name, _ := parts[0].(string); one.name == folded(name) {
				return strconv.Itoa(i + 1), nil
			}
		}
	}

	found, err := tr.expression(o, in)
	if err != nil {
		return "", err
	}

	if found.constant || !compares(found.kind) {
		return "", unlike(o, "This ORDER BY", "Name a column.")
	}

	return in.numbered(found.sql), nil
}

// directed returns the direction of an order. Both engines put NULL last unless the statement says otherwise.
func directed(o object) string {
	direction := " ASC"
	if o["type"] == "DESCENDING" {
		direction = " DESC"
	}

	if nulls, _ := o["null_order"].(string); strings.Contains(nulls, "FIRST") {
		return direction + " NULLS FIRST"
	}

	return direction + " NULLS LAST"
}
