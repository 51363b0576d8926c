package postgres_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func notBusy() {}

// schemaAt returns a database whose schema has an earlier version, and lacks some migrations.
func schemaAt(t *testing.T, version int64, lacking ...int64) (url string, db *sql.DB) {
	t.Helper()

	url = pgtest.Empty(t)
	config, err := pgx.ParseConfig(url)
	require.NoError(t, err)

	db = stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })

	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithExcludeVersions(lacking))
	require.NoError(t, err)
	_, err = provider.UpTo(t.Context(), version)
	require.NoError(t, err)

	return url, db
}

// TestMigrationLetsOthersPass checks that a migration that waits for a table does not make statements wait behind it, and that it goes on
// when the transaction that uses the table has ended.
func TestMigrationLetsOthersPass(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	const count = `SELECT count(*) FROM ingestions`

	var rows int

	url, old := schemaAt(t, 63)
	backup, err := old.BeginTx(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, backup.QueryRowContext(ctx, count).Scan(&rows))

	busy, migrated := make(chan struct{}), make(chan error, 1)

	go func() {
		_, err := postgres.Migrate(ctx, url, func() { close(busy) })
		migrated <- err
	}()

	select {
	case <-busy:
	case <-ctx.Done():
		require.Fail(t, "the migration does not say that it waits")
	}

	var longest time.Duration

	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		began := time.Now()

		require.NoError(t, old.QueryRowContext(ctx, count).Scan(&rows))

		longest = max(longest, time.Since(began))
	}

	t.Logf("the longest statement took %v", longest)
	require.Less(t, longest, 2*time.Second)
	require.Empty(t, migrated)
	require.NoError(t, backup.Rollback())
	require.NoError(t, <-migrated)
	require.NoError(t, open(t, url).CheckSchema(ctx))
}

// TestMigrationsOutOfOrder checks that a migration is missed, and applied, if one with a higher number was applied before.
func TestMigrationsOutOfOrder(t *testing.T) {
	t.Parallel()

	url, _ := schemaAt(t, 65, 64)
	require.ErrorContains(t, open(t, url).CheckSchema(t.Context()), "at version 63, this program needs")

	applied, err := postgres.Migrate(t.Context(), url, notBusy)
	require.NoError(t, err)
	require.Contains(t, applied[0], "00064")
	require.NoError(t, open(t, url).CheckSchema(t.Context()))
}
