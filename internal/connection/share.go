package connection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// NewShare is a request to let a user or a group use a connection.
type NewShare struct {
	Grantee string
	Once    auth.Once
}

// Share lets a user or a group read with a connection and make sources with it. It gives neither the secret nor the right to change the connection.
//
// Faults: NotFound, Forbidden, ValidationFailed if the grantee is the caller or the name is not valid.
func (c *Connections) Share(ctx context.Context, who auth.Principal, id uuid.UUID, want NewShare) error {
	return c.grant(ctx, who, id, want.Grantee, event.ConnectionShared, func(tx postgres.Tx, of Connection, subjects []auth.Subject) (isDone bool, err error) {
		if _, repeated, err := want.Once.ClaimTx(ctx, tx, of.Account, who, of.ID, c.now()); err != nil || repeated {
			return false, err
		}

		// The first subject receives the grant; the others are subjects that earlier grants to the same name may have.
		if _, err := deleteGrants(ctx, tx, of, subjects[1:]); err != nil {
			return false, err
		}

		return true, insertGrant(ctx, tx, of, subjects[0])
	})
}

// Unshare ends what Share began. Sources that used the connection stop before they read the next file.
//
// Faults: NotFound also if there is no such share, Forbidden.
func (c *Connections) Unshare(ctx context.Context, who auth.Principal, id uuid.UUID, grantee string) error {
	none := fault.New(fault.NotFound, fmt.Sprintf("The connection is not shared with %q. GET /connections/%s/shares lists its shares.", grantee, id))

	err := c.grant(ctx, who, id, grantee, event.ConnectionUnshared, func(tx postgres.Tx, of Connection, subjects []auth.Subject) (isDone bool, err error) {
		removed, err := deleteGrants(ctx, tx, of, subjects)
		if err == nil && removed == 0 {
			err = none
		}

		return true, err
	})
	if fault.Is(err, fault.ValidationFailed) {
		return none // no share can have that name
	}

	return err
}

// grant changes the grants of a connection of the caller, with an audit entry and an event if do has done it.
func (c *Connections) grant(
	ctx context.Context, who auth.Principal, id uuid.UUID, grantee string, what event.Type, do func(tx postgres.Tx, of Connection, subjects []auth.Subject) (isDone bool, err error),
) error {
	if err := mayRead(who); err != nil {
		return err
	}

	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		// The lock lasts until the grant is committed, so that a concurrent delete either finds the grant or comes first.
		of, err := owned(ctx, tx, who, id, lock)
		if err == nil && !who.Administers(of.Account) {
			err = ownersRole()
		}

		if err != nil {
			return err
		}

		subjects, err := c.Catalog.Grantee(ctx, tx, who, grantee)
		if err != nil {
			return err
		}

		isDone, err := do(tx, of, subjects)
		if err != nil || !isDone {
			return err
		}

		told := event.Event{
			Account: of.Account, Type: what, At: c.now(), Subject: event.Subject{Kind: event.KindConnection, Account: of.Account, ID: of.ID},
			Data: event.Data{Connection: of.Name, ConnectionID: &of.ID, Grantee: grantee},
		}

		entry := who.Audit(of.Account, told.At, "share.revoke", of.audit())
		entry.Detail = grantee

		events := []event.Event{told}

		if what == event.ConnectionShared { // whoever may no longer see the connection gets no event about it
			entry.Action = "share.grant"
			told.Account = event.Inbox(subjects[0].Kind, subjects[0].ID)
			events = append(events, told)
		}

		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}

		return event.WriteTx(ctx, tx, events...)
	})
}

func ownersRole() error {
	return fault.New(fault.Forbidden, "Only the owner of a connection may share it (quern connection share). An API token needs the role owner for that.")
}

// Shares lists with whom a connection of the caller is shared, ordered by name.
//
// Faults: NotFound, Forbidden.
func (c *Connections) Shares(ctx context.Context, who auth.Principal, id uuid.UUID) (list []catalog.Share, err error) {
	if err := mayRead(who); err != nil {
		return nil, err
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		of, err := owned(ctx, q, who, id, selectOne)
		if err == nil && !who.Administers(of.Account) {
			err = ownersRole()
		}

		if err != nil {
			return err
		}

		subjects, err := selectGrants(ctx, q, of)
		if err != nil {
			return err
		}

		list, err = c.Catalog.Grantees(ctx, q, subjects)

		return err
	})

	return list, err
}

// finder reads one connection of an account.
type finder func(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Connection, error)

// owned returns a connection of the caller. Forbidden means that it is only shared with the caller.
func owned(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID, find finder) (Connection, error) {
	found, err := find(ctx, q, who.Account, id)
	if err != nil || found != nil {
		return present(found, err)
	}

	granter, err := selectGranter(ctx, q, who, id)
	if err == nil && granter != uuid.Nil {
		err = fault.New(fault.Forbidden, "The connection is shared with you: you can make sources with it, and only its owner may do this. The owner shares it with others by quern connection share.")
	}

	return present(nil, err)
}

// usable returns a connection that the caller may read with: one of the caller, or one that is shared with the caller.
func (c *Connections) usable(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Connection, error) {
	found, err := selectOne(ctx, q, who.Account, id)
	if err != nil || found != nil {
		return present(found, err)
	}

	granter, err := selectGranter(ctx, q, who, id)
	if err != nil || granter == uuid.Nil {
		return present(nil, err)
	}

	shared, err := present(selectOne(ctx, q, granter, id))
	if err != nil {
		return Connection{}, err
	}

	names, err := c.Catalog.Usernames(ctx, q, []uuid.UUID{granter})
	shared.Owner = names[granter]

	return shared, err
}

// shared returns connections that are shared with the caller and come after the given one, oldest first.
func (c *Connections) shared(ctx context.Context, q postgres.Querier, who auth.Principal, after uuid.UUID, limit int) (list []Connection, err error) {
	granted, err := selectGranted(ctx, q, who, after, limit)
	if err != nil {
		return nil, err
	}

	names, err := c.Catalog.Usernames(ctx, q, slices.Collect(maps.Keys(granted)))
	if err != nil {
		return nil, err
	}

	for account, ids := range granted {
		found, err := selectThese(ctx, q, account, ids)
		if err != nil {
			return nil, err
		}

		for _, one := range found {
			one.Owner = names[account]
			list = append(list, one)
		}
	}

	slices.SortFunc(list, Connection.compare)

	return list, nil
}

// Granted returns which of the connections are shared with the caller.
func Granted(ctx context.Context, q postgres.Querier, who auth.Principal, ids []uuid.UUID) ([]uuid.UUID, error) {
	return selectGrantedOf(ctx, q, who, ids)
}

// BindName turns grants to a username into grants to the account that has the username. This must be done before a username is released, or the next account with that
// username would inherit the grants.
func BindName(ctx context.Context, db *postgres.DB, username string, account uuid.UUID) error {
	return db.InTx(ctx, func(tx postgres.Tx) error { return bindGrants(ctx, tx, username, account) })
}
