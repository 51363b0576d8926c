package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// bundle is one account with its tokens, on its own database.
type bundle struct {
	db            *postgres.DB
	authenticator *Authenticator
	tokens        Tokens
	accounts      Accounts
	now           time.Time
	ada           Principal
}

func newBundle(t *testing.T) *bundle {
	t.Helper()

	b := &bundle{db: pgtest.New(t), now: time.Now().UTC().Truncate(time.Millisecond)}
	now := func() time.Time { return b.now }
	b.tokens = Tokens{DB: b.db, Now: now, Secret: []byte(strings.Repeat("s", 32)), DefaultLifetime: 90 * 24 * time.Hour, MaxLifetime: 365 * 24 * time.Hour}
	b.accounts = Accounts{DB: b.db, Now: now}

	var err error
	b.authenticator, err = New(Config{
		DB: b.db, Now: now, Issuer: "https://issuer.test", Audiences: []string{"quern"}, Algorithms: []string{"RS256"}, GroupsMaxAge: 30 * 24 * time.Hour,
	})
	require.NoError(t, err)

	b.ada = b.signIn(t, "ada")

	return b
}

func (b *bundle) identity(username string) identity {
	return identity{issuer: "https://issuer.test", subject: "sub-" + username, username: username, groups: []string{"analysts"}, issuedAt: b.now}
}

// signIn does what a request with a verified access token does.
func (b *bundle) signIn(t *testing.T, username string) Principal {
	t.Helper()

	account, err := b.authenticator.accountOf(t.Context(), b.identity(username), Origin{})
	require.NoError(t, err)

	return Principal{Account: account.id, Username: account.username}
}

// create creates a token and returns it with the principal that the next request would have.
func (b *bundle) create(t *testing.T, who Principal, want NewToken) (Token, Principal) {
	t.Helper()

	token, value, err := b.tokens.Create(t.Context(), who, want)
	require.NoError(t, err)

	bearer, err := b.authenticator.Authenticate(t.Context(), value, Origin{})
	require.NoError(t, err)

	return token, bearer
}

func to(targets ...Target) Resolve {
	return func(context.Context, postgres.Tx) ([]Target, error) { return targets, nil }
}

func TestTokenFormat(t *testing.T) {
	t.Parallel()

	for _, random := range [][]byte{make([]byte, tokenBytes), bytes.Repeat([]byte{0xff}, tokenBytes), []byte("abcdefghijklmnopqrst")} {
		token := formatToken(random)
		require.Regexp(t, `^quern_[0-9a-zA-Z]{33}$`, token)

		hash, ok := hashToken(token)
		require.True(t, ok)
		require.Equal(t, sha256.Sum256([]byte(token)), hash)

		for i := len(tokenPrefix); i < len(token); i++ {
			misspelt := token[:i] + string('0'+(token[i]-'0'+1)%10) + token[i+1:]
			if misspelt != token {
				_, ok := hashToken(misspelt)
				require.False(t, ok, "one wrong character at %d", i)
			}
		}
	}
}

func FuzzHashToken(f *testing.F) {
	f.Add("quern_")
	f.Add(formatToken(make([]byte, tokenBytes)))

	f.Fuzz(func(t *testing.T, token string) {
		if _, ok := hashToken(token); ok && len(token) != 39 {
			t.Fatalf("%q was taken for a token", token)
		}
	})
}

func TestTokenCeiling(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	day := 24 * time.Hour

	owner, ownerBearer := b.create(t, b.ada, NewToken{Name: "owner", Role: Owner, ExpiresAt: new(b.now.Add(10 * day))})
	require.Equal(t, b.now.Add(10*day), owner.ExpiresAt)

	byDefault, viewerBearer := b.create(t, b.ada, NewToken{Name: "default", Role: Viewer})
	require.Equal(t, b.now.Add(90*day), byDefault.ExpiresAt)

	lowered, _ := b.create(t, viewerBearer, NewToken{Name: "lowered"})
	require.Equal(t, Viewer, lowered.Role)

	shortened, _ := b.create(t, ownerBearer, NewToken{Name: "shortened"})
	require.Equal(t, owner.ExpiresAt, shortened.ExpiresAt)
	require.Equal(t, Editor, shortened.Role)

	_, restrictedBearer := b.create(t, b.ada, NewToken{Name: "restricted", Targets: to(Target{Kind: "namespace", Account: b.ada.Account, ID: uuid.New()})})
	require.Len(t, restrictedBearer.Token.Targets, 1)

	for name, test := range map[string]struct {
		who  Principal
		want NewToken
		code fault.Code
	}{
		"more than the token in use":  {viewerBearer, NewToken{Role: Editor}, fault.Forbidden},
		"longer than the one in use":  {ownerBearer, NewToken{ExpiresAt: new(owner.ExpiresAt.Add(time.Millisecond))}, fault.Forbidden},
		"by a restricted token":       {restrictedBearer, NewToken{}, fault.Forbidden},
		"restricted, and owner":       {b.ada, NewToken{Role: Owner, Targets: to(Target{Kind: "dataset"})}, fault.Forbidden},
		"in the past":                 {b.ada, NewToken{ExpiresAt: new(b.now)}, fault.ValidationFailed},
		"beyond the longest lifetime": {b.ada, NewToken{ExpiresAt: new(b.now.Add(366 * day))}, fault.ValidationFailed},
	} {
		_, _, err := b.tokens.Create(t.Context(), test.who, test.want)
		require.Equal(t, test.code, fault.From(err).Code, name)
	}

	_, _, err := b.tokens.List(t.Context(), restrictedBearer, uuid.Nil, 10)
	require.True(t, fault.Is(err, fault.Forbidden))
	require.True(t, fault.Is(b.tokens.Delete(t.Context(), restrictedBearer, owner.ID), fault.Forbidden))
	require.True(t, fault.Is(b.tokens.Delete(t.Context(), viewerBearer, owner.ID), fault.Forbidden), "a lesser token cannot revoke a greater one")
}

func TestRevokingReachesAllThatWereMadeWithIt(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	root, rootBearer := b.create(t, b.ada, NewToken{Name: "root"})
	_, childBearer := b.create(t, rootBearer, NewToken{Name: "child"})
	b.create(t, childBearer, NewToken{Name: "grandchild"})
	other, _ := b.create(t, b.ada, NewToken{Name: "other"})

	require.NoError(t, b.tokens.Delete(t.Context(), b.ada, root.ID))

	left, _, err := b.tokens.List(t.Context(), b.ada, uuid.Nil, 10)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, other.ID, left[0].ID)

	_, _, err = b.tokens.Create(t.Context(), childBearer, NewToken{Name: "too late"})
	require.True(t, fault.Is(err, fault.Unauthorized), "its request was under way when it was revoked")

	var entries int
	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE account_id = $1 AND action = 'token.revoke'`, b.ada.Account).Scan(&entries)
	}))
	require.Equal(t, 3, entries)
}

// TestCreateAgainstRevoke checks that, in any order, no token that was created with a revoked token is valid.
func TestCreateAgainstRevoke(t *testing.T) {
	t.Parallel()

	b := newBundle(t)

	for range 20 {
		root, bearer := b.create(t, b.ada, NewToken{Name: "root"})

		var race errgroup.Group
		for range 3 {
			race.Go(func() error {
				_, _, err := b.tokens.Create(t.Context(), bearer, NewToken{Name: "child"})
				if fault.Is(err, fault.Unauthorized) {
					return nil
				}

				return err
			})
		}

		race.Go(func() error { return b.tokens.Delete(t.Context(), b.ada, root.ID) })
		require.NoError(t, race.Wait())

		left, _, err := b.tokens.List(t.Context(), b.ada, uuid.Nil, 10)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestRepeatedCreate(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	once := Once{Key: "k", Operation: "createToken", RequestHash: sha256.Sum256([]byte("body"))}

	first, value, err := b.tokens.Create(t.Context(), b.ada, NewToken{Name: "one", Once: once})
	require.NoError(t, err)

	b.now = b.now.Add(time.Hour)
	again, valueAgain, err := b.tokens.Create(t.Context(), b.ada, NewToken{Name: "one", Once: once})
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.True(t, first.CreatedAt.Equal(again.CreatedAt))
	require.Equal(t, value, valueAgain)

	lesser := b.ada
	lesser.Token = &Grant{ID: first.ID, Role: Viewer, ExpiresAt: first.ExpiresAt}
	other, _, err := b.tokens.Create(t.Context(), lesser, NewToken{Name: "one", Once: once})
	require.NoError(t, err)
	require.NotEqual(t, first.ID, other.ID, "a lesser token does not get what a greater credential made")
	require.Equal(t, Viewer, other.Role)

	another := once
	another.RequestHash = sha256.Sum256([]byte("another body"))
	_, _, err = b.tokens.Create(t.Context(), b.ada, NewToken{Name: "two", Once: another})
	require.True(t, fault.Is(err, fault.ValidationFailed))

	rotated := b.tokens
	rotated.Secret = []byte(strings.Repeat("t", 32))
	_, _, err = rotated.Create(t.Context(), b.ada, NewToken{Name: "one", Once: once})
	require.True(t, fault.Is(err, fault.Conflict), "the value of a token from before the secret changed cannot be shown")

	b.now = b.now.Add(onceKept)
	later, _, err := b.tokens.Create(t.Context(), b.ada, NewToken{Name: "one", Once: once})
	require.NoError(t, err)
	require.NotEqual(t, first.ID, later.ID, "a key is forgotten after a day")
}

func TestListPages(t *testing.T) {
	t.Parallel()

	b := newBundle(t)

	var want []uuid.UUID
	for range 5 {
		token, _ := b.create(t, b.ada, NewToken{Name: "t"})
		want = append([]uuid.UUID{token.ID}, want...)
	}

	var got []uuid.UUID

	for after, more := uuid.Nil, true; more; more = after != uuid.Nil {
		page, next, err := b.tokens.List(t.Context(), b.ada, after, 2)
		require.NoError(t, err)

		for _, token := range page {
			got = append(got, token.ID)
		}

		after = next
	}

	require.Equal(t, want, got)
}
