package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// Key is the columns whose values identify a row of a dataset. The zero value is no key.
type Key struct {
	Columns    []string
	Duplicates Duplicates
}

// Duplicates is what happens to rows of a load whose key is null, or that another row has.
type Duplicates string

const (
	SetAside Duplicates = "setAside" // they are left out, with a reason each
	Refuse   Duplicates = "refuse"   // the load fails
)

// Declared reports whether there is a key.
func (k Key) Declared() bool { return len(k.Columns) > 0 }

// Has reports whether the key consists of these columns, in any order.
func (k Key) Has(columns []string) bool {
	return len(columns) == len(k.Columns) && !slices.ContainsFunc(k.Columns, func(name string) bool {
		return !slices.ContainsFunc(columns, func(other string) bool { return strings.EqualFold(name, other) })
	})
}

// String returns the columns for messages.
func (k Key) String() string { return strings.Join(k.Columns, ", ") }

// names returns the columns as the database stores them: never NULL.
func (k Key) names() []string { return append([]string{}, k.Columns...) }

// KeyColumns returns the columns of the key as the dataset spells them, or nil if it has no key or lacks one of them: a key
// can be declared before the first rows.
func (d Dataset) KeyColumns() (names []string) {
	for _, name := range d.Key.Columns {
		at := slices.IndexFunc(d.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
		if at < 0 {
			return nil
		}

		names = append(names, d.Columns[at].Name)
	}

	return names
}

// SetKeyTx sets or, with the zero Key, removes the key of the dataset with the given id, which must still be at the path. The
// caller ensures that no rows are committed meanwhile which violate the key.
//
// Faults: NotFound, Forbidden.
func (c Catalog) SetKeyTx(ctx context.Context, tx postgres.Tx, who auth.Principal, at Path, id uuid.UUID, key Key) error {
	found, err := c.Allow(ctx, tx, who, auth.Editor, at)
	if err != nil {
		return err
	}

	if found.ID != id {
		return orAbsent(nil)
	}

	if isLive, err := updateKey(ctx, tx, found, key, c.now()); err != nil || !isLive {
		return orAbsent(err)
	}

	entry := who.Audit(found.Account, c.now(), "key.delete", found.Audit())
	if key.Declared() {
		entry.Action, entry.Detail = "key.put", fmt.Sprintf("%s, %s", key, key.Duplicates)
	}

	return audit.WriteTx(ctx, tx, entry)
}
