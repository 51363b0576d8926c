package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase creates an empty database on the stack's PostgreSQL for a program; drop removes it.
func CreateDatabase(ctx context.Context, program string) (address string, drop func(), err error) {
	server, err := Lookup("QUERN_TEST_DATABASE_URL")
	if err != nil {
		return "", nil, err
	}

	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}

	u.Path = "/" + program + "_" + rand.Text()
	name := pgx.Identifier{u.Path[1:]}.Sanitize()

	if err := Execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("creating a database; if the stack is not running, run `make stack`: %w", err)
	}

	return u.String(), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()

		if err := Execute(ctx, server, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name)); err != nil {
			fmt.Fprintln(os.Stderr, "dropping the database:", err)
		}
	}, nil
}

// Execute runs a statement on a connection of its own.
func Execute(ctx context.Context, address, statement string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	_, err = conn.Exec(ctx, statement)

	return err
}
