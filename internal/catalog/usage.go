package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Used is how much of something an account has used on a day.
type Used struct {
	Kind   string
	Amount int64
	Limit  *int64 // nil: no limit
}

// Usage is what an account has used today (UTC).
type Usage struct {
	Day   time.Time
	Items []Used
}

// Usage returns what the caller has used today and what is allowed.
func (c Catalog) Usage(ctx context.Context, who auth.Principal) (usage Usage, err error) {
	usage.Day = c.today()
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		usage.Items, err = selectUsage(ctx, q, who.Account, usage.Day)

		return err
	})

	return usage, err
}

// Reservation is what was counted before it was used. It is settled on the day on which it was made.
type Reservation struct {
	Day    time.Time
	Kind   string
	Amount int64
}

// ReserveTx counts what is about to be used, before it is known how much it will be.
//
// Faults: LimitExceeded, naming the limit.
func (c Catalog) ReserveTx(ctx context.Context, tx postgres.Tx, who auth.Principal, kind string, amount int64) (Reservation, error) {
	reserved := Reservation{Day: c.today(), Kind: kind, Amount: amount}

	used, err := addUsage(ctx, tx, who.Account, reserved, amount)
	if err == nil && used.Limit != nil && used.Amount > *used.Limit {
		err = exceeded(*used.Limit, kind)
	}

	return reserved, err
}

// SettleTx puts what was really used in the place of what was reserved.
func (c Catalog) SettleTx(ctx context.Context, tx postgres.Tx, who auth.Principal, reserved Reservation, used int64) error {
	_, err := addUsage(ctx, tx, who.Account, reserved, used-reserved.Amount)

	return err
}

// CountTx counts what was used without a reservation.
func (c Catalog) CountTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, kind string, amount int64) error {
	_, err := addUsage(ctx, tx, account, Reservation{Day: c.today(), Kind: kind}, amount)

	return err
}

// LeftTx refuses an account that has used up its limit. What is used after it goes beyond the limit.
//
// Faults: LimitExceeded.
func (c Catalog) LeftTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, kind string) error {
	used, err := addUsage(ctx, tx, account, Reservation{Day: c.today(), Kind: kind}, 0)
	if err == nil && used.Limit != nil && used.Amount >= *used.Limit {
		return exceeded(*used.Limit, kind)
	}

	return err
}

func exceeded(limit int64, kind string) error {
	return fault.New(fault.LimitExceeded, fmt.Sprintf("Today's limit of %d %s is reached. It begins anew at midnight UTC.", limit, kind))
}

func (c Catalog) today() time.Time { return c.now().Truncate(24 * time.Hour) }
