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

	if err := r.narrow(ctx, checked, reads); err != nil {
		return nil, before, err
	}

	query, err := r.prepare(ctx, who, want, checked, text, reads)
	if err != nil {
		return nil, before, err
	}

	query.Parameters = values
	r.action = "query.run"

	result, err = r.run(ctx, who, checked, reads, query)
	if err != nil {
		return nil, before, err
	}

	result.Ordered = checked.isOrdered()

	if result.Needs = needs; want.OfRun {
		result.Tree = checked.written
	}

	return result, before, nil
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
