package job

import (
	"time"

	"quern.dev/quern/internal/postgres"
)

// ReindexAt returns when the indexes are rebuilt next.
func ReindexAt(db *postgres.DB, now time.Time) time.Time { return nightly{db}.Next(now) }
