package duckdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// A tree must be smaller than the largest message that the parent accepts, and not nested deeper than JSON decoders
// accept.
const (
	maxTree      = 8 << 20
	maxTreeDepth = 5000
)

// result is the name of the view that is made from the statement.
const result = "__result"

// statementAt is the position of the statement in every text that contains it, so that positions in DuckDB's errors can
// be converted.
const statementAt = 40

// placed returns SQL that precedes the statement, padded so that the statement follows at statementAt.
func placed(before string) string { return fmt.Sprintf("%-*s", statementAt, before) }

// parse returns the tree of a statement. It does not run the statement.
func (p *program) parse(request engine.ParseRequest) (engine.Answer, error) {
	tree, err := p.tree(request.Statement)
	if err != nil {
		return engine.Answer{}, err
	}

	return engine.Answer{Parsed: tree}, nil
}

func (p *program) tree(statement string) (json.RawMessage, error) {
	said, err := p.db.value(`SELECT json_serialize_sql(` + text(statement) + `)`)
	if err != nil {
		return nil, refuse(err)
	}

	if len(said) > maxTree || engine.Depth([]byte(said)) > maxTreeDepth {
		return nil, &refusal{engine.StatementError{Kind: "parser", Message: "it has too many parts or is nested too deeply", Position: -1}}
	}

	var parsed struct {
		Error    bool   `json:"error"`
		Type     string `json:"error_type"`
		Message  string `json:"error_message"`
		Subtype  string `json:"error_subtype"`
		Position string `json:"position"`
	}

	if err := json.Unmarshal([]byte(said), &parsed); err != nil {
		return nil, err
	}

	if parsed.Error {
		return nil, &refusal{engine.StatementError{
			Kind: parsed.Type, Subtype: parsed.Subtype, Message: parsed.Message, Position: position(parsed.Position, 0),
		}}
	}

	return json.RawMessage(said), nil
}

// refusal is an error that the statement caused.
type refusal struct{ said engine.StatementError }

func (r *refusal) Error() string { return r.said.Error() }

// refuse converts an error of DuckDB, which is JSON because of the setting errors_as_json, to a refusal.
func refuse(err error) error {
	failed, ok := errors.AsType[*statementError](err)
	if !ok {
		return err
	}

	var said struct {
		Type       string `json:"exception_type"`
		Message    string `json:"exception_message"`
		Subtype    string `json:"error_subtype"`
		Name       string `json:"name"`
		Candidates string `json:"candidates"`
		Position   string `json:"position"`
	}

	_, object, found := strings.Cut(failed.message, "{")
	if !found || json.NewDecoder(strings.NewReader("{"+object)).Decode(&said) != nil {
		said.Message = failed.message
	}

	refused := engine.StatementError{
		Kind: strings.ToLower(said.Type), Subtype: said.Subtype, Message: said.Message, Name: said.Name,
		Position: position(said.Position, statementAt),
	}
	if said.Candidates != "" {
		refused.Candidates = strings.Split(said.Candidates, ", ")
	}

	return &refusal{refused}
}

// position converts DuckDB's position to a position in the statement, which starts after the first before bytes. It
// returns -1 if the position is unknown.
func position(text string, before int) int {
	at, err := strconv.Atoi(text)
	if err != nil || at < before {
		return -1
	}

	return at - before
}

// query runs a checked statement to its end.
func (p *program) query(q engine.Query, conn *sandbox.Conn) (engine.Answer, error) {
	described, err := p.prepareQuery(q)
	if err != nil {
		return engine.Answer{}, err
	}

	shown := engine.Described{ProvenanceTree: described.traced}
	for _, c := range described.columns {
		shown.Columns = append(shown.Columns, engine.Column{Name: c.name, Type: c.kind.name})
	}

	if err := conn.Send(engine.Answer{Described: &shown}); err != nil {
		return engine.Answer{}, err
	}

	var ran engine.Ran

	switch {
	case q.Explain:
		ran, err = p.plan(conn)
	case q.Pieces != nil:
		ran, err = p.pieces(described, q, conn)
	case q.Form == engine.Rows:
		ran, err = p.stream(described, q, conn)
	default:
		ran, err = p.file(described, q)
	}

	return engine.Answer{Ran: &ran}, refuse(err)
}

// described describes the result of a statement.
type described struct {
	columns []resultColumn
	traced  bool
}

type resultColumn struct {
	name string
	kind kind
}

// settle sets and locks the settings for statements.
func (p *program) settle(memory int64, threads int, disk int64) error {
	for _, setting := range []string{
		`SET errors_as_json = true`,
		fmt.Sprintf(`SET max_temp_directory_size = '%dB'`, disk),
	} {
		if err := p.db.exec(setting); err != nil {
			return err
		}
	}

	return p.db.limit(memory, threads)
}

// prepareQuery creates the views that the statement reads, and one view of the statement itself.
func (p *program) prepareQuery(q engine.Query) (d described, err error) {
	// The schema is a setting too, so it is chosen before the settings are locked.
	if q.Schema != "" {
		if err := p.db.exec(`CREATE SCHEMA ` + name(q.Schema) + `; USE ` + name(q.Schema)); err != nil {
			return d, err
		}
	}

	if err := p.settle(q.Memory, q.Threads, q.Disk); err != nil {
		return d, err
	}

	for _, view := range q.Views {
		if err := p.make(view); err != nil {
			return d, fmt.Errorf("the view %s: %w", view.Name, err)
		}
	}

	p.db.values = q.Parameters

	if d.traced = p.addProvenance(q); !d.traced {
		if err := p.define(q.Statement); err != nil {
			return d, refuse(err)
		}
	}

	if q.Explain {
		d.traced, d.columns = false, []resultColumn{{"plan", kind{name: engine.Varchar}}}

		return d, nil
	}

	d.columns, err = p.describeResult()
	if d.traced {
		d.columns = d.columns[:len(d.columns)-2]
	}

	return d, err
}

func (p *program) make(view engine.View) error {
	from := `SELECT ` + columnsOf(view) + positionsOf(view) + ` FROM ` + p.filesOf(view)

	if view.Lines {
		var err error
		if from, err = p.linesOf(view); err != nil {
			return err
		}
	}

	if view.Schema == "" {
		return p.db.exec(`CREATE VIEW ` + name(view.Name) + ` AS ` + from)
	}

	return p.db.exec(`CREATE SCHEMA IF NOT EXISTS ` + name(view.Schema) + `; CREATE VIEW ` + name(view.Schema) + `.` + name(view.Name) + ` AS ` + from)
}

// addProvenance creates the result view from the provenance tree. It reports false if DuckDB does not write and bind
// exactly that tree: DuckDB sometimes writes SQL for a different tree, and a statement with groups has no provenance.
func (p *program) addProvenance(q engine.Query) bool {
	if q.ProvenanceTree == nil || q.Source < 0 || q.Source >= len(q.Views) {
		return false
	}

	statement, err := p.db.value(`SELECT json_deserialize_sql(` + text(string(q.ProvenanceTree)) + `)`)
	if err != nil {
		return false
	}

	tree, err := p.tree(statement)
	if err != nil || !sameTree(tree, q.ProvenanceTree) {
		return false
	}

	view := q.Views[q.Source]
	if len(view.Files) == 0 {
		return false
	}

	view.Schema, view.Name, view.Positions = "", engine.ProvenanceView, true
	if p.make(view) != nil {
		return false
	}

	return p.define(statement) == nil
}

// sameTree reports whether two trees are equal, ignoring positions in the text.
func sameTree(a, b json.RawMessage) bool {
	var trees [2]any

	for i, text := range []json.RawMessage{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()

		if decoder.Decode(&trees[i]) != nil {
			return false
		}

		trees[i] = withoutPositions(trees[i])
	}

	first, err := json.Marshal(trees[0])
	second, alsoErr := json.Marshal(trees[1])

	return err == nil && alsoErr == nil && bytes.Equal(first, second)
}

func withoutPositions(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "query_location")

		for key, inner := range value {
			value[key] = withoutPositions(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = withoutPositions(inner)
		}
	}

	return value
}

// columnsOf returns the select list for the columns of a dataset. JSON is stored as text in the files, so it is cast.
func columnsOf(view engine.View) string {
	list := make([]string, len(view.Columns))

	for i, c := range view.Columns {
		list[i] = name(c.Name)

		if len(view.Files) == 0 {
			list[i] = `CAST(NULL AS ` + sqlType(c.Type) + `) AS ` + list[i]
		}

		if c.Type == engine.JSON {
			list[i] = `CAST(` + strings.TrimSuffix(list[i], ` AS `+name(c.Name)) + ` AS JSON) AS ` + name(c.Name)
		}
	}

	return strings.Join(list, ", ")
}

// positionsOf returns the columns for the positions of rows, if the view has them.
func positionsOf(view engine.View) string {
	switch {
	case !view.Positions:
		return ``
	case len(view.Files) == 0:
		return fmt.Sprintf(`, CAST(NULL AS BIGINT) AS %s, CAST(NULL AS BIGINT) AS %s`, name(engine.ProvenanceFile), name(engine.ProvenanceRow))
	default:
		return fmt.Sprintf(`, file_index AS %s, file_row_number AS %s`, name(engine.ProvenanceFile), name(engine.ProvenanceRow))
	}
}

// filesOf returns the relation of a dataset's files. If columns are matched by id, DuckDB can read files with different
// columns, but it does not use their row counts and value ranges. So ids are used only if necessary.
func (p *program) filesOf(view engine.View) string {
	if len(view.Files) == 0 {
		return `(SELECT 1) WHERE false`
	}

	paths := make([]string, len(view.Files))
	for i, file := range view.Files {
		paths[i] = path(filepath.Join(p.in, filepath.Base(file)))
	}

	if !view.Mapped {
		return `read_parquet([` + strings.Join(paths, ", ") + `])`
	}

	ids := make([]string, len(view.Columns))
	for i, c := range view.Columns {
		ids[i] = fmt.Sprintf(`%d: {name: %s, type: %s, default_value: NULL}`, c.ID, text(c.Name), text(sqlType(c.Type)))
	}

	return `read_parquet([` + strings.Join(paths, ", ") + `], schema = MAP {` + strings.Join(ids, ", ") + `})`
}

// describeResult returns the names and types of the result. It does not run the statement. With LIMIT 0 DuckDB binds
// the statement without planning it; planning is slow for many columns.
func (p *program) describeResult() (columns []resultColumn, err error) {
	if len(p.db.values) > 0 {
		return p.columns, nil
	}

	statement, err := p.db.prepare(`FROM ` + result + ` LIMIT 0`)
	if err != nil {
		return nil, refuse(err)
	}
	defer duckdb.DestroyPrepare(&statement)

	for i := range duckdb.PreparedStatementColumnCount(statement) {
		logical := duckdb.PreparedStatementColumnLogicalType(statement, i)
		columns = append(columns, resultColumn{duckdb.PreparedStatementColumnName(statement, i), kindOf(logical)})
		duckdb.DestroyLogicalType(&logical)
	}

	return columns, nil
}

// plan returns the query plan of the statement as rows. It removes the folder of the files from the text.
func (p *program) plan(conn *sandbox.Conn) (ran engine.Ran, err error) {
	text, err := p.db.plan(p.over(`EXPLAIN `, `*`, ``))
	if err != nil {
		return ran, err
	}

	for line := range strings.Lines(strings.ReplaceAll(text, p.in+"/", "")) {
		row, err := json.Marshal(map[string]string{"plan": strings.TrimRight(line, "\n")})
		if err != nil {
			return ran, err
		}

		if _, err := conn.Data.Write(append(row, '\n')); err != nil {
			return ran, err
		}

		ran.Rows++
	}

	return ran, nil
}
