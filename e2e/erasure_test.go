package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// erasure is a service with a value that must be nowhere after an erasure, and with the data of another user that must stay.
type erasure struct {
	*filled

	between *proxy
	traces  *phoenix
	folder  string // the work folder of the service
	canary  string
	trace   string // of the run that has the value
	other   *filled
	objects map[string]int64 // those of the other user
}

// neighbour is a value of the other user's data.
const neighbour = "periwinkle"

func newErasure(t *testing.T) *erasure {
	t.Helper()

	between, settings := newStoreProxy(t)
	e := &erasure{between: between, traces: sharedPhoenix(t), folder: t.TempDir(), canary: "canary" + strings.ReplaceAll(uuid.NewString(), "-", "")}
	s := start(t, slices.Concat(settings, e.traces.settings(), []string{
		scripted, byJob, "QUERN_TRACING_CAPTURE=true", "QUERN_SANDBOX_DIR=" + e.folder, "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s",
	})...)
	key := s.newKey()

	e.other = newFilled(t, s, "bob", key.token("bob"))
	e.other.loaded("", exportRows(0, 60)+"60,"+neighbour+",1.00,2026-01-01,x\n")
	e.other.profiled()
	e.objects = s.place.objects()

	e.filled = newFilled(t, s, "ada", key.token("ada"))
	e.plant()

	return e
}

// plant puts the value through every door.
func (e *erasure) plant() {
	t, c := e.t, e.canary

	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, "%d,%s,%s\n", i, c, uuid.NewString())
	}

	done := e.loaded(`"options": {"types": {"id": "bigint"}}`, "id,note,more\n"+rows.String()+c+",x,y\n")
	require.EqualValues(t, 1, done.Progress.RowsSetAside)
	require.Equal(t, http.StatusOK, e.post(fmt.Sprintf(`{"data": [{"id": 100, "note": %q, "more": "posted"}]}`, c)).status)
	e.profiled()
	e.read(done.ID)

	script := fmt.Sprintf(`{"reasoning": %q, "response": %q, "steps": [{"instruction": "read", "queries": ["SELECT note, repeat('.', 500) AS dots FROM orders, range(20)"]}]}`, c, c)

	var run string

	run, e.trace = e.ran(script)
	e.rated(run, fmt.Sprintf(`{"thumbsUp": false, "comment": "not %s"}`, c))
	require.Contains(t, download(t, e.ready("csv")).body, c)
	e.start("SELECT note FROM orders WHERE note = '"+c+"'", "").await("completed")
}

// read stores what is kept of a document that has the value, as if a model had read it.
func (e *erasure) read(ingestion string) {
	for _, statement := range []string{
		`document_chunks (account_id, dataset_id, ingestion_id, position, hash, answer, input_tokens, output_tokens) SELECT account_id, dataset_id, id, 0, '\x01', $2, 1, 1`,
		`document_records (account_id, dataset_id, ingestion_id, position, number, page, fields)
			SELECT account_id, dataset_id, id, 0, 1, 1, jsonb_build_object('note', jsonb_build_object('quote', $2::text))`,
		`document_pages (account_id, dataset_id, ingestion_id, position, page, text) SELECT account_id, dataset_id, id, 0, 1, $2`,
		`document_corrections (account_id, dataset_id, document, field, page, begins, ends, rank, ranks, key, value, corrected_by, corrected_at)
			SELECT account_id, dataset_id, '\x01', 'note', 1, 0, 1, 0, 1, jsonb_build_object('note', $2::text), $2, caller_id, now()`,
	} {
		e.s.exec(`INSERT INTO `+statement+` FROM ingestions WHERE id = $1`, ingestion, e.canary)
	}
}

// abandon stores what a chore leaves that dies while it writes a value index, or a merged file.
func (e *erasure) abandon() {
	e.t.Helper()

	found := strings.Fields(e.s.text(`SELECT account_id || ' ' || dataset_id || ' ' || object_key FROM lake_files
		WHERE kind = 'derived' AND dataset_id = (SELECT dataset_id FROM set_aside_rows LIMIT 1) LIMIT 1`))

	for _, kind := range []string{"derived", "data"} {
		key := found[2] + "." + kind
		e.s.exec(`INSERT INTO lake_files (account_id, dataset_id, id, kind, state, object_key, ingestion_id, remove_at)
			VALUES ($1, $2, gen_random_uuid(), $3, 'writing', $4, $5, now() + interval '1 day')`,
			found[0], found[1], kind, key, uuid.NewSHA1(uuid.MustParse(found[1]), []byte("compaction")))
		e.s.place.put(key, e.canary)
	}
}

// mention puts the value into texts about the dataset, which do not go with rows.
func (e *erasure) mention() {
	c := e.canary
	require.Equal(e.t, http.StatusCreated, e.call(http.MethodPut, "/inferDefinition", fmt.Sprintf(`{"dataDescription": "Notes such as %s."}`, c)).status)
	e.verify(fmt.Sprintf(`{"question": "How many notes are %s?", "query": "SELECT count(*) AS n FROM orders WHERE note = '%s'", "interpretation": "notes of %s"}`, c, c, c))
}

// scan returns where a value is: tables by name, objects by the first part of their keys, files of the work folder, the log and the tracing store. It sees
// the bytes of objects as they are. A compressed object may hide a value, so the tests compare the list of objects too.
func (e *erasure) scan(value string) (places []string) {
	e.t.Helper()

	for _, text := range []string{value, hex.EncodeToString([]byte(value))} {
		for _, table := range e.s.holding(text) {
			places = append(places, "table "+table)
		}
	}

	if e.s.count(`SELECT count(*) FROM audit a WHERE a::text LIKE '%' || $1 || '%'`, value) > 0 {
		places = append(places, "table audit")
	}

	for key := range e.s.place.objects() {
		if strings.Contains(e.s.place.content(key), value) {
			prefix, _, _ := strings.Cut(key, "/")
			places = append(places, "object "+prefix)
		}
	}

	require.NoError(e.t, filepath.WalkDir(e.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // a sealed process has ended meanwhile
		}

		content, _ := os.ReadFile(path)
		if strings.Contains(string(content), value) {
			relative, _ := filepath.Rel(e.folder, path)
			prefix, _, _ := strings.Cut(relative, "/")
			places = append(places, "folder "+prefix)
		}

		return nil
	}))

	if strings.Contains(e.s.log(), value) {
		places = append(places, "log")
	}

	if spans, err := json.Marshal(e.traces.spans(e.trace)); err == nil && strings.Contains(string(spans), value) {
		places = append(places, "traces")
	}

	slices.Sort(places)

	return slices.Compact(places)
}

// content returns an object; an empty text if it does not exist any more.
func (p *place) content(key string) string {
	p.t.Helper()

	got, err := p.client.GetObject(context.WithoutCancel(p.t.Context()), &s3.GetObjectInput{Bucket: &p.bucket, Key: aws.String(p.prefix + key)})
	if err != nil {
		return ""
	}
	defer got.Body.Close()

	content, err := io.ReadAll(got.Body)
	require.NoError(p.t, err)

	return string(content)
}

type receipt struct {
	ID, Kind, Target, State string
	FinishedAt              *string
	Erased                  map[string]int64
	OutOfReach              []string
}

// erase runs the command and returns its receipt.
func (e *erasure) erase(args ...string) (found receipt) {
	e.t.Helper()

	printed := e.s.quernd(append([]string{"erase", "--json"}, args...)...)
	require.NotContains(e.t, printed, e.canary)
	require.NoError(e.t, json.Unmarshal([]byte(printed), &found), printed)

	return found
}

// requirePlanted checks that the scan can find the value in all places, so that it proves something later.
func (e *erasure) requirePlanted() {
	e.t.Helper()
	await(e.t, "the tracing store has the run", func() bool { return slices.Contains(e.scan(e.canary), "traces") })

	places := e.scan(e.canary)

	for _, place := range []string{
		"folder cache", "object exports", "object lake", "object runs", "object statements", "object uploads", "table conversations", "table dataset_search",
		"table document_chunks", "table document_corrections", "table document_pages", "table document_records",
		"table run_events", "table run_feedback", "table runs", "table set_aside_rows", "table statements", "traces",
	} {
		require.Contains(e.t, places, place)
	}
}

// awaitNowhere waits until the value is nowhere. If it stays, the log says where.
func (e *erasure) awaitNowhere() {
	e.t.Helper()

	var left []string

	defer func() {
		if e.t.Failed() {
			e.t.Logf("the value is in %v", left)
		}
	}()

	await(e.t, "the value is nowhere", func() bool {
		left = e.scan(e.canary)

		return len(left) == 0
	})
}

// requireErased checks that the value is nowhere, and that the data of the other user is what it was.
func (e *erasure) requireErased() {
	e.t.Helper()
	e.awaitNowhere()
	require.ElementsMatch(e.t, slices.Collect(maps.Keys(e.objects)), slices.Collect(maps.Keys(e.s.place.objects())), "exactly the objects of the other user are left")
	require.Empty(e.t, e.s.place.uploads())
	require.Equal(e.t, "0 lost, 0 orphans\n", e.s.quernd("fsck", "--age", "0s"))
	require.Equal(e.t, [][]any{{61.0}}, e.other.result("SELECT count(*) AS n FROM orders", "").rows())
	require.Contains(e.t, e.scan(neighbour), "table dataset_search")
}

// TestErasure checks that an erased dataset or user is in no table, object, cache, log or trace, also if the service dies meanwhile, and that others lose
// nothing.
func TestErasure(t *testing.T) {
	t.Parallel()

	t.Run("a dataset", erasesDataset)
	t.Run("a deleted dataset, while the service is killed", erasesKilled)
	t.Run("a user", erasesUser)
	t.Run("the history of a dataset", erasesHistory)
}

func erasesDataset(t *testing.T) {
	t.Parallel()

	e := newErasure(t)
	e.mention()
	e.requirePlanted()
	require.Subset(t, e.scan(e.canary), []string{"table datasets", "table definitions", "table verified_questions"})

	_, err := e.s.command("erase", "dataset", "ada/"+e.namespace+"/nothing")
	require.ErrorContains(t, err, "There is no dataset")

	done := e.erase("dataset", e.path())
	require.Equal(t, "done", done.State)
	require.Equal(t, e.path(), done.Target)

	for what, least := range map[string]int64{
		"datasets": 1, "definitions": 1, "rows set aside": 1, "records of documents": 1, "corrections of documents": 1, "uploaded files": 1, "snapshots": 2, "data files": 2, "metadata files": 2, "profiles and value indexes": 1, "exports": 1,
		"statements with results": 1, "runs": 1, "verified questions": 1,
	} {
		require.GreaterOrEqual(t, done.Erased[what], least, what)
	}

	require.Contains(t, done.OutOfReach, "backups of the database and of the bucket")
	e.requireErased()

	require.Equal(t, http.StatusNotFound, e.call(http.MethodGet, "/rows", "").status)
	require.Empty(t, deletedList(t, e.s, e.bearer, 100), "it cannot be restored")
	require.Contains(t, e.s.quernd("audit", "ada"), "dataset.erase")

	again := e.erase("dataset", e.path())
	require.Equal(t, done, again, "the command shows the same receipt again")

	text := e.s.quernd("erase", "dataset", e.path())
	require.Contains(t, text, "receipt "+done.ID)
	require.Contains(t, text, "OUT OF REACH")

	// The name is free, and a new dataset starts with nothing.
	d := &filled{t: t, s: e.s, bearer: e.bearer, owner: "ada", namespace: e.namespace, name: "orders"}
	d.loaded("", "id\n1\n")
	require.Len(t, d.snapshots(), 1)
}

func erasesHistory(t *testing.T) {
	t.Parallel()

	e := newErasure(t)
	require.Equal(t, http.StatusOK, e.post(`{"data": [{"id": 200, "note": "stays", "more": "posted"}]}`).status)
	e.requirePlanted()

	deleted := e.call(http.MethodPost, "/rows/delete", fmt.Sprintf(`{"condition": "note = '%s'"}`, e.canary))
	require.Equal(t, http.StatusOK, deleted.status, deleted.body)
	require.Contains(t, e.scan(e.canary), "object lake", "the history has the rows")
	e.abandon()

	e.killAt("/lake/", "history", e.path())
	done := e.erase("history", e.path())
	require.Equal(t, "done", done.State)
	require.EqualValues(t, 3, done.Erased["snapshots"])
	e.awaitNowhere()

	require.Len(t, e.snapshots(), 1)
	require.Equal(t, [][]any{{200.0, "stays"}}, e.result("SELECT id, note FROM orders", "").rows())
	require.EqualValues(t, 1, e.profiled().RowCount)
	require.Empty(t, e.scan(e.canary), "nor is it in the new profile")
	e.table()
	require.Equal(t, "0 lost, 0 orphans\n", e.s.quernd("fsck", "--age", "0s"))
	require.Equal(t, [][]any{{61.0}}, e.other.result("SELECT count(*) AS n FROM orders", "").rows())
	require.Contains(t, e.s.quernd("audit", "ada"), "dataset.eraseHistory")

	// Loading goes on as before.
	e.loaded("", "id,note,more\n300,new,x\n")
	require.Len(t, e.snapshots(), 2)
}

func erasesKilled(t *testing.T) {
	t.Parallel()

	e := newErasure(t)
	e.mention()
	e.requirePlanted()

	id := deleteDataset(t, e.s, e.bearer, e.path())
	target := "ada/" + id

	require.True(t, e.killAt("/runs/", "dataset", target))

	// The periodic cleaning also removes these, perhaps already while the service starts again.
	for _, place := range []string{"/uploads/", "/lake/"} {
		t.Log(place, "killed:", e.killAt(place, "dataset", target))
	}

	require.Equal(t, "done", e.erase("dataset", target).State)
	e.requireErased()
	require.Equal(t, 1, e.s.count(`SELECT count(*) FROM erasures`), "all calls were about one erasure")
}

// killAt begins an erasure, or continues it, and kills the service when it removes the first object of a kind: right before, or right after the store has
// removed it. It reports whether there was such an object.
func (e *erasure) killAt(place string, args ...string) (killed bool) {
	e.t.Helper()

	var met atomic.Int32

	e.between.set(behaviour{early: place == "/uploads/", cut: sync.OnceFunc(e.s.kill), cuts: func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, place) && met.Add(1) == 1
	}})
	e.erase(append(args, "--wait", "0s")...)
	await(e.t, "the process is gone, or the erasure has ended", func() bool {
		return !e.s.running() || e.s.count(`SELECT count(*) FROM erasures WHERE state <> 'running'`) > 0
	})
	e.between.set(behaviour{})

	if killed = !e.s.running(); killed {
		e.s.restart()
	}

	return killed
}

func erasesUser(t *testing.T) {
	t.Parallel()

	e := newErasure(t)
	e.mention()
	s, key := e.s, e.s.newKey()

	// What ada has, and what others have of ada.
	share(t, s, e.other.bearer, "datasets/"+e.other.path(), "ada", "editor")

	granted := e.other.by(e.bearer)
	require.Equal(t, http.StatusCreated, granted.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "Described by a guest."}`).status)
	e.apiToken()
	s.addSource(t, e.bearer, s.sharedConnection(t, e.bearer))
	share(t, s, e.bearer, "datasets/"+e.path(), "bob", "editor")

	intoAda := call(t, http.MethodPost, s.url+"/sources", e.other.bearer, fmt.Sprintf(`{"name": "into-ada", "connectionId": %q, "username": "ada", "namespace": %q, "datasetName": %q}`,
		s.sharedConnection(t, e.other.bearer), e.namespace, e.name))
	require.Equal(t, http.StatusCreated, intoAda.status, intoAda.body)
	require.Equal(t, 1, s.count(`SELECT count(*) FROM definitions WHERE actor = 'ada' AND account_id = (SELECT account_id FROM directory_names WHERE username = 'bob')`))

	// A dry run into a dataset that is never made keeps the rows that it showed.
	e.beside("never", "").loaded(`"dryRun": true`, "id,note\n1,"+e.canary+"\n")

	account := s.text(`SELECT account_id::text FROM directory_names WHERE username = 'ada'`)
	e.requirePlanted()
	s.lend(t, e.other.bearer, s.sharedConnection(t, e.other.bearer), "ada")
	s.lend(t, key.token("ada"), s.connect(t, key.token("ada"), "mine", s.place), "bob")

	require.True(t, e.killAt("/lake/", "user", "ada"))
	done := e.erase("user", "ada")
	require.Equal(t, "done", done.State)
	require.Equal(t, "erased-"+account, done.Target)
	e.requireErased()

	// No row has the account, except those that say that it was erased.
	for _, table := range namesOnly(s.holding(account)) {
		require.Contains(t, []string{"definitions", "erasures", "leases"}, table)
	}

	require.Equal(t, 0, s.count(`SELECT count(*) FROM audit WHERE actor = 'ada' OR detail LIKE 'ada%'`))
	require.Equal(t, 1, s.count(`SELECT count(*) FROM audit WHERE account_id = $1::uuid AND action = 'account.erase'`, account))
	require.Equal(t, 0, s.count(`SELECT count(*) FROM grants`))
	require.Equal(t, 0, s.count(`SELECT count(*) FROM directory_connections`))
	require.Equal(t, 0, s.count(`SELECT count(*) FROM sources`))
	require.Equal(t, 0, s.count(`SELECT count(*) FROM definitions WHERE actor = 'ada'`))

	// The same person starts with nothing.
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", key.token("ada"), "").status)
	require.NotEqual(t, account, s.text(`SELECT account_id::text FROM directory_names WHERE username = 'ada'`))
	require.Equal(t, http.StatusNotFound, e.by(key.token("ada")).call(http.MethodGet, "/rows", "").status)
	require.Equal(t, 0, s.count(`SELECT count(*) FROM usage WHERE account_id = $1::uuid`, account))
}
