package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"quern.dev/quern/internal/fault"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the schema up to date, under a lock, so that replicas may all try. It needs the
// direct address: a pooler in transaction mode cannot hold the lock. It returns what it applied.
func Migrate(ctx context.Context, url string) ([]string, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address is not valid")
	}

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

	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}

	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrating: %w", Translate(err))
	}

	var applied []string
	for _, result := range results {
		applied = append(applied, fmt.Sprintf("%s (%s)", result.Source.Path, result.Duration.Round(time.Millisecond)))
	}

	return applied, nil
}

// CheckSchema refuses a schema that this program cannot work with: an older one, or a newer one whose
// migrations say that programs of our age no longer fit.
func (db *DB) CheckSchema(ctx context.Context) error {
	want, err := latestMigration()
	if err != nil {
		return err
	}

	return db.Do(ctx, func(q Querier) error {
		var (
			exists                bool
			have, compatibleSince int64
		)

		if err := q.QueryRow(ctx, sqlSchemaExists).Scan(&exists); err != nil {
			return err
		}

		if exists {
			if err := q.QueryRow(ctx, sqlSchemaRead).Scan(&have, &compatibleSince); err != nil {
				return err
			}
		}

		switch {
		case have < want:
			return fault.New(fault.Unavailable, fmt.Sprintf("The database schema is at version %d, this program needs %d: run `quernd migrate`.", have, want))
		case compatibleSince > want:
			return fault.New(fault.Unavailable, fmt.Sprintf("The database schema (version %d) no longer works with this program: install a newer release.", have))
		default:
			return nil
		}
	})
}

// DeploymentID names this deployment, so that what lies elsewhere can be told to be ours.
func (db *DB) DeploymentID(ctx context.Context) (id string, err error) {
	err = db.Do(ctx, func(q Querier) error { return q.QueryRow(ctx, sqlDeploymentID).Scan(&id) })

	return id, err
}

func latestMigration() (int64, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations are embedded: %w", err)
	}

	latest, err := goose.NumericComponent(names[len(names)-1])
	if err != nil {
		return 0, fmt.Errorf("a migration without a number: %w", err)
	}

	return latest, nil
}

// MigrationsHash names the state of the migrations.
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
