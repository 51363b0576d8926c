package run

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Conversation is a series of questions about one namespace that build on each other.
type Conversation struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Title     string
	Username  string
	Namespace string
	CreatedAt time.Time
	ActiveAt  time.Time
	Turns     []Run // oldest first; set only by Runs.Conversation

	namespaceAccount uuid.UUID
	namespaceID      uuid.UUID
	turns            int
}

// Position is the position of a conversation or a run in a list.
type Position struct {
	ActiveAt time.Time
	ID       uuid.UUID
}

// Conversations lists the caller's conversations, the most recently active first, limited to one namespace if at is not
// nil. The zero Position is the beginning of the list; next is zero at the end. For a restricted token a page can be
// shorter than the limit although more pages follow.
func (r *Runs) Conversations(ctx context.Context, who auth.Principal, at *catalog.Path, after Position, limit int) (page []Conversation, next Position, err error) {
	if at == nil && isRestricted(who) {
		return nil, next, fault.New(fault.Forbidden, "A restricted token can list the conversations of only one namespace. Name that namespace.")
	}

	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		var within uuid.UUID

		if at != nil {
			namespace, err := r.Catalog.Visible(ctx, q, who, *at)
			if err != nil {
				return err
			}

			within = namespace.ID
		}

		if page, err = selectConversations(ctx, q, who.Account, within, after, limit+1); err != nil {
			return err
		}

		if len(page) > limit {
			page = page[:limit]
			next = Position{ActiveAt: page[limit-1].ActiveAt, ID: page[limit-1].ID}
		}

		page, err = r.reached(ctx, q, who, page)

		return err
	})

	return page, next, err
}

// Conversation returns a conversation of the caller with its turns.
//
// Faults: NotFound.
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
		if found.Turns, err = selectTurns(ctx, q, who.Account, id); err != nil {
			return err
		}

		if err := r.reaches(ctx, q, who, found.Turns...); err != nil {
			return err
		}

		return setRatings(ctx, q, who.Account, found.Turns)
	})
	if err != nil {
		return Conversation{}, err
	}

	var shown []source

	for i := range found.Turns {
		more, err := r.reveal(ctx, who, &found.Turns[i])
		if err != nil {
			return Conversation{}, err
		}

		shown = append(shown, more...)
	}

	return found, r.note(ctx, who, actionRead, shown)
}

// earlierTurns is how many earlier turns an agent receives with a question.
const earlierTurns = 10

// earlier returns the previous turns of the conversation, oldest first. The statements of a turn are included only if the
// caller may still see all datasets that it read.
func (r *Runs) earlier(ctx context.Context, run Run) ([]agent.Turn, error) {
	var before []Run

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		before, err = selectEarlier(ctx, q, run, earlierTurns)

		return err
	})
	if err != nil {
		return nil, err
	}

	turns := make([]agent.Turn, 0, len(before))

	for _, one := range slices.Backward(before) {
		reads, seen, err := r.read(ctx, run.caller, one.ID)
		if err != nil {
			return nil, err
		}

		turn := agent.Turn{Question: one.Question.Text, Read: map[uuid.UUID]uuid.UUID{}}
		for _, read := range reads {
			turn.Read[read.ID] = read.Snapshot
		}

		if len(seen) == len(reads) && one.stored != nil {
			for _, step := range one.stored.Steps {
				turn.Queries = append(turn.Queries, step.Query)
				turn.Last = &step.Step
			}
		}

		if len(turns) > 0 {
			turns[len(turns)-1].Last = nil // only the turn before the question has rows
		}

		turns = append(turns, turn)
	}

	return turns, nil
}

// Rename changes the title of a conversation of the caller.
//
// Faults: NotFound, Forbidden.
func (r *Runs) Rename(ctx context.Context, who auth.Principal, id uuid.UUID, title string) (found Conversation, err error) {
	err = r.change(ctx, who, id, "conversation.rename", func(tx postgres.Tx, current Conversation) error {
		current.Title = title
		found = current

		return updateTitle(ctx, tx, current)
	})

	return found, err
}

// DeleteConversation deletes a conversation of the caller with all its runs.
//
// Faults: NotFound, Forbidden, Conflict while one of the runs is in progress.
func (r *Runs) DeleteConversation(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	return r.change(ctx, who, id, "conversation.delete", func(tx postgres.Tx, current Conversation) error {
		turns, err := selectTurns(ctx, tx, who.Account, id)
		if err != nil {
			return err
		}

		var ids []uuid.UUID

		for _, turn := range turns {
			if turn.Status == Running {
				return fault.New(fault.Conflict, "A run of the conversation is still in progress. Cancel it first.")
			}

			ids = append(ids, turn.ID)
		}

		return r.removeTx(ctx, tx, current, ids)
	})
}

// deleteTx deletes runs with everything that has their ids, except the audit log.
func (r *Runs) deleteTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, ids []uuid.UUID) error {
	if err := deleteRuns(ctx, tx, account, ids, r.now()); err != nil {
		return err
	}

	if err := event.ForgetRunsTx(ctx, tx, account, ids); err != nil {
		return err
	}

	return r.Forget(ctx, tx, account, ids)
}

// removeTx removes runs of a locked conversation, and the conversation if no run is left. A title that was taken from the
// first question is replaced by one from the first remaining question.
func (r *Runs) removeTx(ctx context.Context, tx postgres.Tx, c Conversation, ids []uuid.UUID) error {
	before, _, err := selectFirstQuestion(ctx, tx, c)
	if err != nil {
		return err
	}

	if err := r.deleteTx(ctx, tx, c.Account, ids); err != nil {
		return err
	}

	first, left, err := selectFirstQuestion(ctx, tx, c)

	switch {
	case err != nil:
		return err
	case !left:
		return deleteConversation(ctx, tx, c.Account, c.ID)
	case c.Title == titleOf(before):
		c.Title = titleOf(first)

		return updateTitle(ctx, tx, c)
	default:
		return nil
	}
}

// change locks a conversation of the caller, calls do and writes the audit entry.
func (r *Runs) change(ctx context.Context, who auth.Principal, id uuid.UUID, action string, do func(tx postgres.Tx, current Conversation) error) error {
	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockConversation(ctx, tx, who.Account, id)
		if err != nil {
			return err
		}

		if found == nil {
			return fault.Absent()
		}

		if err := r.reachesAll(ctx, tx, who, found.ID); err != nil {
			return err
		}

		if err := mayChange(who); err != nil {
			return err
		}

		if err := do(tx, *found); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, r.now(), action, audit.Target{Kind: "conversation", ID: id.String()}))
	})
}
