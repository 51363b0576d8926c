package app

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func TestCompareEpochs(t *testing.T) {
	t.Parallel()

	now := time.Now()
	held := blob.Epoch{Deployment: "d", Database: "1/2/3", Number: 2, Mark: now}
	mine := postgres.Epoch{Deployment: "d", Database: "1/2/3", Number: 2, Mark: now, Bound: true}

	for name, test := range map[string]struct {
		change func(held *blob.Epoch, mine *postgres.Epoch)
		want   string // part of the refusal; "behind" for errBehind; empty if they belong together
	}{
		"the same":                       {func(*blob.Epoch, *postgres.Epoch) {}, ""},
		"the store lacks the last sign":  {func(h *blob.Epoch, _ *postgres.Epoch) { h.Mark = now.Add(-time.Minute) }, ""},
		"the store has no sign":          {func(h *blob.Epoch, _ *postgres.Epoch) { h.Mark = time.Time{} }, ""},
		"the database lacks a young one": {func(_ *blob.Epoch, m *postgres.Epoch) { m.Mark = now.Add(-time.Minute) }, "behind"},
		"the database lacks an old one":  {func(_ *blob.Epoch, m *postgres.Epoch) { m.Mark = now.Add(-marksLost - time.Second) }, "earlier time"},
		"another deployment":             {func(_ *blob.Epoch, m *postgres.Epoch) { m.Deployment = "e" }, "deployment"},
		"another copy":                   {func(_ *blob.Epoch, m *postgres.Epoch) { m.Database = "1/4/3" }, "another copy"},
		"an older epoch here":            {func(_ *blob.Epoch, m *postgres.Epoch) { m.Number = 1 }, "is in epoch 2"},
		"an older epoch there":           {func(h *blob.Epoch, _ *postgres.Epoch) { h.Number = 1 }, "is in epoch 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h, m := held, mine
			test.change(&h, &m)
			err := compare(h, m)

			switch test.want {
			case "":
				require.NoError(t, err)
			case "behind":
				require.ErrorIs(t, err, errBehind)
			default:
				require.True(t, refused(err))
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// TestSettle checks that a standby that took over continues while the store is silent, and stops when another process
// writes signs of life.
func TestSettle(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		sign := time.Now()

		silent := &location{}
		require.ErrorIs(t, silent.settle(errBehind, sign), errBehind)
		time.Sleep(markSettles - time.Second)
		require.ErrorIs(t, silent.settle(errBehind, sign), errBehind)
		time.Sleep(time.Second)
		require.NoError(t, silent.settle(errBehind, sign))
		require.NoError(t, silent.settle(nil, sign))
		require.ErrorIs(t, silent.settle(errBehind, sign), errBehind, "it begins anew")

		busy := &location{}
		require.ErrorIs(t, busy.settle(errBehind, sign), errBehind)
		require.True(t, refused(busy.settle(errBehind, sign.Add(time.Second))))
	})
}

// TestRemovalNeedsEpoch checks that nothing is removed from the store while its epoch differs from that of the
// database.
func TestRemovalNeedsEpoch(t *testing.T) {
	t.Parallel()

	app, _ := newApp(t)
	ctx := t.Context()
	require.NoError(t, app.location.check(ctx))

	held, err := app.store.Epoch(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, held.Number)
	require.NoError(t, app.store.Delete(ctx, "nothing"))

	// Another copy takes over.
	require.NoError(t, app.store.TakeEpoch(ctx, blob.Epoch{Deployment: held.Deployment, Database: "elsewhere", Number: 2, Mark: time.Now()}))
	app.location.recent = look{}

	for name, remove := range map[string]func() error{
		"delete": func() error { return app.store.Delete(ctx, "nothing") },
		"begun":  func() error { return app.store.DeleteBegun(ctx, "nothing") },
		"abort":  func() error { return app.store.AbortUpload(ctx, "nothing", "upload") },
		"orphan": func() error { return app.store.RemoveOrphan(ctx, blob.Orphan{Key: "nothing"}) },
	} {
		err := remove()
		require.True(t, fault.Is(err, fault.Unavailable), name)
		require.ErrorContains(t, err, "another copy of this database", name)
	}

	require.True(t, refused(app.location.check(ctx)))

	// The operator decides for this database: a sign of life follows when the process is old enough, and is newer than
	// all earlier ones.
	taken, err := app.location.claim(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, taken.Number)
	require.NoError(t, app.location.check(ctx))

	app.location.recent, app.location.started = look{}, time.Now().Add(-markDelay)
	require.NoError(t, app.store.Delete(ctx, "nothing"))
	require.NoError(t, app.location.check(ctx))

	require.NoError(t, app.db.Do(ctx, func(q postgres.Querier) error {
		_, err := q.Exec(ctx, `UPDATE store_epoch SET mark = mark - interval '1 minute'`)

		return err
	}))
	require.ErrorIs(t, app.location.check(ctx), errBehind)
	app.location.since = time.Now().Add(-markSettles)
	require.NoError(t, app.location.check(ctx))

	held, err = app.store.Epoch(ctx)
	require.NoError(t, err)
	require.True(t, held.Mark.After(taken.Mark))
}
