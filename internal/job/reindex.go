package job

import (
	"context"
	"time"

	"quern.dev/quern/internal/postgres"
)

// nightly is the schedule on which River rebuilds the indexes of its table. PostgreSQL allows this only to the owner
// of the table. For any other role the schedule never becomes due, because each night would end in errors.
type nightly struct{ db *postgres.DB }

const (
	never    = 100 * 365 * 24 * time.Hour
	askOwner = 10 * time.Second
)

// Next returns the next midnight (UTC), or a time far in the future if the role does not own the table.
func (n nightly) Next(now time.Time) time.Time {
	ctx, cancel := context.WithTimeout(context.Background(), askOwner)
	defer cancel()

	owns := false
	if err := n.db.Do(ctx, func(q postgres.Querier) (err error) {
		owns, err = ownsJobs(ctx, q)

		return err
	}); err == nil && !owns {
		return now.Add(never)
	}

	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}
