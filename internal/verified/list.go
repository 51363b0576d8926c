package verified

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Get returns a verified question of which the caller may read all datasets.
//
// Faults: NotFound.
func (v *Verified) Get(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (Question, error) {
	var (
		found  *Question
		states []state
	)

	err := v.DB.Do(ctx, func(db postgres.Querier) error {
		namespace, err := v.Catalog.Visible(ctx, db, who, at)
		if err != nil {
			return err
		}

		if found, err = selectQuestion(ctx, db, namespace.Account, namespace.ID, id); err != nil || found == nil {
			return orAbsent(err)
		}

		states, err = v.inspect(ctx, db, who, namespace, []Question{*found})

		return err
	})

	switch {
	case err != nil:
		return Question{}, err
	case !states[0].visible:
		return Question{}, fault.Absent()
	}

	return v.current(ctx, who, *found, states[0])
}

// current suspends a question that must be suspended, and returns it as it is now.
func (v *Verified) current(ctx context.Context, who auth.Principal, q Question, s state) (Question, error) {
	if q.Status != Active || s.reason == "" {
		return q, nil
	}

	if err := v.Suspend(ctx, who, q, s.reason); err != nil {
		return Question{}, err
	}

	q.Status, q.Reason, q.Revision = Suspended, s.reason, q.Revision+1

	return q, nil
}

// maxPassed is how many questions a page passes over at most that the caller may not see.
const maxPassed = 500

// List lists the verified questions of which the caller may read all datasets, newest first. Without a status it leaves out those that
// were retired. A page can be shorter than the limit although more pages follow.
//
// Faults: NotFound.
func (v *Verified) List(ctx context.Context, who auth.Principal, at catalog.Path, status Status, after uuid.UUID, limit int) (page []Question, next uuid.UUID, err error) {
	if after == uuid.Nil {
		after = uuid.Max
	}

	for passed := 0; passed < maxPassed; passed++ {
		list, states, err := v.batch(ctx, who, at, status, after, limit+1)
		if err != nil {
			return nil, uuid.Nil, err
		}

		for i, q := range list {
			if len(page) == limit {
				return page, after, nil
			}

			after = q.ID

			if !states[i].visible {
				passed++

				continue
			}

			if q, err = v.current(ctx, who, q, states[i]); err != nil {
				return nil, uuid.Nil, err
			}

			if status == "" || q.Status == status {
				page = append(page, q)
			}
		}

		if len(list) <= limit {
			return page, uuid.Nil, nil
		}
	}

	return page, after, nil
}

// batch returns the next questions of a list, with their states for the caller.
func (v *Verified) batch(ctx context.Context, who auth.Principal, at catalog.Path, status Status, after uuid.UUID, limit int) (list []Question, states []state, err error) {
	err = v.DB.Do(ctx, func(db postgres.Querier) error {
		namespace, err := v.Catalog.Visible(ctx, db, who, at)
		if err != nil {
			return err
		}

		if list, err = selectQuestions(ctx, db, namespace.Account, namespace.ID, after, status, limit); err != nil {
			return err
		}

		states, err = v.inspect(ctx, db, who, namespace, list)

		return err
	})

	return list, states, err
}
