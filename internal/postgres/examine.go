package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Condition describes the database and the role of the connection.
type Condition struct {
	Version        int // for example 150004
	Encoding       string
	Role, Name     string // names of the role and the database
	Standby        bool   // does not accept writes
	MaxConnections int
	Unlimited      bool // statements have no timeout

	CanCreate   bool     // the role may create tables
	ActsAsOwner bool     // the role has all rights of the owner of the tables
	Missing     []string // rights that the service needs and the role lacks: "USAGE on river_job_id_seq"
	Excess      []string // rights that the serving role must not have but has: "DELETE on audit"

	Schema, Want   int64 // the last applied migration; the last migration of this program
	CompatibleFrom int64 // the oldest program that works with the schema
}

// Examine reads the condition of the database. It changes nothing.
func (db *DB) Examine(ctx context.Context) (c Condition, err error) {
	numbers, err := migrationNumbers()
	if err != nil {
		return c, err
	}

	c.Want = numbers[len(numbers)-1]

	return c, db.Do(ctx, func(q Querier) error {
		if err := q.QueryRow(ctx, sqlCondition).Scan(&c.Version, &c.Encoding, &c.Role, &c.Name, &c.Standby, &c.MaxConnections, &c.CanCreate, &c.Unlimited); err != nil {
			return err
		}

		if err := q.QueryRow(ctx, sqlActsAsOwner, c.Role).Scan(&c.ActsAsOwner); err != nil {
			return err
		}

		var err error
		if c.Missing, c.Excess, err = selectRights(ctx, q, c.Role); err != nil {
			return err
		}

		var exists, readable bool
		if err := q.QueryRow(ctx, sqlSchemaReadable).Scan(&exists, &readable); err != nil || !exists || !readable {
			return err
		}

		return q.QueryRow(ctx, sqlSchemaRead, numbers).Scan(&c.Schema, &c.CompatibleFrom)
	})
}

// Clock returns the time of the database server.
func (db *DB) Clock(ctx context.Context) (now time.Time, err error) {
	err = db.Do(ctx, func(q Querier) error { return q.QueryRow(ctx, sqlClock).Scan(&now) })

	return now, err
}

// Refusal is the reason why a server that answers refuses a connection.
type Refusal int

const (
	NotRefused Refusal = iota
	BadPassword
	NoDatabase
	NoRights
	IsPooler // it does not accept session settings
)

// RefusalOf returns the refusal that an error reports.
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
	case "08P01":
		return IsPooler
	default:
		return NotRefused
	}
}
