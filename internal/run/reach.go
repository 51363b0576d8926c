package run

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// A restricted token can access ("reaches") the runs that it started, and ended runs if it may read all datasets that they
// read. What a run reads is certain only after it has ended. A run that read no dataset gives no information about what it
// concerns, so no other restricted token can access it. A conversation can be accessed if all its runs can: its title is a
// question, and deleting the conversation deletes the runs.

func isRestricted(who auth.Principal) bool { return who.Token != nil && who.Token.Restricted }

// reaches returns NotFound if the caller uses a restricted token that cannot access all of the runs.
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
		case !run.Status.ended():
			return fault.Absent()
		default:
			others = append(others, run.ID)
		}
	}

	return r.readsAll(ctx, q, who, others)
}

// readsAll returns NotFound unless each of the runs has read a dataset and the caller may see all datasets that were read.
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

// reachable returns a function that reports whether the caller can access one of the runs.
func (r *Runs) reachable(ctx context.Context, q postgres.Querier, who auth.Principal, runs []Run) (func(Run) bool, error) {
	if !isRestricted(who) {
		return func(Run) bool { return true }, nil
	}

	reached, hidden := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}

	var others []uuid.UUID

	for _, run := range runs {
		switch {
		case run.caller.Token != nil && run.caller.Token.ID == who.Token.ID:
			reached[run.ID] = true
		case run.Status.ended():
			others = append(others, run.ID)
		}
	}

	reads, err := selectReadsOf(ctx, q, who.Account, others)
	if err != nil {
		return nil, err
	}

	for target, readers := range reads {
		seen, err := r.Catalog.Seen(ctx, q, who, target.Account, []uuid.UUID{target.ID})
		if err != nil {
			return nil, err
		}

		for _, run := range readers {
			reached[run] = true
			hidden[run] = hidden[run] || len(seen) == 0
		}
	}

	return func(run Run) bool { return reached[run.ID] && !hidden[run.ID] }, nil
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

// reached returns the conversations of the page that the caller can access.
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
