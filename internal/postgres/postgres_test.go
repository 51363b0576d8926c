package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func TestTranslate(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		err  error
		want fault.Code
	}{
		"connection refused":  {&pgconn.ConnectError{}, fault.Unavailable},
		"network":             {&net.OpError{Err: errors.New("reset")}, fault.Unavailable},
		"cut off":             {io.ErrUnexpectedEOF, fault.Unavailable},
		"shut down":           {&pgconn.PgError{Code: "57P01"}, fault.Unavailable},
		"starting up":         {&pgconn.PgError{Code: "57P03"}, fault.Unavailable},
		"too many":            {&pgconn.PgError{Code: "53300"}, fault.Unavailable},
		"deadlock":            {&pgconn.PgError{Code: "40P01"}, fault.Unavailable},
		"standby":             {&pgconn.PgError{Code: "25006"}, fault.Unavailable},
		"statement timeout":   {&pgconn.PgError{Code: "57014"}, fault.Timeout},
		"deadline":            {context.DeadlineExceeded, fault.Timeout},
		"lock not had":        {&pgconn.PgError{Code: "55P03"}, fault.Conflict},
		"our own mistake":     {&pgconn.PgError{Code: "42703"}, fault.Internal},
		"broken constraint":   {&pgconn.PgError{Code: "23505"}, fault.Internal},
		"broken check":        {&pgconn.PgError{Code: "23514", ConstraintName: "exports_format_check"}, fault.Internal},
		"new partition":       {&pgconn.PgError{Code: "23514"}, fault.Unavailable},
		"a fault stays":       {fault.Absent(), fault.NotFound},
		"no code at all":      {&pgconn.PgError{}, fault.Internal},
		"something different": {errors.New("?"), fault.Internal},
	} {
		require.Equal(t, test.want, fault.From(postgres.Translate(test.err)).Code, name)
	}

	require.NoError(t, postgres.Translate(nil))
	require.Positive(t, fault.From(postgres.Translate(io.EOF)).RetryAfter)
}

func TestInTxRollsBack(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	failure := errors.New("no")

	err := db.InTx(t.Context(), func(tx postgres.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO directory_names VALUES ('ada', gen_random_uuid())`)
		require.NoError(t, err)

		return failure
	})
	require.ErrorIs(t, err, failure)

	var names int
	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT count(*) FROM directory_names`).Scan(&names)
	}))
	require.Zero(t, names)
}

func TestNoConnectionFree(t *testing.T) {
	t.Parallel()

	db, err := postgres.Open(t.Context(), postgres.Config{
		URL: pgtest.URL(t), MaxConns: 1, AcquireTimeout: time.Second, QueryTimeout: time.Minute, LockTimeout: time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	require.NoError(t, db.InTx(t.Context(), func(postgres.Tx) error {
		require.Equal(t, fault.Unavailable, fault.From(db.Ping(t.Context())).Code)

		return nil
	}))
}

func TestAddressWithPasswordIsNotRepeated(t *testing.T) {
	t.Parallel()

	_, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://quern:hunter2@:x/%zz"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")

	_, err = postgres.Migrate(t.Context(), "postgres://quern:hunter2@:x/%zz", notBusy)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestMigrateByAllReplicasAtOnce(t *testing.T) {
	t.Parallel()

	url := pgtest.Empty(t)
	applied := make([][]string, 4)

	var replicas errgroup.Group
	for i := range applied {
		replicas.Go(func() (err error) {
			applied[i], err = postgres.Migrate(t.Context(), url, notBusy)

			return err
		})
	}

	require.NoError(t, replicas.Wait())

	total := 0
	for _, list := range applied {
		total += len(list)
	}

	require.Equal(t, migrations(t, url), total, "each migration was applied once")
}

func migrations(t *testing.T, url string) (count int) {
	t.Helper()

	db := open(t, url)
	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT count(*) FROM goose_db_version WHERE version_id > 0`).Scan(&count)
	}))

	return count
}

func open(t *testing.T, url string) *postgres.DB {
	t.Helper()

	db, err := postgres.Open(t.Context(), postgres.Config{
		URL: url, MaxConns: 2, AcquireTimeout: 10 * time.Second, QueryTimeout: time.Minute, LockTimeout: time.Minute,
	})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	return db
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()

	require.ErrorContains(t, open(t, pgtest.Empty(t)).CheckSchema(t.Context()), "quernd migrate")

	db := pgtest.New(t)
	require.NoError(t, db.CheckSchema(t.Context()))

	change := func(statement string) {
		require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
			_, err := q.Exec(t.Context(), statement)

			return err
		}))
	}

	change(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
	require.NoError(t, db.CheckSchema(t.Context()), "one release newer still fits")

	change(`UPDATE schema_state SET compatible_from = 99999`)
	require.ErrorContains(t, db.CheckSchema(t.Context()), "install a newer release")
}

// TestPooler checks that settings that a pooler in transaction mode cannot keep are not sent to it.
func TestPooler(t *testing.T) {
	t.Parallel()

	db, err := postgres.Open(t.Context(), postgres.Config{
		URL: pgtest.URL(t), Pooler: true, MaxConns: 1, AcquireTimeout: 10 * time.Second, QueryTimeout: 7 * time.Second, LockTimeout: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		for range 3 {
			var prepared int

			var timeout string
			if err := q.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('statement_timeout')`).
				Scan(&prepared, &timeout); err != nil {
				return err
			}

			require.Zero(t, prepared)
			require.Equal(t, "0", timeout)
		}

		return nil
	}))
}
