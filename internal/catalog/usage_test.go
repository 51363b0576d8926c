package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const kind = "questions"

func (b *bundle) limit(t tester, who auth.Principal, amount int64) {
	b.exec(t, `INSERT INTO limits (account_id, kind, amount) VALUES ($1, $2, $3)`, who.Account, kind, amount)
}

func (b *bundle) reserve(t tester, who auth.Principal, amount int64) (reserved Reservation, err error) {
	err = b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		reserved, err = b.catalog.ReserveTx(t.Context(), tx, who, kind, amount)

		return err
	})

	return reserved, err
}

func (b *bundle) settle(t tester, who auth.Principal, reserved Reservation, used int64) {
	require.NoError(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		return b.catalog.SettleTx(t.Context(), tx, who, reserved, used)
	}))
}

func (b *bundle) used(t tester, who auth.Principal) []Used {
	usage, err := b.catalog.Usage(t.Context(), who)
	require.NoError(t, err)

	return usage.Items
}

func TestUsage(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")

	require.Empty(t, b.used(t, ada))

	first, err := b.reserve(t, ada, 1000)
	require.NoError(t, err, "no limit, unless somebody sets one")
	b.settle(t, ada, first, 4)
	require.Equal(t, []Used{{Kind: kind, Amount: 4}}, b.used(t, ada))

	b.limit(t, ada, 10)
	b.limit(t, bob, 0)
	require.Equal(t, []Used{{Kind: kind, Limit: new(int64(0))}}, b.used(t, bob), "a limit shows before anything was used")

	second, err := b.reserve(t, ada, 6)
	require.NoError(t, err, "exactly the limit")

	_, err = b.reserve(t, ada, 1)
	require.Equal(t, fault.LimitExceeded, code(err))
	require.Contains(t, fault.From(err).Message, "10 questions")
	require.Equal(t, []Used{{Kind: kind, Amount: 10, Limit: new(int64(10))}}, b.used(t, ada), "what was refused does not count")

	b.settle(t, ada, second, 0)
	require.Equal(t, []Used{{Kind: kind, Amount: 4, Limit: new(int64(10))}}, b.used(t, ada))

	_, err = b.reserve(t, bob, 1)
	require.Equal(t, fault.LimitExceeded, code(err))
}

// TestUsageOverMidnight checks that settling a reservation on the next day does not change the usage of that day.
func TestUsageOverMidnight(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.limit(t, ada, 10)

	reserved, err := b.reserve(t, ada, 10)
	require.NoError(t, err)

	yesterday := b.catalog.today()
	b.passed.Add((24 * time.Hour).Milliseconds())
	b.settle(t, ada, reserved, 3)

	require.Equal(t, []Used{{Kind: kind, Limit: new(int64(10))}}, b.used(t, ada))
	require.Equal(t, 3, b.count(t, `SELECT amount FROM usage WHERE account_id = $1 AND day = $2`, ada.Account, yesterday))

	_, err = b.reserve(t, ada, 10)
	require.NoError(t, err, "a new day")
	_, err = b.reserve(t, ada, 1)
	require.Equal(t, fault.LimitExceeded, code(err))
}

// TestReserveAtOnce checks that concurrent reservations never exceed the limit.
func TestReserveAtOnce(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.limit(t, ada, 7)

	var racers []func() error
	for range 20 {
		racers = append(racers, func() error {
			_, err := b.reserve(t, ada, 1)

			return err
		})
	}

	given := 0

	for _, outcome := range atOnce(racers...) {
		if outcome == "" {
			given++
		} else {
			require.Equal(t, fault.LimitExceeded, outcome)
		}
	}

	require.Equal(t, 7, given)
	require.Equal(t, []Used{{Kind: kind, Amount: 7, Limit: new(int64(7))}}, b.used(t, ada))
}

// TestReserveGoesWithItsTransaction checks that a transaction that fails after a reservation uses nothing.
func TestReserveGoesWithItsTransaction(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	require.Error(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		if _, err := b.catalog.ReserveTx(t.Context(), tx, ada, kind, 5); err != nil {
			return err
		}

		return fault.New(fault.Conflict, "something else went wrong")
	}))
	require.Empty(t, b.used(t, ada))
}

func TestUsageWithoutReservation(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	count := func(amount int64) error {
		return b.db.InTx(t.Context(), func(tx postgres.Tx) error {
			if err := b.catalog.LeftTx(t.Context(), tx, ada.Account, kind); err != nil {
				return err
			}

			return b.catalog.CountTx(t.Context(), tx, ada.Account, kind, amount)
		})
	}

	require.NoError(t, count(7))
	b.limit(t, ada, 10)
	require.NoError(t, count(5), "the last one may go beyond it: nobody knows beforehand how much it takes")
	require.Equal(t, fault.LimitExceeded, fault.From(count(1)).Code)
	require.EqualValues(t, 12, b.used(t, ada)[0].Amount)
}
