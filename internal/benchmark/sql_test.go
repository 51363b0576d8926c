package benchmark

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/internal/verified"
)

// TestStored checks what the statements keep, count and delete.
func TestStored(t *testing.T) {
	t.Parallel()

	db, account, namespace := pgtest.New(t), uuid.New(), uuid.New()
	who := auth.Principal{Account: uuid.New(), Username: "ada"}

	inTx := func(do func(tx postgres.Tx) error) {
		t.Helper()
		require.NoError(t, db.InTx(t.Context(), do))
	}

	count := func(what string, args ...any) (found int) {
		t.Helper()
		require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error { return q.QueryRow(t.Context(), what, args...).Scan(&found) }))

		return found
	}

	var last Benchmark

	for i := range 5 {
		one := Benchmark{Account: account, Namespace: namespace, ID: uuid.Must(uuid.NewV7()), Mode: Rules, Author: who.Username, Previous: last.ID, CreatedAt: time.Now(), caller: who, authorID: who.Account}
		asked := verified.Question{ID: uuid.Must(uuid.NewV7()), Revision: 3, Content: verified.Content{Question: "How many orders are late?"}}
		end := Completed

		inTx(func(tx postgres.Tx) error {
			if err := insertBenchmark(t.Context(), tx, one); err != nil {
				return err
			}

			if err := insertResults(t.Context(), tx, one, []verified.Question{asked, asked}[:1]); err != nil {
				return err
			}

			return insertDatasets(t.Context(), tx, one, []dataset{{account: account, namespace: namespace, id: uuid.New()}})
		})

		// Another one cannot run at the same time.
		err := db.InTx(t.Context(), func(tx postgres.Tx) error {
			other := one
			other.ID = uuid.New()

			return insertBenchmark(t.Context(), tx, other)
		})
		constraint, violates := postgres.ViolatesUnique(err)
		require.True(t, violates)
		require.Equal(t, "benchmarks_running", constraint)

		// A result counts once.
		inTx(func(tx postgres.Tx) error {
			for range 2 {
				if err := finishResult(t.Context(), tx, one, Result{Question: asked.ID, Outcome: Wrong, Detail: "x"}, Worse); err != nil {
					return err
				}
			}

			return nil
		})

		if i == 4 {
			end = Failed
		}

		inTx(func(tx postgres.Tx) error {
			ended, err := endBenchmark(t.Context(), tx, one.args(), end, fault.New(fault.Forbidden, "No."), time.Now())
			require.True(t, ended)

			if err == nil {
				ended, err = endBenchmark(t.Context(), tx, one.args(), Cancelled, nil, time.Now())
				require.False(t, ended, "it has ended")
			}

			return err
		})

		var found *Benchmark

		require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) (err error) {
			found, err = selectBenchmark(t.Context(), q, account, namespace, one.ID)

			return err
		}))
		require.Equal(t, Counts{Wrong: 1}, found.Counts)
		require.Equal(t, []any{1, 0, end, who, last.ID}, []any{found.Worse, found.Better, found.Status, found.caller, found.Previous})

		if end == Completed {
			last = one
		}
	}

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		id, err := selectLast(t.Context(), q, last)
		require.Equal(t, last.ID, id, "the last one that was completed")

		return err
	}))

	inTx(func(tx postgres.Tx) error { return forgetOld(t.Context(), tx, last, 3) })

	for _, table := range []string{"benchmarks", "benchmark_results", "benchmark_datasets"} {
		require.Equal(t, 3, count(`SELECT count(*) FROM `+table), table)
	}
}
