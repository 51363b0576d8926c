package source

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/cron"
)

// TestSlots checks the slots around changes of the clock.
func TestSlots(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"a plain day":                        {"30 2 * * *", "Europe/Vienna", "2026-07-01T01:00:00Z", []string{"2026-07-02T00:30:00Z", "2026-07-03T00:30:00Z"}},
		"a time that is left out":            {"30 2 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"times that are left out, once":      {"*/20 2 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"left out and the moment itself":     {"30 2,3 * * *", "Europe/Vienna", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"}},
		"a time that comes twice":            {"30 2 * * *", "Europe/Vienna", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"asked in the second hour":           {"*/30 * * * *", "Europe/Vienna", "2026-10-25T01:10:00Z", []string{"2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"}},
		"every half hour through it":         {"*/30 * * * *", "Europe/Vienna", "2026-10-25T00:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"}},
		"a change of half an hour":           {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"midnight that is left out":          {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		"a day that is left out":             {"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", []string{"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		"a zone without changes":             {"0 0 1 1 *", "Asia/Kolkata", "2026-01-01T00:00:00Z", []string{"2026-12-31T18:30:00Z", "2027-12-31T18:30:00Z"}},
		"exactly at a slot, it is the next":  {"0 3 * * *", "UTC", "2026-01-01T03:00:00Z", []string{"2026-01-02T03:00:00Z"}},
		"the 29th of February, eight years":  {"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		"less than a minute before the slot": {"0 3 * * *", "UTC", "2026-01-01T02:59:59.5Z", []string{"2026-01-01T03:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			at, err := time.Parse(time.RFC3339, c.after)
			require.NoError(t, err)

			var got []string

			for range c.want {
				found, err := Schedule{Cron: c.cron, TimeZone: c.zone}.next(at, uuid.New())
				require.NoError(t, err)
				require.Equal(t, found.slot, found.at, "without jitter")

				at = found.slot
				got = append(got, at.Format(time.RFC3339))
			}

			require.Equal(t, c.want, got)
		})
	}
}

// TestSlotsOfAYear compares the slots of a year, in zones that change their clocks, with a clock that is watched minute by minute: a slot is when the clock first reaches a
// time that matches.
func TestSlotsOfAYear(t *testing.T) {
	t.Parallel()

	for _, zone := range []string{"Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "UTC"} {
		for _, expression := range []string{"*/7 * * * *", "30 0-3 * * *", "0 2 * * sun"} {
			schedule := Schedule{Cron: expression, TimeZone: zone}
			c, place, err := schedule.parse()
			require.NoError(t, err)

			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			end := at.AddDate(1, 0, 0)
			reached := cron.Shows(at, place)
			match, ok := c.Next(reached)
			require.True(t, ok)

			var want, got []time.Time

			for now := at.Add(time.Minute); now.Before(end); now = now.Add(time.Minute) {
				if shown := cron.Shows(now, place); shown.After(reached) {
					if reached = shown; !match.After(shown) {
						want = append(want, now)
						match, _ = c.Next(shown)
					}
				}
			}

			for {
				found, err := schedule.next(at, uuid.Nil)
				require.NoError(t, err)

				if at = found.slot; !at.Before(end) {
					break
				}

				got = append(got, at)
			}

			require.Equal(t, want, got, "%s in %s", expression, zone)
		}
	}
}

// TestShift checks that a source always runs later than its slot by the same time below the jitter, and that sources differ.
func TestShift(t *testing.T) {
	t.Parallel()

	schedule := Schedule{Cron: "0 3 * * *", TimeZone: "UTC", Jitter: 10 * time.Minute}
	shifts := map[time.Duration]bool{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	for range 200 {
		id := uuid.Must(uuid.NewV7())
		first, err := schedule.next(at, id)
		require.NoError(t, err)
		second, err := schedule.next(first.slot, id)
		require.NoError(t, err)

		shift := first.at.Sub(first.slot)
		require.Equal(t, shift, second.at.Sub(second.slot))
		require.GreaterOrEqual(t, shift, time.Duration(0))
		require.Less(t, shift, schedule.Jitter)

		shifts[shift] = true
	}

	require.Greater(t, len(shifts), 100)

	for _, wrong := range []string{"", "Local", "Europe/Nowhere", "../../etc/passwd", "CET+1", "/etc/localtime"} {
		_, err := Schedule{Cron: "0 3 * * *", TimeZone: wrong}.next(at, uuid.Nil)
		require.Error(t, err, wrong)
	}
}

func FuzzCron(f *testing.F) {
	f.Add("*/15 0-6 1,15 jan-mar mon-fri", "Europe/Vienna", int64(1_774_742_400))
	f.Add("30 2 29 2 *", "Australia/Lord_Howe", int64(0))
	f.Fuzz(func(t *testing.T, expression, zone string, at int64) {
		after := time.Unix(at%(1<<33), 0).UTC()

		found, err := Schedule{Cron: expression, TimeZone: zone}.next(after, uuid.Nil)
		if err == nil && expression != "" {
			require.True(t, found.slot.After(after))
		}
	})
}
