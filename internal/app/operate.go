package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Operator runs commands on the database. Each is audited with the actor "operator".
type Operator struct {
	config config.Operate
	out    io.Writer
}

// NewOperator reads the settings that commands need from an environment as os.Environ gives it.
func NewOperator(environ []string, out io.Writer) (Operator, error) {
	c, err := config.Read[config.Operate](lookup(environ))

	return Operator{config: c, out: out}, err
}

// Migrate brings the schema up to date and says what it did.
func (o Operator) Migrate(ctx context.Context) error {
	applied, err := postgres.Migrate(ctx, directURL(o.config.Database))
	if err != nil {
		return err
	}

	for _, name := range applied {
		_, _ = fmt.Fprintln(o.out, "applied", name)
	}

	if len(applied) == 0 {
		_, _ = fmt.Fprintln(o.out, "the schema is up to date")
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		if err := job.Migrate(ctx, db); err != nil {
			return err
		}

		return audit.Prepare(ctx, db, time.Now())
	})
}

const usersPage = 500

// ListUsers prints every account.
func (o Operator) ListUsers(ctx context.Context) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "USERNAME\tEMAIL\tCREATED\tSEEN\tSTATE")

		accounts := auth.Accounts{DB: db, Now: time.Now}

		for after, more := "", true; more; {
			page, err := accounts.List(ctx, after, usersPage)
			if err != nil {
				return err
			}

			for _, a := range page {
				state := "enabled"
				if a.Disabled {
					state = "disabled"
				}

				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", a.Username, a.Email,
					a.CreatedAt.Format(time.RFC3339), a.SeenAt.Format(time.RFC3339), state)
				after = a.Username
			}

			more = len(page) == usersPage
		}

		return table.Flush()
	})
}

// DisableUser stops a user's tokens with their next request.
func (o Operator) DisableUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Accounts{DB: db, Now: time.Now}.Disable(ctx, username), "%s is disabled", username)
	})
}

// EnableUser undoes DisableUser.
func (o Operator) EnableUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Accounts{DB: db, Now: time.Now}.Enable(ctx, username), "%s is enabled", username)
	})
}

// ReleaseUser frees a username for the next identity that brings it. What was shared with the name stays
// with the account that had it, also what is shared while this runs.
func (o Operator) ReleaseUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		shares := catalog.Catalog{DB: db, Now: time.Now}

		account, err := shares.AccountID(ctx, username)
		if err != nil {
			return err
		}

		if account == uuid.Nil {
			return noUser(username)
		}

		if err := shares.BindName(ctx, username, account); err != nil {
			return err
		}

		newName, err := auth.Accounts{DB: db, Now: time.Now}.Release(ctx, username)
		if err == nil {
			err = shares.BindName(ctx, username, account)
		}

		return o.said(err, "%s is free; the account that had it is now %s, disabled, and keeps what it owns", username, newName)
	})
}

// RevokeToken revokes an API token and all that were made with it.
func (o Operator) RevokeToken(ctx context.Context, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fault.Invalid("id", "is not a token id: take it from GET /user/tokens or from the log")
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Tokens{DB: db, Now: time.Now}.Revoke(ctx, parsed), "%s is revoked, and all that were made with it", parsed)
	})
}

// RestoreDataset brings back what was last deleted at OWNER/NAMESPACE/DATASET.
func (o Operator) RestoreDataset(ctx context.Context, path string) error {
	at, err := parsePath(path)
	if err != nil {
		return err
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(catalog.Catalog{DB: db, Now: time.Now}.RestoreDataset(ctx, at, o.config.Data.DeleteGrace), "%s is restored", at)
	})
}

// TransferDataset hands OWNER/NAMESPACE/DATASET over to another user.
func (o Operator) TransferDataset(ctx context.Context, path, newOwner string) error {
	at, err := parsePath(path)
	if err != nil {
		return err
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(catalog.Catalog{DB: db, Now: time.Now}.TransferDataset(ctx, at, newOwner, moveTable(ctx)), "%s now belongs to %s", at, newOwner)
	})
}

// moveTable lets everything that is kept about a dataset's rows change its owner.
func moveTable(ctx context.Context) func(tx postgres.Tx, from, to lake.Table) error {
	return func(tx postgres.Tx, from, to lake.Table) error {
		if err := lake.MoveTableTx(ctx, tx, from, to); err != nil {
			return err
		}

		if err := upload.MoveTx(ctx, tx, from.Account, to.Account, to.Dataset); err != nil {
			return err
		}

		return ingest.MoveTx(ctx, tx, from, to)
	}
}

func noUser(username string) error {
	return fault.New(fault.NotFound, fmt.Sprintf("There is no user %q.", username))
}

func parsePath(text string) (catalog.Path, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return catalog.Path{}, fault.Invalid("path", "must be OWNER/NAMESPACE/DATASET")
	}

	return catalog.Path{Username: parts[0], Namespace: parts[1], Dataset: parts[2]}, nil
}

// Audit prints what happened to a user's data, newest first.
func (o Operator) Audit(ctx context.Context, username string, limit int) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		account, err := catalog.Catalog{DB: db, Now: time.Now}.AccountID(ctx, username)
		if err != nil {
			return err
		}

		if account == uuid.Nil {
			return noUser(username)
		}

		entries, _, err := audit.Log{DB: db}.List(ctx, account, audit.Position{}, limit)
		if err != nil {
			return err
		}

		table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "AT\tWHO\tACTION\tTARGET\tDETAIL\tADDRESS\tREQUEST")

		for _, e := range entries {
			target := strings.Trim(e.Target.Namespace+"/"+e.Target.Dataset, "/")
			if target == "" {
				target = e.Target.ID
			}

			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Format(time.RFC3339), e.Actor, e.Action, target, e.Detail, e.Address, e.RequestID)
		}

		return table.Flush()
	})
}

func (o Operator) withDatabase(ctx context.Context, do func(db *postgres.DB) error) error {
	c := o.config.Database
	c.URL, c.Pooler = config.NewSecret(directURL(c)), false

	db, err := openDatabase(ctx, c)
	if err != nil {
		return err
	}
	defer db.Close()

	if err := db.CheckSchema(ctx); err != nil {
		return err
	}

	return do(db)
}

func (o Operator) said(err error, format string, args ...any) error {
	if err == nil {
		_, _ = fmt.Fprintf(o.out, format+"\n", args...)
	}

	return err
}

// Explain gives the message of a fault with its reasons, and the cause too: the reader is the operator.
func Explain(err error) string {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}

	parts := []string{e.Message}
	for _, sub := range e.Subs {
		parts = append(parts, sub.Code+" "+sub.Message+".")
	}

	if cause := errors.Unwrap(e); cause != nil {
		parts = append(parts, "("+cause.Error()+")")
	}

	return strings.Join(parts, " ")
}
