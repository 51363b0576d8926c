package catalog

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Unlimited is the amount that exempts a user or a group from a more general limit.
const Unlimited = math.MaxInt64

// LimitOf says for whom a limit is: a user, each member of a group of the issuer, or each user.
type LimitOf struct {
	User     string
	Group    string
	Everyone bool
}

func (of LimitOf) String() string {
	switch {
	case of.User != "":
		return "user " + of.User
	case of.Group != "":
		return "group " + of.Group
	default:
		return "everyone"
	}
}

// subject returns the key of a limit for a group or for everyone.
func (of LimitOf) subject() auth.Subject {
	if of.Group != "" {
		return auth.Subject{Kind: auth.SubjectGroup, ID: of.Group}
	}

	return auth.Subject{Kind: subjectEveryone}
}

const subjectEveryone = "everyone"

// Limit is a limit that an operator has set.
type Limit struct {
	Of     LimitOf
	Kind   Kind
	Amount int64
}

// ParseKind returns the kind with this name.
//
// Faults: ValidationFailed.
func ParseKind(name string) (Kind, error) {
	if !slices.Contains(Kinds(), Kind(name)) {
		return "", fault.Invalid("kind", "must be one of "+KindNames())
	}

	return Kind(name), nil
}

// KindNames returns the names of all kinds as a text.
func KindNames() string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind))
	}

	return strings.Join(names, ", ")
}

// SetLimit sets a limit, or replaces it. It takes effect with the next check on every replica.
//
// Faults: NotFound for a user that does not exist; ValidationFailed.
func (c Catalog) SetLimit(ctx context.Context, by auth.Principal, set Limit) error {
	if unit := set.Kind.unit(); set.Amount != Unlimited {
		if set.Amount < 0 || set.Amount > (Unlimited-1)/unit {
			return fault.Invalid("amount", "is out of range")
		}

		set.Amount *= unit
	}

	return c.changeLimit(ctx, by, set, "limit.set", func(tx postgres.Tx, account uuid.UUID) error {
		if account != uuid.Nil {
			return upsertLimit(ctx, tx, account, set.Kind, set.Amount)
		}

		return upsertSharedLimit(ctx, tx, set.Of.subject(), set.Kind, set.Amount)
	})
}

// UnsetLimit removes a limit, so that the next more general one applies.
//
// Faults: NotFound.
func (c Catalog) UnsetLimit(ctx context.Context, by auth.Principal, of LimitOf, kind Kind) error {
	return c.changeLimit(ctx, by, Limit{Of: of, Kind: kind}, "limit.unset", func(tx postgres.Tx, account uuid.UUID) (err error) {
		var found bool
		if account != uuid.Nil {
			found, err = deleteLimit(ctx, tx, account, kind)
		} else {
			found, err = deleteSharedLimit(ctx, tx, of.subject(), kind)
		}

		if err == nil && !found {
			err = fault.New(fault.NotFound, fmt.Sprintf("There is no limit of %s for %s.", kind, of))
		}

		return err
	})
}

// changeLimit changes a limit in a transaction. The audit of a user records changes of the user's limit. Other limits belong to no account, so the
// audit of the operator records them; a command has none.
func (c Catalog) changeLimit(ctx context.Context, by auth.Principal, of Limit, action string, change func(tx postgres.Tx, account uuid.UUID) error) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		switch {
		case of.Of == LimitOf{}:
			return fault.Invalid("limit", "needs a user, a group or everyone")
		case of.Of.User == "":
			if err := change(tx, uuid.Nil); err != nil || by.Account == uuid.Nil {
				return err
			}

			entry := by.Audit(by.Account, c.now(), action, audit.Target{Kind: "account", ID: by.Account.String()})
			entry.Detail = fmt.Sprintf("%s of %s", of.Kind, of.Of)

			return audit.WriteTx(ctx, tx, entry)
		}

		account, err := accountOf(ctx, tx, of.Of.User)
		if err != nil {
			return err
		}

		if err := change(tx, account); err != nil {
			return err
		}

		entry := by.Audit(account, c.now(), action, audit.Target{Kind: "account", ID: account.String()})
		entry.Detail = string(of.Kind)

		return audit.WriteTx(ctx, tx, entry)
	})
}

// Limits returns a page of limits, starting after the given user and kind. The first page also has the limits of groups and of everyone. next
// is nil after the last page.
func (c Catalog) Limits(ctx context.Context, after *Limit, most int) (list []Limit, next *Limit, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		if after == nil {
			after = &Limit{}

			if list, err = selectSharedLimits(ctx, q); err != nil {
				return err
			}
		}

		page, err := selectLimits(ctx, q, *after, most)
		if len(page) == most {
			next = &page[most-1]
		}

		list = append(list, page...)

		return err
	})

	for i, l := range list {
		if l.Amount != Unlimited {
			list[i].Amount /= l.Kind.unit()
		}
	}

	return list, next, err
}

// UsageOf returns what a user has used today, and the limits that apply to the user.
//
// Faults: NotFound.
func (c Catalog) UsageOf(ctx context.Context, username string) (Usage, error) {
	account, err := c.AccountID(ctx, username)
	if err != nil {
		return Usage{}, err
	}

	return c.Usage(ctx, auth.Principal{Account: account})
}

// Resets returns when the counts of a day begin again.
func (u Usage) Resets() time.Time { return u.Day.AddDate(0, 0, 1) }

// Day is what an account used of a kind on a day.
type Day struct {
	Day      time.Time
	Account  uuid.UUID
	Username string // empty for an account that no longer exists
	Kind     Kind
	Amount   int64 // in thousandths of a second for QuerySeconds
}

// Days returns what all accounts used from one day to another. Both days are included. The entries are in the order of accounts, days and
// kinds, and start after the given entry. The zero Day is before all others.
func (c Catalog) Days(ctx context.Context, from, to time.Time, after Day, most int) (list []Day, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectDays(ctx, q, from, to, after, most)

		return err
	})

	return list, err
}
