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
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Operator runs commands on the database. Changes of accounts, tokens and datasets are audited
// with the actor "operator".
type Operator struct {
	config config.Operate
	out    io.Writer
}

// NewOperator reads the settings of commands from an environment in the format of os.Environ.
func NewOperator(environ []string, out io.Writer) (Operator, error) {
	c, err := config.Read[config.Operate](lookup(environ))

	return Operator{config: c, out: out}, err
}

// Migrate brings the schema up to date and prints what it did. If role is not empty, the role gets the rights that
// serving needs.
func (o Operator) Migrate(ctx context.Context, role string) error {
	if o.config.Database.Pooler && o.config.Database.DirectURL.Reveal() == "" {
		return fault.New(fault.Conflict, "QUERN_DATABASE_DIRECT_URL is required if QUERN_DATABASE_POOLER is true: migrations take a lock that a pooler cannot keep.")
	}

	if err := o.checkRole(ctx, role); err != nil {
		return err
	}

	applied, err := postgres.Migrate(ctx, directURL(o.config.Database), func() {
		_, _ = fmt.Fprintln(o.out, "waiting: another transaction uses a table that the migration changes")
	})
	for _, name := range applied {
		_, _ = fmt.Fprintln(o.out, "applied", name)
	}

	if err != nil {
		return err
	}

	if len(applied) == 0 {
		_, _ = fmt.Fprintln(o.out, "the schema is up to date")
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		if err := job.Migrate(ctx, db); err != nil {
			return err
		}

		if err := audit.Prepare(ctx, db, time.Now()); err != nil || role == "" {
			return err
		}

		return o.said(db.Grant(ctx, role), "the role %s has the rights to serve", role)
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

// DisableUser rejects the tokens of a user from their next request on.
func (o Operator) DisableUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Accounts{DB: db, Now: time.Now}.Disable(ctx, auth.ByCommand(), username), "%s is disabled", username)
	})
}

// EnableUser undoes DisableUser.
func (o Operator) EnableUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Accounts{DB: db, Now: time.Now}.Enable(ctx, auth.ByCommand(), username), "%s is enabled", username)
	})
}

// ReleaseUser frees a username for the next identity that signs in with it. What was shared with the name stays with
// the account that had the name, including what is shared while ReleaseUser runs.
func (o Operator) ReleaseUser(ctx context.Context, username string) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		shares := catalog.Catalog{DB: db, Now: time.Now}

		account, err := shares.AccountID(ctx, username)
		if err != nil {
			return err
		}

		bind := func() error {
			return errors.Join(shares.BindName(ctx, username, account), connection.BindName(ctx, db, username, account))
		}

		if err := bind(); err != nil {
			return err
		}

		newName, err := auth.Accounts{DB: db, Now: time.Now}.Release(ctx, username)
		if err == nil {
			err = bind()
		}

		return o.said(err, "%s is free; the account that had this name is now %s, is disabled, and keeps what it owns", username, newName)
	})
}

// RevokeToken revokes an API token and all tokens that were created with it.
func (o Operator) RevokeToken(ctx context.Context, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fault.Invalid("id", "is not a token id: take it from GET /user/tokens or from the log")
	}

	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return o.said(auth.Tokens{DB: db, Now: time.Now}.Revoke(ctx, parsed), "%s is revoked, and all tokens that were created with it", parsed)
	})
}

// RestoreDataset restores the dataset that was last deleted at OWNER/NAMESPACE/DATASET.
func (o Operator) RestoreDataset(ctx context.Context, path string) error {
	at, err := parsePath(path)
	if err != nil {
		return err
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error { return o.said(c.RestoreDataset(ctx, at), "%s is restored", at) })
}

// TransferDataset transfers OWNER/NAMESPACE/DATASET to another user.
func (o Operator) TransferDataset(ctx context.Context, path, newOwner string) error {
	at, err := parsePath(path)
	if err != nil {
		return err
	}

	return o.withCatalog(ctx, func(c catalog.Catalog) error {
		return o.said(c.TransferDataset(ctx, at, newOwner, moveTable(ctx)), "%s now belongs to %s", at, newOwner)
	})
}

// moveTable returns a function that changes the owner of everything that is stored about the rows of a dataset.
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

// withCatalog calls do with the catalog of the database.
func (o Operator) withCatalog(ctx context.Context, do func(c catalog.Catalog) error) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		return do(catalog.Catalog{DB: db, Now: time.Now, DeleteGrace: o.config.Data.DeleteGrace})
	})
}

func parsePath(text string) (catalog.Path, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return catalog.Path{}, fault.Invalid("path", "must be OWNER/NAMESPACE/DATASET")
	}

	return catalog.Path{Username: parts[0], Namespace: parts[1], Dataset: parts[2]}, nil
}

// Audit prints the audit entries of a user's data, newest first.
func (o Operator) Audit(ctx context.Context, username string, limit int) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		account, err := catalog.Catalog{DB: db, Now: time.Now}.AccountID(ctx, username)
		if err != nil {
			return err
		}

		entries, _, err := audit.Log{DB: db}.List(ctx, account, audit.Filter{}, audit.Position{}, limit)
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

// checkRole refuses a role that cannot get the rights, before the schema is changed.
func (o Operator) checkRole(ctx context.Context, role string) error {
	if role == "" {
		return nil
	}

	db, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()

	return db.CheckRole(ctx, role)
}

// open opens the database, past the pooler if a direct address is configured.
func (o Operator) open(ctx context.Context) (*postgres.DB, error) {
	c := o.config.Database
	c.URL, c.Pooler = config.NewSecret(directURL(c)), c.Pooler && c.DirectURL.Reveal() == ""

	return openDatabase(ctx, c)
}

func (o Operator) withDatabase(ctx context.Context, do func(db *postgres.DB) error) error {
	db, err := o.open(ctx)
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

// Explain returns the message of a fault with its details and its cause: the reader is the operator.
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
