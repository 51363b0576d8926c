package auth

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// TestInProgress checks that a repeated request does not wait for ever for the first one, and can tell this from a conflict.
func TestInProgress(t *testing.T) {
	t.Parallel()

	b := newBundle(t)
	once := Once{Key: "k", Operation: "createToken", RequestHash: sha256.Sum256([]byte("body"))}
	made := uuid.New()

	claim := func(tx postgres.Tx, id uuid.UUID) (uuid.UUID, bool, error) {
		return once.ClaimTx(t.Context(), tx, b.ada.Account, b.ada, id, b.now)
	}

	claimed, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)

	go func() {
		ended <- b.db.InTx(t.Context(), func(tx postgres.Tx) error {
			_, _, err := claim(tx, made)

			close(claimed)
			<-release

			return err
		})
	}()

	<-claimed

	err := b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '50ms'"); err != nil {
			return err
		}

		_, _, err := claim(tx, uuid.New())

		return err
	})
	require.True(t, fault.Is(err, fault.InProgress), "%v", err)
	require.Equal(t, time.Second, fault.From(err).RetryAfter)

	close(release)
	require.NoError(t, <-ended)

	require.NoError(t, b.db.InTx(t.Context(), func(tx postgres.Tx) error {
		first, repeated, err := claim(tx, uuid.New())
		if err == nil && (!repeated || first != made) {
			err = errors.New("the key is not known")
		}

		return err
	}))
}
