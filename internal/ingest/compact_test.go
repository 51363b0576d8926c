package ingest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// compacting is a table of files with ten rows each.
type compacting struct {
	*Ingest

	t     *testing.T
	table lake.Table
}

func newCompacting(t *testing.T, files int) *compacting {
	t.Helper()

	db, store, log := pgtest.New(t), blobtest.New(t), slog.New(slog.DiscardHandler)

	jobs, err := job.New(job.Config{DB: db, Log: log})
	require.NoError(t, err)

	tables, err := lake.New(lake.Config{DB: db, Store: store, Now: time.Now, Log: log})
	require.NoError(t, err)

	c := &compacting{
		Ingest: New(Config{DB: db, Lake: tables, Jobs: func() *job.Client { return jobs }, Log: log, Now: time.Now}),
		t:      t, table: lake.Table{Account: uuid.New(), Dataset: uuid.New()},
	}

	for n := range files {
		ingestion := uuid.Must(uuid.NewV7())
		c.stage(ingestion, 10*n, 10, func(tx postgres.Tx, s lake.Staged) error { return tables.ReadyTx(t.Context(), tx, []lake.Staged{s}) })

		_, err := tables.Commit(t.Context(), lake.Change{Table: c.table, Mode: lake.Append, Ingestions: []uuid.UUID{ingestion}},
			func(postgres.Tx, lake.Snapshot) error { return nil })
		require.NoError(t, err)
	}

	return c
}

// stage stages a file with the numbers from first on.
func (c *compacting) stage(id uuid.UUID, first, rows int, done func(tx postgres.Tx, s lake.Staged) error) {
	c.t.Helper()

	ctx := c.t.Context()

	columns, err := c.Lake.Plan(ctx, c.table, []lake.Column{{Name: "n", Type: lake.Bigint}}, lake.Append)
	require.NoError(c.t, err)

	schema := arrow.NewSchema([]arrow.Field{{
		Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true,
		Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(columns[0].ID)}),
	}}, nil)

	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()

	numbers, isInt := builder.Field(0).(*array.Int64Builder)
	require.True(c.t, isInt)

	for n := range rows {
		numbers.Append(int64(first + n))
	}

	record := builder.NewRecordBatch()
	defer record.Release()

	var content bytes.Buffer

	writer, err := pqarrow.NewFileWriter(schema, &content, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(c.t, err)
	require.NoError(c.t, writer.Write(record))
	require.NoError(c.t, writer.Close())

	path := filepath.Join(c.t.TempDir(), "rows.parquet")
	require.NoError(c.t, os.WriteFile(path, content.Bytes(), 0o600))

	var staged lake.Staged

	require.NoError(c.t, c.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		staged, err = c.Lake.StageTx(ctx, tx, c.table, id, lake.Source{})

		return err
	}))

	staged, err = c.Lake.Write(ctx, staged, path, columns)
	require.NoError(c.t, err)
	require.NoError(c.t, c.DB.InTx(ctx, func(tx postgres.Tx) error { return done(tx, staged) }))
}

// TestLateCompaction checks that a worker that has lost the lease of a compaction cannot commit the file of its
// successor in place of its own files. Rows would be lost and others would be there twice.
func TestLateCompaction(t *testing.T) {
	t.Parallel()

	for name, lost := range map[string]bool{"held": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c := newCompacting(t, 4)

			_, files, err := c.inForce(t.Context(), c.table)
			require.NoError(t, err)
			require.Len(t, files, 4)

			mine, successors := files[:2], files[2:]
			if !lost {
				mine = successors
			}

			c.stage(compaction(c.table), 20, 20, func(tx postgres.Tx, s lake.Staged) error {
				return c.Lake.TakeOverTx(t.Context(), tx, s, successors)
			})

			work := job.Work{Account: c.table.Account, ID: uuid.New(), Job: ChoreArgs{Chore: lake.Compact}, Queue: MaintenanceQueue}
			err = c.Jobs().Hold(t.Context(), work, func(ctx context.Context, lease job.Lease) error {
				if lost {
					require.NoError(t, c.DB.Do(ctx, func(q postgres.Querier) error {
						_, err := q.Exec(ctx, `UPDATE leases SET lease_id = gen_random_uuid()`)

						return err
					}))
				}

				return c.exchange(ctx, chore{due: lake.Due{Table: c.table}, lease: lease}, mine)
			})

			snapshot, left, currentErr := c.inForce(t.Context(), c.table)
			require.NoError(t, currentErr)
			require.Equal(t, int64(40), snapshot.Rows)

			if lost {
				require.ErrorIs(t, err, job.ErrStopped)
				require.Equal(t, files, left)
			} else {
				require.NoError(t, err)
				require.Len(t, left, 3)
			}
		})
	}
}
