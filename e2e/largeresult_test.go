package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

const largeRows = 2_300_000

// largeStatement has rows in descending order, with quotes and line ends in CSV.
var largeStatement = fmt.Sprintf(`SELECT range AS id, 'a "name"' || chr(10) || range %% 1000 AS name FROM range(%d) ORDER BY id DESC`, largeRows) //nolint:gochecknoglobals // read only

func largeName(id int64) string { return fmt.Sprintf("a \"name\"\n%d", id%1000) }

// fetchAll reads all pieces at the same time and returns them in order, with the end last.
func (l *long) fetchAll(list pieceList) (contents []string) {
	l.d.t.Helper()

	all := list.Data
	if list.End != nil {
		all = append(all, *list.End)
	}

	contents = make([]string, len(all))

	var reading sync.WaitGroup

	for i, p := range all {
		reading.Go(func() { contents[i] = l.get(p) })
	}

	reading.Wait()

	return contents
}

// join returns the result as one file.
func (list pieceList) join(contents []string) string {
	var whole strings.Builder

	for i, p := range list.Data {
		whole.WriteString(contents[i][p.HeadBytes : len(contents[i])-p.TailBytes])
	}

	if list.End != nil {
		whole.WriteString(contents[len(contents)-1])
	}

	return whole.String()
}

// TestLargeResult checks that a result above all limits of a response has exactly the expected rows in every format, in each piece
// and in the file that the pieces are.
func TestLargeResult(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	require.Contains(t, d.ask(largeStatement, "", "Accept: text/csv").body, "LIMIT_EXCEEDED")

	for format, check := range map[string]func(t *testing.T, content string, next int64) int64{
		"parquet": checkParquet, "arrow": checkArrow, "csv": checkCSV, "ndjson": checkLines,
	} {
		l := d.start(largeStatement, fmt.Sprintf(`"format": %q`, format)).await("completed")
		require.EqualValues(t, largeRows, l.Progress.Rows)

		list := l.pieces()
		require.GreaterOrEqual(t, len(list.Data), 2, format)

		contents, next := l.fetchAll(list), int64(largeRows-1)

		for i, p := range list.Data {
			before := next
			next = check(t, contents[i], next)
			require.Equal(t, p.Rows, before-next)
		}

		require.EqualValues(t, -1, next, format)
		require.EqualValues(t, -1, check(t, list.join(contents), largeRows-1), format)
		require.Equal(t, http.StatusNoContent, l.call(http.MethodDelete, "").status)
	}
}

func checkColumns(t *testing.T, ids, names arrow.Array, next int64) int64 {
	t.Helper()

	numbers, ok := ids.(*array.Int64)
	require.True(t, ok)

	texts, ok := names.(*array.String)
	require.True(t, ok)

	for i := range numbers.Len() {
		if numbers.Value(i) != next || texts.Value(i) != largeName(next) {
			require.Fail(t, "a wrong row", "%d %q instead of %d", numbers.Value(i), texts.Value(i), next)
		}

		next--
	}

	return next
}

func checkParquet(t *testing.T, content string, next int64) int64 {
	t.Helper()

	opened, err := file.NewParquetReader(strings.NewReader(content))
	require.NoError(t, err)

	reader, err := pqarrow.NewFileReader(opened, pqarrow.ArrowReadProperties{BatchSize: 10_000}, memory.DefaultAllocator)
	require.NoError(t, err)

	records, err := reader.GetRecordReader(t.Context(), nil, nil)
	require.NoError(t, err)

	defer records.Release()

	for records.Next() {
		next = checkColumns(t, records.RecordBatch().Column(0), records.RecordBatch().Column(1), next)
	}

	return next
}

func checkArrow(t *testing.T, content string, next int64) int64 {
	t.Helper()

	reader, err := ipc.NewReader(strings.NewReader(content))
	require.NoError(t, err)

	defer reader.Release()

	for reader.Next() {
		next = checkColumns(t, reader.RecordBatch().Column(0), reader.RecordBatch().Column(1), next)
	}

	require.NoError(t, reader.Err())

	return next
}

func checkCSV(t *testing.T, content string, next int64) int64 {
	t.Helper()

	rest, found := strings.CutPrefix(content, "id,name\n")
	require.True(t, found)

	for rest != "" {
		row := fmt.Sprintf("%d,\"a \"\"name\"\"\n%d\"\n", next, next%1000)
		if rest, found = strings.CutPrefix(rest, row); !found {
			require.Fail(t, "a wrong row", "%.60q instead of %q", rest, row)
		}

		next--
	}

	return next
}

func checkLines(t *testing.T, content string, next int64) int64 {
	t.Helper()

	for line := range strings.Lines(content) {
		if want := fmt.Sprintf("{\"id\":%d,\"name\":\"a \\\"name\\\"\\n%d\"}\n", next, next%1000); line != want {
			require.Fail(t, "a wrong row", "%.80q instead of %q", line, want)
		}

		next--
	}

	return next
}

// TestLongStatementTakeover kills the process of a worker in the middle of a statement. Another one must take over, and nothing of
// the first one may be seen. It also restarts the service, and ends the retention.
func TestLongStatementTakeover(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_EXPORT_WORKERS=0")
	d := newFilled(t, s, "ada", value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "taker", "role": "owner"}`)))

	l := d.start(`SELECT range AS id, sha256(sha256(CAST(range AS VARCHAR))) AS sum FROM range(3000000) ORDER BY id`, "")
	worker := another(t, s, "QUERN_EXPORT_WORKERS=1")
	l.await("running")
	time.Sleep(time.Second)
	require.Equal(t, "running", l.refresh().Status, "the statement is too short for this test")
	worker.kill()
	require.Equal(t, "running", l.refresh().Status)

	// The next one dies when the store has its first piece.
	between, settings := newStoreProxy(t)
	second := another(t, s, append(settings, "QUERN_EXPORT_WORKERS=1")...)
	between.set(behaviour{cut: func() { _ = kill.Process(t, second.process.Process) }, cuts: func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/statements/")
	}})

	select {
	case <-second.exited:
	case <-time.After(3 * patience):
		require.Fail(t, "nobody wrote a piece")
	}

	require.Equal(t, "running", l.refresh().Status)
	require.Equal(t, http.StatusUnprocessableEntity, l.call(http.MethodGet, "/pieces").status, "what is half written is not seen")

	another(t, s, "QUERN_EXPORT_WORKERS=1")
	l.await("completed")
	require.Positive(t, s.count(`SELECT count(*) FROM statement_pieces WHERE remove_at IS NOT NULL`), "what the dead one wrote is to be removed")

	list := l.pieces()
	contents := l.fetchAll(list)
	require.EqualValues(t, 3_000_000, l.Progress.Rows)

	_, rows := readParquet(t, contents[0])
	require.Equal(t, int64(0), number(rows[0]))

	s.stop()
	s.restart()
	require.Equal(t, list, l.pieces(), "a restart changes nothing")
	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))

	// The retention ends.
	s.stop()
	s.exec(`UPDATE statements SET expires_at = now() - interval '1 minute'`)
	withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE statement_pieces SET remove_at = now() - interval '1 minute' WHERE remove_at IS NOT NULL`)
		require.NoError(t, err)
	})
	s.cleanAtStart()
	s.restart()
	require.Equal(t, http.StatusNotFound, l.call(http.MethodGet, "").status)
	await(t, "the objects are gone", func() bool { return s.place.statementObjects() == 0 })
	require.Zero(t, s.count(`SELECT count(*) FROM statements`))
	await(t, "the rows are gone", func() bool { return s.count(`SELECT count(*) FROM statement_pieces`) == 0 })
}

// brokenStore is a proxy for the object store that breaks off the first responses with pieces.
type brokenStore struct {
	*httptest.Server

	breaks atomic.Int64 // how many responses still break off
	ranges atomic.Int64 // requests that go on with a piece
	whole  atomic.Int64 // other requests for pieces
}

func newBrokenStore(t *testing.T, s3 string) *brokenStore {
	t.Helper()

	to, err := url.Parse(s3)
	require.NoError(t, err)

	b := &brokenStore{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the signature covers the host
	}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			b.ranges.Add(1)
		} else {
			b.whole.Add(1)
		}

		if b.breaks.Add(-1) >= 0 {
			w = &breaking{ResponseWriter: w, left: 100_000}
		}

		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(b.Close)

	return b
}

// breaking is a response that breaks off.
type breaking struct {
	http.ResponseWriter

	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		panic(http.ErrAbortHandler)
	}

	n, err := b.ResponseWriter.Write(p)
	_ = http.NewResponseController(b.ResponseWriter).Flush()

	return n, err
}

// TestResultCLI writes a large result to files. Pieces that break off are continued, and a client that is killed goes on with the
// same statement and without the pieces that it has.
func TestResultCLI(t *testing.T) {
	t.Parallel()

	store := newBrokenStore(t, newPlace(t).endpoint)
	s := start(t, "QUERN_S3_PUBLIC_ENDPOINT="+store.URL)
	c := s.signedIn(t, value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("ada"), `{"name": "saver", "role": "owner"}`)))

	for ending, check := range map[string]func(t *testing.T, content string, next int64) int64{"parquet": checkParquet, "csv": checkCSV} {
		path := filepath.Join(c.home, "large."+ending)

		store.breaks.Store(3)
		store.ranges.Store(0)
		require.Contains(t, c.run("query", largeStatement, "--out", path), "Wrote 2,300,000 rows")
		// A connection that is cut may lose what its reader has not read yet. Such a piece begins again.
		require.Positive(t, store.ranges.Load())

		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.EqualValues(t, -1, check(t, string(content), largeRows-1))
		require.NoFileExists(t, path+".part")
		require.NoFileExists(t, path+".part.json")
	}

	require.Zero(t, s.count(`SELECT count(*) FROM statements`), "what is saved is deleted")

	// Killed after its first piece.
	path := filepath.Join(c.home, "again.ndjson")
	store.breaks.Store(1 << 40)

	command := c.command("sql", "--out", path, largeStatement)
	written := &bytes.Buffer{}
	command.Stdout, command.Stderr = written, written
	require.NoError(t, command.Start())
	await(t, "it has begun", func() bool { return store.ranges.Load() > 20 })

	_ = kill.Process(t, command.Process)
	require.Error(t, command.Wait())
	store.breaks.Store(0)

	var noted struct{ Statement string }

	content, err := os.ReadFile(path + ".part.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &noted))
	require.Equal(t, 1, s.count(`SELECT count(*) FROM statements WHERE id = $1`, noted.Statement))

	c.run("sql", "--out", path, largeStatement)
	require.Equal(t, 1, s.count(`SELECT count(*) FROM river_job WHERE kind = 'query.statement' AND args ->> 'statement' = $1`, noted.Statement))
	require.Equal(t, 3, s.count(`SELECT count(*) FROM river_job WHERE kind = 'query.statement'`), "the same statement")

	content, err = os.ReadFile(path)
	require.NoError(t, err)
	require.EqualValues(t, -1, checkLines(t, string(content), largeRows-1))

	// Faults are those of the statement, and leave no file.
	failed := c.try("query", "SELECT nothing", "--out", filepath.Join(c.home, "x.parquet"))
	require.NotZero(t, failed.code)
	require.Contains(t, failed.err, `There is no column "nothing"`)
	require.NoFileExists(t, filepath.Join(c.home, "x.parquet"))
}
