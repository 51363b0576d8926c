package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestSchedules uses sources that run by themselves. The simulation of many slots on racing replicas is in internal/source.
func TestSchedules(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8")
	key := s.newKey()

	for name, test := range map[string]func(t *testing.T, s *service, key *signer){
		"a schedule of every minute": schedulesFire, "what is refused": schedulesRefused, "what a change does": schedulesChange, "a source that stops": schedulesStop,
		"one run at a time": schedulesOnce, "what a reason tells": schedulesReason,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, key)
		})
	}
}

// schedulesFire runs two replicas, waits for a slot, and kills one replica after the run has begun.
func schedulesFire(t *testing.T, _ *service, _ *signer) {
	t.Helper()

	sourceKey := "QUERN_SOURCE_KEY=" + strings.Repeat("the key of both ", 4)
	one := start(t, sourceKey)
	two := another(t, one, sourceKey)
	o := newSource(t, one, "clock", one.newKey().token("clock"), `, "schedule": {"cron": "* * * * *", "timeZone": "Europe/Vienna"}`)
	o.there.put("a.csv", o.numbers(5))

	next := o.get().NextRunAt
	require.WithinRange(t, next, time.Now(), time.Now().Add(time.Minute))

	awaitFor(t, longEnough, "a run has begun", func() bool { return o.get().LastRun != nil })
	two.kill()
	two.restart()

	awaitFor(t, longEnough, "it has ended", func() bool { return o.get().LastRun.FinishedAt != "" })

	found := o.get()
	require.Equal(t, "completed", found.LastRun.Status, found.LastRun.Reason)
	require.Equal(t, next, found.LastRun.SlotAt)
	require.True(t, found.NextRunAt.After(next))
	o.requireModel()

	// The dataset tells everybody who sees it how fresh it is, and nothing else of the source.
	var shown struct {
		Metadata struct{ RefreshedAt time.Time }
	}

	answer := o.call(http.MethodGet, "", "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &shown)
	require.WithinRange(t, shown.Metadata.RefreshedAt, next.Add(-time.Second), time.Now())
	require.NotContains(t, answer.body, o.id)
	require.NotContains(t, answer.body, o.there.bucket)
	require.NotContains(t, answer.body, found.Name)

	o.patch(`{"schedule": {}}`)
	require.Zero(t, o.get().NextRunAt)
	require.Zero(t, o.get().Schedule)
}

func (o *sourceOf) patch(body string) (changed sourced) {
	o.t.Helper()

	answer := call(o.t, http.MethodPatch, o.s.url+"/sources/"+o.id, o.bearer, body)
	require.Equal(o.t, http.StatusOK, answer.status, answer.body)
	answer.json(o.t, &changed)

	return changed
}

func schedulesRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "refuser", key.token("refuser"), "")

	for body, field := range map[string]string{
		`{"schedule": {"cron": "* * * *", "timeZone": "UTC"}}`:                           "schedule.cron",
		`{"schedule": {"cron": "0 0 30 2 *", "timeZone": "UTC"}}`:                        "schedule.cron",
		`{"schedule": {"cron": "@daily", "timeZone": "UTC"}}`:                            "schedule.cron",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Nowhere"}}`:              "schedule.timeZone",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "Local"}}`:                       "schedule.timeZone",
		`{"schedule": {"cron": "0 3 * * *"}}`:                                            "schedule.timeZone",
		`{"schedule": {"timeZone": "UTC"}}`:                                              "schedule.cron",
		`{"schedule": {"jitterMinutes": 5}}`:                                             "schedule.cron",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "UTC", "jitterMinutes": 721}}`:   "jitterMinutes",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "UTC", "jitterMinutes": -1}}`:    "jitterMinutes",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "UTC", "jitter": 5}}`:            "jitter",
		`{"schedule": {"cron": "0 3 * * *", "timeZone": "UTC"}, "nextRunAt": "2026-01"}`: "nextRunAt",
		`{}`: "",
	} {
		answer := call(t, http.MethodPatch, s.url+"/sources/"+o.id, o.bearer, body)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", body, answer.body)
		require.Contains(t, answer.body, field, body)
	}

	require.Zero(t, o.get().Schedule)

	// A source that is paused has no slots, but its schedule is checked all the same.
	o.set(false)

	answer := call(t, http.MethodPatch, s.url+"/sources/"+o.id, o.bearer, `{"schedule": {"cron": "0 25 * * *", "timeZone": "UTC"}}`)
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
}

func schedulesChange(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "changer", key.token("changer"), `, "schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Vienna", "jitterMinutes": 30}`)
	made := o.get()
	require.Equal(t, schedule{"0 3 * * *", "Europe/Vienna", 30}, made.Schedule)

	vienna, err := time.LoadLocation("Europe/Vienna")
	require.NoError(t, err)

	local := made.NextRunAt.In(vienna)
	require.Equal(t, 3, local.Hour())
	require.Less(t, local.Minute(), 30)

	// A paused source has no slots. Resuming it, or sending the schedule again, finds the same next one.
	require.Zero(t, o.patch(`{"active": false}`).NextRunAt)
	require.Equal(t, made.NextRunAt, o.patch(`{"active": true}`).NextRunAt)
	require.Equal(t, made.NextRunAt, o.patch(`{"schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Vienna", "jitterMinutes": 30}}`).NextRunAt)
	require.Equal(t, made.NextRunAt, o.patch(`{"active": true}`).NextRunAt)

	// A schedule that a paused source gets counts when it is resumed.
	paused := o.patch(`{"active": false, "schedule": {"cron": "0 4 * * *", "timeZone": "UTC"}}`)
	require.Zero(t, paused.NextRunAt)
	require.Equal(t, schedule{"0 4 * * *", "UTC", 0}, paused.Schedule)

	resumed := o.patch(`{"active": true}`).NextRunAt
	require.Equal(t, []int{4, 0, 0}, []int{resumed.UTC().Hour(), resumed.Minute(), resumed.Second()})
}

// schedulesStop checks that the owner of a source hears that it has stopped, on streams and by webhooks, and nobody else.
func schedulesStop(t *testing.T, s *service, key *signer) {
	t.Helper()

	owner, helper := key.token("host"), key.token("guest")
	d := newFilled(t, s, "host", owner)
	share(t, s, owner, "datasets/host/"+d.namespace+"/orders", "guest", "editor")

	there := newBucket(t)
	connection := s.connect(t, helper, "guests", there)
	answer := call(t, http.MethodPost, s.url+"/sources", helper, fmt.Sprintf(`{"name": "s", "connectionId": %q, "username": "host", "namespace": %q, "datasetName": "orders",
		"schedule": {"cron": "0 3 * * *", "timeZone": "UTC"}}`, connection, d.namespace))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	var made sourced

	answer.json(t, &made)

	o := &sourceOf{filled: &filled{t, s, helper, "host", d.namespace, "orders"}, id: made.ID, there: there, model: map[int64]int{}}
	heard := watchEvents(t, helper, "?types=source.stopped", s)
	others := watchEvents(t, owner, "?types=source.stopped", s)
	received := newReceiver(t, accepting)

	answer = call(t, http.MethodPost, s.url+"/webhooks", helper, fmt.Sprintf(`{"url": %q, "types": ["source.stopped"]}`, received.URL))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	there.put("heliotrope.parquet", "PAR1 this is no Parquet file PAR1")

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, "file", o.get().ReasonCode)
	require.Zero(t, o.get().NextRunAt)

	told := heard.awaits(1)
	require.Equal(t, []string{"source.stopped", "file", made.ID, run.IngestionID, "host"}, []string{told.Type, told.Data.Code, told.Data.SourceID, told.Data.IngestionID, told.Data.Username})
	await(t, "the webhook was called", func() bool { return len(received.events()) == 1 })
	require.Equal(t, told.ID, received.events()[0].ID)

	for _, text := range heard.texts {
		require.NotContains(t, text, "heliotrope", "an event has no path")
	}

	// Each time it stops, with the reason of that time.
	share(t, s, owner, "datasets/host/"+d.namespace+"/orders", "guest", "viewer")
	require.NotZero(t, o.patch(`{"active": true}`).NextRunAt)
	require.Equal(t, "stopped", o.refresh().Status)
	require.Equal(t, "dataset", heard.awaits(2).Data.Code)
	require.Equal(t, "dataset", o.get().ReasonCode)
	require.Empty(t, others.events(), "the owner of the dataset does not hear of the source")
}

// schedulesOnce checks that requests that race begin one run, also if the last run is not the one that is in progress.
func schedulesOnce(t *testing.T, _ *service, _ *signer) {
	t.Helper()

	s := start(t, "QUERN_INGEST_WORKERS=0") // a run that begins stays in progress
	o := newSource(t, s, "racer", s.newKey().token("racer"), "")

	race := func(want map[int]int) {
		t.Helper()

		var (
			mu     sync.Mutex
			racing sync.WaitGroup
			got    = map[int]int{}
		)

		for range 12 {
			racing.Go(func() {
				answer := o.begin()

				mu.Lock()
				defer mu.Unlock()

				got[answer.status]++
			})
		}

		racing.Wait()
		require.Equal(t, want, got)
	}
	race(map[int]int{http.StatusAccepted: 1, http.StatusConflict: 11})

	// The ids of runs follow the clocks of replicas, so a run may be in progress although a later one has ended.
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `INSERT INTO source_runs (account_id, source_id, id, status, created_at, finished_at) SELECT account_id, source_id, $1, 'completed', now(), now() FROM source_runs`,
			uuid.Must(uuid.NewV7()))
		require.NoError(t, err)
	})
	require.NotEmpty(t, o.get().LastRun.FinishedAt)
	race(map[int]int{http.StatusConflict: 12})
}

// schedulesReason checks that the reason of a stopped source has nothing that only the dataset tells.
func schedulesReason(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "reasoner", key.token("reasoner"), "")
	o.there.put("a.csv", o.numbers(3))
	require.Equal(t, "completed", o.refresh().Status)
	o.there.put("b.parquet", "PAR1 this is no Parquet file PAR1")

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, `The file "b.parquet" could not be loaded. Its ingestion has the reason. Retry the ingestion, or resume the source to leave the file out.`, run.Reason)

	var failed struct{ Error struct{ Message string } }

	o.call(http.MethodGet, "/ingestions/"+run.IngestionID, "").json(t, &failed)
	require.NotEmpty(t, failed.Error.Message)

	for _, path := range []string{"", "/runs"} {
		answer := call(t, http.MethodGet, s.url+"/sources/"+o.id+path, o.bearer, "")
		require.NotContains(t, answer.body, failed.Error.Message)
	}
}
