package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
)

// Condition selects rows of a dataset by a boolean expression.
type Condition struct {
	Text       string
	Parameters Parameters
}

// Matched are the rows of a snapshot for which a condition is true.
type Matched struct {
	Dataset  uuid.UUID
	Snapshot lake.Snapshot
	Files    []lake.File    // the files that have such rows
	Rows     []*lake.RowSet // of each file
	Count    int64
}

// The text of a condition stands between the first two of these texts when it is checked, and between the others when it is run.
// The line break ends a comment. As a column, the condition has a type.
const (
	checkedFrom = `SELECT 1 FROM %s WHERE (` + "\n"
	checkedEnd  = "\n)"
	runFrom     = `SELECT ` + engine.ProvenanceFile + `, ` + engine.ProvenanceRow + `, %s(` + "\n"
	runEnd      = "\n) AS __met FROM " + engine.ProvenanceView + ` AS %s WHERE __met`
)

// locating returns a checked condition as a statement that returns the positions of rows. The condition begins at the same
// place as before, so that positions in errors stay right.
func locating(text, before, dataset string) (statement string, ok bool) {
	condition, begins := strings.CutPrefix(text, before)
	condition, ends := strings.CutSuffix(condition, checkedEnd)
	padding := strings.Repeat(" ", max(0, len(before)-len(fmt.Sprintf(runFrom, ""))))

	return fmt.Sprintf(runFrom, padding) + condition + fmt.Sprintf(runEnd, identifier(dataset)), begins && ends
}

// Select finds the rows of the current snapshot of a dataset for which a condition is true, with the rights of the caller. It
// returns where they are, not what they contain. The zero Snapshot means that the dataset has no rows yet.
//
// Faults: NotFound, and those of the package.
func (q *Query) Select(ctx context.Context, who auth.Principal, at catalog.Path, want Condition) (found Matched, err error) {
	values, err := want.Parameters.parse()
	if err != nil {
		return found, err
	}

	target, err := q.one(ctx, who, at, uuid.Nil)
	if err != nil || target.snapshot.ID == uuid.Nil || len(target.snapshot.Columns) == 0 {
		return found, err
	}

	var (
		before = fmt.Sprintf(checkedFrom, identifier(target.Name))
		of     resolved
	)

	statement := want.statement(at, target.ID, target.snapshot.ID)
	statement.Text = before + want.Text + checkedEnd

	result, err := q.begin(ctx, who, briefly, func(ctx context.Context, r *running) (*Result, error) {
		checked, reads, err := r.condition(ctx, who, statement, values)
		if err != nil {
			return nil, err
		}

		query, err := r.prepare(ctx, who, statement, checked, statement.Text, reads)
		if err != nil {
			return nil, err
		}

		text, isSame := locating(query.Statement, before, target.Name)
		if r.positions = &checked.tables[0].read; !isSame || reads[*r.positions].ID != target.ID {
			return nil, fault.New(fault.Internal, "The condition could not be checked.")
		}

		of = reads[*r.positions]
		query.Statement, query.Parameters, query.Rows, query.Bytes = text, values, 0, 0
		r.action = "query.run"

		return r.run(ctx, who, checked, reads, query)
	})
	if err != nil {
		return found, q.conditionFault(err, want, len(before))
	}
	defer result.Close()

	found.Dataset, found.Snapshot = of.ID, of.snapshot

	return found, q.conditionFault(found.collect(of.files, result), want, len(before))
}

// Sample returns the first rows of a snapshot for which a condition is true, with their provenance. Select must have checked
// the condition.
func (q *Query) Sample(ctx context.Context, who auth.Principal, at catalog.Path, dataset string, want Condition, snapshot map[uuid.UUID]uuid.UUID, limit int) (columns []Column, rows []json.RawMessage, err error) {
	statement := Statement{Username: at.Username, Namespace: at.Namespace, Parameters: want.Parameters, Form: Rows, Pinned: snapshot, sealed: true}
	statement.Text = fmt.Sprintf("FROM %s WHERE (\n%s\n) LIMIT %d", identifier(dataset), want.Text, limit)

	result, err := q.Run(ctx, who, statement)
	if err != nil {
		return nil, nil, err
	}
	defer result.Close()

	rows, _, err = result.Look(limit)

	return result.Columns, rows, err
}

func (c Condition) statement(at catalog.Path, dataset, snapshot uuid.UUID) Statement {
	return Statement{
		Username: at.Username, Namespace: at.Namespace, Parameters: c.Parameters, Form: Rows,
		Pinned: map[uuid.UUID]uuid.UUID{dataset: snapshot},
	}
}

func (q *Query) conditionFault(err error, want Condition, before int) error {
	if fault.Is(err, fault.QueryInvalid) {
		q.invalid.Add(1)
	}

	return locate(err, want.Text, before)
}

// condition parses and checks a statement that was made from a condition, and resolves its names.
func (r *running) condition(ctx context.Context, who auth.Principal, want Statement, values []engine.Parameter) (*statement, []resolved, error) {
	checked, err := r.parse(want.Text)
	if err != nil {
		return nil, nil, err
	}

	if !checked.isCondition() {
		return nil, nil, invalid(-1, "The condition must be one boolean expression, such as status = 'void' AND total < $1.")
	}

	if err := checked.bind(want, values); err != nil {
		return nil, nil, err
	}

	reads, err := r.resolve(ctx, who, want, checked.tables)
	if err != nil {
		return nil, nil, err
	}

	return checked, reads, r.narrow(ctx, checked, reads)
}

// located returns a view of the same rows with their positions.
func located(view engine.View) engine.View {
	view.Schema, view.Name, view.Positions = "", engine.ProvenanceView, true

	return view
}

// isCondition reports whether the statement has the form of checkedFrom with one expression. A text such as
// "true) LIMIT (1" closes the parenthesis and changes the statement, but not without a trace in its tree.
func (s *statement) isCondition() bool {
	from, isPlain := s.plain()
	columns := items(s.root["select_list"])

	return isPlain && len(s.tables) > 0 && s.tables[0].at == position(from) && s.tables[0].isBare() && !s.tables[0].isAliased &&
		len(columns) == 1 && columns[0]["class"] == "CONSTANT" && columns[0]["alias"] == "" && s.root["where_clause"] != nil &&
		len(items(s.root["modifiers"])) == 0 && !contains(s.root, isOurs)
}

// collect reads the positions of rows. The sealed process may write anything, so each position is checked.
func (m *Matched) collect(files []lake.File, result *Result) error {
	if kind := result.Columns[len(result.Columns)-1].Type; kind != engine.Boolean {
		return invalid(0, fmt.Sprintf("The condition is %s. It must be boolean: true for the rows that are meant.", kind))
	}

	sets := make([]*lake.RowSet, len(files))

	for {
		text, err := result.Bare()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return err
		}

		row := struct {
			File int   `json:"__file"`
			Row  int64 `json:"__row"`
		}{File: -1}

		if json.Unmarshal(text, &row) != nil || row.File < 0 || row.File >= len(files) {
			return fault.New(fault.Internal, "The statement could not be run.")
		}

		if sets[row.File] == nil {
			sets[row.File] = lake.NewRowSet(files[row.File].Rows)
		}

		if !sets[row.File].Add(row.Row) {
			return fault.New(fault.Internal, "The statement could not be run.")
		}

		m.Count++
	}

	for i, set := range sets {
		if set != nil {
			m.Files, m.Rows = append(m.Files, files[i]), append(m.Rows, set)
		}
	}

	return nil
}
