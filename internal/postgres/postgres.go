// Package postgres connects to the database: it has the pool, transactions, migrations, and the translation of
// database errors into faults. SQL statements are next to the code that uses them, in files named sql.go.
//
// Faults: Unavailable while the database cannot be reached or has no free connection, Timeout for a statement that
// ran too long, Conflict for a lock that was not acquired in time.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is an open transaction. It is always passed as an argument, never in a context.
type Tx = pgx.Tx

// Config configures the connection to the database.
type Config struct {
	URL            string
	Pooler         bool // URL is the address of a pooler in transaction mode
	MaxConns       int
	AcquireTimeout time.Duration
	QueryTimeout   time.Duration
	LockTimeout    time.Duration
}

// DB is a pool of connections. The caller must close it.
type DB struct {
	pool           *pgxpool.Pool
	acquireTimeout time.Duration
	frozen         Tx // set by Frozen
}

var errBadAddress = errors.New("QUERN_DATABASE_URL or QUERN_DATABASE_DIRECT_URL is not an address such as postgres://user:password@host:port/name")

// Open creates a pool. The pool connects on first use, so starting does not depend on the database. The end of ctx
// does not close the pool.
func Open(ctx context.Context, c Config) (*DB, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errBadAddress // err may contain the password
	}

	config.MaxConns = int32(c.MaxConns) //nolint:gosec // a number of connections
	config.MaxConnLifetime = time.Hour
	config.MaxConnLifetimeJitter = 6 * time.Minute
	config.HealthCheckPeriod = 5 * time.Second
	config.ConnConfig.ConnectTimeout = c.AcquireTimeout
	config.AfterConnect = setTypes
	config.ConnConfig.Tracer = tracer{}

	if c.Pooler {
		// Describe each statement once, then send it without a name, because a pooler may run it on any connection.
		// The server reports the type of each argument; if the driver had to guess, it would send bytes where JSON is
		// expected.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	} else {
		// Use one generic plan for each statement: planning costs more than these statements do, and they are written
		// so that the generic plan is good.
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

// setTypes makes the driver return times in UTC, so that responses do not depend on the time zone of this process.
func setTypes(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})

	return nil
}

// Close waits until every connection is returned to the pool.
func (db *DB) Close() { db.pool.Close() }

// Pool returns the pool for the job queue, which has its own statements.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Stats returns the statistics of the pool, for metrics.
func (db *DB) Stats() *pgxpool.Stat { return db.pool.Stat() }

// InTx runs do in a transaction and commits it if do returns nil. Never call the object store, a model or another
// service from do: the transaction would stay open until the call returns.
//
// If the connection fails during the commit, it is unknown whether the transaction was committed; the fault is
// Unavailable.
func (db *DB) InTx(ctx context.Context, do func(tx Tx) error) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, do)
	})
}

// Querier runs single statements: a transaction, or a connection when one statement is the whole work.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Do runs single statements outside a transaction, on one connection.
func (db *DB) Do(ctx context.Context, do func(q Querier) error) error {
	if db.frozen != nil {
		return Translate(do(db.frozen))
	}

	return db.with(ctx, func(conn *pgxpool.Conn) error { return do(conn) })
}

// Map runs a statement that returns two columns and returns them as keys and values. The first column is a unique
// text.
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

// Frozen calls do with a DB whose statements all see the same state of the database, and with the id of this state for other sessions. Only
// Do may be called on the DB, by one goroutine at a time.
func (db *DB) Frozen(ctx context.Context, do func(frozen *DB, state string) error) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			// The transaction is open for as long as somebody copies the database.
			for _, limit := range []string{"idle_in_transaction_session_timeout", "statement_timeout"} {
				if _, err := tx.Exec(ctx, "SET LOCAL "+limit+" = 0"); err != nil {
					return err
				}
			}

			var state string
			if err := tx.QueryRow(ctx, sqlExportState).Scan(&state); err != nil {
				return err
			}

			return do(&DB{frozen: tx}, state)
		})
	})
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

	err = do(conn)

	// The driver ends a write by a deadline in the past if the context was cancelled, and reports that the network timed out.
	if _, isNetwork := errors.AsType[net.Error](err); isNetwork && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}

	return Translate(err)
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return db.with(ctx, func(conn *pgxpool.Conn) error { return conn.Ping(ctx) })
}
