package upload

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// List lists the caller's sessions with their files, newest first. uuid.Nil is the beginning of the list; next is uuid.Nil at
// the end. A restricted token sees the sessions that it prepared.
func (u Uploads) List(ctx context.Context, who auth.Principal, after uuid.UUID, limit int) (page []Session, next uuid.UUID, err error) {
	if after == uuid.Nil {
		after = uuid.Max
	}

	token := uuid.Nil // any
	if who.Token != nil && who.Token.Restricted {
		token = who.Token.ID
	}

	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		next = uuid.Nil

		if page, err = selectSessions(ctx, q, who.Account, token, after, limit+1); err != nil {
			return err
		}

		if len(page) > limit {
			page = page[:limit]
			next = page[limit-1].ID
		}

		return selectFilesOf(ctx, q, who.Account, page)
	})

	return page, next, err
}
