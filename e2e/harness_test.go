package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

func TestMain(m *testing.M) {
	for _, media := range []string{"text/html", "application/x-ndjson", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}

	icebergio.Register("s3", openStore)

	build := exec.Command("go", "build", "-o", binary(), "quern.dev/quern/cmd/quernd")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building quernd: %v\n%s", err, output)
		os.Exit(1)
	}

	status := m.Run()
	_ = os.RemoveAll(filepath.Dir(binary()))

	os.Exit(status)
}

// binary is where TestMain puts the quernd of this run.
func binary() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("quern-e2e-%d", os.Getpid()), "quernd")
}

// patience is how long anything may take that is only slow when the machine is busy.
const patience = time.Minute

// service is a running quernd.
type service struct {
	url, root, admin string // url is the root with the base path
	databaseURL      string
	realm            *realm // nil when the test gave an issuer
	place            *place

	t        *testing.T
	settings []string
	written  *output
	changing sync.Mutex
	process  *exec.Cmd
	exited   chan struct{} // closed when the process is gone
}

// start runs quernd on a fresh database, a fresh place in the store and, unless the settings name an issuer, a fresh realm. Settings are
// NAME=value and replace the ones made here; nothing else is in the environment. It ends with the test, and must
// then end well and have kept every secret out of its log.
func start(t *testing.T, settings ...string) *service {
	t.Helper()

	s := &service{t: t, written: &output{}, databaseURL: createDatabase(t), place: newPlace(t)}
	if issuer := "QUERN_OIDC_ISSUER="; !slices.ContainsFunc(settings, func(setting string) bool { return strings.HasPrefix(setting, issuer) }) {
		s.realm = newRealm(t)
		settings = append(settings, issuer+s.realm.issuer())
	}

	// No snapshot comes by itself, unless the test is about that.
	if !slices.ContainsFunc(settings, func(setting string) bool { return strings.HasPrefix(setting, "QUERN_UPKEEP_") }) {
		settings = append(settings, "QUERN_UPKEEP_WORKERS=0")
	}

	secret := rand.Text() + rand.Text()
	// Of a name that stands twice the last one counts. Keycloak takes its time while other tests make realms.
	s.settings = slices.Concat([]string{
		"QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0", "QUERN_PUBLIC_URL=http://quern.test",
		"QUERN_SECRET=" + secret, "QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_OIDC_AUDIENCE=quern", "QUERN_OIDC_TIMEOUT=20s",
		"QUERN_DRAIN_DELAY=0s", "QUERN_SANDBOX_READY=1",
	}, s.place.settings(), settings)

	t.TempDir() // The first call decides that folders go after the service has ended.
	t.Cleanup(func() {
		if s.running() {
			s.stop()
		}

		if t.Failed() {
			t.Logf("quernd wrote, without the requests that went well:\n%s", wentWell.ReplaceAllString(s.log(), ""))
		}

		require.NotContains(t, s.log(), secret, "the log holds QUERN_SECRET")
		require.NotContains(t, s.log(), password(t, s.databaseURL), "the log holds the password of the database")
		require.NotContains(t, s.log(), stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), "the log holds the secret key of the store")
		require.NotContains(t, s.log(), "X-Amz-", "the log holds a presigned address")
		require.Empty(t, tokenPattern.FindString(s.log()), "the log holds a token")
	})

	s.quernd("migrate")
	s.run()
	s.root, s.admin = "http://"+s.listening("api"), "http://"+s.listening("admin")
	s.url = s.root + "/api/v1"
	s.awaitReady()

	if s.realm != nil {
		await(t, "quernd has the issuer's keys", func() bool {
			return strings.Contains(call(t, http.MethodGet, s.root+"/readyz", "", "").body, `"ok"`)
		})
	}

	return s
}

func password(t *testing.T, address string) string {
	t.Helper()

	u, err := url.Parse(address)
	require.NoError(t, err)

	secret, given := u.User.Password()
	require.True(t, given)

	return secret
}

// wentWell finds the lines of requests that were answered as asked, and of the queue at peace: thousands of them would hide what failed.
var wentWell = regexp.MustCompile(`(?m)^.*"level":"INFO","msg":("request".*"status":[23]|"producer: Producer job counts").*\n`)

// tokenPattern finds access tokens of an issuer (JSON, signed) and API tokens.
var tokenPattern = regexp.MustCompile(`eyJ[\w-]+\.|quern_[0-9A-Za-z]{33}`)

func (s *service) run() {
	s.t.Helper()

	s.changing.Lock()
	defer s.changing.Unlock()

	s.process = exec.Command(binary(), "serve")
	// A process has its folder for itself.
	s.process.Env = slices.Concat([]string{"QUERN_SANDBOX_DIR=" + s.t.TempDir()}, s.settings)
	s.process.Stderr = s.written
	process, exited := s.process, make(chan struct{})
	s.exited = exited
	require.NoError(s.t, process.Start())

	go func() {
		defer close(exited)

		_ = process.Wait() // its state is read by whoever ended it
	}()
}

func (s *service) running() bool {
	process, exited := s.current()

	select {
	case <-exited:
		return false
	default:
		return process != nil
	}
}

// current is the process that runs or ran last. A proxy may end it while the test looks.
func (s *service) current() (*exec.Cmd, <-chan struct{}) {
	s.changing.Lock()
	defer s.changing.Unlock()

	return s.process, s.exited
}

// listening waits for the log line that says where a listener is.
func (s *service) listening(what string) string {
	s.t.Helper()

	var address string

	await(s.t, "quernd listens for "+what, func() bool {
		for line := range strings.Lines(s.log()) {
			var entry struct{ Msg, What, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" && entry.What == what {
				address = entry.Address
			}
		}

		return address != "" || !s.running()
	})
	require.NotEmpty(s.t, address, "quernd ended:\n%s", s.log())

	return address
}

func (s *service) awaitReady() {
	s.t.Helper()
	await(s.t, "quernd is ready", func() bool {
		answer, err := try(newRequest(s.t, http.MethodGet, s.root+"/readyz", "", ""))

		return err == nil && answer.status == http.StatusOK || !s.running()
	})
	require.True(s.t, s.running(), "quernd ended:\n%s", s.log())
}

// newKey imports a key into the realm and shows it to the service once, so that it does not have to look for it in many
// requests at the same moment.
func (s *service) newKey() *signer {
	s.t.Helper()

	key := s.realm.importKey(s.t)
	first := call(s.t, http.MethodGet, s.url+"/user/me", key.token("first"), "")
	require.Equal(s.t, http.StatusOK, first.status, first.body)

	return key
}

// kill ends the process at once, as a crash would.
func (s *service) kill() { s.end(syscall.SIGKILL) }

// stop asks the process to end, which it must do well.
func (s *service) stop() {
	s.t.Helper()
	s.end(syscall.SIGTERM)

	process, _ := s.current()
	require.True(s.t, process.ProcessState.Success(), "quernd ended with %v", process.ProcessState)
}

func (s *service) end(signal os.Signal) {
	s.t.Helper()

	process, exited := s.current()
	require.NoError(s.t, process.Process.Signal(signal))

	select {
	case <-exited:
	case <-time.After(patience):
		_ = process.Process.Kill()
		require.Fail(s.t, "quernd does not end")
	}
}

// restart runs the service again, after stop or kill, on the same addresses and database.
func (s *service) restart() {
	s.t.Helper()
	s.settings = append(s.settings,
		"QUERN_LISTEN_ADDR="+strings.TrimPrefix(s.root, "http://"), "QUERN_ADMIN_ADDR="+strings.TrimPrefix(s.admin, "http://"))
	s.run()
	s.awaitReady()
}

// log is what the process has written so far.
func (s *service) log() string { return s.written.String() }

// quernd runs a command that must succeed, and returns what it printed.
func (s *service) quernd(args ...string) string {
	s.t.Helper()

	printed, err := s.command(args...)
	require.NoError(s.t, err, "quernd %s", strings.Join(args, " "))

	return printed
}

// command runs a command on the database of the service. Its error holds what was written to standard error.
func (s *service) command(args ...string) (printed string, err error) {
	command := exec.CommandContext(s.t.Context(), binary(), args...)
	command.Env = append(s.place.settings(), "QUERN_DATABASE_URL="+s.databaseURL)
	output, err := command.Output()

	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}

	return string(output), err
}

// exec changes the database past the service, for states that no operation makes.
func (s *service) exec(statement string, args ...any) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		tag, err := connection.Exec(ctx, statement, args...)
		require.NoError(s.t, err)
		require.EqualValues(s.t, 1, tag.RowsAffected(), statement)
	})
}

// createDatabase returns the address of an empty database that is dropped when the test ends.
func createDatabase(t *testing.T) string {
	t.Helper()

	address, err := url.Parse(stack.Env(t, "QUERN_TEST_DATABASE_URL"))
	require.NoError(t, err)

	server, name := address.String(), "e2e_"+uuid.NewString()
	run := func(format string) {
		withDatabase(t, server, func(ctx context.Context, connection *pgx.Conn) {
			_, err := connection.Exec(ctx, fmt.Sprintf(format, pgx.Identifier{name}.Sanitize()))
			require.NoError(t, err)
		})
	}
	run("CREATE DATABASE %s")
	t.Cleanup(func() { run("DROP DATABASE %s WITH (FORCE)") })

	address.Path = "/" + name

	return address.String()
}

func withDatabase(t *testing.T, address string, do func(context.Context, *pgx.Conn)) {
	t.Helper()

	// Cleanups need it after the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()

	connection, err := pgx.Connect(ctx, address)
	require.NoError(t, err, "is the stack running? make stack")

	defer func() { _ = connection.Close(ctx) }()

	do(ctx, connection)
}

// await asks until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()

	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "gave up waiting until %s", what)
	}
}

// output collects what a process writes.
type output struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()

	return o.buffer.Write(b)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()

	return o.buffer.String()
}
