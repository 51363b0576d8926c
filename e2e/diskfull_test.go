package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// recovery is the longest time that the service may take to resume after space is free again.
const recovery = 30 * time.Second

// smallDisk is a separate file system that a test fills.
type smallDisk struct {
	t      *testing.T
	path   string
	inodes bool // fill it with files instead of bytes
}

// mounted returns a new file system with space for 64 MiB and 2,000 files.
func mounted(t *testing.T, inodes bool) *smallDisk {
	t.Helper()

	path := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", path, "tmpfs", 0, "size=64m,nr_inodes=2000,mode=0700"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(path, syscall.MNT_DETACH)) })
	require.NoError(t, os.Mkdir(filepath.Join(path, "others"), 0o700))

	return &smallDisk{t, path, inodes}
}

// free returns the number of free bytes or inodes.
func (d *smallDisk) free() int64 {
	d.t.Helper()

	var now syscall.Statfs_t
	require.NoError(d.t, syscall.Statfs(d.path, &now))

	if d.inodes {
		return int64(now.Ffree)
	}

	return int64(now.Bavail) * now.Bsize
}

// fill uses up all free space or inodes, as another program on the disk would.
func (d *smallDisk) fill() {
	d.t.Helper()

	for d.free() > 0 && d.add(d.free()) {
		continue
	}
}

// add writes the given number of bytes or files. It returns false if the disk was full before that.
func (d *smallDisk) add(count int64) bool {
	d.t.Helper()

	for size := int64(1); count > 0; count -= size {
		content := []byte{}

		if !d.inodes {
			size = min(count, 1<<20)
			content = make([]byte, size)
		}

		err := os.WriteFile(filepath.Join(d.path, "others", uuid.NewString()), content, 0o600)
		if err != nil {
			require.ErrorIs(d.t, err, syscall.ENOSPC)

			return false
		}
	}

	return true
}

// clear removes the files that fill and add wrote.
func (d *smallDisk) clear() {
	d.t.Helper()
	require.NoError(d.t, os.RemoveAll(filepath.Join(d.path, "others")))
	require.NoError(d.t, os.Mkdir(filepath.Join(d.path, "others"), 0o700))
}

// copies returns the number of data files in the cache.
func (d *smallDisk) copies() int {
	d.t.Helper()

	found, err := filepath.Glob(filepath.Join(d.path, "work", "cache", "*.parquet"))
	require.NoError(d.t, err)

	return len(found)
}

// TestDiskFull checks that every operation that needs the work folder returns UNAVAILABLE while its disk is full. Nothing
// acknowledged is lost. The service resumes by itself soon after space is free.
func TestDiskFull(t *testing.T) {
	t.Parallel()

	if os.Geteuid() != 0 {
		asRoot(t)

		return
	}

	for name, inodes := range map[string]bool{"space": false, "inodes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			disk := mounted(t, inodes)
			s := start(t, "QUERN_SANDBOX_DIR="+filepath.Join(disk.path, "work"), "QUERN_SANDBOX_RESERVE_BYTES=8MiB", "QUERN_SANDBOX_RESERVE_FILES=200",
				"QUERN_EXPORT_STREAM_MAX_BYTES=64KiB", "QUERN_QUERY_MEMORY=64MiB", "QUERN_QUERY_THREADS=1", scripted)
			key := s.newKey()
			small, large := newFilled(t, s, "ada", key.token("ada")), newFilled(t, s, "ada", key.token("ada"))
			require.Equal(t, http.StatusOK, small.post(`{"data": [{"n": 1}]}`).status)
			large.loaded("", exportRows(0, 20_000))

			w := &whenFull{t: t, s: s, disk: disk, small: small, large: large}
			w.evicts()
			w.measures()

			if !inodes {
				w.spills()
				w.unpacks()
			}

			for range rounds(100) {
				w.round()
			}
		})
	}
}

// asRoot runs the test again in a user namespace in which it may mount a file system.
func asRoot(t *testing.T) {
	t.Helper()

	again := exec.CommandContext(t.Context(), "unshare", "-Urm", os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	written, err := again.CombinedOutput()
	require.NoError(t, err, string(written))
}

// whenFull is a service with a small disk.
type whenFull struct {
	t            *testing.T
	s            *service
	disk         *smallDisk
	small, large *filled
	stored       atomic.Int64 // acknowledged rows of small, without the first
	full         int          // how often the disk was full
	asked        int
	usual        time.Duration // how long goesOn takes if there is space
}

// spills runs a statement that fills the disk by itself. The statement fails with UNAVAILABLE and leaves no files behind.
func (w *whenFull) spills() {
	w.t.Helper()

	requireUnavailable(w.t, w.small.ask("SELECT count(*) AS n FROM (SELECT DISTINCT md5(CAST(i AS VARCHAR)) FROM range(20000000) t(i))", ""))
	await(w.t, "the room is given back", func() bool { return w.s.ready("ok") })
	w.full = strings.Count(w.s.log(), `"msg":"the work folder is full`) // the statement used the reserve for a moment
}

// unpacks loads a file that fills the disk by itself. The job is tried again, because other work may have used the space.
func (w *whenFull) unpacks() {
	w.t.Helper()

	var packed bytes.Buffer

	writer := gzip.NewWriter(&packed)
	_, err := writer.Write([]byte("n,text\n" + strings.Repeat("1,"+strings.Repeat("x", 1000)+"\n", 80<<10)))
	require.NoError(w.t, err)
	require.NoError(w.t, writer.Close())

	made := w.large.accepted(w.large.create(uploadFiles(w.t, w.s, w.large.bearer, packed.String()), "")).ID
	await(w.t, "an attempt has failed", func() bool {
		return w.s.count(`SELECT count(*) FROM river_job WHERE kind = 'ingest.run' AND errors IS NOT NULL AND args->>'ingestion' = $1`, made) > 0
	})
	require.False(w.t, w.large.get(made).ended(), "it is tried again")
	require.Equal(w.t, http.StatusOK, w.large.call(http.MethodPost, "/ingestions/"+made+"/cancel", "").status)
	await(w.t, "the room is given back", func() bool { return w.s.ready("ok") })
	w.full = strings.Count(w.s.log(), `"msg":"the work folder is full`)
}

// measures records how long the work that waits while the disk is full takes if there is space.
func (w *whenFull) measures() {
	w.t.Helper()

	began := time.Now()
	w.goesOn(w.accepted())
	w.usual = time.Since(began)
}

// saidOnce checks that the log has one line at level error for each time the disk became full, regardless of how many requests
// were refused.
func (w *whenFull) saidOnce() {
	w.t.Helper()

	said := 0

	for line := range strings.Lines(w.s.log()) {
		if strings.Contains(line, `"level":"ERROR","msg":"the work folder is full`) {
			said++

			continue
		}

		require.False(w.t, strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, "no space left"), line)
	}

	require.Equal(w.t, w.full, said)
}

// evicts checks that the service removes cached copies before a statement fails.
func (w *whenFull) evicts() {
	w.t.Helper()

	count := func(d *filled) string { return d.ask("SELECT count(*) AS n FROM orders", "").body }
	leave, next := int64(64<<20/10-64<<10), w.small // a little less than the reserve, and the dataset whose statement must still run

	if w.disk.inodes {
		leave, next = 195, w.large

		for range 40 { // each post creates a data file
			require.Equal(w.t, http.StatusOK, w.small.post(`{"data": [{"n": 2}]}`).status)
			w.stored.Add(1)
		}
	}

	require.Contains(w.t, count(w.small), fmt.Sprintf(`"n":%d`, 1+w.stored.Load()))
	require.Contains(w.t, count(w.large), "20000")

	before := w.disk.copies()
	await(w.t, "copies make room", func() bool {
		if w.disk.copies() < before {
			return true
		}

		w.disk.add(w.disk.free() - leave) // repeated, because sealed processes that end free their space

		return false
	})
	require.Equal(w.t, http.StatusOK, next.ask("SELECT count(*) AS n FROM orders", "").status)
	require.True(w.t, w.s.ready("ok"))
	w.disk.clear()
}

// round fills the disk while rows are posted, checks every kind of request, and frees the space again.
func (w *whenFull) round() {
	w.t.Helper()

	posting := w.posts()

	w.disk.fill()
	await(w.t, "the service knows", func() bool { return w.s.ready("unavailable") })
	w.disk.fill() // the space that the cache freed
	posting()

	w.full++
	w.told(true)
	w.refused()
	waiting := w.accepted()
	w.saidOnce()

	w.disk.clear()
	began := time.Now()
	w.goesOn(waiting)

	took := time.Since(began)
	w.t.Logf("everything went on within %v; the same takes %v when there is room", took.Round(time.Millisecond), w.usual.Round(time.Millisecond))
	require.Less(w.t, took, recovery+w.usual)
	w.told(false)

	require.EqualValues(w.t, 1+w.stored.Load(), w.small.describe().RowCount, "what was acknowledged is there, and nothing else")
}

// posts sends rows from several clients until the returned function is called. Each request is stored, or refused with
// UNAVAILABLE.
func (w *whenFull) posts() (stop func()) {
	w.t.Helper()

	var (
		clients sync.WaitGroup
		enough  atomic.Bool
	)

	for range 3 {
		clients.Go(func() {
			for !enough.Load() {
				answer, err := try(newRequest(w.t, http.MethodPost, w.small.url()+"/rows", w.small.bearer, `{"data": [{"n": 2}]}`))

				switch {
				case err != nil:
					w.t.Error(err)
				case answer.status == http.StatusOK:
					w.stored.Add(1)
				case answer.status != http.StatusServiceUnavailable:
					w.t.Errorf("posted rows: %d %s", answer.status, answer.body)
				}
			}
		})
	}

	return func() {
		enough.Store(true)
		clients.Wait()
	}
}

// told checks that readiness, metrics and the log report whether the disk is full, and that readiness names the reason.
func (w *whenFull) told(full bool) {
	w.t.Helper()

	detail := call(w.t, http.MethodGet, w.s.admin+"/readyz", "", "").body
	require.Equal(w.t, map[bool]int{true: 1}[full], w.s.gauge("quern_disk_full"))

	if !full {
		require.Equal(w.t, w.full, strings.Count(w.s.log(), `"msg":"the work folder has free space again"`))
		require.NotContains(w.t, detail, `"ok":false`)

		return
	}

	require.Contains(w.t, detail, `"name":"work folder","required":true,"ok":false`)
	require.Contains(w.t, detail, w.disk.path)
	require.Contains(w.t, detail, map[bool]string{false: "space", true: "inodes"}[w.disk.inodes])

	if w.disk.inodes {
		require.Less(w.t, w.s.gauge("quern_disk_free_inodes"), 225) // the reserve and an eighth more
	} else {
		require.Less(w.t, w.s.gauge("quern_disk_free_bytes"), 8<<20)
	}
}

// refused checks that every operation that needs the work folder returns UNAVAILABLE with Retry-After.
func (w *whenFull) refused() {
	w.t.Helper()

	for what, answer := range map[string]*answer{
		"rows":           w.small.post(`{"data": [{"n": 2}]}`),
		"a statement":    w.small.ask("SELECT count(*) AS n FROM orders", ""),
		"no SQL":         w.small.ask("SELEC", ""),
		"a file":         w.small.ask("FROM orders", "", "Accept: text/csv"),
		"listed rows":    w.small.call(http.MethodGet, "/rows", ""),
		"an export":      w.small.export("csv"),
		"rows, again":    w.small.post(`{"data": [{"n": 2}]}`, "Idempotency-Key: full"),
		"rows as a body": w.small.post("n\n2\n", "Content-Type: text/csv"),
	} {
		require.Equal(w.t, http.StatusServiceUnavailable, answer.status, "%s: %s", what, answer.body)
		require.NotEmpty(w.t, answer.header.Get("Retry-After"), what)
		require.Contains(w.t, answer.body, `"UNAVAILABLE"`, what)
	}
}

// goingOn contains the ids of the work that was accepted while the disk was full.
type goingOn struct{ ingestion, tried, run string }

// accepted checks that work that needs the work folder later is accepted and waits, and that requests that do not need it
// succeed.
func (w *whenFull) accepted() (waiting goingOn) {
	w.t.Helper()

	require.Equal(w.t, http.StatusOK, w.small.call(http.MethodGet, "", "").status)

	w.asked++
	session := uploadFiles(w.t, w.s, w.large.bearer, exportRows(1_000_000*w.asked, 10))
	waiting.ingestion = w.large.accepted(w.large.create(session, `"accept": ["all"]`)).ID
	waiting.tried = w.large.accepted(w.large.create(uploadFiles(w.t, w.s, w.large.bearer, exportRows(0, 10)), `"dryRun": true`)).ID
	waiting.run = w.small.accept("nl2ql", `{"queries": ["SELECT count(*) AS n FROM orders"], "response": "Done."}`).RunID
	require.Contains(w.t, []int{http.StatusAccepted, http.StatusSeeOther}, w.large.export("parquet").status)

	return waiting
}

// goesOn waits until all waiting work is done.
func (w *whenFull) goesOn(waiting goingOn) {
	w.t.Helper()

	await(w.t, "the service is ready", func() bool { return w.s.ready("ok") })
	require.Equal(w.t, http.StatusOK, w.small.post(`{"data": [{"n": 2}]}`, fmt.Sprintf("Idempotency-Key: full-%d", w.asked)).status)
	w.stored.Add(1)

	for _, id := range []string{waiting.ingestion, waiting.tried} {
		done := w.large.wait(id)
		require.Equal(w.t, "completed", done.Status, "%+v", done.Error)
	}

	var run asked

	await(w.t, "the question is answered", func() bool {
		call(w.t, http.MethodGet, w.s.url+"/query/runs/"+waiting.run, w.small.bearer, "").json(w.t, &run)

		return run.Status != "running"
	})
	require.Equal(w.t, "completed", run.Status, "%+v", run.Error)

	w.large.ready("parquet")
	require.Contains(w.t, w.small.ask("SELECT count(*) AS n FROM orders", "").body, strconv.FormatInt(1+w.stored.Load(), 10))
}
