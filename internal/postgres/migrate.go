package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"quern.dev/quern/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// A migration that waits for a table makes all later statements on the table wait behind it. So it gives up soon, and
// tries again until the transaction that uses the table has ended.
const (
	tableWait   = 500 * time.Millisecond
	tablePause  = 2 * time.Second
	tablesTries = 300
)

// Migrate migrates the schema to the current version, under a lock, so that all replicas may call it at once. It
// needs the direct URL, because a pooler in transaction mode cannot hold the lock. It calls busy before it waits for
// another transaction. It returns the migrations that it applied.
func Migrate(ctx context.Context, url string, busy func()) (applied []string, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errBadAddress
	}

	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(tableWait.Milliseconds(), 10)

	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()

	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("preparing the lock: %w", err)
	}

	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}

	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}

	for try := 1; ; try++ {
		results, err := provider.Up(ctx)
		if partial, is := errors.AsType[*goose.PartialError](err); is {
			results = partial.Applied
		}

		for _, result := range results {
			applied = append(applied, fmt.Sprintf("%s (%s)", result.Source.Path, result.Duration.Round(time.Millisecond)))
		}

		switch {
		case err == nil:
			return applied, nil
		case !LockTimedOut(err):
			return applied, fmt.Errorf("migrating: %w", Translate(err))
		case try == tablesTries:
			return applied, fault.Wrap(err, fault.Conflict,
				"Another transaction uses a table that the migration changes, for example a backup. Run `quernd migrate` again when it has ended.")
		case try == 1:
			busy()
		}

		select {
		case <-ctx.Done():
			return applied, ctx.Err()
		case <-time.After(tablePause):
		}
	}
}

// CheckSchema returns a fault for a schema that this program cannot work with: an older one, or a newer one whose
// migrations declare that this program no longer works with it.
func (db *DB) CheckSchema(ctx context.Context) error {
	s, err := db.schema(ctx)

	switch {
	case err != nil:
		return err
	case s.have < s.want:
		return fault.New(fault.Unavailable, fmt.Sprintf("The database schema is at version %d, this program needs %d: run `quernd migrate`.", s.have, s.want))
	default:
		return s.outdated()
	}
}

// Outdated returns the reason why this program must stop because the schema is too new, or a nil reason if it may
// continue.
func (db *DB) Outdated(ctx context.Context) (reason, err error) {
	s, err := db.schema(ctx)
	if err != nil {
		return nil, err
	}

	return s.outdated(), nil
}

// schemaState contains the version of the schema and that of this program.
type schemaState struct{ have, compatibleFrom, want int64 }

func (s schemaState) outdated() error {
	if s.compatibleFrom <= s.want {
		return nil
	}

	return fault.New(fault.Unavailable, fmt.Sprintf("The database schema (version %d) no longer works with this program: install a newer release.", s.have))
}

func (db *DB) schema(ctx context.Context) (s schemaState, err error) {
	numbers, err := migrationNumbers()
	if err != nil {
		return s, err
	}

	s.want = numbers[len(numbers)-1]

	return s, db.Do(ctx, func(q Querier) error {
		var exists bool
		if err := q.QueryRow(ctx, sqlSchemaExists).Scan(&exists); err != nil || !exists {
			return err
		}

		return q.QueryRow(ctx, sqlSchemaRead, numbers).Scan(&s.have, &s.compatibleFrom)
	})
}

// migrationNumbers returns the numbers of the migrations of this program, in order.
func migrationNumbers() (numbers []int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return nil, errors.Join(errors.New("no migrations are embedded"), err)
	}

	for _, name := range names {
		number, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("a migration without a number: %w", err)
		}

		numbers = append(numbers, number)
	}

	return numbers, nil
}

// MigrationsHash returns a hash of all migrations.
func MigrationsHash() (string, error) {
	hash := sha256.New()

	err := fs.WalkDir(migrations, "migrations", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := migrations.ReadFile(path)
		hash.Write(content)

		return err
	})

	return hex.EncodeToString(hash.Sum(nil)), err
}
