package query

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// Export gives a whole dataset in a form. Its rows have no __metadata.
//
// Faults: NotFound, InvalidState if it has no rows yet, and as the package says.
func (q *Query) Export(ctx context.Context, who auth.Principal, at catalog.Path, form Form) (*Result, error) {
	one, err := q.one(ctx, who, at, uuid.Nil)
	if err != nil {
		return nil, err
	}

	if one.snapshot.ID == uuid.Nil {
		return nil, fault.New(fault.InvalidState, "The dataset has no rows yet.")
	}

	return q.begin(ctx, who, q.Time, func(r *running) (*Result, error) {
		text := `FROM ` + identifier(one.name)

		checked, err := r.parse(text)
		if err != nil {
			return nil, err
		}

		r.action = "dataset.export"

		return r.run(ctx, who, checked, []reading{one}, engine.Query{Statement: text, Form: form})
	})
}
