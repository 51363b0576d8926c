package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// otherBucket returns an empty location in a bucket of its own.
func otherBucket(t *testing.T) *place {
	t.Helper()

	p := newBucket(t)
	p.prefix = "another/place/"
	t.Cleanup(func() {
		for _, key := range []string{"epoch", "mark"} { // place does not remove them
			_, err := p.client.DeleteObject(context.WithoutCancel(t.Context()), &s3.DeleteObjectInput{Bucket: &p.bucket, Key: new(p.prefix + key)})
			require.NoError(t, err)
		}
	})

	return p
}

// tool is a command of the operator on a database and a location. It finds the programs of PostgreSQL.
func tool(t *testing.T, databaseURL string, at *place, args ...string) *exec.Cmd {
	t.Helper()

	command := exec.CommandContext(t.Context(), binary(), args...)
	command.Env = append(at.settings(), "QUERN_DATABASE_URL="+databaseURL, "QUERN_DATABASE_ACQUIRE_TIMEOUT=15s", "PATH="+os.Getenv("PATH"))

	return command
}

// killed runs the command and kills it as soon as due returns true.
func killed(t *testing.T, command *exec.Cmd, due func() bool) {
	t.Helper()

	var written strings.Builder

	command.Stdout, command.Stderr = &written, &written
	require.NoError(t, command.Start())

	ended := make(chan error, 1)

	go func() { ended <- command.Wait() }()

	for !due() {
		select {
		case <-ended:
			require.Fail(t, "the command ended before it was killed", written.String())
		case <-time.After(time.Millisecond):
		}
	}

	require.NoError(t, kill.Process(t, command.Process))
	require.Error(t, <-ended, written.String())
}

func succeeds(t *testing.T, command *exec.Cmd) string {
	t.Helper()

	printed, err := command.CombinedOutput()
	require.NoError(t, err, string(printed))

	return string(printed)
}

func refuses(t *testing.T, command *exec.Cmd, reason string) {
	t.Helper()

	printed, err := command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(printed), reason)
}

// files returns the modes of all files and folders below a path.
func files(t *testing.T, path string) map[string]fs.FileMode {
	t.Helper()

	found := map[string]fs.FileMode{}

	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is being written
		}

		if info, err := entry.Info(); err == nil {
			found[path] = info.Mode()
		}

		return nil
	})

	return found
}

// original is an installation that is in use while it is backed up.
type original struct {
	*filled

	datasets map[string]*filled
	before   map[string][]any
	busy     *filled
	session  prepared
}

func newOriginal(t *testing.T, s *service, bearer string) original {
	t.Helper()

	o := original{filled: newFilled(t, s, "ada", bearer), datasets: map[string]*filled{}, before: map[string][]any{}}
	o.loaded("", "n\n1\n2\n", "n\n3\n")
	o.datasets["orders"] = o.filled

	for _, name := range []string{"posted", "replaced", "cleared", "erased", "gone"} {
		o.datasets[name] = o.beside(name, `{"data": [{"n": 1}, {"n": 2}]}`)
	}

	for n := range 10 {
		o.datasets["posted"].stored(fmt.Sprintf(`{"data": [{"n": %d}]}`, n))
	}

	o.datasets["posted"].awaitCompacted()
	o.datasets["replaced"].loaded(`"mode": "replace"`, "n\n7\n")
	require.Contains(t, s.quernd("erase", "dataset", o.datasets["gone"].path()), "ERASED")
	delete(o.datasets, "gone")

	o.busy = o.beside("busy", `{"data": [{"n": 0}]}`)
	o.session = prepare(t, s, bearer, 9<<20)
	s.place.putPart(o.session.Files[0], 1, strings.Repeat("x", 8<<20))

	for name := range o.datasets {
		o.before[name] = o.column(name)
	}

	return o
}

// posting posts rows until the end of the test or a call of the function, which returns how many were acknowledged.
func (o original) posting() (acknowledged func() int, stop func()) {
	var (
		done    = make(chan struct{})
		counted = make(chan int)
		ended   = make(chan struct{})
	)

	go func() {
		defer close(ended)

		for n := 1; ; {
			select {
			case <-done:
				return
			case counted <- n:
			default:
				answer, err := try(newRequest(o.t, http.MethodPost, o.busy.url()+"/rows", o.bearer, fmt.Sprintf(`{"data": [{"n": %d}]}`, n), "Content-Type: application/json"))
				if err != nil || answer.status != http.StatusOK {
					return
				}

				n++
			}
		}
	}()

	return func() int {
			select {
			case n := <-counted:
				return n
			case <-ended:
				require.Fail(o.t, "a post failed")

				return 0
			}
		}, func() {
			close(done)
			<-ended
		}
}

// TestBackupRestore backs up an installation that is in use, and restores it under another name of the bucket. Both commands are killed and
// repeated.
func TestBackupRestore(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MAINTENANCE_INTERVAL=1s")
	key := s.newKey()
	o := newOriginal(t, s, key.token("ada"))

	between, settings := newStoreProxy(t)
	between.set(behaviour{delay: 200 * time.Millisecond})

	slowly := func(command *exec.Cmd) *exec.Cmd {
		command.Env = append(command.Env, settings...)

		return command
	}

	// Back up while rows are posted and a file is loaded.
	acknowledged, stop := o.posting()
	waiting := o.accepted(o.create(uploadFiles(t, s, o.bearer, "n\n4\n"), "")).ID
	folder := filepath.Join(t.TempDir(), "backup")
	atLeast := acknowledged()

	refuses(t, tool(t, s.databaseURL, s.place, "restore", folder), "no such file")
	killed(t, slowly(tool(t, s.databaseURL, s.place, "backup", folder)), func() bool { return len(files(t, folder)) > 20 })
	refuses(t, tool(t, createDatabase(t), otherBucket(t), "restore", folder), "has no complete backup")

	printed := succeeds(t, slowly(tool(t, s.databaseURL, s.place, "backup", folder)))
	require.Contains(t, printed, "has a complete backup")

	atMost := acknowledged()

	stop()
	require.Contains(t, succeeds(t, tool(t, s.databaseURL, s.place, "backup", folder)), "name a new folder")

	for path, mode := range files(t, folder) {
		require.Zero(t, mode.Perm()&0o077, path)
	}

	// The original goes on, and erases what the backup has.
	require.Contains(t, s.quernd("erase", "dataset", o.datasets["erased"].path()), "ERASED")
	o.datasets["cleared"].loaded(`"mode": "replace"`, "n\n9\n")

	objects := s.place.objects()

	// Restore into an empty database and an empty bucket of another name, and nothing else.
	database, target := createDatabase(t), otherBucket(t)
	refuses(t, tool(t, s.databaseURL, target, "restore", folder), "The database is not empty")
	refuses(t, tool(t, database, s.place, "restore", folder), "There are objects below")

	for _, pause := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
		began := time.Now()
		killed(t, slowly(tool(t, database, target, "restore", folder)), func() bool { return time.Since(began) > pause })
	}

	killed(t, slowly(tool(t, database, target, "restore", folder)), func() bool { return len(target.objects()) > 20 })
	refuses(t, tool(t, database, otherBucket(t), "restore", folder), "continue that one, or create a new database")
	require.Contains(t, succeeds(t, tool(t, database, target, "restore", folder)), "0 lost, 0 orphans")
	refuses(t, tool(t, database, target, "restore", folder), "The database is not empty")
	succeeds(t, tool(t, database, target, "migrate", "--grant", servingRole))

	clone := start(t, "QUERN_DATABASE_URL="+database, "QUERN_S3_BUCKET="+target.bucket, "QUERN_S3_PREFIX="+target.prefix, "QUERN_MAINTENANCE_INTERVAL=1s",
		"QUERN_SECRET="+setting(s.settings, "QUERN_SECRET"), "QUERN_SOURCE_KEY="+setting(s.settings, "QUERN_SOURCE_KEY"))
	clone.place = target

	restored := o.at(clone)
	restored.requireRestored(waiting, atLeast, atMost)
	restored.requireErasedAgain(s)

	checkup, err := clone.doctor()
	require.NoError(t, err, checkup)
	require.Contains(t, checkup, "database and bucket belong together")
	require.Equal(t, "0 lost, 0 orphans\n", succeeds(t, tool(t, database, target, "fsck")))

	// The original has changed by nothing, and neither can use the location of the other.
	for name, size := range objects {
		require.Equal(t, size, s.place.objects()[name], name)
	}

	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))
	require.Equal(t, [][]any{{int64(9)}}, o.datasets["cleared"].table().rows)
	refuses(t, tool(t, database, s.place, "store", "claim"), "deployment")
	refuses(t, tool(t, s.databaseURL, target, "store", "claim"), "deployment")
	require.True(t, s.ready("ok"))
}

// at returns the same datasets in another service.
func (o original) at(s *service) original {
	there := o
	there.datasets = map[string]*filled{}

	move := func(d *filled) *filled { return &filled{d.t, s, d.bearer, d.owner, d.namespace, d.name} }
	for name, d := range o.datasets {
		there.datasets[name] = move(d)
	}

	there.filled, there.busy = move(o.filled), move(o.busy)

	return there
}

// requireRestored checks that everything is as at the moment of the backup, and goes on.
func (o original) requireRestored(waiting string, atLeast, atMost int) {
	o.t.Helper()
	require.Equal(o.t, "completed", o.wait(waiting).Status)
	require.Equal(o.t, []any{json.Number("1"), json.Number("2"), json.Number("3"), json.Number("4")}, numbered(o.column("orders")))

	for name, want := range o.before {
		if name != "orders" {
			require.Equal(o.t, want, o.column(name), name)
		}

		require.NotEmpty(o.t, o.datasets[name].table().rows, name) // read by iceberg-go
	}

	// The post that the backup found begun may end after the restore.
	o.busy.stored(`{"data": [{"n": -1}]}`)

	rows := o.column("busy")
	require.GreaterOrEqual(o.t, len(rows), atLeast+1)
	require.LessOrEqual(o.t, len(rows), atMost+2)

	for i, cell := range rows {
		require.Equal(o.t, strconv.Itoa(i-1), fmt.Sprint(cell), "no row is missing between two")
	}

	require.Subset(o.t, o.busy.table().rows, [][]any{{int64(-1)}, {int64(0)}})

	// Earlier snapshots are there, and the tables change further.
	replaced := o.datasets["replaced"]
	first := replaced.snapshots()[len(replaced.snapshots())-1].SnapshotID
	require.Equal(o.t, http.StatusOK, replaced.restoreTo(first).status)
	require.Equal(o.t, numbers(1, 2), replaced.table().rows)
	o.loaded("", "n\n5\n")

	// The upload that was begun cannot continue, because its parts are in the other bucket.
	answer := call(o.t, http.MethodGet, o.s.url+"/file-upload/"+o.session.SessionID, o.bearer, "")
	require.Equal(o.t, http.StatusOK, answer.status, answer.body)
	o.s.stop()
	o.s.cleanAtStart()
	o.s.restart()
	await(o.t, "the session ends", func() bool {
		return strings.Contains(call(o.t, http.MethodGet, o.s.url+"/file-upload/"+o.session.SessionID, o.bearer, "").body, `"sessionStatus":"aborted"`)
	})
}

func numbered(cells []any) (all []any) {
	for _, cell := range cells {
		all = append(all, json.Number(fmt.Sprint(cell)))
	}

	return all
}

// requireErasedAgain repeats the erasures of the original after the backup, as docs/backup.md says.
func (o original) requireErasedAgain(from *service) {
	o.t.Helper()

	var repeated []string

	withDatabase(o.t, from.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, `SELECT dataset_id::text FROM erasures WHERE kind = 'dataset' ORDER BY requested_at`)
		require.NoError(o.t, err)

		repeated, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(o.t, err)
	})
	require.Len(o.t, repeated, 2)
	require.Equal(o.t, http.StatusNotFound, call(o.t, http.MethodGet, o.s.url+"/data/ada/"+o.namespace+"/gone", o.bearer, "").status, "erased before the backup")

	printed, err := o.s.command("erase", "dataset", "ada/"+repeated[1])
	require.NoError(o.t, err)
	require.Contains(o.t, printed, "ERASED")
	require.Equal(o.t, http.StatusNotFound, o.datasets["erased"].call(http.MethodGet, "", "").status)

	for key := range o.s.place.objects() {
		require.NotContains(o.t, key, repeated[1])
	}
}
