package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// restoreTo restores a snapshot.
func (d *filled) restoreTo(snapshotID string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/snapshots/"+snapshotID+"/restore", "")
}

// dump writes the database to a file, and undump loads the file into an empty database.
func dump(t *testing.T, databaseURL, path string) {
	t.Helper()

	printed, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--file", path, databaseURL).CombinedOutput()
	require.NoError(t, err, string(printed))
}

func undump(t *testing.T, databaseURL, path string) {
	t.Helper()

	printed, err := exec.CommandContext(t.Context(), "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", path, databaseURL).CombinedOutput()
	require.NoError(t, err, string(printed))
}

// TestRestoreOldDatabase checks that one call restores rows that were replaced by mistake. If the whole database is restored from
// a backup, the object store still has all objects that it needs, regardless of later changes.
func TestRestoreOldDatabase(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_DELETE_GRACE=1h", "QUERN_SNAPSHOT_RETENTION=1h")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	// Replace the rows by mistake.
	d.stored(`{"data": [{"n": 1}, {"n": 2}]}`)
	good := d.describe().SnapshotID
	d.loaded(`"mode": "replace"`, "n\n7\n")
	mistake := d.describe().SnapshotID
	require.Equal(t, numbers(7), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(good).status)
	require.Equal(t, numbers(1, 2), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(mistake).status)
	require.Equal(t, numbers(7), d.table().rows)
	require.Equal(t, http.StatusOK, d.restoreTo(good).status)

	// Datasets that change in every way after the backup.
	datasets := map[string]*filled{"orders": d}
	for _, name := range []string{"quiet", "posted", "compacted", "replaced", "cleared", "deleted"} {
		datasets[name] = d.beside(name, `{"data": [{"n": 1}, {"n": 2}]}`)
	}

	for n := range 10 {
		datasets["compacted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
	}

	datasets["compacted"].awaitCompacted()

	before := map[string][]any{}
	for name := range datasets {
		before[name] = d.column(name)
	}

	backup := t.TempDir() + "/backup.sql"
	dump(t, s.databaseURL, backup)

	for round := range 2 {
		for n := range 10 {
			datasets["posted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
			datasets["compacted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
		}

		datasets["posted"].awaitCompacted()
		datasets["compacted"].awaitCompacted()
		datasets["replaced"].loaded(`"mode": "replace"`, "n\n7\n")
		require.Equal(t, http.StatusOK, datasets["cleared"].call(http.MethodPost, "/clear", "").status)

		if round == 0 {
			require.Equal(t, http.StatusNoContent, datasets["deleted"].call(http.MethodDelete, "", "").status)
		}

		s.forgetOld(func() bool {
			return len(datasets["posted"].snapshots()) == 1 && len(datasets["replaced"].snapshots()) == 1 && len(d.snapshots()) == 1
		})
	}

	require.Equal(t, http.StatusNotFound, d.restoreTo(mistake).status, "it is forgotten")
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))

	objects := len(s.place.objects())

	s.stop()

	// Restore the backup.
	restored := createDatabase(t)
	undump(t, restored, backup)

	s.databaseURL = restored
	s.settings = append(s.settings, "QUERN_DATABASE_URL="+restored)
	s.requireRefused("another copy of this database")
	require.Contains(t, s.quernd("store", "claim"), "epoch 2")
	s.cleanAtStart()
	s.restart()

	for _, when := range []string{"at once", "after cleaning"} {
		for name, want := range before {
			require.Equal(t, want, d.column(name), "%s %s", name, when)
			require.Len(t, datasets[name].table().rows, len(want))
		}

		if when == "at once" {
			s.stop()
			s.cleanAtStart()
			s.restart()
			s.awaitJob("ingest.clean")
			s.awaitJob("upload.clean")
		}
	}

	require.Contains(t, s.quernd("fsck"), "0 lost, ")
	require.LessOrEqual(t, objects, len(s.place.objects()), "nothing was deleted")
	require.Equal(t, http.StatusOK, d.restoreTo(mistake).status)
	require.Equal(t, numbers(7), d.table().rows)
}

// forgetOld makes all snapshots two hours older, but not the objects.
func (s *service) forgetOld(done func() bool) {
	s.t.Helper()
	s.stop()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			`UPDATE lake_snapshots SET committed_at = committed_at - interval '2 hours'`,
			`UPDATE lake_tables SET superseded_at = superseded_at - interval '2 hours'`,
		} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(s.t, err)
		}
	})
	s.cleanAtStart()
	s.restart()
	await(s.t, "old snapshots are forgotten", done)
}

// column returns all numbers of a dataset, in order.
func (d *filled) column(name string) (cells []any) {
	d.t.Helper()

	for _, row := range d.result(`SELECT n FROM `+name+` ORDER BY n LIMIT 100000`, "").Data {
		cells = append(cells, row["n"])
	}

	return cells
}
