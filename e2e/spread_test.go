package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestManyFiles loads a few files each of which is a job of its own: everything that an ingestion of one job does must be the same.
func TestManyFiles(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_INGEST_SPREAD_ABOVE=1")
	key := s.newKey()

	for name, test := range map[string]func(d *filled){
		"a bad file": spreadBad, "doubts": spreadDoubts, "rows are there": spreadPresent, "too many set aside": spreadAside, "cancelled": spreadCancelled,
		"replaced": spreadReplaced, "a key": spreadKey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			who := strings.ReplaceAll(name, " ", "-")
			test(newFilled(t, s, who, key.token(who)))
		})
	}

	for name, story := range tableStories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			table := newTable(t, s, key.token("ada"), name)
			for _, step := range story {
				table.do(step)
			}

			table.requireHistory(story)
		})
	}
}

// requireNothingStaged checks that no data file of an ingestion could still be committed.
func (d *filled) requireNothingStaged(id string) {
	d.t.Helper()
	withDatabase(d.t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		var ready int
		require.NoError(d.t, connection.QueryRow(ctx, `SELECT count(*) FROM lake_files WHERE ingestion_id = $1 AND state = 'ready'`, id).Scan(&ready))
		require.Zero(d.t, ready)
	})
}

func spreadBad(d *filled) {
	done := d.load("", "n\n1\n", "n\n2\n", "SQLite format 3\x00"+strings.Repeat("x", 1000), "n\n4\n")
	require.Equal(d.t, "failed", done.Status)
	require.Equal(d.t, "VALIDATION_FAILED", done.Error.Code)
	require.True(d.t, strings.HasPrefix(done.Error.Message, "file 2: "), done.Error.Message)
	d.requireNothingStaged(done.ID)
	require.Equal(d.t, http.StatusAccepted, d.call(http.MethodPost, "/ingestions/"+done.ID+"/retry", "").status)
	require.Equal(d.t, "failed", d.wait(done.ID).Status)
	require.Zero(d.t, d.describe().RowCount)
}

func spreadDoubts(d *filled) {
	waiting := d.load("", "n\n1\n", "n\n2\n", "n\n1\n")
	require.Equal(d.t, "waiting", waiting.Status)
	require.Equal(d.t, progress{Phase: "waiting", BytesTotal: 12}, waiting.Progress)
	require.Len(d.t, waiting.Doubts, 1)
	require.Equal(d.t, `The files "file 0" and "file 2" have the same bytes. Loading both duplicates their rows.`, waiting.Doubts[0].Message)
	d.accepted(d.call(http.MethodPost, "/ingestions/"+waiting.ID+"/retry", `{"accept": ["loadedBefore"]}`))

	done := d.wait(waiting.ID)
	require.Equal(d.t, "completed", done.Status)
	require.Equal(d.t, waiting.Doubts, done.Doubts)
	require.Equal(d.t, numbers(1, 1, 2), d.table().rows)
}

func spreadPresent(d *filled) {
	rows := func(first, last int) string {
		var text strings.Builder

		text.WriteString("n\n")

		for n := first; n <= last; n++ {
			fmt.Fprintln(&text, n)
		}

		return text.String()
	}

	d.loaded("", rows(1, 40), rows(101, 140))

	waiting := d.load("", rows(201, 240), rows(1, 42))
	require.Equal(d.t, "waiting", waiting.Status)
	require.Len(d.t, waiting.Doubts, 1)
	require.Equal(d.t, `Most rows of the file "file 1" are already in the dataset. Loading it duplicates them.`, waiting.Doubts[0].Message)
	d.requireNothingStaged(waiting.ID)
	require.Equal(d.t, 80, d.describe().RowCount)
}

func spreadAside(d *filled) {
	bad := "n\n1\n" + strings.Repeat("x\n", 7)
	done := d.load(`"accept": ["all"], "options": {"types": {"n": "bigint"}}`, "n\n5\n6\n", bad, bad)
	require.Equal(d.t, "failed", done.Status)
	require.Equal(d.t, "14 of 18 rows do not fit. Check these rows and give the missing options.", done.Error.Message)
	require.EqualValues(d.t, 14, done.Progress.RowsSetAside)
	require.Len(d.t, done.SetAside, 14)
	require.Equal(d.t, "file 1", done.SetAside[0].File)
	d.requireNothingStaged(done.ID)
}

func spreadCancelled(d *filled) {
	var files []string

	for n := range 6 {
		files = append(files, largeFile(120_000+n))
	}

	made := d.accepted(d.create(uploadFiles(d.t, d.s, d.bearer, files...), ""))
	await(d.t, "a file is converted", func() bool { return d.get(made.ID).Progress.RowsDone > 0 })
	require.Equal(d.t, http.StatusOK, d.call(http.MethodPost, "/ingestions/"+made.ID+"/cancel", "").status)
	await(d.t, "the workers have stopped", func() (none bool) {
		withDatabase(d.t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			require.NoError(d.t, connection.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM leases WHERE args->>'ingestion' = $1)`, made.ID).Scan(&none))
		})

		return none
	})
	require.Equal(d.t, "cancelled", d.get(made.ID).Status)
	d.requireNothingStaged(made.ID)
	d.accepted(d.call(http.MethodPost, "/ingestions/"+made.ID+"/retry", ""))

	done := d.wait(made.ID)
	require.Equal(d.t, "completed", done.Status, "%+v", done.Error)
	require.EqualValues(d.t, 6*120_000+15, done.Progress.RowsDone)
	require.Equal(d.t, 6*120_000+15, d.describe().RowCount)
}

func spreadReplaced(d *filled) {
	d.loaded("", "n\n1\n", "n\n2\n")
	d.loaded(`"mode": "replace"`, "n\n3\n", "n\nmany\n", "n\n5\n")

	found := d.table()
	require.Equal(d.t, []tableColumn{{"n", "varchar"}}, found.columns)
	require.Equal(d.t, sorted([][]any{{"3"}, {"many"}, {"5"}}), found.rows)
}

func spreadKey(d *filled) {
	d.loaded("", "n,v\n1,a\n")

	d.declared(`{"columns": ["n"], "duplicates": "setAside"}`)

	done := d.load("", "n,v\n2,b\n1,c\n", "n,v\n3,d\n2,e\n")
	require.Equal(d.t, "completed", done.Status, "%+v", done.Error)
	require.Equal(d.t, progress{Phase: "done", BytesDone: 24, BytesTotal: 24, RowsDone: 2, RowsSetAside: 2}, done.Progress)
	require.Equal(d.t, sorted([][]any{{int64(1), "a"}, {int64(2), "b"}, {int64(3), "d"}}), d.table().rows)
}
