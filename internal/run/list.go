package run

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/postgres"
)

// maxPassed is how many runs a page passes over at most that a restricted token cannot access.
const maxPassed = 500

// Filter selects runs of the caller.
type Filter struct {
	Status       Status        // empty means all
	Namespace    *catalog.Path // nil means all
	Conversation uuid.UUID     // uuid.Nil means all
	After        uuid.UUID     // the page starts after this run; uuid.Nil means the newest
	Limit        int
}

// Recent lists the caller's runs without their results, newest first. next is uuid.Nil at the end. For a restricted
// token a page can be shorter than the limit although more pages follow.
//
// Faults: NotFound for a namespace that the caller cannot see.
func (r *Runs) Recent(ctx context.Context, who auth.Principal, want Filter) (page []Run, next uuid.UUID, err error) {
	if want.After == uuid.Nil {
		want.After = uuid.Max
	}

	err = r.DB.Do(ctx, func(q postgres.Querier) error {
		var within uuid.UUID

		if want.Namespace != nil {
			namespace, err := r.Catalog.Visible(ctx, q, who, *want.Namespace)
			if err != nil {
				return err
			}

			within = namespace.ID
		}

		page, next, err = r.recent(ctx, q, who, want, within)

		return err
	})

	return page, next, err
}

func (r *Runs) recent(ctx context.Context, q postgres.Querier, who auth.Principal, want Filter, within uuid.UUID) (page []Run, next uuid.UUID, err error) {
	after := want.After

	for passed := 0; passed < maxPassed; {
		found, err := selectRecent(ctx, q, who.Account, want, within, after)
		if err != nil {
			return nil, uuid.Nil, err
		}

		more := len(found) > want.Limit
		found = found[:min(len(found), want.Limit)]

		reached, err := r.reachable(ctx, q, who, found)
		if err != nil {
			return nil, uuid.Nil, err
		}

		for i, run := range found {
			if after = run.ID; !reached(run) {
				passed++

				continue
			}

			page = append(page, run)

			switch {
			case len(page) < want.Limit:
			case more || i < len(found)-1:
				return page, after, nil
			default:
				return page, uuid.Nil, nil
			}
		}

		if !more {
			return page, uuid.Nil, nil
		}
	}

	return page, after, nil
}
