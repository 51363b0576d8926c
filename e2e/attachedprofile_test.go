package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// attachedProfiled checks the profile of a table whose connection may no longer be used. The service does not try it again and again. The next run that succeeds makes it due.
func attachedProfiled(t *testing.T, s *service, c *tableCatalog, key *signer) {
	t.Helper()

	table, owner, bearer := "p.orders", key.token("patron"), key.token("profiler")
	c.do("create", map[string]any{"table": table, "columns": numberedColumns})
	c.do("append", map[string]any{"table": table, "rows": numberedRows(1, 100)})

	connection := s.connectCatalog(t, owner, c, nil)
	s.lend(t, owner, connection, "profiler")

	a := attach(t, s, c, "profiler", bearer, connection, table)
	a.requireSame(a.refresh())
	require.EqualValues(t, 100, a.profiled().RowCount)

	// The next profile is due after the quiet period. Before that, the right is revoked.
	c.do("append", map[string]any{"table": table, "rows": numberedRows(101, 1)})
	a.requireSame(a.refresh())
	s.takeBack(t, owner, connection, "profiler")
	require.EqualValues(t, 1, a.hurryProfile())
	a.awaitNoChore()

	var last profile

	a.call(http.MethodGet, "/profile", "").json(t, &last)
	require.EqualValues(t, 100, last.RowCount, "the last profile stays")

	// The table has not changed. The run has nothing to attach, and the profile is computed.
	s.lend(t, owner, connection, "profiler")
	a.set(true)
	a.requireSame(a.refresh())
	require.EqualValues(t, 101, a.profiled().RowCount)
	a.awaitNoChore()

	// A run that changes nothing does not repeat it.
	a.requireSame(a.refresh())
	require.EqualValues(t, 0, a.hurryProfile())

	// The same if the connection is gone.
	c.do("append", map[string]any{"table": table, "rows": numberedRows(102, 1)})
	a.requireSame(a.refresh())
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/connections/"+connection, owner, "").status)
	require.EqualValues(t, 1, a.hurryProfile())
	a.awaitNoChore()
}

// hurryProfile makes a profile that waits for the end of the quiet period due now, and returns how many there are.
func (a *attached) hurryProfile() (hurried int64) {
	a.t.Helper()

	_, id := a.s.tableName(a.owner, a.namespace, a.name)
	withDatabase(a.t, a.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		done, err := connection.Exec(ctx, `UPDATE lake_upkeep SET due_at = since WHERE dataset_id = $1`, id)
		require.NoError(a.t, err)

		hurried = done.RowsAffected()
	})

	return hurried
}

// awaitNoChore waits until nothing is due for the table, now or later.
func (a *attached) awaitNoChore() {
	a.t.Helper()

	_, id := a.s.tableName(a.owner, a.namespace, a.name)

	await(a.t, "no chore is due", func() (isDone bool) {
		withDatabase(a.t, a.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(a.t, connection.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM lake_upkeep WHERE dataset_id = $1)`, id).Scan(&isDone))
		})

		return isDone
	})
}
