package catalog

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func (b *bundle) limit(t tester, of LimitOf, amount int64) {
	require.NoError(t, b.catalog.SetLimit(t.Context(), auth.ByCommand(), Limit{Of: of, Kind: Questions, Amount: amount}))
}

// take counts a question.
func (b *bundle) take(t tester, who auth.Principal) error {
	return b.db.InTx(t.Context(), func(tx postgres.Tx) error { return b.catalog.TakeTx(t.Context(), tx, who.Account, Questions, Tokens) })
}

// call checks that tokens are left, and counts the tokens of a call.
func (b *bundle) call(t tester, who auth.Principal, tokens int64) error {
	return b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		if err := b.catalog.Left(t.Context(), tx, who.Account, Tokens); err != nil {
			return err
		}

		return b.catalog.Count(t.Context(), tx, who.Account, Tokens, tokens)
	})
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
	require.NoError(t, b.take(t, ada), "no limit, unless somebody sets one")
	require.Equal(t, []Used{{Kind: Questions, Amount: 1}}, b.used(t, ada))

	b.limit(t, LimitOf{User: "ada"}, 2)
	b.limit(t, LimitOf{User: "bob"}, 0)
	require.Equal(t, []Used{{Kind: Questions, Limit: new(int64(0))}}, b.used(t, bob), "a limit shows before anything was used")

	require.NoError(t, b.take(t, ada), "exactly the limit")

	var refused []Kind

	b.catalog.Refused = func(kind Kind) { refused = append(refused, kind) }
	err := b.take(t, ada)
	require.Equal(t, fault.RateLimited, code(err))
	require.Equal(t, []Kind{Questions}, refused)

	resets := b.catalog.today().AddDate(0, 0, 1)
	require.Contains(t, fault.From(err).Message, "2 questions a day is used up. It resets at "+resets.Format(time.RFC3339))
	require.Equal(t, []fault.Sub{{Code: "limit.questions", Message: "2 used of 2, resets at " + resets.Format(time.RFC3339)}}, fault.From(err).Subs)
	require.InDelta(t, resets.Sub(b.catalog.now()), fault.From(err).RetryAfter, float64(time.Minute))
	require.Equal(t, []Used{{Kind: Questions, Amount: 2, Limit: new(int64(2))}}, b.used(t, ada), "what was refused does not count")
	require.Equal(t, fault.RateLimited, code(b.take(t, bob)))

	b.passed.Add((24 * time.Hour).Milliseconds())
	require.Equal(t, []Used{{Kind: Questions, Limit: new(int64(2))}}, b.used(t, ada))
	require.NoError(t, b.take(t, ada), "a new day")
}

// TestTakeAtOnce checks that concurrent transactions never exceed the limit.
func TestTakeAtOnce(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.limit(t, LimitOf{User: "ada"}, 7)

	var racers []func() error
	for range 20 {
		racers = append(racers, func() error { return b.take(t, ada) })
	}

	given := 0

	for _, outcome := range atOnce(racers...) {
		if outcome == "" {
			given++
		} else {
			require.Equal(t, fault.RateLimited, outcome)
		}
	}

	require.Equal(t, 7, given)
	require.Equal(t, []Used{{Kind: Questions, Amount: 7, Limit: new(int64(7))}}, b.used(t, ada))
}

// TestTakeGoesWithItsTransaction checks that a transaction that fails afterwards uses nothing.
func TestTakeGoesWithItsTransaction(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	require.Error(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		if err := b.catalog.TakeTx(t.Context(), tx, ada.Account, Questions); err != nil {
			return err
		}

		return fault.New(fault.Conflict, "something else went wrong")
	}))
	require.Empty(t, b.used(t, ada))
}

func TestUsageThatIsKnownAfterwards(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")

	require.NoError(t, b.call(t, ada, 7))
	require.Empty(t, b.used(t, ada), "what an erased account used is not kept")
	b.exec(t, `INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES ($1, 'person', 'ada', '', '', '', '', '{}', now(), now())`, ada.Account)

	require.NoError(t, b.call(t, ada, 7))
	require.NoError(t, b.catalog.SetLimit(t.Context(), auth.ByCommand(), Limit{Of: LimitOf{Everyone: true}, Kind: Tokens, Amount: 10}))
	require.NoError(t, b.take(t, ada))
	require.NoError(t, b.call(t, ada, 5), "the last one may exceed the limit: its amount is not known before")
	require.Equal(t, fault.RateLimited, code(b.call(t, ada, 1)))
	require.Equal(t, fault.RateLimited, code(b.take(t, ada)), "a question needs tokens")
	require.Equal(t, []Used{{Kind: Questions, Amount: 1}, {Kind: Tokens, Amount: 12, Limit: new(int64(10))}}, b.used(t, ada))
}

// TestWhichLimitApplies checks the precedence of limits: user, the highest of the groups, everyone.
func TestWhichLimitApplies(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ada := b.signIn(t, "ada")
	b.exec(t, `INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES ($1, 'person', 'ada', '', '', '', '', '{analysts,staff}', now(), now())`, ada.Account)

	limit := func() *int64 {
		for _, used := range b.used(t, ada) {
			return used.Limit
		}

		return nil
	}

	require.Nil(t, limit())
	b.limit(t, LimitOf{Everyone: true}, 1)
	require.EqualValues(t, 1, *limit())
	b.limit(t, LimitOf{Group: "guests"}, 9)
	require.EqualValues(t, 1, *limit(), "not a group of hers")
	b.limit(t, LimitOf{Group: "staff"}, 3)
	b.limit(t, LimitOf{Group: "analysts"}, 5)
	require.EqualValues(t, 5, *limit(), "the highest")
	b.limit(t, LimitOf{User: "ADA"}, 2)
	require.EqualValues(t, 2, *limit(), "her own, though it is lower")

	list, next, err := b.catalog.Limits(t.Context(), nil, 10)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, "everyone 1, group analysts 5, group guests 9, group staff 3, user ada 2", limitTexts(list))

	require.NoError(t, b.catalog.UnsetLimit(t.Context(), auth.ByCommand(), LimitOf{User: "ada"}, Questions))
	require.EqualValues(t, 5, *limit())
	require.Equal(t, fault.NotFound, code(b.catalog.UnsetLimit(t.Context(), auth.ByCommand(), LimitOf{User: "ada"}, Questions)))
	b.limit(t, LimitOf{Group: "staff"}, Unlimited)
	require.Nil(t, limit(), "no limit is the highest")
	require.NoError(t, b.catalog.UnsetLimit(t.Context(), auth.ByCommand(), LimitOf{Group: "staff"}, Questions))
	require.EqualValues(t, 5, *limit())
	b.limit(t, LimitOf{User: "ada"}, Unlimited)
	require.Nil(t, limit())

	require.Equal(t, fault.NotFound, code(b.catalog.SetLimit(t.Context(), auth.ByCommand(), Limit{Of: LimitOf{User: "nobody"}, Kind: Questions})))
	require.Equal(t, fault.ValidationFailed, code(b.catalog.SetLimit(t.Context(), auth.ByCommand(), Limit{Kind: Questions})), "an empty name must not limit everyone")
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM audit WHERE account_id = $1 AND action LIKE 'limit.%'`, ada.Account))
}

func limitTexts(list []Limit) string {
	var texts []string
	for _, l := range list {
		texts = append(texts, l.Of.String()+" "+strconv.FormatInt(l.Amount, 10))
	}

	return strings.Join(texts, ", ")
}
