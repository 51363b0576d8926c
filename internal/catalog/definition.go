package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Definition is the owner's description of a dataset and its columns, for people and models. Revision 0 is the empty
// definition that every dataset begins with.
type Definition struct {
	Revision         int64
	DataDescription  string
	SchemaDefinition map[string]string
}

// Change is a new definition. A nil field keeps its value.
type Change struct {
	DataDescription  *string
	SchemaDefinition *map[string]string
}

func (change Change) given() bool {
	return change.DataDescription != nil || change.SchemaDefinition != nil
}

func (change Change) apply(to Definition) Definition {
	if change.DataDescription != nil {
		to.DataDescription = *change.DataDescription
	}

	if change.SchemaDefinition != nil {
		to.SchemaDefinition = *change.SchemaDefinition
	}

	return to
}

// GetDefinition returns the current definition.
func (c Catalog) GetDefinition(ctx context.Context, who auth.Principal, at Path) (Definition, error) {
	var definition *Definition

	err := c.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := c.Allow(ctx, q, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		definition, err = selectDefinition(ctx, q, found)

		return err
	})
	if err != nil || definition == nil {
		return Definition{}, orAbsent(err)
	}

	return *definition, nil
}

// Definitions returns the definitions of datasets of an account. It does not check access; callers must have done so.
func (c Catalog) Definitions(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Definition, error) {
	return selectDefinitions(ctx, q, account, ids)
}

// PutDefinition saves a new revision. If expected is not nil, the current revision must be one of the expected
// revisions.
//
// Faults: NotFound, Forbidden, ValidationFailed, PreconditionFailed if the current revision is not expected.
func (c Catalog) PutDefinition(ctx context.Context, who auth.Principal, at Path, change Change, expected []int64) (saved Definition, err error) {
	if !change.given() {
		return Definition{}, fault.Invalid("body", "must have dataDescription (a text) or schemaDefinition (an object with a text for each column)")
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := c.Allow(ctx, tx, who, auth.Editor, at)
		if err != nil {
			return err
		}

		current, err := lockDefinition(ctx, tx, found)
		if err != nil || current == nil {
			return orAbsent(err)
		}

		if expected != nil && !slices.Contains(expected, current.Revision) {
			return fault.New(fault.PreconditionFailed, "The definition has changed. Read it again, then repeat the change.")
		}

		saved = change.apply(*current)
		saved.Revision++

		if err := c.saveDefinition(ctx, tx, who, found, current.Revision, saved, c.now()); err != nil {
			return err
		}

		return c.indexTx(ctx, tx, found.Account, found.ID)
	})

	return saved, err
}

// saveDefinition writes the revision that follows the given one and makes it the current revision.
func (c Catalog) saveDefinition(ctx context.Context, tx postgres.Tx, who auth.Principal, d Dataset, revision int64, definition Definition, now time.Time) error {
	definition.Revision = revision + 1
	if definition.SchemaDefinition == nil {
		definition.SchemaDefinition = map[string]string{}
	}

	if err := insertDefinition(ctx, tx, who, d, definition, now); err != nil {
		return err
	}

	entry := who.Audit(d.Account, now, "definition.put", d.Audit())
	entry.Detail = fmt.Sprintf("revision %d", definition.Revision)

	return audit.WriteTx(ctx, tx, entry)
}
