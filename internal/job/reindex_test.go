package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

// TestReindexByOwner checks that indexes are rebuilt at midnight if the role owns them, and never otherwise.
func TestReindexByOwner(t *testing.T) {
	t.Parallel()

	address, now := pgtest.URL(t), time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC)

	for role, want := range map[string]time.Time{
		"postgres": time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC), "pg_monitor": now.Add(100 * 365 * 24 * time.Hour),
	} {
		db, err := postgres.Open(t.Context(), postgres.Config{
			URL: address + "&role=" + role, MaxConns: 1, AcquireTimeout: time.Minute, QueryTimeout: time.Minute, LockTimeout: time.Minute,
		})
		require.NoError(t, err)
		require.Equal(t, want, job.ReindexAt(db, now), role)
		db.Close()
	}
}
