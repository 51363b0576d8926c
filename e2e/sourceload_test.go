package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// sourced is a source as the API returns it.
type sourced struct {
	ID, Name, Status, Reason, IngestionID, Username, Namespace, DatasetName string
	ReasonCode                                                              string
	Schedule                                                                schedule
	NextRunAt                                                               time.Time
	LastRun                                                                 *sourceRun
	OpenFiles                                                               []struct{ Path, Status, IngestionID string }
}

type schedule struct {
	Cron, TimeZone string
	JitterMinutes  int
}

type sourceRun struct {
	ID, Status, Reason, IngestionID      string
	Files, Rows, Bytes, Changed, Deleted int64
	FilesReplaced, FilesRemoved          int64
	FilesEmpty, FilesLeftOut             int64
	RowsReplaced, RowsRemoved            int64
	RowsSetAside                         int64
	Notes                                []struct{ Path, Event string }
	CreatedAt, StartedAt, FinishedAt     string
	SlotAt                               time.Time
}

// newBucket returns a location in a bucket of its own.
func newBucket(t *testing.T) *place {
	t.Helper()

	var p *place

	t.Cleanup(func() { // after the objects are removed
		_, err := p.client.DeleteBucket(context.WithoutCancel(t.Context()), &s3.DeleteBucketInput{Bucket: &p.bucket})
		require.NoError(t, err)
	})

	p = newPlace(t)
	p.bucket = "source-" + uuid.NewString()
	_, err := p.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &p.bucket})
	require.NoError(t, err)

	return p
}

// sharedConnection returns the id of a connection that many sources of the bearer use: a user has few.
func (s *service) sharedConnection(t *testing.T, bearer string) string {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/connections", bearer, fmt.Sprintf(`{"name": "shared", "kind": "s3", "s3": %s}`, s.place.s3Settings()))
	require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, answer.status, answer.body)

	var page struct{ Data []connected }

	call(t, http.MethodGet, s.url+"/connections?limit=100", bearer, "").json(t, &page)

	at := slices.IndexFunc(page.Data, func(c connected) bool { return c.Name == "shared" })
	require.GreaterOrEqual(t, at, 0)

	return page.Data[at].ID
}

// addSource makes a source that finds no files, and returns its id.
func (s *service) addSource(t *testing.T, bearer, connection string) string {
	t.Helper()

	var made sourced

	body := fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": "sources", "datasetName": "d", "prefix": "none/"}`, uuid.NewString(), connection)
	answer := call(t, http.MethodPost, s.url+"/sources", bearer, body)
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)

	return made.ID
}

// sourceOf is a source with its bucket, and what its dataset must have.
type sourceOf struct {
	*filled

	id    string
	there *place
	web   *addresses         // instead of there
	model map[int64]int      // how often each value occurs
	files map[string][]int64 // values of the files, for a source that follows them
	gone  []string           // files that were removed
	next  int64
}

// newSource connects a user to a new bucket and makes a source for a dataset that does not exist.
func newSource(t *testing.T, s *service, owner, bearer, more string) *sourceOf {
	t.Helper()

	o := &sourceOf{filled: &filled{t, s, bearer, owner, "n-" + uuid.NewString(), "orders"}, there: newBucket(t), model: map[int64]int{}, files: map[string][]int64{}}
	connection := s.connect(t, bearer, "c-"+uuid.NewString(), o.there)

	var made sourced

	answer := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s-%s", "connectionId": %q, "namespace": %q, "datasetName": "orders"%s}`, uuid.NewString(), connection, o.namespace, more))
	require.Equal(t, http.StatusCreated, answer.status, answer.body)
	answer.json(t, &made)
	require.Equal(t, "active", made.Status)
	require.Nil(t, made.LastRun)

	o.id = made.ID

	return o
}

// numbers returns a file with new numbers, which the model has from now on.
func (o *sourceOf) numbers(count int) string {
	lines := []string{"n"}

	for range count {
		o.next++
		o.model[o.next]++
		lines = append(lines, strconv.FormatInt(o.next, 10))
	}

	return strings.Join(lines, "\n") + "\n"
}

func (o *sourceOf) get() (found sourced) {
	o.t.Helper()

	answer := call(o.t, http.MethodGet, o.s.url+"/sources/"+o.id, o.bearer, "")
	require.Equal(o.t, http.StatusOK, answer.status, answer.body)
	answer.json(o.t, &found)

	return found
}

func (o *sourceOf) begin(headers ...string) *answer {
	o.t.Helper()

	return call(o.t, http.MethodPost, o.s.url+"/sources/"+o.id+"/run", o.bearer, "", headers...)
}

// refresh runs the source and waits for the end.
func (o *sourceOf) refresh() (run sourceRun) {
	o.t.Helper()

	answer := o.begin()
	require.Equal(o.t, http.StatusAccepted, answer.status, answer.body)
	answer.json(o.t, &run)

	return o.ended(run.ID)
}

func (o *sourceOf) ended(id string) sourceRun {
	o.t.Helper()

	var last sourceRun

	await(o.t, "the run has ended", func() bool {
		last = *o.get().LastRun

		return last.ID == id && last.FinishedAt != ""
	})

	return last
}

func (o *sourceOf) set(active bool) {
	o.t.Helper()
	o.change(fmt.Sprintf(`{"active": %t}`, active))
}

func (o *sourceOf) change(body string) {
	o.t.Helper()

	answer := call(o.t, http.MethodPatch, o.s.url+"/sources/"+o.id, o.bearer, body)
	require.Equal(o.t, http.StatusOK, answer.status, answer.body)
}

// requireModel checks that the dataset has exactly the rows of the model.
func (o *sourceOf) requireModel() {
	o.t.Helper()

	got := map[int64]int{}
	for _, row := range o.table().rows {
		got[number(row)]++
	}

	if !maps.Equal(o.model, got) {
		for n, times := range got {
			require.Equal(o.t, o.model[n], times, "value %d", n)
		}
	}

	require.Len(o.t, got, len(o.model), "rows are missing")
}

// TestSources loads a prefix that grows, and compares the dataset with a model after each run.
func TestSources(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()

	for name, test := range map[string]func(t *testing.T, s *service, key *signer){
		"a prefix that grows": sourcesGrow, "a doubt": sourcesDoubt, "what others may": sourcesRights, "one run at a time": sourcesOnce,
		"what is refused": sourcesRefused, "what a run says": sourcesSay, "columns with other names": sourcesRenamed, "options that are corrected": sourcesOptions, "corrected files": sourcesCorrected,
		"files that change and go": sourcesFollow, "a key, restored snapshots and compacted files": sourcesFollowMore,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, key)
		})
	}
}

func sourcesGrow(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "grower", key.token("grower"), `, "prefix": "in/", "pattern": "*.csv"`)
	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Zero(t, run.Files)

	// What is not wanted is left out.
	for _, path := range []string{"in/readme.txt", "out/a.csv", "in/folder/", "in/empty.csv"} {
		content := "n\n-1\n"
		if path == "in/empty.csv" || strings.HasSuffix(path, "/") {
			content = ""
		}

		o.there.put(path, content)
	}

	for round := range loops(50) {
		files := 1 + round%4

		for i := range files {
			o.there.put(fmt.Sprintf("in/%d/%d ä&+%%.csv", (round*7)%5, round*10+i), o.numbers(3+i))
		}

		run := o.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)
		require.EqualValues(t, files, run.Files)
		require.Zero(t, run.Changed+run.Deleted)
		o.requireModel()
	}

	run = o.refresh()
	require.Zero(t, run.Files, "nothing is new")

	// A changed and a deleted file are told once.
	o.there.put("in/0/0 ä&+%.csv", "n\n777\n")

	_, err := o.there.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &o.there.bucket, Key: new(o.there.prefix + "in/2/10 ä&+%.csv")})
	require.NoError(t, err)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{0, 1, 1}, []int64{run.Files, run.Changed, run.Deleted})
	require.Equal(t, []struct{ Path, Event string }{{"in/0/0 ä&+%.csv", "changed"}, {"in/2/10 ä&+%.csv", "deleted"}}, run.Notes)

	run = o.refresh()
	require.Zero(t, run.Changed+run.Deleted)
	o.requireModel()

	var history struct{ Data []sourceRun }

	call(t, http.MethodGet, s.url+"/sources/"+o.id+"/runs?limit=100", o.bearer, "").json(t, &history)
	require.Len(t, history.Data, loops(50)+4)
	require.Equal(t, run.ID, history.Data[0].ID)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/sources/"+o.id, o.bearer, "").status)
	require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/sources/"+o.id+"/runs", o.bearer, "").status)
	o.requireModel()
}

func sourcesDoubt(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "doubter", key.token("doubter"), "")
	content := o.numbers(20)
	o.there.put("a.csv", content)
	require.Equal(t, "completed", o.refresh().Status)

	// The same bytes under another name are doubtful. What was loaded stays.
	o.there.put("b.csv", content)
	o.there.put("c.csv", o.numbers(2))

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, `"b.csv" waits`)

	stopped := o.get()
	require.Equal(t, []string{"stopped", run.Reason, run.IngestionID}, []string{stopped.Status, stopped.Reason, stopped.IngestionID})
	require.Equal(t, http.StatusUnprocessableEntity, o.begin().status)

	// Until somebody decides, it stops again.
	o.set(true)
	require.Equal(t, "stopped", o.refresh().Status)

	doubt := o.doubted(t, run.IngestionID).Doubts[0].Code
	answer := o.call(http.MethodPost, "/ingestions/"+run.IngestionID+"/retry", fmt.Sprintf(`{"accept": [%q]}`, doubt))
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)

	for n := range int64(20) {
		o.model[n+1]++
	}

	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 2, run.Files)
	o.requireModel()

	// A cancelled ingestion leaves the file out. A broken file stops the source, and resuming leaves it out.
	o.there.put("d.csv", content)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, http.StatusOK, o.call(http.MethodPost, "/ingestions/"+run.IngestionID+"/cancel", "").status)
	o.there.put("e.parquet", "PAR1 this is no Parquet file PAR1")
	o.there.put("f.csv", o.numbers(2))
	o.set(true)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, `"e.parquet" could not be loaded`)
	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	o.requireModel()
}

func sourcesRights(t *testing.T, s *service, key *signer) {
	t.Helper()

	owner, helper, other := key.token("lender"), key.token("helper"), key.token("other")
	d := newFilled(t, s, "lender", owner)
	there := newBucket(t)
	connection := s.connect(t, helper, "theirs", there)
	makes := func(bearer, connection string) *answer {
		return call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "s", "connectionId": %q, "username": "lender", "namespace": %q, "datasetName": "orders"}`, connection, d.namespace))
	}

	// Neither a dataset nor a connection of others can be used without the right to it.
	require.Equal(t, http.StatusNotFound, makes(helper, connection).status)
	require.Equal(t, http.StatusNotFound, makes(owner, connection).status)

	lend := func(role string) { share(t, s, owner, "datasets/lender/"+d.namespace+"/orders", "helper", role) }

	lend("viewer")
	require.Equal(t, http.StatusForbidden, makes(helper, connection).status)
	lend("editor")

	answer := makes(helper, connection)
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	var made sourced

	answer.json(t, &made)

	o := &sourceOf{filled: &filled{t, s, helper, "lender", d.namespace, "orders"}, id: made.ID, there: there, model: map[int64]int{}}
	there.put("a.csv", o.numbers(5))

	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	o.requireModel()

	for _, bearer := range []string{owner, other} { // also not the owner of the dataset
		require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+"/sources/"+o.id, bearer, "").status)
		require.Equal(t, http.StatusNotFound, call(t, http.MethodPost, s.url+"/sources/"+o.id+"/run", bearer, "").status)
		require.Equal(t, http.StatusNotFound, call(t, http.MethodDelete, s.url+"/sources/"+o.id, bearer, "").status)
	}

	// The right is taken away: the source stops.
	there.put("b.csv", "n\n1000\n")
	lend("viewer")

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "may no longer change it")
	lend("editor")
	o.set(true)

	o.model[1000] = 1

	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	// Without the connection it stops too.
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/connections/"+connection, helper, "").status)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "connection was deleted")
}

func sourcesOnce(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "runner", key.token("runner"), "")
	for i := range 4 {
		o.there.put(fmt.Sprintf("%d.csv", i), o.numbers(5))
	}

	// The same key is the same run. Without it, another run conflicts.
	var first, again sourceRun

	o.begin("Idempotency-Key: one").json(t, &first)
	o.begin("Idempotency-Key: one").json(t, &again)
	require.Equal(t, first.ID, again.ID)
	require.Contains(t, []int{http.StatusConflict, http.StatusAccepted}, o.begin().status)

	await(t, "all has ended", func() bool { return o.get().LastRun.FinishedAt != "" })
	require.Equal(t, "completed", o.ended(o.get().LastRun.ID).Status)
	o.requireModel()

	// A paused source does not run.
	o.set(false)

	answer := o.begin()
	require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	require.Contains(t, answer.body, "paused")
	o.set(true)
	require.Equal(t, "completed", o.refresh().Status)

	// A dataset that is deleted stops the source, also if another one gets its name.
	deleteDataset(t, s, o.bearer, o.path())

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "The dataset was deleted")
}
