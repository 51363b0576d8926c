package run

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Conversation is questions about one namespace, each in the light of those before.
type Conversation struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Title     string
	Username  string
	Namespace string
	CreatedAt time.Time
	ActiveAt  time.Time
	Turns     []Run // oldest first; of Conversation only

	namespaceAccount uuid.UUID
	namespaceID      uuid.UUID
	turns            int
}

// Position is the place of a conversation in the list.
type Position struct {
	ActiveAt time.Time
	ID       uuid.UUID
}

// Conversations lists the caller's conversations, of one namespace if a path is given, those first that were active
// last. The zero Position is the beginning; next is zero at the end.
func (r *Runs) Conversations(ctx context.Context, who auth.Principal, at *catalog.Path, after Position, limit int) (page []Conversation, next Position, err error) {
	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		var within uuid.UUID

		if at != nil {
			namespace, err := r.Catalog.Seen(ctx, q, who, *at)
			if err != nil {
				return err
			}

			within = namespace.ID
		}

		page, err = selectConversations(ctx, q, who.Account, within, after, limit+1)

		return err
	})
	if len(page) > limit {
		page = page[:limit]
		next = Position{ActiveAt: page[limit-1].ActiveAt, ID: page[limit-1].ID}
	}

	return page, next, err
}

// Conversation returns a conversation of the caller's with its turns. NotFound.
func (r *Runs) Conversation(ctx context.Context, who auth.Principal, id uuid.UUID) (found Conversation, err error) {
	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		one, err := selectConversation(ctx, q, who.Account, id)
		if err != nil {
			return err
		}

		if one == nil {
			return fault.Absent()
		}

		found = *one
		found.Turns, err = selectTurns(ctx, q, who.Account, id)

		return err
	})
	if err != nil {
		return Conversation{}, err
	}

	for i := range found.Turns {
		if err := r.reveal(ctx, who, &found.Turns[i]); err != nil {
			return Conversation{}, err
		}
	}

	return found, nil
}

// Rename gives a conversation of the caller's another title. NotFound.
func (r *Runs) Rename(ctx context.Context, who auth.Principal, id uuid.UUID, title string) (found Conversation, err error) {
	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		one, err := updateTitle(ctx, q, who.Account, id, title)
		if err == nil && one == nil {
			err = fault.Absent()
		}

		if err == nil {
			found = *one
		}

		return err
	})

	return found, err
}

// DeleteConversation removes a conversation of the caller's with all its runs.
//
// Faults: NotFound, Conflict while one of them is going on.
func (r *Runs) DeleteConversation(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockConversation(ctx, tx, who.Account, id)
		if err != nil {
			return err
		}

		if found == nil {
			return fault.Absent()
		}

		turns, err := selectTurns(ctx, tx, who.Account, id)
		if err != nil {
			return err
		}

		var ids []uuid.UUID

		for _, turn := range turns {
			if turn.Status == Running {
				return fault.New(fault.Conflict, "A run of the conversation is still going on. Cancel it first.")
			}

			ids = append(ids, turn.ID)
		}

		if err := deleteRuns(ctx, tx, who.Account, ids, r.now()); err != nil {
			return err
		}

		return deleteConversation(ctx, tx, who.Account, id)
	})
}
