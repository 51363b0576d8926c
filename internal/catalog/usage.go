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

// Used is the amount of one kind that an account has used on a day.
type Used struct {
	Kind   string
	Amount int64
	Limit  *int64 // nil means no limit
}

// Usage is what an account has used today (UTC).
type Usage struct {
	Day   time.Time
	Items []Used
}

// Usage returns what the caller has used today, and the limits.
func (c Catalog) Usage(ctx context.Context, who auth.Principal) (usage Usage, err error) {
	usage.Day = c.today()
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		usage.Items, err = selectUsage(ctx, q, who.Account, usage.Day)

		return err
	})

	return usage, err
}

// Reservation is an amount that was counted before it was used. It is settled on the day on which it was made.
type Reservation struct {
	Day    time.Time
	Kind   string
	Amount int64
}

// ReserveTx counts an amount before it is used, when the actual amount is not known yet.
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

// SettleTx replaces a reserved amount with the amount that was actually used.
func (c Catalog) SettleTx(ctx context.Context, tx postgres.Tx, who auth.Principal, reserved Reservation, used int64) error {
	_, err := addUsage(ctx, tx, who.Account, reserved, used-reserved.Amount)

	return err
}

// CountTx counts an amount that was used without a reservation.
func (c Catalog) CountTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, kind string, amount int64) error {
	_, err := addUsage(ctx, tx, account, Reservation{Day: c.today(), Kind: kind}, amount)

	return err
}

// LeftTx fails if an account has used up its limit. An account that is below its limit may exceed it by what it uses
// next.
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
	return fault.New(fault.LimitExceeded, fmt.Sprintf("Today's limit of %d %s is reached. It resets at midnight UTC.", limit, kind))
}

func (c Catalog) today() time.Time { return c.now().Truncate(24 * time.Hour) }
