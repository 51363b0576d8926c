package query

import (
	"context"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/engine"
)

// start starts a statement in the sealed process. It also returns how many bytes precede the statement in the text that is
// run, which errors count too.
func (r *running) start(ctx context.Context, who auth.Principal, want Statement, values []engine.Parameter) (result *Result, before int, err error) {
	checked, text, err := r.read(&want)
	if len(text) != len(want.Text) {
		before = len(wrapped)
	}

	if err != nil {
		return nil, before, err
	}

	if err := checked.bind(want, values); err != nil {
		return nil, before, err
	}

	if err := checked.lasting(want); err != nil {
		return nil, before, err
	}

	reads, err := r.resolve(ctx, who, want, checked.tables)
	if err != nil {
		return nil, before, err
	}

	needs, err := checked.expect(want, reads)
	if err != nil {
		return nil, before, err
	}

	if err := want.record(ctx, checked, reads, before); err != nil {
		return nil, before, err
	}

	r.action = "query.run"

	if result, err = r.execute(ctx, who, want, checked, text, reads, values); err != nil {
		return nil, before, err
	}

	result.Ordered = checked.isOrdered()

	if result.Needs = needs; want.OfRun {
		result.Tree = checked.written
	}

	return result, before, nil
}

// execute runs a checked statement on the engine of its datasets.
func (r *running) execute(ctx context.Context, who auth.Principal, want Statement, s *statement, text string, reads []resolved, values []engine.Parameter) (*Result, error) {
	if onTrino(reads) && !want.sealed {
		limits := engine.Query{Rows: r.rows(s), Bytes: r.MaxBytes}
		if want.pieces != nil {
			limits = engine.Query{}
		}

		return r.onCluster(ctx, who, want, s, text, reads, limits)
	}

	if err := r.narrow(ctx, s, reads); err != nil {
		return nil, err
	}

	query, err := r.prepare(ctx, who, want, s, text, reads)
	if err != nil {
		return nil, err
	}

	query.Parameters = values

	return r.run(ctx, who, s, reads, query)
}

// record tells those who asked for it what the statement is going to read.
func (want Statement) record(ctx context.Context, checked *statement, reads []resolved, before int) error {
	if want.BeforeRead != nil {
		if err := want.BeforeRead(ctx, snapshots(reads)); err != nil {
			return err
		}
	}

	if want.recorder == nil {
		return nil
	}

	var tables []readTable

	for _, t := range checked.tables {
		if !t.isInfo() {
			tables = append(tables, readTable{Owner: t.owner, Namespace: t.namespace, Name: t.name, At: t.at - before, Dataset: reads[t.read].ID})
		}
	}

	return want.recorder(ctx, snapshots(reads), tables)
}
