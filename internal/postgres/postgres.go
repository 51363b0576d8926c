// Package postgres is the database: the pool, transactions, migrations, and the translation of its
// errors into faults. Statements live beside the rules they serve, in files named sql.go.
//
// Faults: Unavailable while the database cannot be reached or has no connection free, Timeout for a
// statement that ran too long, Conflict for a lock that was not had in time.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is an open transaction. It is always an argument, never in a context.
type Tx = pgx.Tx

// Config is how the database is reached.
type Config struct {
	URL            string
	Pooler         bool // URL leads to a pooler in transaction mode
	MaxConns       int
	AcquireTimeout time.Duration
	QueryTimeout   time.Duration
	LockTimeout    time.Duration
}

// DB is a pool of connections. Close it.
type DB struct {
	pool           *pgxpool.Pool
	acquireTimeout time.Duration
}

// Open prepares a pool. It connects when first used, so a start does not depend on the database.
// The end of ctx does not end the pool.
func Open(ctx context.Context, c Config) (*DB, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("the database address is not valid") // err may repeat the password
	}

	config.MaxConns = int32(c.MaxConns) //nolint:gosec // a number of connections
	config.MaxConnLifetime = time.Hour
	config.MaxConnLifetimeJitter = 6 * time.Minute
	config.HealthCheckPeriod = 5 * time.Second
	config.ConnConfig.ConnectTimeout = c.AcquireTimeout
	config.AfterConnect = setTypes

	if c.Pooler {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	} else {
		// One plan for each statement, whoever asks: planning anew costs more than our statements do, and
		// they are written so that the general plan is the good one.
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
		config.ConnConfig.RuntimeParams["jit"] = "off"

		for name, limit := range map[string]time.Duration{
			"statement_timeout":                   c.QueryTimeout,
			"lock_timeout":                        c.LockTimeout,
			"idle_in_transaction_session_timeout": 2 * c.QueryTimeout,
		} {
			config.ConnConfig.RuntimeParams[name] = strconv.FormatInt(limit.Milliseconds(), 10)
		}
	}

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening the pool: %w", err)
	}

	return &DB{pool: pool, acquireTimeout: c.AcquireTimeout}, nil
}

// setTypes: where this process happens to run shows in no answer; and behind a pooler, where nothing is
// prepared, nobody but us knows what these become.
func setTypes(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterDefaultPgType([]uuid.UUID{}, "_uuid")
	conn.TypeMap().RegisterDefaultPgType(map[string]string{}, "jsonb")
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})

	return nil
}

// Close waits until every connection is given back.
func (db *DB) Close() { db.pool.Close() }

// Pool is for the job queue, which has statements of its own.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Stats is what the pool says of itself, for metrics.
func (db *DB) Stats() *pgxpool.Stat { return db.pool.Stat() }

// InTx runs do in a transaction and commits it if do returns nil. Never call S3, a model or another
// service from do: the transaction would be held open for as long as they take.
//
// An error of the commit itself leaves open whether it happened, so the caller is told Unavailable.
func (db *DB) InTx(ctx context.Context, do func(tx Tx) error) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, do)
	})
}

// Querier is what a single statement needs: a transaction, or the pool when one statement is the
// whole work.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Do runs single statements outside a transaction, on one connection.
func (db *DB) Do(ctx context.Context, do func(q Querier) error) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error { return do(conn) })
}

// Map runs a statement that gives two columns, the first of them a text that does not come twice.
func Map[V any](ctx context.Context, db *DB, statement string, arguments ...any) (found map[string]V, err error) {
	err = db.Do(ctx, func(q Querier) error {
		rows, err := q.Query(ctx, statement, arguments...)
		if err != nil {
			return err
		}

		var (
			key   string
			value V
		)

		found = map[string]V{}
		_, err = pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			found[key] = value

			return nil
		})

		return err
	})

	return found, err
}

func (db *DB) with(ctx context.Context, do func(conn *pgxpool.Conn) error) error {
	acquiring, cancel := context.WithTimeout(ctx, db.acquireTimeout)
	conn, err := db.pool.Acquire(acquiring)

	cancel()

	if err != nil {
		if ctx.Err() != nil {
			return Translate(ctx.Err())
		}

		return unavailable(err)
	}
	defer conn.Release()

	return Translate(do(conn))
}

// Ping tells whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error { return conn.Ping(ctx) })
}
