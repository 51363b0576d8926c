package auth

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// account is a row of the table accounts.
type account struct {
	id       uuid.UUID
	username string
	issuer   string
	subject  string
	name     string
	email    string
	groups   []string
	seenAt   time.Time
	disabled bool
}

// belongsTo returns false for an account that was released from the identity.
func (a account) belongsTo(id identity) bool { return a.issuer == id.issuer && a.subject == id.subject }

// outdated reports whether the token has newer facts about the person than the account, or is newer than the
// account's last sign-in by more than after.
func (a account) outdated(id identity, after time.Duration) bool {
	differs := a.name != id.name || a.email != id.email || !slices.Equal(a.groups, id.groups)

	return id.issuedAt.After(a.seenAt) && (differs || id.issuedAt.Sub(a.seenAt) > after)
}

var usernamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,127}$`)

// Self means the caller wherever a username is expected. No account can have it as its username.
const Self = "self"

// createAccount creates the account at the first request of an identity. Of two concurrent first requests, the second
// waits for the first and returns its account.
func (a *Authenticator) createAccount(ctx context.Context, id identity, origin Origin) (*account, error) {
	if !usernamePattern.MatchString(id.username) || id.username == Self {
		return nil, unusableName("username.invalid", "The username from the identity provider is not valid here. Ask the operator of the service.")
	}

	now := a.now()
	made := &account{
		id: uuid.Must(uuid.NewV7()), username: id.username, issuer: id.issuer, subject: id.subject,
		name: id.name, email: id.email, groups: id.groups, seenAt: id.issuedAt,
	}

	err := a.db.InTx(ctx, func(tx postgres.Tx) error {
		if isNew, err := insertIdentity(ctx, tx, id, made.id); err != nil || !isNew {
			if err != nil {
				return err
			}

			first, err := selectIdentity(ctx, tx, id.issuer, id.subject)
			if err != nil {
				return err
			}

			if made, err = selectAccount(ctx, tx, first); err == nil && made == nil {
				err = fault.New(fault.Conflict, "The account is being changed by the operator. Try again.")
			}

			return err
		}

		if isFree, err := insertName(ctx, tx, id.username, made.id); err != nil || !isFree {
			if err != nil {
				return err
			}

			return unusableName("username.taken", "Another account has this username. Ask the operator of the service.")
		}

		if err := insertAccount(ctx, tx, *made, now); err != nil {
			return err
		}

		who := Principal{Account: made.id, Username: made.username, Origin: origin}

		return audit.WriteTx(ctx, tx, who.Audit(made.id, now, "account.create", accountTarget(made.id)))
	})
	if err != nil {
		return nil, err
	}

	return made, nil
}

func unusableName(code, message string) error {
	e := fault.New(fault.Forbidden, "This account cannot be used.")
	e.Subs = []fault.Sub{{Code: code, Message: message}}

	return e
}

// Accounts implements the operators' changes of accounts. Every change is audited.
type Accounts struct {
	DB  *postgres.DB
	Now func() time.Time
}

// Account is an account in the list for operators.
type Account struct {
	ID        uuid.UUID
	Username  string
	Name      string
	Email     string
	CreatedAt time.Time
	SeenAt    time.Time
	Disabled  bool
}

// List returns accounts in the order of their usernames, starting after the given username.
func (s Accounts) List(ctx context.Context, after string, limit int) (list []Account, err error) {
	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectAccounts(ctx, q, after, limit)

		return err
	})

	return list, err
}

// Disable makes all tokens of an account invalid from the next request on. by is who does it.
func (s Accounts) Disable(ctx context.Context, by Principal, username string) error {
	return s.change(ctx, by, username, "account.disable", func(tx postgres.Tx, id uuid.UUID) error {
		return updateDisabled(ctx, tx, id, new(s.Now()))
	})
}

// Enable reverses Disable.
func (s Accounts) Enable(ctx context.Context, by Principal, username string) error {
	return s.change(ctx, by, username, "account.enable", func(tx postgres.Tx, id uuid.UUID) error {
		return updateDisabled(ctx, tx, id, nil)
	})
}

// Release frees a username for the next identity that brings it. The account keeps what it owns under a new username
// that cannot sign in. The account is disabled and its tokens are revoked.
func (s Accounts) Release(ctx context.Context, username string) (newName string, err error) {
	err = s.change(ctx, ByCommand(), username, "account.release", func(tx postgres.Tx, id uuid.UUID) error {
		newName = fmt.Sprintf("released-%s", id)

		return releaseAccount(ctx, tx, id, newName, s.Now())
	})

	return newName, err
}

// Export records that an operator copies all that an account has, and returns the id of the account.
func (s Accounts) Export(ctx context.Context, username string) (account uuid.UUID, err error) {
	err = s.change(ctx, ByCommand(), username, "account.export", func(_ postgres.Tx, id uuid.UUID) error {
		account = id

		return nil
	})

	return account, err
}

func (s Accounts) change(ctx context.Context, by Principal, username, action string, change func(tx postgres.Tx, id uuid.UUID) error) error {
	return s.DB.InTx(ctx, func(tx postgres.Tx) error {
		id, err := selectName(ctx, tx, username)
		if err != nil {
			return err
		}

		if id == uuid.Nil {
			return fault.New(fault.NotFound, fmt.Sprintf("There is no user %q.", username))
		}

		if err := change(tx, id); err != nil {
			return err
		}

		entry := by.Audit(id, s.Now(), action, accountTarget(id))
		entry.Detail = username

		return audit.WriteTx(ctx, tx, entry)
	})
}

func accountTarget(id uuid.UUID) audit.Target { return audit.Target{Kind: "account", ID: id.String()} }
