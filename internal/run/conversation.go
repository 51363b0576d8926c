package run

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
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
