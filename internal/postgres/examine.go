package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Condition is what the database says of itself, and of the role that asks.
type Condition struct {
	Version        int // 150004
	Encoding       string
	Role, Name     string // of the role, of the database
	Standby        bool   // it takes no writes
	MaxConnections int

	CanCreate bool  // the role may make tables
	Tables    int64 // that there are
	Closed    int64 // of these, those that the role may not read or add to

	Schema, Want   int64 // migrations: the last one applied, the last one of this program
	CompatibleFrom int64 // the oldest program that works with the schema
}

// Examine asks the database for its condition and changes nothing.
func (db *DB) Examine(ctx context.Context) (c Condition, err error) {
	if c.Want, err = latestMigration(); err != nil {
		return c, err
	}

	return c, db.Do(ctx, func(q Querier) error {
		if err := q.QueryRow(ctx, sqlCondition).Scan(&c.Version, &c.Encoding, &c.Role, &c.Name, &c.Standby, &c.MaxConnections, &c.CanCreate); err != nil {
			return err
		}

		if err := q.QueryRow(ctx, sqlTableRights).Scan(&c.Tables, &c.Closed); err != nil {
			return err
		}

		var exists, readable bool
		if err := q.QueryRow(ctx, sqlSchemaReadable).Scan(&exists, &readable); err != nil || !exists || !readable {
			return err
		}

		return q.QueryRow(ctx, sqlSchemaRead).Scan(&c.Schema, &c.CompatibleFrom)
	})
}

// Clock is the database's.
func (db *DB) Clock(ctx context.Context) (now time.Time, err error) {
	err = db.Do(ctx, func(q Querier) error { return q.QueryRow(ctx, sqlClock).Scan(&now) })

	return now, err
}

// Refusal is why a server that answers lets nobody in.
type Refusal int

const (
	NotRefused Refusal = iota
	BadPassword
	NoDatabase
	NoRights
)

// RefusalOf tells it from an error.
func RefusalOf(err error) Refusal {
	server, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return NotRefused
	}

	switch server.Code {
	case "28P01", "28000":
		return BadPassword
	case "3D000":
		return NoDatabase
	case "42501":
		return NoRights
	default:
		return NotRefused
	}
}
