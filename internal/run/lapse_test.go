package run

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// lapses returns the ways in which a credential stops being valid.
func (o *office) lapses() map[string]func(who auth.Principal) {
	tokens := auth.Tokens{DB: o.DB, Now: time.Now}
	accounts := auth.Accounts{DB: o.DB, Now: time.Now}

	return map[string]func(who auth.Principal){
		"revoked": func(who auth.Principal) { require.NoError(o.t, tokens.Delete(o.t.Context(), o.who, who.Token.ID)) },
		"expired": func(who auth.Principal) {
			o.exec(`UPDATE tokens SET expires_at = now() WHERE account_id = $1 AND id = $2`, who.Account, who.Token.ID)
		},
		"disabled": func(auth.Principal) {
			o.exec(`INSERT INTO directory_names (username, account_id) VALUES ('ada', $1)`, o.who.Account)
			require.NoError(o.t, accounts.Disable(o.t.Context(), auth.ByCommand(), "ada"))
		},
	}
}

// bearer returns the caller with a new API token.
func (o *office) bearer() auth.Principal {
	o.t.Helper()

	tokens := auth.Tokens{DB: o.DB, Now: time.Now, DefaultLifetime: time.Hour, MaxLifetime: time.Hour}

	made, _, err := tokens.Create(o.t.Context(), o.who, auth.NewToken{Name: "asker"})
	require.NoError(o.t, err)

	who := o.who
	who.Token = &auth.Grant{ID: made.ID, Role: made.Role, ExpiresAt: made.ExpiresAt}

	return who
}

// TestLapsedCredential checks that runs and streams end with the credential that started them: the run fails, streams end,
// and later events do not reach them.
func TestLapsedCredential(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"revoked", "expired", "disabled"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := newOffice(t, time.Minute)
			who := o.bearer()

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()

			run, err := o.Ask(ctx, who, o.want)
			require.NoError(t, err)

			stream, err := o.Follow(ctx, who, run.ID, 0)
			require.NoError(t, err)
			defer stream.Close()

			_, err = stream.Next(ctx)
			require.NoError(t, err)

			o.let <- 1

			_, err = stream.Next(ctx)
			require.NoError(t, err)

			o.lapses()[name](who)

			select { // the agent writes another event, unless it was already stopped
			case o.let <- 1:
			case <-time.After(2 * checkEvery):
			}

			_, err = stream.Next(ctx)
			require.True(t, fault.Is(err, fault.Unauthorized), err)

			require.Equal(t, fault.Unauthorized, o.awaitFailure(ctx, run).Error.Code)

			// A new run of the credential fails before the agent starts.
			queued, err := o.Ask(ctx, who, o.want)
			require.NoError(t, err)

			failed := o.awaitFailure(ctx, queued)
			require.Equal(t, fault.Unauthorized, failed.Error.Code)
			require.EqualValues(t, 2, failed.lastSeq, "no agent wrote anything")
		})
	}
}

func (o *office) awaitFailure(ctx context.Context, run Run) (ended Run) {
	o.t.Helper()

	require.Eventually(o.t, func() bool {
		var err error

		ended, err = o.own(ctx, o.who, run.ID)
		require.NoError(o.t, err)

		return ended.Status == Failed
	}, 10*time.Second, 10*time.Millisecond)

	return ended
}
