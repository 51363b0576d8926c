package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func rowsInEachForm(t *testing.T, s *service, key *signer) {
	t.Helper()

	for form, body := range map[string]string{
		"application/json":               `{"data": [{"n": 1, "name": "nut", "more": {"a": [1]}}, {"n": 2}], "other": "is ignored"}`,
		"text/csv":                       "n,name,more\n1,nut,\"{\"\"a\"\":[1]}\"\n2,,\n",
		"text/csv; charset=utf-8":        "n,name,more\n1,nut,\"{\"\"a\"\":[1]}\"\n2,,\n",
		"application/x-ndjson":           `{"n": 1, "name": "nut", "more": {"a": [1]}}` + "\n" + `{"n": 2}` + "\n",
		"application/vnd.apache.parquet": parquetFile(t),
	} {
		for _, address := range []string{"rows", "ingest"} {
			d := newFilled(t, s, "former", key.token("former"))
			url := d.url() + "/rows"

			if address == "ingest" {
				url = s.url + "/ingest/" + d.namespace + "/" + d.name
			}

			answer := call(t, http.MethodPost, url, d.bearer, body, "Content-Type: "+form)
			require.Equal(t, http.StatusOK, answer.status, "%s: %s", form, answer.body)
			require.JSONEq(t, d.posted(2), answer.body, form)

			found := d.table()
			require.Equal(t, []tableColumn{{"n", "bigint"}, {"name", "varchar"}}, found.columns[:2], form)
			require.Equal(t, [][]any{{int64(1), "nut", `{"a":[1]}`}, {int64(2), nil, nil}}, found.rows, form)
			require.Len(t, d.snapshots(), 1)
		}
	}

	// Posted rows are not in the list of ingestions, which is about files.
	d := newFilled(t, s, "former", key.token("former"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`, "Content-Type: ").status)
	require.JSONEq(t, `{"data": []}`, d.call(http.MethodGet, "/ingestions", "").body)

	// Posted rows take the types of existing columns, and may add columns.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": "2", "day": "2026-11-15"}]}`).status)
	require.Equal(t, http.StatusOK, d.post("N,day\n3,2026-11-16\n", "Content-Type: text/csv").status)
	require.Equal(t, tableContents{
		[]tableColumn{{"n", "bigint"}, {"day", "date"}},
		[][]any{{int64(1), nil}, {int64(2), "2026-11-15"}, {int64(3), "2026-11-16"}},
	}, d.table())
}

// parquetFile returns a file with the same rows as the other formats.
func parquetFile(t *testing.T) string {
	t.Helper()

	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int32},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "more", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}), Nullable: true},
	}, nil)

	rows, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"n": 1, "name": "nut", "more": {"a": [1]}}, {"n": 2, "name": null, "more": null}]`))
	require.NoError(t, err)

	defer rows.Release()

	var file bytes.Buffer

	writer, err := pqarrow.NewFileWriter(schema, &file, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, writer.Write(rows))
	require.NoError(t, writer.Close())

	return file.String()
}

func rowsRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "picky", key.token("picky"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	refuse := func(what string, status int, code string, answer *answer) (fields []string) {
		t.Helper()

		return requireFault(t, what, answer, status, code)
	}

	misfit := d.post(`{"data": [{"n": 2}, {"n": "many"}, {"n": 3}, {"n": 2.5}]}`)
	require.Equal(t, []string{"data.1", "data.3"}, refuse("rows that do not fit", 422, "VALIDATION_FAILED", misfit))
	require.NotContains(t, misfit.body, "body", "the name of a file that the caller does not know")
	require.Equal(t, []string{"data.1"}, refuse("a line that does not fit", 422, "VALIDATION_FAILED", d.post("n\n1\nmany\n", "Content-Type: text/csv")))

	for what, body := range map[string]string{"data missing": `{}`, "data null": `{"data": null}`, "data a number": `{"data": 1}`, "data an object": `{"data": {}}`} {
		require.Equal(t, []string{"data"}, refuse(what, 422, "VALIDATION_FAILED", d.post(body)))
	}

	require.Equal(t, []string{"data.1"}, refuse("not an object", 422, "VALIDATION_FAILED", d.post(`{"data": [{"n": 2}, 3]}`)))
	refuse("no rows", 422, "VALIDATION_FAILED", d.post(`{"data": []}`))

	for form, body := range map[string]string{
		"application/json": `{"data": [{"n": 2}`, "application/x-ndjson": `{"n": 2`, "application/vnd.apache.parquet": "PAR1 no", "text/csv": "n\n\"never closed",
	} {
		refuse(form, 400, "BAD_REQUEST", d.post(body, "Content-Type: "+form))
		refuse(form, 400, "BAD_REQUEST", d.post("", "Content-Type: "+form))
	}

	for _, form := range []string{"text/plain", "application/parquet", "application/json; charset=latin1", "text/csv; charset=iso-8859-1", "*/*", ";"} {
		refuse(form, 415, "UNSUPPORTED_MEDIA_TYPE", d.post(rowsBody, "Content-Type: "+form))
	}

	refuse("no such dataset", 404, "NOT_FOUND", call(t, http.MethodPost, d.url()+"-too/rows", d.bearer, "{"))
	refuse("one's own alone", 404, "NOT_FOUND", call(t, http.MethodPost, s.url+"/ingest/"+d.namespace+"/"+d.name, key.token("else"), rowsBody))
	require.Equal(t, numbers(1), d.table().rows, "all of a body or nothing")
	require.Len(t, d.snapshots(), 1)

	// Column names that must be changed.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2, "__metadata": "x"}]}`).status)
	require.Equal(t, []tableColumn{{"n", "bigint"}, {"x__metadata", "varchar"}}, d.table().columns)

	small := start(t, "QUERN_INGEST_MAX_BODY=1000", "QUERN_OIDC_ISSUER="+s.realm.issuer())
	d = newFilled(t, small, "picky", key.token("picky"))
	large := `{"data": [{"n": 1}` + strings.Repeat(" ", 1000) + `]}`
	refuse("too large", 413, "PAYLOAD_TOO_LARGE", d.post(large))

	chunked := newRequest(t, http.MethodPost, d.url()+"/rows", d.bearer, large)
	chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader(large)), -1
	refuse("too large, and does not say so", 413, "PAYLOAD_TOO_LARGE", send(t, chunked))
	require.Equal(t, http.StatusOK, d.post(rowsBody).status)
}

func rowsRepeated(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "echo", key.token("echo"))
	header := "Idempotency-Key: " + uuid.NewString()

	var stored int

	for _, answer := range atOnce(t, 8, func(int) *http.Request {
		return newRequest(t, http.MethodPost, d.url()+"/rows", d.bearer, `{"data": [{"n": 1}, {"n": 2}]}`, header)
	}) {
		if answer.status == http.StatusConflict {
			require.Contains(t, answer.body, `"error_code":"IN_PROGRESS"`)
			require.Equal(t, "1", answer.header.Get("Retry-After"))

			continue
		}

		stored++
		require.JSONEq(t, d.posted(2), answer.body)
	}

	require.Positive(t, stored)
	require.JSONEq(t, d.posted(2), d.post(`{"data": [{"n": 1}, {"n": 2}]}`, header).body)
	require.Equal(t, []string{"Idempotency-Key"}, requireFault(t, "another body", d.post(`{"data": [{"n": 1}, {"n": 3}]}`, header), 422, "VALIDATION_FAILED"))
	require.Equal(t, numbers(1, 2), d.table().rows)
	require.Len(t, d.snapshots(), 1)

	// A refused request may be corrected under the same key.
	header = "Idempotency-Key: " + uuid.NewString()
	requireFault(t, "does not fit", d.post(`{"data": [{"n": "x"}]}`, header), 422, "VALIDATION_FAILED")
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 3}]}`, header).status)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)
}

// rowsCleared delays a post at the object store until its dataset was cleared.
func rowsCleared(t *testing.T, s *service, key *signer) {
	t.Helper()

	between, settings := newStoreProxy(t)
	slow := start(t, append(settings, "QUERN_S3_TIMEOUT=5s", "QUERN_OIDC_ISSUER="+s.realm.issuer())...)
	d := newFilled(t, slow, "meeter", key.token("meeter"))
	header := "Idempotency-Key: " + uuid.NewString()
	post := newRequest(t, http.MethodPost, d.url()+"/rows", d.bearer, `{"data": [{"n": 1}]}`, header)

	between.set(behaviour{delay: patience})

	answered := make(chan *answer, 1)

	go func() {
		answer, _ := try(post)
		answered <- answer
	}()

	await(t, "its rows are on their way to the store", func() bool { return between.requests(".parquet") > 0 })

	cleared := d.call(http.MethodPost, "/clear", "")
	require.Equal(t, http.StatusOK, cleared.status, cleared.body)
	between.set(behaviour{})

	refused := <-answered
	require.NotNil(t, refused)
	require.Equal(t, http.StatusConflict, refused.status, refused.body)
	require.JSONEq(t, plainFault("CONFLICT", wasCleared), refused.body)
	require.Zero(t, d.describe().RowCount)

	// The same request can be repeated, and is now accepted after the clear.
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`, header).status)
	require.Equal(t, numbers(1), d.table().rows)
}

func rowsOutage(t *testing.T, s *service, key *signer) {
	t.Helper()

	between, settings := newStoreProxy(t)
	cut := start(t, append(settings, "QUERN_S3_TIMEOUT=1s", "QUERN_REQUEST_TIMEOUT=10s", "QUERN_OIDC_ISSUER="+s.realm.issuer())...)
	d := newFilled(t, cut, "offline", key.token("offline"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)

	session := uploadFiles(t, cut, d.bearer, "n\n3\n")
	header := "Idempotency-Key: " + uuid.NewString()

	between.set(behaviour{refuse: true})

	began := time.Now()
	requireUnavailable(t, d.post(`{"data": [{"n": 2}]}`, header))
	require.Less(t, time.Since(began), 10*time.Second)

	// Files wait until the object store is available again.
	queued := d.accepted(d.create(session, ""))

	await(t, "it was tried", func() bool { return d.get(queued.ID).Status == "running" })
	between.set(behaviour{})

	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 2}]}`, header).status)
	require.Equal(t, "completed", d.wait(queued.ID).Status)
	require.Equal(t, numbers(1, 2, 3), d.table().rows)
}

// TestGroupCommit posts rows to one dataset from many clients, with a slow object store. Posts at the same time must become one
// snapshot.
func TestGroupCommit(t *testing.T) {
	t.Parallel()

	const clients, lag = 64, 50 * time.Millisecond

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, "QUERN_SANDBOX_IDLE_PROCESSES=8")...)
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "caller"}`)))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": -1}]}`).status)
	between.set(behaviour{delay: lag})

	var (
		rounds  = max(2, loops(20))
		took    = make([]time.Duration, clients*rounds)
		answers = make([]*answer, clients*rounds)
		posting sync.WaitGroup
		began   = time.Now()
		want    = []int64{-1}
	)

	for client := range clients {
		posting.Go(func() {
			for round := range rounds {
				n, sent := round*clients+client, time.Now()
				answers[n], _ = try(newRequest(t, http.MethodPost, d.url()+"/rows", d.bearer, fmt.Sprintf(`{"data": [{"n": %d}]}`, n)))
				took[n] = time.Since(sent)
			}
		})
	}

	posting.Wait()

	whole, posts := time.Since(began), clients*rounds

	for n, answer := range answers {
		require.NotNil(t, answer)
		require.Equal(t, http.StatusOK, answer.status, answer.body)

		want = append(want, int64(n))
	}

	between.set(behaviour{})
	slices.Sort(took)

	made := len(d.snapshots()) - 1
	t.Logf("%d posts in %v: %.1f a second, median %v, p95 %v; %d snapshots", posts, whole.Round(time.Millisecond), float64(posts)/whole.Seconds(),
		took[posts/2].Round(time.Millisecond), took[posts*95/100].Round(time.Millisecond), made)
	t.Logf("requests to the store: %d for data, %d for manifests and their lists, %d for metadata", between.requests(".parquet"), between.requests(".avro"), between.requests(".json"))

	own, children := processorTime(t, s.process.Process.Pid)
	t.Logf("processor time: %v of the service, %v of its children", own, children)
	require.Less(t, made*2, posts, "posts are committed together")
	require.Equal(t, numbers(want...), d.table().rows)
}

// processorTime returns the processor time of a process and of its ended children.
func processorTime(t *testing.T, pid int) (own, children time.Duration) {
	t.Helper()

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)

	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks := func(field int) time.Duration {
		n, err := strconv.Atoi(fields[field-3])
		require.NoError(t, err)

		return time.Duration(n) * 10 * time.Millisecond
	}

	return ticks(14) + ticks(15), ticks(16) + ticks(17)
}

// posted is the answer to a post after which the dataset has one snapshot.
func (d *filled) posted(rows int) string {
	d.t.Helper()

	list := d.snapshots()
	require.Len(d.t, list, 1)

	return fmt.Sprintf(`{"indexed": %d, "snapshotId": %q}`, rows, list[0].SnapshotID)
}
