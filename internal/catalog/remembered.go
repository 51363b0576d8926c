package catalog

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Remembered is what a person chose when words of a question had several meanings in a dataset.
type Remembered struct {
	Words  string // their stems, after the form of the question if it matters; empty for a date, which holds for every time
	Said   string // the words as they were written
	Kind   string // column, value, rows, measure, best selling or date
	Column string // empty if the words mean the rows
	At     time.Time
}

// Proposal is a meaning that people chose for words and that the semantics of the dataset do not have.
type Proposal struct {
	Said   string
	Column string
	People int64
}

const (
	maxSaid      = 200 // bytes of words that are remembered
	maxProposals = 100
)

// RememberTx stores what the caller chose for words in a dataset, in place of what they chose before.
func (c Catalog) RememberTx(ctx context.Context, tx postgres.Tx, who auth.Principal, d Dataset, one Remembered) error {
	if len(one.Said) > maxSaid || len(one.Words) > maxSaid {
		return nil
	}

	one.At = c.now()

	return insertRemembered(ctx, tx, who.Account, d, one)
}

// ForgetTx removes what the caller chose before for words in a dataset, if it is this column.
func (c Catalog) ForgetTx(ctx context.Context, tx postgres.Tx, who auth.Principal, d Dataset, one Remembered) error {
	return deleteRemembered(ctx, tx, who.Account, d, one)
}

// Remembered returns what the caller chose, by dataset. It does not check access; callers must have done so.
func (c Catalog) Remembered(ctx context.Context, who auth.Principal, datasets []Item) (map[uuid.UUID][]Remembered, error) {
	accounts := map[uuid.UUID][]uuid.UUID{}
	for _, d := range datasets {
		accounts[d.Account] = append(accounts[d.Account], d.ID)
	}

	found := map[uuid.UUID][]Remembered{}

	return found, c.DB.Do(ctx, func(db postgres.Querier) error {
		for account, ids := range accounts {
			some, err := selectRemembered(ctx, db, who.Account, account, ids)
			if err != nil {
				return err
			}

			maps.Copy(found, some)
		}

		return nil
	})
}

// Choices returns what the caller chose for words in a dataset. For editors it also returns what people chose and the
// semantics do not say, most people first.
//
// Faults: NotFound.
func (c Catalog) Choices(ctx context.Context, who auth.Principal, at Path) (own []Remembered, proposed []Proposal, err error) {
	err = c.DB.Do(ctx, func(db postgres.Querier) error {
		found, err := c.Allow(ctx, db, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		all, err := selectRemembered(ctx, db, who.Account, found.Account, []uuid.UUID{found.ID})
		if err != nil {
			return err
		}

		own = all[found.ID]

		if _, err := c.Allow(ctx, db, who, auth.Editor, at); fault.Is(err, fault.Forbidden) {
			return nil
		} else if err != nil {
			return err
		}

		proposed, err = c.proposals(ctx, db, found)

		return err
	})

	return own, proposed, err
}

func (c Catalog) proposals(ctx context.Context, db postgres.Querier, d Dataset) ([]Proposal, error) {
	list, err := selectProposals(ctx, db, d, maxProposals)
	if err != nil {
		return nil, err
	}

	saved, err := selectSemantics(ctx, db, d.Account, []uuid.UUID{d.ID})

	return slices.DeleteFunc(list, func(p Proposal) bool {
		isKnown := slices.ContainsFunc(saved[d.ID].Saved.Columns[p.Column].Synonyms, func(s string) bool { return strings.EqualFold(s, p.Said) })

		return isKnown || strings.EqualFold(p.Said, p.Column) || !slices.ContainsFunc(d.Columns, func(column Column) bool { return column.Name == p.Column })
	}), err
}

// ForgetChoices removes everything that the caller chose for words in a dataset. Questions are asked back again.
//
// Faults: NotFound.
func (c Catalog) ForgetChoices(ctx context.Context, who auth.Principal, at Path) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := c.Allow(ctx, tx, who, auth.Viewer, at)
		if err != nil {
			return err
		}

		if err := deleteAllRemembered(ctx, tx, who.Account, found); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, c.now(), "choices.delete", found.Audit()))
	})
}
