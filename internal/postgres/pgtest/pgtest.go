// Package pgtest creates a separate database for each test, as a copy of a template. The template is migrated once
// for each state of the migrations.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/stack"
)

// lockKey prevents test processes from creating the template at the same time.
const lockKey = 7405172

// New returns an open, migrated, empty database that is dropped when the test ends.
func New(tb testing.TB) *postgres.DB {
	tb.Helper()

	db := open(tb, URL(tb), false)
	tb.Cleanup(db.Close)

	return db
}

// Pooled is New with the settings for a pooler in transaction mode.
func Pooled(tb testing.TB) *postgres.DB {
	tb.Helper()

	db := open(tb, URL(tb), true)
	tb.Cleanup(db.Close)

	return db
}

func open(tb testing.TB, address string, pooler bool) *postgres.DB {
	tb.Helper()

	db, err := postgres.Open(context.Background(), postgres.Config{
		URL: address, Pooler: pooler, MaxConns: 10,
		AcquireTimeout: 10 * time.Second, QueryTimeout: 30 * time.Second, LockTimeout: 10 * time.Second,
	})
	require.NoError(tb, err)

	return db
}

// URL returns the URL of a migrated, empty database that is dropped when the test ends.
func URL(tb testing.TB) string {
	tb.Helper()

	return create(tb, template(tb))
}

// Empty returns the URL of a database without a schema.
func Empty(tb testing.TB) string {
	tb.Helper()

	return create(tb, "template0")
}

func create(tb testing.TB, template string) string {
	tb.Helper()

	name := "test_" + uuid.NewString()
	admin(tb, func(ctx context.Context, conn *pgx.Conn) {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template))
		require.NoError(tb, err)
	})
	tb.Cleanup(func() {
		admin(tb, func(ctx context.Context, conn *pgx.Conn) {
			_, err := conn.Exec(ctx, "DROP DATABASE "+quote(name)+" WITH (FORCE)")
			require.NoError(tb, err)
		})
	})

	return address(tb, name)
}

// template returns the name of a migrated database. The name depends on the migrations, so that old templates are
// never used.
func template(tb testing.TB) string {
	tb.Helper()

	hash, err := postgres.MigrationsHash()
	require.NoError(tb, err)

	name := fmt.Sprintf("template_%s_%d", hash[:16], job.SchemaVersion)
	admin(tb, func(ctx context.Context, conn *pgx.Conn) {
		_, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockKey)
		require.NoError(tb, err)

		var exists bool
		require.NoError(tb, conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", name).Scan(&exists))

		if exists {
			return
		}

		// Create the template under another name and rename it when it is complete, so that a killed test leaves no
		// incomplete template.
		draft := name + "_" + uuid.NewString()[:8]
		_, err = conn.Exec(ctx, "CREATE DATABASE "+quote(draft))
		require.NoError(tb, err)
		migrate(ctx, tb, address(tb, draft))
		_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(draft)+" RENAME TO "+quote(name))
		require.NoError(tb, err)
	})

	return name
}

// migrate does what `quernd migrate` does.
func migrate(ctx context.Context, tb testing.TB, address string) {
	tb.Helper()

	_, err := postgres.Migrate(ctx, address, func() {})
	require.NoError(tb, err)

	db := open(tb, address, false)
	defer db.Close()

	require.NoError(tb, job.Migrate(ctx, db))
}

func admin(tb testing.TB, do func(ctx context.Context, conn *pgx.Conn)) {
	tb.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	conn, err := pgx.Connect(ctx, stack.Env(tb, "QUERN_TEST_DATABASE_URL"))
	require.NoError(tb, err, "is the stack running? make stack")

	defer func() { _ = conn.Close(ctx) }()

	do(ctx, conn)
}

func address(tb testing.TB, database string) string {
	tb.Helper()

	u, err := url.Parse(stack.Env(tb, "QUERN_TEST_DATABASE_URL"))
	require.NoError(tb, err)

	u.Path = "/" + database

	return u.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
