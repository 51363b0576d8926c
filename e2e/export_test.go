package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// byJob makes exports of small datasets run as jobs, like those of large ones.
const byJob = "QUERN_EXPORT_STREAM_MAX_BYTES=1KiB"

// exportRows returns a CSV file whose table is larger than the limit of byJob if it has enough rows.
func exportRows(first, count int) string {
	var lines strings.Builder

	lines.WriteString("id,region,total,day,note\n")

	for i := range count {
		fmt.Fprintf(&lines, "%d,r%d,%d.%02d,2026-01-%02d,%s\n", first+i, i%7, i, i%100, i%28+1, uuid.NewString())
	}

	return lines.String()
}

func (d *filled) export(format string) *answer {
	d.t.Helper()

	return d.call(http.MethodGet, "/export?format="+format, "")
}

// ready repeats the request until the export is finished, and returns its address.
func (d *filled) ready(format string) (address string) {
	d.t.Helper()

	await(d.t, "the export is ready", func() bool {
		answer := d.export(format)
		require.Contains(d.t, []int{http.StatusAccepted, http.StatusSeeOther}, answer.status, answer.body)
		address = answer.header.Get("Location")

		return answer.status == http.StatusSeeOther
	})

	return address
}

// download gets a file by its address, without a token.
func download(t *testing.T, address string) *answer {
	t.Helper()

	answer, err := try(newRequest(t, http.MethodGet, address, "", ""))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	return answer
}

// streamer starts another replica of a service, which streams exports in its responses and runs no jobs.
func streamer(t *testing.T, s *service) *service {
	t.Helper()

	return start(t, slices.Concat(s.place.settings(), []string{
		"QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_OIDC_ISSUER=" + s.realm.issuer(),
		"QUERN_EXPORT_WORKERS=0", "QUERN_INGEST_WORKERS=0", "QUERN_JOB_WORKERS=0",
	})...)
}

// streamed returns the export of the dataset from one response.
func (d *filled) streamed(from *service, format string) *answer {
	d.t.Helper()

	answer := call(d.t, http.MethodGet, from.url+"/data/"+d.path()+"/export?format="+format, d.bearer, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	return answer
}

// count returns the number that a query of the database returns.
func (s *service) count(query string, args ...any) (number int) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(s.t, connection.QueryRow(ctx, query, args...).Scan(&number))
	})

	return number
}

// exportObjects returns the keys of all exports in the object store.
func (p *place) exportObjects() (keys []string) {
	p.t.Helper()

	for key := range p.objects() {
		if strings.HasPrefix(key, "exports/") {
			keys = append(keys, key)
		}
	}

	return keys
}

func TestExports(t *testing.T) {
	t.Parallel()

	s := start(t, byJob)
	whole, key := streamer(t, s), s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *service, *signer){
		"each format":                exportFormats,
		"one for all who may see it": exportShared,
		"of its snapshot":            exportChanged,
		"a small dataset":            exportSmall,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, whole, key)
		})
	}
}

func exportFormats(t *testing.T, s, whole *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusUnprocessableEntity, d.export("csv").status, "nothing to export")
	d.loaded("", exportRows(0, 1000), exportRows(1000, 500))

	for format, ending := range map[string]string{"csv": "csv", "ndjson": "ndjson", "parquet": "parquet", "arrow": "arrows"} {
		first := d.export(format)
		require.Equal(t, http.StatusAccepted, first.status, first.body)

		address, err := url.Parse(d.ready(format))
		require.NoError(t, err)
		require.Equal(t, "300", address.Query().Get("X-Amz-Expires"))
		require.NotContains(t, address.Path, d.namespace)
		require.NotContains(t, address.Path, "orders")

		file, inOne := download(t, address.String()), d.streamed(whole, format)
		require.Equal(t, "attachment; filename=orders."+ending, file.header.Get("Content-Disposition"))
		require.Equal(t, "attachment; filename=orders."+ending, inOne.header.Get("Content-Disposition"))
		require.Len(t, file.body, len(inOne.body))
		require.True(t, inOne.body == file.body, "the bytes are the same") //nolint:testifylint // nobody wants to read them

		head := d.call(http.MethodHead, "/export?format="+format, "")
		require.Equal(t, http.StatusSeeOther, head.status)
		require.NotEmpty(t, head.header.Get("Location"))

		// A client that follows redirects without any further knowledge of exports.
		response, err := http.DefaultClient.Do(newRequest(t, http.MethodGet, d.url()+"/export?format="+format, d.bearer, ""))
		require.NoError(t, err)

		defer func() { _ = response.Body.Close() }()

		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Len(t, got, len(inOne.body))
	}

	require.Equal(t, 1501, strings.Count(download(t, d.ready("csv")).body, "\n"))

	_, rows := readArrow(t, download(t, d.ready("arrow")).body)
	require.Len(t, rows, 1500)
}

// exportShared checks that only one of many simultaneous requests starts the job, and that every caller who gets the file is
// audited.
func exportShared(t *testing.T, s, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "ada", key.token("ada"))
	viewer := &filled{t, s, key.token("bob"), d.owner, d.namespace, d.name}
	stranger := &filled{t, s, key.token("eve"), d.owner, d.namespace, d.name}

	me(t, s, viewer.bearer)
	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")
	d.loaded("", exportRows(0, 1000))

	var asking sync.WaitGroup

	for range 5 {
		for _, who := range []*filled{d, viewer} {
			asking.Go(func() {
				answer, err := try(newRequest(t, http.MethodGet, who.url()+"/export", who.bearer, ""))
				if err != nil || (answer.status != http.StatusAccepted && answer.status != http.StatusSeeOther) {
					t.Errorf("%v %+v", err, answer)
				}
			})
		}
	}

	asking.Wait()

	_, id := s.tableName(d.owner, d.namespace, d.name)
	require.Equal(t, 1, s.count(`SELECT count(*) FROM exports WHERE dataset_id = $1`, id))
	require.Equal(t, 1, s.count(`SELECT count(*) FROM river_job WHERE kind = 'query.export' AND args ->> 'dataset' = $1`, id))

	d.ready("csv")

	audited := func() int {
		return s.count(`SELECT count(*) FROM audit WHERE action = 'dataset.export' AND target = $1`, id)
	}
	before := audited()

	require.Equal(t, http.StatusSeeOther, viewer.export("csv").status)
	require.Equal(t, http.StatusNotFound, stranger.export("csv").status)
	require.Equal(t, before+1, audited())

	unshare(t, s, d.bearer, "datasets/"+d.path(), "bob")
	require.Equal(t, http.StatusNotFound, viewer.export("csv").status, "that it is there gives nobody the right to it")
	require.Equal(t, before+1, audited())
}

// exportChanged checks that a changed dataset has a new export, and that the first export does not change.
func exportChanged(t *testing.T, s, whole *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "ada", key.token("ada"))
	d.loaded("", exportRows(0, 1000))

	first := d.ready("csv")
	before := download(t, first).body

	d.loaded("", exportRows(1000, 10))
	require.Equal(t, http.StatusAccepted, d.export("csv").status)

	second := download(t, d.ready("csv")).body
	require.Equal(t, d.streamed(whole, "csv").body, second)
	require.Equal(t, 1011, strings.Count(second, "\n"))
	require.Equal(t, before, download(t, first).body)
}

func exportSmall(t *testing.T, s, _ *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "ada", key.token("ada"))
	d.loaded("", "n\n1\n2\n")

	answer := d.export("csv")
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.Equal(t, "n\n1\n2\n", answer.body)
}

// TestExportLater checks exports without a worker, exports that fail, exports during an outage of the object store, and exports
// whose retention has ended.
func TestExportLater(t *testing.T) {
	t.Parallel()

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, byJob, "QUERN_EXPORT_WORKERS=0", "QUERN_S3_TIMEOUT=2s")...)
	key := s.newKey()
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("ada"), `{"name": "exporter"}`)))
	d.loaded("", exportRows(0, 1000))

	again := func(more ...string) {
		s.stop()

		s.settings = append(s.settings, more...)
		s.restart()
	}

	// The dataset changes after the request. The export still has the rows of its snapshot.
	require.Equal(t, http.StatusAccepted, d.export("csv").status)
	d.loaded(`"mode": "replace"`, exportRows(5000, 300))
	again("QUERN_EXPORT_WORKERS=1")
	await(t, "the export is written", func() bool { return s.count(`SELECT count(*) FROM exports WHERE state = 'ready'`) == 1 })

	old, err := s.place.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &s.place.bucket, Key: new(s.place.prefix + s.place.exportObjects()[0])})
	require.NoError(t, err)

	content, err := io.ReadAll(old.Body)
	require.NoError(t, err)
	require.Equal(t, 1001, strings.Count(string(content), "\n"))
	require.Equal(t, 301, strings.Count(download(t, d.ready("csv")).body, "\n"))

	// The object store is unavailable for a while.
	between.set(behaviour{refuse: true})
	require.Equal(t, http.StatusAccepted, d.export("parquet").status)
	await(t, "an attempt has failed", func() bool {
		return s.count(`SELECT count(*) FROM river_job WHERE kind = 'query.export' AND cardinality(errors) > 0`) > 0
	})
	require.Equal(t, http.StatusAccepted, d.export("parquet").status)
	require.Equal(t, http.StatusSeeOther, d.export("csv").status, "the address of what is there can be given")
	between.set(behaviour{})
	d.ready("parquet")
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))

	// A failed export reports its reason once; the next request starts it again.
	again("QUERN_EXPORT_TIMEOUT=1ms")
	require.Equal(t, http.StatusAccepted, d.export("ndjson").status)
	await(t, "it has failed", func() bool { return s.count(`SELECT count(*) FROM exports WHERE state = 'failed'`) == 1 })

	failed := d.export("ndjson")
	require.Equal(t, http.StatusGatewayTimeout, failed.status)
	require.JSONEq(t, plainFault("TIMEOUT", "Writing the export took longer than 1ms, which is the maximum."), failed.body)
	require.Equal(t, http.StatusAccepted, d.export("ndjson").status)
	again("QUERN_EXPORT_TIMEOUT=1h")

	// fsck reports lost objects and objects that no row knows.
	lost := s.place.exportObjects()[0]
	_, err = s.place.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &s.place.bucket, Key: new(s.place.prefix + lost)})
	require.NoError(t, err)

	begun := s.place.begin("exports/nobody")
	require.Equal(t, "lost "+lost+"\norphan exports/nobody "+begun+"\n1 lost, 1 orphans, removed\n", s.quernd("fsck", "--delete"))
	require.Empty(t, s.place.uploads())

	// When its retention ends an export is removed, even if its dataset is deleted.
	deleted := call(t, http.MethodDelete, d.url(), key.token("ada"), "")
	require.Equal(t, http.StatusNoContent, deleted.status, deleted.body)
	require.Equal(t, http.StatusNotFound, d.export("csv").status)
	s.forgetExports()
	require.Empty(t, s.place.exportObjects())
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))
}

// forgetExports ends the retention of all exports and waits until they are removed.
func (s *service) forgetExports() {
	s.t.Helper()
	await(s.t, "no export is being written", func() bool { return s.count(`SELECT count(*) FROM exports WHERE state IN ('queued', 'running')`) == 0 })
	s.stop()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE exports SET expires_at = now() - interval '1 hour'`)
		require.NoError(s.t, err)
	})
	s.cleanAtStart()
	s.restart()
	await(s.t, "the exports are gone", func() bool { return s.count(`SELECT count(*) FROM exports`) == 0 })
}

// TestExportKillLoop kills the process while an export is written: at any moment, when the object store receives the file or has
// stored it, and when some parts are stored. It also kills sealed processes and expires leases. Each export must still be
// finished, and nothing may be left behind.
func TestExportKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	between, settings := newStoreProxy(t)
	s := start(t, append(settings, byJob)...)
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "exporter"}`)))
	d.loaded("", exportRows(0, 100_000), exportRows(100_000, 100_000), exportRows(200_000, 100_000)) // large enough that CSV and NDJSON are uploaded in parts

	expected := map[string]int{}
	killed := map[string]int{}

	for _, format := range []string{"csv", "ndjson", "parquet"} {
		expected[format] = len(download(t, d.ready(format)).body)
	}

	for i := range max(6, loops(60)) {
		kill.Round(t)
		s.exec(`UPDATE exports SET expires_at = now() WHERE state = 'ready' AND format = $1`, formatOf(i))
		require.Equal(t, http.StatusAccepted, d.export(formatOf(i)).status)

		process := s.process.Process
		dies := func(early bool, method, query string) {
			between.set(behaviour{early: early, cut: func() { _ = kill.Process(t, process) }, cuts: func(r *http.Request) bool {
				return r.Method == method && strings.Contains(r.URL.Path, "/exports/") && strings.Contains(r.URL.RawQuery, query)
			}})

			select {
			case <-s.exited:
				killed[fmt.Sprintf("%s %s early=%t", method, query, early)]++
			case <-time.After(patience):
				require.Fail(t, "nobody wrote")
			}

			between.set(behaviour{})
		}

		switch i % 6 {
		case 0:
			dies(true, http.MethodPut, "partNumber=2")
		case 1:
			dies(false, http.MethodPost, "uploadId=") // the object is stored, but not recorded
		case 2:
			dies(false, http.MethodPut, "")
		case 3:
			pause(time.Second)
			s.kill()
			killed["any moment"]++
		case 4:
			pause(time.Second)

			for _, child := range childrenOf(process.Pid) {
				if kill.ID(t, child) == nil {
					killed["child"]++
				}
			}
		case 5:
			pause(time.Second)
			s.expireLeases()
			killed["lease"]++
		}

		if !s.running() {
			s.restart()
			s.expireLeases()
		}

		require.Len(t, download(t, d.ready(formatOf(i))).body, expected[formatOf(i)])
	}

	t.Logf("killed: %v", killed)
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))
	require.Zero(t, s.count(`SELECT count(*) FROM exports WHERE state IN ('queued', 'running', 'failed')`))
	s.forgetExports()
	require.Empty(t, s.place.exportObjects())
	require.Empty(t, s.place.uploads())
	await(t, "no lease is left", func() bool { return s.count(`SELECT count(*) FROM leases WHERE job = 'query.export'`) == 0 })
}

func formatOf(i int) string { return []string{"csv", "ndjson", "parquet"}[i%3] }

// expireLeases expires all leases at once.
func (s *service) expireLeases() {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second'`)
		require.NoError(s.t, err)
	})
}
