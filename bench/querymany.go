package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"quern.dev/quern/stack"
)

const (
	fewDatasets  = 10
	manyDatasets = 100_000
)

// runQueryMany measures the same small statement in a namespace with many datasets, beside one with few.
func runQueryMany(ctx context.Context, b *bench) ([]result, error) {
	few, stop, err := b.startCrowd(ctx, fewDatasets)
	if err != nil {
		return nil, err
	}
	defer stop()

	many, stop, err := b.startCrowd(ctx, min(manyDatasets, b.large))
	if err != nil {
		return nil, err
	}
	defer stop()

	var manyTimes, fewTimes []time.Duration

	for i := range b.smalls + queryWarm {
		inMany, inFew, err := inTurn(ctx, many, few, groupBy50)
		if err != nil {
			return nil, err
		}

		if i >= queryWarm {
			manyTimes, fewTimes = append(manyTimes, inMany.took), append(fewTimes, inFew.took)
		}
	}

	large, small := sorted(manyTimes).quantile(0.5), sorted(fewTimes).quantile(0.5)

	return []result{{name: "query-many", ours: milliseconds(float64(large)), bare: milliseconds(float64(small)), ratio: float64(small) / float64(large)}}, nil
}

// inTurn runs a statement in both services, while neither starts children.
func inTurn(ctx context.Context, a, b *queries, statement string) (ofA, ofB answered, err error) {
	for _, one := range []struct {
		at  *queries
		got *answered
	}{{a, &ofA}, {b, &ofB}} {
		if err := a.rest(ctx); err != nil {
			return ofA, ofB, err
		}

		if err := b.rest(ctx); err != nil {
			return ofA, ofB, err
		}

		if *one.got, err = one.at.run(ctx, statement); err != nil {
			return ofA, ofB, err
		}
	}

	return ofA, ofB, nil
}

// startCrowd starts a service with so many datasets in the namespace, of which two have rows.
func (b *bench) startCrowd(ctx context.Context, size int) (*queries, func(), error) {
	q, stop, err := b.startQueries(ctx, querySmallRows, queryReady)
	if err != nil {
		return nil, nil, err
	}

	begin := time.Now()

	for _, statement := range []string{sqlSeeded, fmt.Sprintf(sqlCrowd, q.accounts["ada"], size-len(q.views)), `VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if err := stack.Execute(ctx, q.database, statement); err != nil {
			stop()

			return nil, nil, err
		}
	}

	fmt.Fprintf(os.Stderr, "query-many: %d datasets in %v\n", size, time.Since(begin).Round(time.Millisecond))

	return q, stop, nil
}

const sqlCrowd = `
	INSERT INTO datasets (account_id, id, namespace_id, name, name_key, definition_revision, data_description, schema_definition, columns,
		row_count, created_at, updated_at)
	SELECT account_id, seeded('crowd', i), id, 'dataset-' || i, 'dataset-' || i, 1, 'What dataset ' || i || ' holds.', '{"amount": "In cents"}',
		'[{"name": "order_id", "type": "BIGINT"}, {"name": "region", "type": "VARCHAR"}, {"name": "amount", "type": "BIGINT"}]', 1000, now(), now()
	FROM namespaces, generate_series(1, %[2]d) i
	WHERE account_id = '%[1]s' AND name_key = 'bench'`
