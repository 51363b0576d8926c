package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres/pgtest"
)

// TestBehindAPooler checks that everything works where statements have no names and may run on any connection.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()

	db := pgtest.Pooled(t)

	b := &bundle{db: db, catalog: Catalog{DB: db, Now: time.Now}}
	ada, bob := b.signIn(t, "ada"), b.signIn(t, "bob")
	at := Path{Username: "ada", Namespace: "n", Dataset: "orders"}

	b.add(t, ada, thing{name: "orders", description: "text", columns: []string{"amount"}, values: []string{"paid"}})
	b.share(t, ada, at, "bob", auth.Viewer)

	for _, who := range []auth.Principal{ada, bob, b.token(t, bob, auth.Viewer, at), b.token(t, ada, auth.Viewer, Path{Username: "ada", Namespace: "n"})} {
		require.Equal(t, []string{"orders"}, b.hits(t, who, "order amount paid"))
		require.Len(t, b.all(t, who, 10), 1)
	}

	b.exec(t, `UPDATE dataset_search SET stale = true, document = ''`)

	made, err := b.catalog.indexStale(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, made)

	require.NoError(t, b.catalog.TransferDataset(t.Context(), at, "bob", moveTable))
	require.Equal(t, []string{"orders"}, b.hits(t, bob, "order amount paid"))
	b.requireSound(t)
}
