package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
)

// local is a statement as it runs in the sealed process, whose database has a schema for each namespace. The schema has
// the name of the namespace, so that most statements run as they are written. If the process needs that name for
// something else, or two namespaces have the same name, the schema has an invented name, and the statement is changed
// to use it. A change replaces only what precedes the name of a dataset.
type local struct {
	text    string
	home    string               // the schema of names without a namespace; empty if the statement needs no schemas
	schemas map[uuid.UUID]string // by namespace
	written map[string]string    // what the statement writes for a schema
	splices []splice             // in the order of the text
}

// splice is a part of the text that was replaced.
type splice struct {
	from, to int // in the original text
	by       string
}

// invented is the prefix of invented names. The name of a namespace cannot begin with it.
const invented = "__"

// reserved are the names that mean something else in the database of the sealed process.
var reserved = []string{"main", "temp", "system", "memory", "pg_catalog", "information_schema"} //nolint:gochecknoglobals // read only

// localize returns the statement as it runs in the sealed process. It changes the tree of s in the same way.
func localize(s *statement, text string, reads []resolved) (*local, error) {
	l := &local{text: text, schemas: map[uuid.UUID]string{}, written: map[string]string{}}

	if !s.isQualified(reads) {
		return l, nil
	}

	for _, t := range s.tables {
		switch {
		case t.isInfo():
			l.written[infoSchema] = informationSchema
		case t.namespace != "" || t.isBare():
			l.add(t, reads[t.read])
		}
	}

	changes := map[int][]string{} // by position of a table or column: its parts
	if err := l.addTables(s, reads, changes); err != nil {
		return nil, err
	}

	l.addColumns(s, reads, changes)

	if len(changes) == 0 {
		return l, nil
	}

	tree, err := s.copy()
	if err != nil {
		return nil, err
	}

	rename(tree, changes)
	s.tree, s.root = tree, child(items(tree["statements"])[0], "node")
	l.splice()

	return l, nil
}

// isQualified reports whether a name in the statement has a namespace.
func (s *statement) isQualified(reads []resolved) bool {
	return slices.ContainsFunc(s.tables, func(t table) bool { return t.namespace != "" }) ||
		slices.ContainsFunc(s.columns, func(c column) bool { _, parts := s.qualifier(c, reads); return parts > 0 })
}

// add gives the namespace of a dataset a schema.
func (l *local) add(t table, one resolved) {
	schema, met := l.schemas[one.NamespaceID]
	if !met {
		schema = one.Namespace

		for _, other := range l.schemas {
			if strings.EqualFold(schema, other) {
				schema = ""
			}
		}

		if schema == "" || slices.Contains(reserved, folded(schema)) {
			schema = fmt.Sprintf("%sn%d", invented, len(l.schemas))
		}

		l.schemas[one.NamespaceID], l.written[schema] = schema, dotted(t.owner, one.Namespace)
	}

	if t.isBare() {
		l.home = schema
	}
}

// schema returns the schema of a table.
func (l *local) schema(t table, reads []resolved) string {
	if t.isInfo() {
		return infoSchema
	}

	return l.schemas[reads[t.read].NamespaceID]
}

// addTables notes the changes of the names of datasets.
func (l *local) addTables(s *statement, reads []resolved, changes map[int][]string) error {
	for _, t := range s.tables {
		if t.namespace == "" {
			continue
		}

		schema, parts := l.schema(t, reads), []string{t.namespace, t.name}
		if t.owner != "" {
			parts = append([]string{t.owner}, parts...)
		}

		if !l.change(t.at, parts, len(parts)-1, schema, changes) {
			return invalid(t.at, fmt.Sprintf("The name %s cannot be read. Write it without spaces and comments between its parts.", t))
		}
	}

	return nil
}

// addColumns notes the changes of columns that are named with their dataset and its namespace.
func (l *local) addColumns(s *statement, reads []resolved, changes map[int][]string) {
	for _, c := range s.columns {
		if t, parts := s.qualifier(c, reads); parts > 0 {
			l.change(c.at, c.parts, parts, l.schema(t, reads), changes)
		}
	}
}

// qualifier returns the dataset that a column reference begins with, and how many parts precede the dataset: the
// namespace, or the owner and the namespace. It returns 0 if the reference does not begin like this.
func (s *statement) qualifier(c column, reads []resolved) (of table, parts int) {
	for _, t := range s.tables {
		one := resolved{Dataset: catalog.Dataset{Namespace: informationSchema}}
		if !t.isInfo() {
			one = reads[t.read]
		}

		switch n := len(c.parts); {
		case t.isAliased || (t.namespace == "" && !t.isBare()):
		case n > 2 && !t.isInfo() && strings.EqualFold(c.parts[0], one.owner) && strings.EqualFold(c.parts[1], one.Namespace) && strings.EqualFold(c.parts[2], t.name):
			return t, 2
		case n > 1 && strings.EqualFold(c.parts[0], one.Namespace) && strings.EqualFold(c.parts[1], t.name) && (n > 2 || !s.isTable(c.parts[0])):
			return t, 1
		}
	}

	return table{}, 0
}

// isTable reports whether a name or an alias in a FROM clause has the name.
func (s *statement) isTable(name string) bool {
	return contains(s.tree, func(o object) bool {
		_, isReference := o["sample"]
		alias, _ := o["alias"].(string)
		table, _ := o["table_name"].(string)

		return isReference && (strings.EqualFold(alias, name) || (alias == "" && strings.EqualFold(table, name)))
	})
}

// change notes that the first parts of a name become the schema, unless they are the schema already. It returns false if
// the text does not have these parts at the position.
func (l *local) change(at int, parts []string, first int, schema string, changes map[int][]string) bool {
	if first == 1 && strings.EqualFold(parts[0], schema) {
		return true
	}

	tokens := chain(l.text, at, parts)
	if tokens == nil {
		return false
	}

	l.splices = append(l.splices, splice{from: tokens[0].from, to: tokens[first-1].to, by: identifier(schema)})
	changes[at] = append([]string{schema}, parts[first:]...)

	return true
}

// splice replaces the noted parts of the text.
func (l *local) splice() {
	slices.SortFunc(l.splices, func(a, b splice) int { return a.from - b.from })

	var (
		changed strings.Builder
		done    int
	)

	for _, s := range l.splices {
		changed.WriteString(l.text[done:s.from])
		changed.WriteString(s.by)
		done = s.to
	}

	changed.WriteString(l.text[done:])
	l.text = changed.String()
}

// original returns the position in the original text of a position in the changed text.
func (l *local) original(at int) int {
	for _, s := range slices.Backward(l.splices) {
		from := s.from
		for _, before := range l.splices {
			if before.from < s.from {
				from += len(before.by) - (before.to - before.from)
			}
		}

		switch {
		case at >= from+len(s.by):
			return at - from - len(s.by) + s.to
		case at >= from:
			return s.from
		}
	}

	return at
}

// rename changes the names of tables and columns at the given positions of a tree.
func rename(value any, changes map[int][]string) {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			rename(inner, changes)
		}
	case object:
		parts, isChanged := changes[position(value)]
		_, isReference := value["sample"]

		switch {
		case isChanged && isReference && value["type"] == "BASE_TABLE":
			value["catalog_name"], value["schema_name"] = "", parts[0]
		case isChanged && value["class"] == "COLUMN_REF":
			names := make([]any, len(parts))
			for i, part := range parts {
				names[i] = part
			}

			value["column_names"] = names
		case value["class"] == "CONSTANT":
			return
		}

		for _, inner := range value {
			rename(inner, changes)
		}
	}
}

// verify checks that the changed text has the changed tree: the statement that runs must be the one that was checked.
func (r *running) verify(l *local, s *statement) error {
	if len(l.splices) == 0 {
		return nil
	}

	tree, err := r.session.Parse(l.text)
	if err != nil {
		return refused(err, nil)
	}

	parsed, err := decoded(tree)
	if err != nil {
		return err
	}

	expected, err := s.copy()
	if err != nil {
		return err
	}

	if !reflect.DeepEqual(withoutPositions(parsed), withoutPositions(expected)) {
		return invalid(-1, `The names of the datasets cannot be read. Write them as paths in double quotes: "namespace/dataset" or "owner/namespace/dataset".`)
	}

	return nil
}

func withoutPositions(value any) any {
	switch value := value.(type) {
	case object:
		delete(value, "query_location")

		for _, inner := range value {
			withoutPositions(inner)
		}
	case []any:
		for _, inner := range value {
			withoutPositions(inner)
		}
	}

	return value
}

// view returns the dataset as a view for the engine, in the schema of its namespace.
func (l *local) view(one resolved, view engine.View) engine.View {
	if !strings.Contains(one.name, "/") {
		view.Schema = l.schemas[one.NamespaceID]
	}

	return view
}

// database is the name of the database in the sealed process, which messages of DuckDB contain.
const database = "memory."

// spelled changes the names and the position in an error of DuckDB to those of the caller's statement.
func (l *local) spelled(err error) error {
	said, ok := errors.AsType[*engine.StatementError](err)
	if !ok {
		return err
	}

	var names []string

	for schema, written := range l.written {
		names = append(names, database+dotted(schema)+".", written+".")

		if strings.HasPrefix(schema, invented) {
			names = append(names, schema+".", written+".")
		}
	}

	spell := strings.NewReplacer(names...).Replace
	said.Message, said.Name = spell(said.Message), spell(said.Name)
	for i := range said.Candidates {
		said.Candidates[i] = spell(said.Candidates[i])
	}

	said.Position = l.original(said.Position)

	return err
}

// decoded returns the tree of a statement. Numbers keep their text.
func decoded(tree json.RawMessage) (whole object, err error) {
	decoder := json.NewDecoder(strings.NewReader(string(tree)))
	decoder.UseNumber()

	return whole, decoder.Decode(&whole)
}
