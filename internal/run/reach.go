package run

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// A restricted token reaches the runs that it began itself, and those that have ended and whose reads it may all read.
// What a run reads is known when it has ended. A run that read nothing tells nothing of what it is about, so no other
// token reaches it. A conversation is reached if all its runs are: its title is a question, and deleting it deletes them.

func isRestricted(who auth.Principal) bool { return who.Token != nil && who.Token.Restricted }

// reaches hides runs from a restricted token: NotFound unless it reaches all of them.
func (r *Runs) reaches(ctx context.Context, q postgres.Querier, who auth.Principal, runs ...Run) error {
	if !isRestricted(who) {
		return nil
	}

	if len(runs) == 0 {
		return fault.Absent()
	}

	var others []uuid.UUID

	for _, run := range runs {
		switch {
		case run.caller.Token != nil && run.caller.Token.ID == who.Token.ID:
		case run.Status == Running:
			return fault.Absent()
		default:
			others = append(others, run.ID)
		}
	}

	return r.readsAll(ctx, q, who, others)
}

// readsAll: NotFound unless each of the runs has read something, and the caller may read all of it.
func (r *Runs) readsAll(ctx context.Context, q postgres.Querier, who auth.Principal, runs []uuid.UUID) error {
	reads, err := selectReadsOf(ctx, q, who.Account, runs)
	if err != nil {
		return err
	}

	known := map[uuid.UUID]bool{}

	for target, readers := range reads {
		seen, err := r.Catalog.Seen(ctx, q, who, target.Account, []uuid.UUID{target.ID})
		if err != nil {
			return err
		}

		if len(seen) == 0 {
			return fault.Absent()
		}

		for _, run := range readers {
			known[run] = true
		}
	}

	if len(known) < len(runs) {
		return fault.Absent()
	}

	return nil
}

// reachesAll is reaches for all runs of a conversation.
func (r *Runs) reachesAll(ctx context.Context, q postgres.Querier, who auth.Principal, conversation uuid.UUID) error {
	if !isRestricted(who) {
		return nil
	}

	runs, err := selectAskers(ctx, q, who.Account, conversation)
	if err != nil {
		return err
	}

	return r.reaches(ctx, q, who, runs...)
}

// reached are the conversations that the caller reaches.
func (r *Runs) reached(ctx context.Context, q postgres.Querier, who auth.Principal, page []Conversation) (seen []Conversation, err error) {
	for _, one := range page {
		switch err := r.reachesAll(ctx, q, who, one.ID); {
		case err == nil:
			seen = append(seen, one)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}

	return seen, nil
}
