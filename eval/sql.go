package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/stack"
)

// createDatabase makes an empty database on the stack's PostgreSQL; drop removes it.
func createDatabase(ctx context.Context) (address string, drop func(), err error) {
	server, err := stack.Lookup("QUERN_TEST_DATABASE_URL")
	if err != nil {
		return "", nil, err
	}

	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}

	u.Path = "/eval_" + rand.Text()
	name := pgx.Identifier{u.Path[1:]}.Sanitize()

	if err := execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("is the stack running? make stack: %w", err)
	}

	return u.String(), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()

		if err := execute(ctx, server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			fmt.Fprintln(os.Stderr, "eval: dropping the database:", err)
		}
	}, nil
}

func execute(ctx context.Context, address, statement string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	_, err = conn.Exec(ctx, statement)

	return err
}
