package auth

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func TestFirstRequestsAtOnceMakeOneAccount(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	ids := make([]uuid.UUID, 8)

	var requests errgroup.Group
	for i := range ids {
		requests.Go(func() error {
			account, err := b.authenticator.accountOf(t.Context(), b.identity("bob"), Origin{})
			ids[i] = account.id

			return err
		})
	}

	require.NoError(t, requests.Wait())

	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
}

func TestUsernames(t *testing.T) {
	t.Parallel()

	b := newBundle(t)

	for username, code := range map[string]string{
		"ada": "username.taken", "": "username.invalid", "self": "username.invalid", "-x": "username.invalid", "a b": "username.invalid", "ä": "username.invalid",
	} {
		id := b.identity(username)
		id.subject = "somebody else"

		_, err := b.authenticator.accountOf(t.Context(), id, Origin{})
		require.Equal(t, fault.Forbidden, fault.From(err).Code, username)
		require.Equal(t, code, fault.From(err).Subs[0].Code, username)
	}

	renamed := b.identity("ada")
	renamed.username = "countess"

	account, err := b.authenticator.accountOf(t.Context(), renamed, Origin{})
	require.NoError(t, err)
	require.Equal(t, "ada", account.username, "a username is fixed at the first request")
}

func TestDisableEnableRelease(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	_, value, err := b.tokens.Create(t.Context(), b.ada, NewToken{Name: "t"})
	require.NoError(t, err)

	works := func() (bySignIn, byToken error) {
		_, bySignIn = b.authenticator.accountOf(t.Context(), b.identity("ada"), Origin{})
		_, byToken = b.authenticator.Authenticate(t.Context(), value, Origin{})

		return bySignIn, byToken
	}

	require.NoError(t, b.accounts.Disable(t.Context(), ByCommand(), "ada"))

	bySignIn, byToken := works()
	require.True(t, fault.Is(bySignIn, fault.Unauthorized))
	require.True(t, fault.Is(byToken, fault.Unauthorized))

	require.NoError(t, b.accounts.Enable(t.Context(), ByCommand(), "ada"))

	bySignIn, byToken = works()
	require.NoError(t, bySignIn)
	require.NoError(t, byToken)

	_, err = b.accounts.Release(t.Context(), "ada")
	require.NoError(t, err)

	newcomer := b.identity("ada")
	newcomer.subject = "somebody else"
	account, err := b.authenticator.accountOf(t.Context(), newcomer, Origin{})
	require.NoError(t, err)
	require.NotEqual(t, b.ada.Account, account.id)

	_, byToken = works()
	require.True(t, fault.Is(byToken, fault.Unauthorized))

	require.NoError(t, b.accounts.Enable(t.Context(), ByCommand(), "released-"+b.ada.Account.String()))
	bySignIn, _ = works()
	require.Equal(t, "username.taken", fault.From(bySignIn).Subs[0].Code, "the old identity no longer leads to the old account")
	require.NoError(t, b.accounts.Disable(t.Context(), ByCommand(), "released-"+b.ada.Account.String()))

	list, err := b.accounts.List(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "released-"+b.ada.Account.String(), list[1].Username)
	require.True(t, list[1].Disabled)

	require.True(t, fault.Is(b.accounts.Disable(t.Context(), ByCommand(), "nobody"), fault.NotFound))
	require.Equal(t, []string{"account.create", "account.disable", "account.disable", "account.enable", "account.enable", "account.release", "token.create"}, b.actions(t, b.ada.Account))
}

func (b *bundle) actions(t *testing.T, account uuid.UUID) (actions []string) {
	t.Helper()

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT array_agg(action ORDER BY action) FROM audit WHERE account_id = $1`, account).Scan(&actions)
	}))

	return actions
}

// TestGroupsOfAnAPIToken checks that an API token has the groups of its owner's last sign-in until their maximum age.
func TestGroupsOfAnAPIToken(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	_, value, err := b.tokens.Create(t.Context(), b.ada, NewToken{Name: "t"})
	require.NoError(t, err)

	groups := func() []string {
		who, err := b.authenticator.Authenticate(t.Context(), value, Origin{})
		require.NoError(t, err)

		return who.Groups
	}

	require.Equal(t, []string{"analysts"}, groups())

	older := b.identity("ada")
	older.groups, older.issuedAt = []string{"older"}, b.now.Add(-time.Minute)
	_, err = b.authenticator.accountOf(t.Context(), older, Origin{})
	require.NoError(t, err)
	require.Equal(t, []string{"analysts"}, groups(), "an older statement of the issuer does not undo a newer one")

	b.now = b.now.Add(time.Minute)
	moved := b.identity("ada")
	moved.groups = []string{"finance"}
	_, err = b.authenticator.accountOf(t.Context(), moved, Origin{})
	require.NoError(t, err)
	require.Equal(t, []string{"finance"}, groups())

	b.now = b.now.Add(31 * 24 * time.Hour)
	require.Empty(t, groups())

	moved.issuedAt = b.now
	_, err = b.authenticator.accountOf(t.Context(), moved, Origin{})
	require.NoError(t, err)
	require.Equal(t, []string{"finance"}, groups(), "a sign-in renews them")
}

func TestPrincipal(t *testing.T) {
	t.Parallel()

	id := uuid.New()
	person := Principal{Account: id, Username: "ada", Groups: []string{"analysts"}}
	require.Equal(t, []Subject{
		{Kind: SubjectAccount, ID: id.String()}, {Kind: SubjectName, ID: "ada"}, {Kind: SubjectGroup, ID: "analysts"},
	}, person.Subjects())
	require.True(t, person.Administers(id))
	require.False(t, person.Administers(uuid.New()))

	editor := Principal{Account: id, Token: &Grant{Role: Editor}}
	require.False(t, editor.Administers(id), "an editor's token does not administer its own account")

	restricted := Principal{Account: id, Token: &Grant{Role: Owner, Restricted: true}}
	require.Equal(t, Editor, restricted.Ceiling())
}
