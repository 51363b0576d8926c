package query

import (
	"context"
	"fmt"
	"os"
	"time"

	"quern.dev/quern/bench/catalog"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const (
	fewDatasets  = 10
	manyDatasets = 100_000
)

// Many measures the same small statement in a namespace with many datasets, beside one with few.
func Many(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	few, stop, err := startCrowd(ctx, b, fewDatasets)
	if err != nil {
		return nil, err
	}
	defer stop()

	many, stop, err := startCrowd(ctx, b, min(manyDatasets, b.Large))
	if err != nil {
		return nil, err
	}
	defer stop()

	var manyTimes, fewTimes []time.Duration

	for i := range b.Smalls + Warm {
		inMany, inFew, err := inTurn(ctx, many, few, groupBy50)
		if err != nil {
			return nil, err
		}

		if i >= Warm {
			manyTimes, fewTimes = append(manyTimes, inMany.Took), append(fewTimes, inFew.Took)
		}
	}

	large, small := rig.Sorted(manyTimes).Quantile(0.5), rig.Sorted(fewTimes).Quantile(0.5)

	return []rig.Result{{Name: "query-many", Ours: rig.Milliseconds(float64(large)), Bare: rig.Milliseconds(float64(small)), Ratio: float64(small) / float64(large)}}, nil
}

// inTurn runs a statement in one service and then in the other. It first waits until neither is starting sealed
// processes, which would distort the times.
func inTurn(ctx context.Context, a, b *Queries, statement string) (ofA, ofB Answered, err error) {
	for _, one := range []struct {
		at  *Queries
		got *Answered
	}{{a, &ofA}, {b, &ofB}} {
		if err := a.Rest(ctx); err != nil {
			return ofA, ofB, err
		}

		if err := b.Rest(ctx); err != nil {
			return ofA, ofB, err
		}

		if *one.got, err = one.at.Run(ctx, statement); err != nil {
			return ofA, ofB, err
		}
	}

	return ofA, ofB, nil
}

// startCrowd starts a service and creates as many datasets in the namespace as size says. Two of them have rows.
func startCrowd(ctx context.Context, b *rig.Bench, size int) (*Queries, func(), error) {
	q, stop, err := StartQueries(ctx, b, SmallRows, Ready)
	if err != nil {
		return nil, nil, err
	}

	begin := time.Now()

	for _, statement := range []string{catalog.SQLSeeded, fmt.Sprintf(sqlCrowd, q.Accounts["ada"], size-len(q.views)), `VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if err := stack.Execute(ctx, q.Database, statement); err != nil {
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
