package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

const wrapped = "FROM ("

// read parses the text of a statement. DuckDB accepts DESCRIBE and SUMMARIZE as queries only inside of a query, so read
// wraps them. DuckDB has no tree of an EXPLAIN, so read removes that word. It returns the text to run.
func (r *running) read(want *Statement) (*statement, string, error) {
	text, err := explained(want)
	if err != nil {
		return nil, want.Text, err
	}

	checked, err := r.parse(text)
	if err != nil || checked.show != nil || child(checked.root, "from_table")["type"] != "SHOW_REF" {
		return checked, text, err
	}

	text = wrapped + strings.TrimRight(text, "; \t\r\n") + "\n)"
	checked, err = r.parse(text)

	return checked, text, err
}

// parse parses a statement in the sealed process and checks its tree.
func (r *running) parse(text string) (*statement, error) {
	tree, err := r.session.Parse(text)
	if err != nil {
		return nil, cmp.Or(notQuery(err, text), refused(err, nil))
	}

	return check(tree)
}

// instead says what to do instead of a statement that is not a query, by its first words.
var instead = [][2]string{ //nolint:gochecknoglobals // read only
	{"CREATE VIEW", "To name a query, begin the statement with WITH name AS (SELECT …)."},
	{"CREATE OR REPLACE VIEW", "To name a query, begin the statement with WITH name AS (SELECT …)."},
	{"CREATE TEMP", "To name a query, begin the statement with WITH name AS (SELECT …)."},
	{"CREATE TABLE", "POST /ingest/new/{namespace}/{datasetName} creates a dataset, and so does quern upload."},
	{"CREATE", ""},
	{"ALTER", "Columns follow from the rows that are loaded. PATCH /data/{username}/{namespace}/{datasetName} renames a dataset."},
	{"DROP", "DELETE /data/{username}/{namespace}/{datasetName} deletes a dataset, and so does quern dataset delete."},
	{"TRUNCATE", "POST /data/{username}/{namespace}/{datasetName}/clear removes all rows."},
	{"INSERT", `POST /data/{username}/{namespace}/{datasetName}/rows with {"data": [{"column": "value"}]} adds rows, and quern upload loads files.`},
	{"UPDATE", "POST /data/{username}/{namespace}/{datasetName}/rows with mode=merge and a key replaces rows, and so does quern rows merge."},
	{"DELETE", "POST /data/{username}/{namespace}/{datasetName}/rows/delete removes rows by a condition, and so does quern rows delete. POST /data/{username}/{namespace}/{datasetName}/clear removes all."},
	{"MERGE", "POST /data/{username}/{namespace}/{datasetName}/rows with mode=merge and a key replaces rows, and so does quern rows merge."},
	{"COPY", "GET /data/{username}/{namespace}/{datasetName}/export returns a dataset as a file, and Accept: text/csv a result. quern upload loads files."},
	{"EXPORT", "GET /data/{username}/{namespace}/{datasetName}/export returns a dataset as a file."},
	{"IMPORT", "quern upload loads files."},
	{"USE", "Name the namespace in the request (quern query -n NAMESPACE), or write namespace.dataset."},
	{"GRANT", "POST /permissions/… shares a namespace or a dataset, and so does quern share."},
	{"REVOKE", "DELETE /permissions/…/shares ends a share, and so does quern unshare."},
	{"SET", "The settings of the engine are fixed, so leave it out."},
	{"RESET", "The settings of the engine are fixed, so leave it out."},
	{"PRAGMA", "The settings of the engine are fixed. DESCRIBE dataset lists the columns of a dataset."},
	{"ATTACH", "Statements read datasets only. quern upload loads files."},
	{"DETACH", ""},
	{"INSTALL", "The extensions of the engine are fixed."},
	{"LOAD", "The extensions of the engine are fixed."},
	{"CALL", "Call functions in a SELECT."},
	{"BEGIN", "Each statement reads one snapshot of every dataset."},
	{"COMMIT", "Each statement reads one snapshot of every dataset."},
	{"ROLLBACK", "Each statement reads one snapshot of every dataset."},
	{"PREPARE", ""},
	{"EXECUTE", ""},
	{"VACUUM", ""},
	{"ANALYZE", ""},
	{"CHECKPOINT", ""},
	{"COMMENT", "PUT /data/{username}/{namespace}/{datasetName}/inferDefinition describes a dataset and its columns."},
}

// notQuery returns the fault for a statement that begins like one that is not a query; nil for other statements.
func notQuery(err error, text string) error {
	if _, ok := errors.AsType[*engine.StatementError](err); !ok {
		return nil
	}

	at := blank(text, 0)

	for _, one := range instead {
		rest, found := at, true

		for want := range strings.FieldsSeq(one[0]) {
			to, name := word(text, rest)
			if found = found && to > 0 && strings.EqualFold(name, want) && text[rest] != '"'; !found {
				break
			}

			rest = blank(text, to)
		}

		if found {
			return invalid(at, strings.TrimSpace(one[0]+" is not allowed: a statement only reads. "+one[1]))
		}
	}

	return nil
}

// explained returns the text of a statement without EXPLAIN, and sets Explain if the text has it. The text keeps its
// length, so that positions stay the same.
func explained(want *Statement) (string, error) {
	at := blank(want.Text, 0)

	to, first := word(want.Text, at)
	if !strings.EqualFold(first, "EXPLAIN") || want.Text[at] == '"' {
		return want.Text, nil
	}

	next := blank(want.Text, to)
	if strings.HasPrefix(want.Text[next:], "(") {
		next = blank(want.Text, next+1)
	}

	if _, option := word(want.Text, next); slices.Contains([]string{"ANALYZE", "ANALYSE", "FORMAT", "VERBOSE"}, strings.ToUpper(option)) {
		return "", invalid(next, fmt.Sprintf("EXPLAIN %s is not supported: EXPLAIN shows the plan as text and does not run the statement. Write EXPLAIN SELECT ….", strings.ToUpper(option)))
	}

	if want.pieces != nil {
		return "", invalid(at, "A plan is not computed by a worker. Leave out Prefer: respond-async.")
	}

	if want.Form != Rows {
		return "", fault.New(fault.NotAcceptable, "A plan is returned as JSON only, which Accept does not allow.")
	}

	want.Explain = true

	return want.Text[:at] + strings.Repeat(" ", to-at) + want.Text[to:], nil
}

// prepare returns the statement as the engine runs it, without the datasets that it reads.
func (r *running) prepare(ctx context.Context, who auth.Principal, want Statement, s *statement, text string, reads []resolved) (query engine.Query, err error) {
	if r.local, err = localize(s, text, reads); err != nil {
		return query, err
	}

	if err := r.verify(r.local, s); err != nil {
		return query, err
	}

	query = engine.Query{Statement: r.local.text, Schema: r.local.home, Explain: want.Explain, Form: want.Form, ParquetVersion: want.ParquetVersion, Rows: r.rows(s), Bytes: r.MaxBytes}
	if want.pieces != nil {
		query.Rows, query.Bytes, query.Pieces = 0, 0, want.pieces
	}

	if s.show != nil {
		query.Statement = showText

		if want.Dataset != "" {
			return query, invalid(-1, fmt.Sprintf("The request limits the statement to the dataset %s, but SHOW TABLES lists others too.", want.Dataset))
		}
	}

	query.Views, err = r.inform(ctx, who, s, want)

	return query, err
}
