package query

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/postgres"
)

// A statement can read two tables about the datasets that the caller may see: information_schema.tables and
// information_schema.columns. SHOW TABLES reads the first one. The server writes their rows to a file, so the statement
// sees nothing of the catalog of the sealed process.
const (
	informationSchema = "information_schema"
	infoSchema        = "__" + informationSchema // its name in the sealed process, where DuckDB has its own

	infoTables  = "tables"
	infoColumns = "columns"
)

// The largest listing that a statement can read. A statement that needs more is refused, because a sum or a count over a
// part would be wrong.
const (
	maxInfoDatasets = 10_000
	maxInfoRows     = 200_000
	infoPage        = 500
)

func (t table) isInfo() bool { return t.owner == "" && folded(t.namespace) == informationSchema }

// noInfo returns the fault for a table that information_schema does not have.
func noInfo(t table) error {
	return withCandidates(invalid(t.at, fmt.Sprintf("There is no table %s. The tables are information_schema.tables and information_schema.columns.", t)),
		lexicon.Nearest(t.String(), []string{informationSchema + "." + infoTables, informationSchema + "." + infoColumns}))
}

// show is the statement SHOW TABLES.
type show struct {
	isAll            bool // of all namespaces
	owner, namespace string
}

// showOf returns the statement if it is SHOW TABLES and nothing else; nil otherwise. DuckDB reads it as SELECT * without a
// position.
func showOf(root object) *show {
	from, columns := child(root, "from_table"), items(root["select_list"])

	switch {
	case root["type"] != "SELECT_NODE" || from["type"] != "SHOW_REF" || from["query"] != nil || len(columns) != 1 || position(columns[0]) >= 0:
		return nil
	case len(list(root["modifiers"])) > 0 || len(items(child(root, "cte_map")["map"])) > 0 || root["where_clause"] != nil || root["sample"] != nil:
		return nil
	}

	owner, _ := from["catalog_name"].(string)
	namespace, _ := from["schema_name"].(string)

	switch {
	case from["show_type"] == "SHOW_FROM" && namespace != "":
		return &show{owner: owner, namespace: namespace}
	case from["show_type"] == "SHOW_UNQUALIFIED" && from["table_name"] == `"tables"`:
		return &show{}
	case from["show_type"] == "SHOW_UNQUALIFIED" && from["table_name"] == "__show_tables_expanded":
		return &show{isAll: true}
	default:
		return nil
	}
}

// showText is the statement that runs for SHOW TABLES.
const showText = `SELECT table_name AS name, table_schema AS namespace, table_catalog AS owner FROM ` + infoSchema + `.` + infoTables + ` AS t ORDER BY owner, namespace, name`

// listing is what the tables of information_schema contain for one statement.
type listing struct {
	kinds  []string      // the tables that the statement reads
	within *catalog.Path // the only namespace; nil means all that the caller may see
	rows   int64         // the number of rows that suffices; 0 means all

	mayLack bool // the namespace may be absent: nothing is listed then
}

// listing returns what the statement needs to know about datasets; nil if it needs nothing.
func (r *running) listing(s *statement, want Statement) *listing {
	if s.show != nil {
		l := &listing{kinds: []string{infoTables}, rows: r.DefaultRows + 1} // one more, so that the result is marked as truncated
		path := want.in()

		if s.show.namespace != "" {
			path.Namespace = s.show.namespace
		}

		if s.show.owner != "" {
			path.Username = s.show.owner
		}

		if path.Namespace != "" && !s.show.isAll {
			l.within = &path
		}

		return l
	}

	l := &listing{mayLack: true}

	for _, t := range s.tables {
		if kind := folded(t.name); t.isInfo() && !slices.Contains(l.kinds, kind) {
			l.kinds = append(l.kinds, kind)
		}
	}

	if len(l.kinds) == 0 {
		return nil
	}

	l.within = s.listed()
	if rows, ok := s.firstRows(); ok {
		l.rows = max(rows, 1)
	}

	return l
}

// listed returns the namespace to which the WHERE clause limits the only table of a statement; nil if it does not.
func (s *statement) listed() *catalog.Path {
	from := child(s.root, "from_table")
	if s.root["type"] != "SELECT_NODE" || from["type"] != "BASE_TABLE" || len(s.tables) != 1 || !s.names(from) || len(list(from["column_name_alias"])) > 0 {
		return nil
	}

	var path catalog.Path

	for _, part := range conjuncts(child(s.root, "where_clause")) {
		left, right := child(part, "left"), child(part, "right")
		if left["class"] == "CONSTANT" {
			left, right = right, left
		}

		names := list(left["column_names"])
		value := child(right, "value")
		text, isText := value["value"].(string)

		switch {
		case part["class"] != "COMPARISON" || part["type"] != "COMPARE_EQUAL" || left["class"] != "COLUMN_REF" || right["class"] != "CONSTANT":
		case len(names) == 0 || !isText || child(value, "type")["id"] != "VARCHAR":
		case isName(names[len(names)-1], "table_catalog"):
			path.Username = text
		case isName(names[len(names)-1], "table_schema"):
			path.Namespace = text
		}
	}

	if path.Username == "" || path.Namespace == "" {
		return nil
	}

	return &path
}

// inform writes the rows of information_schema that a statement needs, mounts them and returns their views.
func (r *running) inform(ctx context.Context, who auth.Principal, s *statement, want Statement) (views []engine.View, err error) {
	l := r.listing(s, want)
	if l == nil {
		return nil, nil
	}

	if err := r.Folder.Room(0); err != nil {
		return nil, err
	}

	writers := make([]*infoWriter, len(l.kinds))

	for i, kind := range l.kinds {
		if writers[i], err = r.infoWriter(kind); err != nil {
			return nil, err
		}
		defer writers[i].close()
	}

	err = l.each(r.pages(ctx, who, l), func(item catalog.Item) (more bool, err error) {
		for _, w := range writers {
			if err := w.add(item); err != nil {
				return false, err
			}
		}

		// The writer is the only one if the number of rows is limited.
		return l.rows == 0 || writers[0].rows < l.rows, nil
	})
	if err != nil {
		return nil, r.notListed(ctx, who, s, l, err)
	}

	for _, w := range writers {
		view, err := w.view(r.session)
		if err != nil {
			return nil, err
		}

		views = append(views, view)
	}

	return views, nil
}

// pages returns a function that returns the next datasets of a listing, and whether there are more.
func (r *running) pages(ctx context.Context, who auth.Principal, l *listing) func() ([]catalog.Item, bool, error) {
	var (
		after uuid.UUID
		place catalog.Position
	)

	return func() (page []catalog.Item, more bool, err error) {
		if l.within != nil {
			page, after, err = r.Catalog.Datasets(ctx, who, *l.within, after, infoPage)

			return page, after != uuid.Nil, err
		}

		page, next, err := r.Catalog.All(ctx, who, place, infoPage)
		if next != nil {
			place = *next
		}

		return page, next != nil, err
	}
}

// each calls take for the datasets of a listing, until it returns false.
func (l *listing) each(pages func() ([]catalog.Item, bool, error), take func(catalog.Item) (bool, error)) error {
	for count := 0; ; {
		page, more, err := pages()
		if l.mayLack && fault.Is(err, fault.NotFound) {
			return nil
		}

		if err != nil {
			return err
		}

		for _, item := range page {
			if next, err := take(item); err != nil || !next {
				return err
			}
		}

		if count += len(page); l.rows == 0 && (count > maxInfoDatasets || (count == maxInfoDatasets && more)) {
			return tooManyListed()
		}

		if !more {
			return nil
		}
	}
}

func tooManyListed() error {
	return fault.New(fault.LimitExceeded, fmt.Sprintf("You can see more than information_schema lists for one statement: %d datasets, and %d columns. Select from one namespace: WHERE table_catalog = 'owner' AND table_schema = 'namespace'. SHOW TABLES FROM namespace also lists one.",
		maxInfoDatasets, maxInfoRows))
}

// notListed returns the fault for the namespace of SHOW TABLES FROM, with similar names, if err says that it is absent.
func (r *running) notListed(ctx context.Context, who auth.Principal, s *statement, l *listing, err error) error {
	if !fault.Is(err, fault.NotFound) || s.show == nil || s.show.namespace == "" {
		return err
	}

	var seen []string

	if err := r.DB.Do(ctx, func(db postgres.Querier) (err error) {
		seen, err = r.Catalog.NamespaceNames(ctx, db, who, l.within.Username, maxNames)

		return err
	}); err != nil {
		return err
	}

	near := lexicon.Nearest(s.show.namespace, seen)
	for i := range near {
		near[i] = dotted(s.show.owner, near[i])
	}

	return withCandidates(invalid(-1, fmt.Sprintf("There is no namespace %s that you can see.", dotted(s.show.owner, s.show.namespace))), near)
}

// infoWriter writes the rows of one table of information_schema.
type infoWriter struct {
	kind string
	path string
	file *os.File
	out  *bufio.Writer
	rows int64
}

func (q *Query) infoWriter(kind string) (*infoWriter, error) {
	path := filepath.Join(q.Exports.Dir, "listing-"+uuid.NewString())

	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}

	return &infoWriter{kind: kind, path: path, file: file, out: bufio.NewWriter(q.Folder.Writer(file))}, nil
}

// close removes the file: the sealed process has its own name for it.
func (w *infoWriter) close() {
	_ = w.file.Close()
	_ = os.Remove(w.path)
}

// infoTable is a row of information_schema.tables, infoColumn one of information_schema.columns.
type (
	infoTable struct {
		Catalog string `json:"table_catalog"`
		Schema  string `json:"table_schema"`
		Name    string `json:"table_name"`
		Type    string `json:"table_type"`
		Rows    *int64 `json:"table_rows"`
		Comment string `json:"table_comment"`
	}
	infoColumn struct {
		Catalog  string  `json:"table_catalog"`
		Schema   string  `json:"table_schema"`
		Table    string  `json:"table_name"`
		Name     string  `json:"column_name"`
		Position int     `json:"ordinal_position"`
		Default  *string `json:"column_default"`
		Nullable string  `json:"is_nullable"`
		Type     string  `json:"data_type"`
	}
)

// columns returns the columns of the table.
func (w *infoWriter) columns() (columns []engine.Column) {
	names := []string{"table_catalog", "table_schema", "table_name", "table_type", "table_rows", "table_comment"}
	if w.kind == infoColumns {
		names = []string{"table_catalog", "table_schema", "table_name", "column_name", "ordinal_position", "column_default", "is_nullable", "data_type"}
	}

	for _, name := range names {
		kind := engine.Varchar
		if name == "table_rows" || name == "ordinal_position" {
			kind = engine.Bigint
		}

		columns = append(columns, engine.Column{Name: name, Type: kind})
	}

	return columns
}

// add writes the rows of a dataset.
func (w *infoWriter) add(d catalog.Item) error {
	if w.kind == infoTables {
		one := infoTable{Catalog: d.Owner, Schema: d.Namespace, Name: d.Name, Type: "BASE TABLE", Comment: d.DataDescription}
		if d.SnapshotID != uuid.Nil {
			one.Rows = &d.RowCount
		}

		return w.write(one)
	}

	for i, c := range d.Columns {
		one := infoColumn{Catalog: d.Owner, Schema: d.Namespace, Table: d.Name, Name: c.Name, Position: i + 1, Nullable: "NO", Type: strings.ToUpper(c.Type)}
		if c.Nullable {
			one.Nullable = "YES"
		}

		if err := w.write(one); err != nil {
			return err
		}
	}

	return nil
}

func (w *infoWriter) write(row any) error {
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}

	if w.rows++; w.rows > maxInfoRows {
		return tooManyListed()
	}

	_, _ = w.out.Write(line) // Flush returns the error

	return w.out.WriteByte('\n')
}

// view mounts the rows and returns them as a view.
func (w *infoWriter) view(session *engine.Session) (engine.View, error) {
	view := engine.View{Schema: infoSchema, Name: w.kind, Columns: w.columns()}
	if w.rows == 0 {
		return view, nil
	}

	if err := errors.Join(w.out.Flush(), w.file.Close()); err != nil {
		return view, err
	}

	view.Files, view.Lines = []string{w.kind + ".ndjson"}, true

	return view, session.Mount(w.path, view.Files[0])
}
