package run

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// In the A2A protocol a run is a task.

// maxCounted is the largest total that is counted for the tasks of an account.
const maxCounted = 1000

// Listing selects runs of an agent.
type Listing struct {
	Agent        string
	Conversation uuid.UUID // uuid.Nil means all
	Statuses     []Status
	Begun        *bool     // for runs in progress: whether a worker has started them; nil means both
	Since        time.Time // earliest time of the last change of status
	After        Position  // Next of the previous page; its ActiveAt is when the status changed
	Limit        int
	Whole        bool // with all rows that are sent to clients, not only those in the database
}

// Page is one page of a list.
type Page struct {
	Runs  []Run
	Total int      // number of runs on all pages, counted up to maxCounted unless a conversation is given
	Next  Position // zero at the end
}

// ChangedAt returns when the status of the run last changed.
func (r Run) ChangedAt() time.Time {
	switch {
	case !r.FinishedAt.IsZero():
		return r.FinishedAt
	case !r.BeganAt.IsZero():
		return r.BeganAt
	default:
		return r.CreatedAt
	}
}

// List lists the caller's runs of an agent, the most recent change of status first. A conversation that the caller cannot
// access has no runs.
//
// Faults: Forbidden for a restricted token if no conversation is given.
func (r *Runs) List(ctx context.Context, who auth.Principal, want Listing) (page Page, err error) {
	if want.Conversation == uuid.Nil && isRestricted(who) {
		return Page{}, fault.New(fault.Forbidden, "A restricted token can list the tasks of only one conversation. Name that conversation.")
	}

	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		if want.Conversation != uuid.Nil {
			if err := r.reachesAll(ctx, q, who, want.Conversation); err != nil {
				return err
			}
		}

		page.Runs, page.Total, err = selectTasks(ctx, q, who.Account, want)

		return err
	})

	switch {
	case fault.Is(err, fault.NotFound):
		return Page{}, nil // a conversation that does not exist has no runs
	case err != nil:
		return Page{}, err
	case len(page.Runs) > want.Limit:
		page.Runs = page.Runs[:want.Limit]
		last := page.Runs[want.Limit-1]
		page.Next = Position{ActiveAt: last.ChangedAt(), ID: last.ID}
	}

	return page, r.revealAll(ctx, who, page.Runs, want.Whole)
}

// revealAll sets the results and errors of runs, as far as the reader may see them. Each dataset is looked up once.
func (r *Runs) revealAll(ctx context.Context, who auth.Principal, runs []Run, whole bool) error {
	complete := r.complete
	if !whole {
		complete = func(_ context.Context, kept storedStep) (agent.Step, error) { return kept.Step, nil }
	}

	hidden, shown, err := r.hidden(ctx, who, runs)
	if err != nil {
		return err
	}

	if err := r.note(ctx, who, actionRead, shown); err != nil {
		return err
	}

	for i := range runs {
		if run := &runs[i]; run.Status.hasResult() || run.Status == Failed {
			if err := r.show(ctx, run, !hidden[run.ID], complete); err != nil {
				return err
			}
		}
	}

	return nil
}

// hidden returns the runs that read a dataset that the reader may not see, and the datasets that the other runs read.
func (r *Runs) hidden(ctx context.Context, who auth.Principal, runs []Run) (hidden map[uuid.UUID]bool, shown []source, err error) {
	var ids []uuid.UUID

	for _, run := range runs {
		if run.Status.hasResult() || run.Status == Failed {
			ids = append(ids, run.ID)
		}
	}

	var reads map[auth.Target][]uuid.UUID

	err = r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		reads, err = selectReadsOf(ctx, q, who.Account, ids)

		return err
	})
	if err != nil {
		return nil, nil, err
	}

	seen := map[auth.Target]catalog.Path{}
	hidden = map[uuid.UUID]bool{}

	for target, readers := range reads {
		paths, err := r.Catalog.Paths(ctx, who, []auth.Target{target})
		if err != nil {
			return nil, nil, err
		}

		if len(paths) > 0 {
			seen[target] = paths[0]

			continue
		}

		for _, run := range readers {
			hidden[run] = true
		}
	}

	for target, path := range seen {
		if slices.ContainsFunc(reads[target], func(run uuid.UUID) bool { return !hidden[run] }) {
			shown = append(shown, source{account: target.Account, dataset: target.ID, path: path})
		}
	}

	return hidden, shown, nil
}
