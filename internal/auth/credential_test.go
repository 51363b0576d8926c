package auth

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// TestCredentials checks that callers are checked again against the current state, one by one and many at once.
func TestCredentials(t *testing.T) {
	t.Parallel()

	day := 24 * time.Hour

	for name, test := range map[string]struct {
		change func(t *testing.T, b *bundle, token Token)
		person bool // the person who signed in is still valid
		token  bool
		listed bool // returned by Lapsed, which does not check groups
	}{
		"nothing": {func(*testing.T, *bundle, Token) {}, true, true, false},
		"revoked": {func(t *testing.T, b *bundle, token Token) {
			t.Helper()
			require.NoError(t, b.tokens.Delete(t.Context(), b.ada, token.ID))
		}, true, false, true},
		"expired":    {func(_ *testing.T, b *bundle, _ Token) { b.now = b.now.Add(90 * day) }, true, false, true},
		"old groups": {func(_ *testing.T, b *bundle, _ Token) { b.now = b.now.Add(31 * day) }, true, false, false},
		"disabled": {func(t *testing.T, b *bundle, _ Token) {
			t.Helper()
			require.NoError(t, b.accounts.Disable(t.Context(), ByCommand(), "ada"))
		}, false, false, true},
		"left the groups": {leaveGroups, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := newBundle(t)
			token, bearer := b.create(t, b.ada, NewToken{Name: "x"})
			again := Credentials{DB: b.db, Now: func() time.Time { return b.now }, GroupsMaxAge: 30 * day}

			test.change(t, b, token)

			for valid, who := range map[*bool]Principal{&test.person: b.ada, &test.token: bearer} {
				err := again.Check(t.Context(), who)
				require.Equal(t, *valid, err == nil, err)
				require.Equal(t, !*valid, fault.Is(err, fault.Unauthorized))
			}

			stranger := Holder{Account: uuid.New()}
			want := []Holder{stranger}

			if !test.person {
				want = append(want, b.ada.Holder())
			}

			if test.listed {
				want = append(want, bearer.Holder())
			}

			lapsed, err := again.Lapsed(t.Context(), []Holder{b.ada.Holder(), bearer.Holder(), stranger})
			require.NoError(t, err)
			require.ElementsMatch(t, want, lapsed)
		})
	}
}

func leaveGroups(t *testing.T, b *bundle, _ Token) {
	t.Helper()

	b.now = b.now.Add(time.Minute)
	id := b.identity("ada")
	id.groups = []string{}

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error { return updateSeen(t.Context(), q, b.ada.Account, id) }))
}
