package connection

import (
	"bytes"
	"context"
	"sync"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// maxOpened is how many clients of catalogs are kept, so that not every file needs another connection to its store.
const maxOpened = 100

// opened are clients of catalogs by connection. They are used only after the database was asked whether the caller may still use the connection.
type opened struct {
	mu    sync.Mutex
	items map[uuid.UUID]openedTables
}

type openedTables struct {
	*Tables

	secret []byte // as it is stored: a connection with another one needs another client
	done   func()
}

// OpenIceberg returns a client of a catalog that the caller may use. It has no token yet, and may be used for the files of tables by many callers at once.
//
// Faults: NotFound, Forbidden, ValidationFailed for another kind, UpstreamUnavailable.
func (c *Connections) OpenIceberg(ctx context.Context, who auth.Principal, id uuid.UUID) (*Tables, error) {
	found, err := c.Get(ctx, who, id)
	if err != nil {
		return nil, err
	}

	if found.Kind != KindIceberg {
		return nil, fault.New(fault.ValidationFailed, "The connection is not to an Iceberg catalog: it has no tables of this kind.")
	}

	c.opened.mu.Lock()
	defer c.opened.mu.Unlock()

	if known, isOpen := c.opened.items[id]; isOpen && bytes.Equal(known.secret, found.secret.text) {
		return known.fresh(), nil
	}

	secret, err := c.Keys.open(found.secret, found.Account, found.ID)
	if err != nil {
		return nil, FailedIceberg(err)
	}

	made, done, err := c.tables(found, string(secret))
	if err != nil {
		return nil, FailedIceberg(err)
	}

	for other, one := range c.opened.items {
		if other == id || len(c.opened.items) >= maxOpened {
			one.done() // requests in progress end by themselves
			delete(c.opened.items, other)
		}
	}

	if c.opened.items == nil {
		c.opened.items = map[uuid.UUID]openedTables{}
	}

	c.opened.items[id] = openedTables{Tables: made, secret: found.secret.text, done: done}

	return made.fresh(), nil
}

// fresh returns a client without a token and without the configuration of the catalog, which may change.
func (t *Tables) fresh() *Tables {
	copied := *t
	copied.base, copied.token = "", ""

	return &copied
}
