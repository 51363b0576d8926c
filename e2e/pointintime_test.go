package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// archive is the write-ahead log of a PostgreSQL server, archived as docs/backup.md says, and a base backup.
type archive struct {
	*postgres

	home, bin, data string
}

// TestPointInTime goes back to a moment before a mistake, with PostgreSQL's archived log and the bucket as it is.
func TestPointInTime(t *testing.T) {
	t.Parallel()

	database := newArchive(t)
	s := database.serve(t, "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_DELETE_GRACE=1h", "QUERN_SNAPSHOT_RETENTION=1h")
	key := s.newKey()
	orders := newFilled(t, s, "ada", key.token("ada"))
	kept := orders.apiToken()

	orders.stored(`{"data": [{"n": 1}]}`)
	database.baseBackup()
	orders.stored(`{"data": [{"n": 2}]}`)
	orders.loaded(`"mode": "append"`, "n\n3\n")
	lost := orders.beside("lost", `{"data": [{"n": 4}, {"n": 5}]}`)

	moment := database.text("SELECT clock_timestamp()")

	// The mistake, and what people do before they notice it.
	orders.loaded(`"mode": "replace"`, "n\n7\n")
	orders.beside("later", `{"data": [{"n": 8}]}`)
	require.Equal(t, http.StatusNoContent, lost.call(http.MethodDelete, "", "").status)
	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/schema/ada/namespaces", orders.bearer, `{"name": "later"}`).status)
	s.stop()
	database.recover(moment)

	require.Contains(t, s.quernd("fsck"), "\n0 lost, ")
	require.Contains(t, s.quernd("store", "claim"), "epoch 2")
	s.cleanAtStart()
	s.restart()

	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", kept, "").status)
	require.Equal(t, numbers(1, 2, 3), orders.table().rows)
	require.Equal(t, numbers(4, 5), lost.table().rows)

	for _, path := range []string{"/data/" + orders.owner + "/" + orders.namespace + "/later", "/schema/ada/later/datasets"} {
		require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, s.url+path, orders.bearer, "").status, path)
	}

	orders.stored(`{"data": [{"n": 9}]}`)
	require.Equal(t, numbers(1, 2, 3, 9), orders.table().rows)
	s.awaitJob("ingest.clean")
	s.awaitJob("upload.clean")
	require.Contains(t, s.quernd("fsck"), "0 lost, ")
}

// newArchive starts a server that archives its log.
func newArchive(t *testing.T) *archive {
	t.Helper()

	a := &archive{postgres: newPostgres(t)}

	home, err := os.ReadFile(filepath.Join(a.dir, "postgres.home"))
	require.NoError(t, err)

	a.home = strings.TrimSpace(string(home))
	a.bin, a.data = a.text("SELECT setting FROM pg_config WHERE name = 'BINDIR'"), a.text("SELECT current_setting('data_directory')")
	a.as("mkdir", a.home+"/archive")

	withDatabase(a.t, a.address(), func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{
			"ALTER SYSTEM SET archive_mode = on",
			fmt.Sprintf("ALTER SYSTEM SET archive_command = 'test ! -f %[1]s/archive/%%f && cp %%p %[1]s/archive/%%f'", a.home),
		} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(t, err)
		}
	})
	a.run("restart")

	return a
}

// address is that of the superuser.
func (a *archive) address() string {
	a.t.Helper()

	for line := range strings.Lines(a.run("env")) {
		if address, is := strings.CutPrefix(strings.TrimSpace(line), "QUERN_DATABASE_URL="); is {
			return address
		}
	}

	require.Fail(a.t, "no address")

	return ""
}

func (a *archive) text(query string) (text string) {
	a.t.Helper()
	withDatabase(a.t, a.address(), func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(a.t, connection.QueryRow(ctx, "SELECT ("+query+")::text").Scan(&text), query)
	})

	return text
}

// as runs a command as the user to whom the files of the server belong.
func (a *archive) as(command ...string) {
	a.t.Helper()

	if os.Geteuid() == 0 {
		command = append([]string{"runuser", "-u", "postgres", "--"}, command...)
	}

	run := exec.CommandContext(a.t.Context(), command[0], command[1:]...)
	run.Dir = "/"
	printed, err := run.CombinedOutput()
	require.NoError(a.t, err, "%v: %s", command, printed)
}

func (a *archive) baseBackup() {
	a.t.Helper()
	a.as(filepath.Join(a.bin, "pg_basebackup"), "--checkpoint=fast", "--wal-method=none", "--pgdata="+a.home+"/base", "--dbname="+a.address())
}

// recover stops the server, and starts it with the base backup and the archived log until a moment.
func (a *archive) recover(moment string) {
	a.t.Helper()

	last := a.text("SELECT pg_walfile_name(pg_switch_wal())")
	await(a.t, "the log is archived", func() bool {
		return a.text("SELECT coalesce(last_archived_wal, '') >= '"+last+"' FROM pg_stat_archiver") == "true"
	})
	a.run("down")

	for name, content := range map[string]string{
		"recovery.signal":      "",
		"postgresql.auto.conf": fmt.Sprintf("restore_command = 'cp %s/archive/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = 'promote'\n", a.home, moment),
	} {
		a.as("sh", "-c", `printf %s "$2" > "$1"`, "sh", a.home+"/base/"+name, content)
	}

	a.as("mv", a.data, a.home+"/before")
	a.as("mv", a.home+"/base", a.data)
	a.run("up")
	await(a.t, "the recovery has ended", func() bool { return a.text("SELECT pg_is_in_recovery()") == "false" })
}
