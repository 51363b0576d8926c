package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// Credentials checks callers again after their request was authenticated. Work that outlives a request, such as a run
// or an open stream, checks before each statement and before it delivers rows.
type Credentials struct {
	DB           *postgres.DB
	Now          func() time.Time
	GroupsMaxAge time.Duration
}

// Holder identifies a credential: an account, and the API token if one was used.
type Holder struct {
	Account uuid.UUID
	Token   uuid.UUID // uuid.Nil for a person who signed in
}

// Holder returns the credential of the caller.
func (p Principal) Holder() Holder {
	h := Holder{Account: p.Account}
	if p.Token != nil {
		h.Token = p.Token.ID
	}

	return h
}

// Check reads the caller's account and API token by their keys.
//
// Faults: Unauthorized if the account is disabled, or if the API token is revoked, has expired, or acts with a group
// that its owner no longer has.
func (c Credentials) Check(ctx context.Context, who Principal) error {
	return c.DB.Do(ctx, func(q postgres.Querier) error {
		if who.Token == nil {
			found, err := selectAccount(ctx, q, who.Account)
			if err == nil && (found == nil || found.disabled) {
				err = unauthorized(errors.New("the account is disabled"))
			}

			return err
		}

		found, err := selectTokenBearer(ctx, q, tokenKey{who.Account, who.Token.ID})
		if err != nil {
			return err
		}

		current, err := found.principal(c.Now(), c.GroupsMaxAge)
		if err == nil && slices.ContainsFunc(who.Groups, func(group string) bool { return !slices.Contains(current.Groups, group) }) {
			err = unauthorized(errors.New("the owner of the API token has left a group"))
		}

		return err
	})
}

// Current returns the caller that a credential stands for now: with the groups of the last sign-in, as an API token has them.
//
// Faults: Unauthorized if the account is disabled, or if the API token is revoked or has expired.
func (c Credentials) Current(ctx context.Context, holder Holder) (who Principal, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		if holder.Token != uuid.Nil {
			found, err := selectTokenBearer(ctx, q, tokenKey{holder.Account, holder.Token})
			if err == nil {
				who, err = found.principal(c.Now(), c.GroupsMaxAge)
			}

			return err
		}

		found, err := selectAccount(ctx, q, holder.Account)

		switch {
		case err != nil:
			return err
		case found == nil || found.disabled:
			return unauthorized(errors.New("the account is disabled"))
		}

		who = Principal{Account: found.id, Username: found.username, Name: found.name, Email: found.email, Groups: found.groups}
		if c.Now().Sub(found.seenAt) > c.GroupsMaxAge {
			who.Groups = []string{}
		}

		return nil
	})

	return who, err
}

// Lapsed returns the credentials that are no longer valid: the account is disabled, or the API token is revoked or
// has expired. It uses one statement for all credentials.
func (c Credentials) Lapsed(ctx context.Context, holders []Holder) (lapsed []Holder, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		lapsed, err = selectLapsed(ctx, q, holders, c.Now())

		return err
	})

	return lapsed, err
}
