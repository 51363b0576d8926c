package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Kind is something that is counted for each account and can be limited.
type Kind string

// The kinds. All but StoredBytes count from midnight to midnight UTC.
const (
	Questions    Kind = "questions"
	Tokens       Kind = "tokens"       // of language models
	QuerySeconds Kind = "querySeconds" // time that statements ran; milliseconds in the database
	ScannedBytes Kind = "scannedBytes" // data files that statements read
	StoredBytes  Kind = "storedBytes"  // what is stored now: it is computed, not counted
)

// Kinds returns all kinds, in the order in which they are shown.
func Kinds() []Kind { return []Kind{Questions, Tokens, QuerySeconds, ScannedBytes, StoredBytes} }

// unit returns the number by which the database multiplies the amounts that are shown.
func (k Kind) unit() int64 {
	if k == QuerySeconds {
		return 1000
	}

	return 1
}

// Resets reports whether the kind counts what is used in a day.
func (k Kind) Resets() bool { return k != StoredBytes }

// what returns the name of a kind for messages.
func (k Kind) what() string {
	switch k {
	case Tokens:
		return "tokens of language models"
	case QuerySeconds:
		return "seconds of statements"
	case ScannedBytes:
		return "bytes that statements read"
	default:
		return string(k)
	}
}

// Used is the amount of one kind that an account has used on a day.
type Used struct {
	Kind   Kind
	Amount int64
	Limit  *int64 // nil means no limit
}

// shown returns the amounts in the unit in which they are shown.
func (u Used) shown() Used {
	unit := u.Kind.unit()
	if u.Amount /= unit; u.Limit != nil {
		u.Limit = new(*u.Limit / unit)
	}

	return u
}

// Usage is what an account has used today (UTC).
type Usage struct {
	Day   time.Time
	Items []Used // without those that have neither a limit nor an amount
}

// Usage returns what the caller has used today, and the limits.
func (c Catalog) Usage(ctx context.Context, who auth.Principal) (usage Usage, err error) {
	usage.Day = c.today()
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		if usage.Items, err = selectUsage(ctx, q, who.Account, usage.Day, Kinds()); err != nil {
			return err
		}

		for i := range usage.Items {
			if item := &usage.Items[i]; item.Kind == StoredBytes {
				item.Amount, err = selectStored(ctx, q, who.Account)
			}
		}

		return err
	})
	usage.Items = slices.DeleteFunc(usage.Items, func(u Used) bool { return u.Amount == 0 && u.Limit == nil })

	for i, item := range usage.Items {
		usage.Items[i] = item.shown()
	}

	return usage, err
}

// TakeTx counts one of a kind, and fails above its limit. It locks the row of the account, the day and the kind until the transaction ends, so
// concurrent transactions never exceed the limit together. It also fails if one of the other kinds is used up. It is one statement.
//
// Faults: RateLimited.
func (c Catalog) TakeTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, kind Kind, others ...Kind) error {
	found, err := takeOne(ctx, tx, account, c.today(), append([]Kind{kind}, others...))
	if err != nil {
		return err
	}

	if first := found[0]; first.Limit != nil && first.Amount > *first.Limit {
		first.Amount-- // without the one that is refused

		return c.refuse(first)
	}

	return c.left(found[1:])
}

// Left fails if an account has used up its limit of one of the kinds. Work that begins after the check can exceed the limit, because
// its amount is known only at its end.
//
// Faults: RateLimited.
func (c Catalog) Left(ctx context.Context, q postgres.Querier, account uuid.UUID, kinds ...Kind) error {
	found, err := selectUsage(ctx, q, account, c.today(), kinds)
	if err != nil {
		return err
	}

	return c.left(found)
}

func (c Catalog) left(found []Used) error {
	for _, used := range found {
		if used.Limit != nil && used.Amount >= *used.Limit {
			return c.refuse(used)
		}
	}

	return nil
}

// RoomTx fails if an account would exceed its limit by storing the given number of additional bytes. It adds up what the account stores only
// if there is a limit. If the caller is not the owner of the account, the message contains no amounts.
//
// Faults: LimitExceeded.
func (c Catalog) RoomTx(ctx context.Context, tx postgres.Tx, who auth.Principal, account uuid.UUID, more int64) error {
	stored, err := selectRoom(ctx, tx, account)
	if err != nil || stored.Limit == nil || stored.Amount+more <= *stored.Limit {
		return err
	}

	if c.Refused != nil {
		c.Refused(StoredBytes)
	}

	if who.Account != account {
		return fault.New(fault.LimitExceeded, "The owner of the dataset may not store more. The owner can delete datasets to make room, or ask the operator of the service.")
	}

	e := fault.New(fault.LimitExceeded, fmt.Sprintf("You may store %d bytes. You store %d, and this needs %d more. Delete datasets or abort uploads that you do not need, or load smaller files.",
		*stored.Limit, stored.Amount, more))
	e.Subs = []fault.Sub{{Code: "limit." + string(StoredBytes), Message: fmt.Sprintf("%d stored of %d", stored.Amount, *stored.Limit)}}

	return e
}

// Count counts an amount that was used.
func (c Catalog) Count(ctx context.Context, q postgres.Querier, account uuid.UUID, kind Kind, amount int64) error {
	return addUsage(ctx, q, account, c.today(), []Kind{kind}, []int64{amount})
}

// refuse returns the fault for a limit of a day that is used up.
func (c Catalog) refuse(used Used) error {
	if c.Refused != nil {
		c.Refused(used.Kind)
	}

	used = used.shown()
	resets := c.today().AddDate(0, 0, 1)
	limit := strconv.FormatInt(*used.Limit, 10)

	e := fault.New(fault.RateLimited, fmt.Sprintf("Your limit of %s %s a day is used up. It resets at %s. GET /user/usage and quern usage show your limits.",
		limit, used.Kind.what(), resets.Format(time.RFC3339)))
	e.Subs = []fault.Sub{{Code: "limit." + string(used.Kind), Message: fmt.Sprintf("%d used of %s, resets at %s", used.Amount, limit, resets.Format(time.RFC3339))}}
	e.RetryAfter = max(time.Second, resets.Sub(c.now()))

	return e
}

func (c Catalog) today() time.Time { return c.now().UTC().Truncate(24 * time.Hour) }
