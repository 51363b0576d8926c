package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
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
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
	"quern.dev/quern/stack"
)

func TestMain(m *testing.M) {
	flag.Parse()

	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // only lists names
	}

	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		status = 1
	}

	os.Exit(status)
}

// runTests runs the tests with the parts that they share. The runner sets QUERN_TEST_REMOVE after all tests.
func runTests(m *testing.M) (status int, err error) {
	if common.folder == "" {
		if common.folder, err = os.MkdirTemp("", "quern-e2e-"); err != nil {
			return 1, err
		}

		defer func() { err = errors.Join(err, common.remove(), os.RemoveAll(common.folder)) }()
	}

	if os.Getenv("QUERN_TEST_REMOVE") == "yes" {
		return 0, common.remove()
	}

	for _, media := range []string{"text/html", "application/x-ndjson", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}

	icebergio.Register("s3", openStore)

	flags := []string{"-tags", "scripted"}
	if raceDetector() {
		flags = append(flags, "-race")
	}

	if _, err := common.once("quernd.built", foreverShared, func() ([]byte, error) {
		_, err := stack.Build(context.Background(), common.folder, flags...)

		return nil, err
	}); err != nil {
		return 1, err
	}

	return m.Run(), nil
}

// raceDetector reports whether quernd is built with the race detector. It then needs several times the processor time, so only
// `make torture` sets it.
func raceDetector() bool { return os.Getenv("QUERN_TEST_RACE") == "yes" }

// binary returns the path of the quernd that TestMain builds.
func binary() string { return filepath.Join(common.folder, "quernd") }

// patience is the longest time for an action that is slow only on a busy machine.
const patience = time.Minute

// service is a quernd process.
type service struct {
	url, root, admin string // url is the root with the base path
	databaseURL      string // address for the owner of the database; the process connects as the serving role
	realm            *realm // nil if the test configured an issuer
	place            *place

	t        *testing.T
	settings []string
	written  *output
	changing sync.Mutex
	process  *exec.Cmd
	exited   chan struct{} // closed when the process has ended
}

// start runs quernd. Unless the settings name others, it has a new location in the object store, a new database and the shared
// realm. Settings are NAME=value and replace the defaults; the environment has nothing else. The process ends with the test. It
// must end without an error, and its log must not contain secrets.
func start(t *testing.T, settings ...string) *service {
	t.Helper()

	s := &service{t: t, written: &output{}}

	// Whoever names a location uses one that another service has too, and that does not end with this one.
	if prefix := setting(settings, "QUERN_S3_PREFIX"); prefix != "" {
		s.place = placeAt(t, prefix)
	} else {
		s.place = newPlace(t)
	}

	if s.databaseURL = setting(settings, "QUERN_DATABASE_URL"); s.databaseURL == "" {
		s.databaseURL = migratedDatabase(t)
	}

	if setting(settings, "QUERN_OIDC_ISSUER") == "" {
		s.realm = common.realm(t)
		settings = append(settings, "QUERN_OIDC_ISSUER="+s.realm.issuer())
	}

	// Maintenance creates no snapshots, unless the test is about it.
	if !slices.ContainsFunc(settings, func(setting string) bool { return strings.HasPrefix(setting, "QUERN_MAINTENANCE_") }) {
		settings = append(settings, "QUERN_MAINTENANCE_WORKERS=0")
	}

	secret := rand.Text() + rand.Text()
	// If a name occurs twice, the last value applies. Timeouts are longer than the defaults, so that a busy machine does not fail
	// a test. Tests of a timeout set their own.
	s.settings = slices.Concat([]string{
		"QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0", "QUERN_PUBLIC_URL=http://quern.test",
		"QUERN_SECRET=" + secret, "QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_OIDC_AUDIENCE=quern", "QUERN_OIDC_TIMEOUT=20s",
		"QUERN_DRAIN_DELAY=0s", "QUERN_SANDBOX_IDLE_PROCESSES=1", "QUERN_QUERY_WAIT_TIMEOUT=30s", "QUERN_DATABASE_ACQUIRE_TIMEOUT=15s", "QUERN_S3_TIMEOUT=15s",
		"QUERN_REQUEST_TIMEOUT=1m", "QUERN_SOURCE_KEY=" + rand.Text() + rand.Text(), "QUERN_SOURCE_HOSTS=" + strings.TrimPrefix(s.place.endpoint, "http://"),
		"QUERN_SOURCE_ALLOWED_NETWORKS=127.0.0.0/8",
	}, s.place.settings(), settings)
	s.settings = s.asServing(s.settings)

	t.TempDir() // The first call registers the removal of the folders, so they are removed after the service has ended.
	t.Cleanup(func() {
		if s.running() {
			s.stop()
		}

		if t.Failed() {
			t.Logf("quernd wrote, without the requests that went well:\n%s", wentWell.ReplaceAllString(s.log(), ""))
		}

		require.NotContains(t, s.log(), "WARNING: DATA RACE")
		require.NotContains(t, s.log(), secret, "the log holds QUERN_SECRET")
		require.NotContains(t, s.log(), password(t, s.databaseURL), "the log holds the password of the database")
		require.NotContains(t, s.log(), stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), "the log holds the secret key of the store")
		require.NotContains(t, s.log(), "X-Amz-", "the log holds a presigned address")
		require.Empty(t, tokenPattern.FindString(s.log()), "the log holds a token")
	})

	s.run()
	s.root, s.admin = "http://"+s.listening("api"), "http://"+s.listening("admin")
	s.url = s.root + "/api/v1"
	s.awaitReady()

	if s.realm != nil {
		await(t, "quernd has the issuer's keys", func() bool { return s.ready("ok") })
	}

	return s
}

// setting returns the last value of NAME=value among settings, or an empty text.
func setting(settings []string, name string) (value string) {
	for _, one := range settings {
		if given, found := strings.CutPrefix(one, name+"="); found {
			value = given
		}
	}

	return value
}

func password(t *testing.T, address string) string {
	t.Helper()

	u, err := url.Parse(address)
	require.NoError(t, err)

	secret, given := u.User.Password()
	require.True(t, given)

	return secret
}

// wentWell matches the log lines of successful requests and the regular counts of the job queue. Thousands of them would hide the
// failures.
var wentWell = regexp.MustCompile(`(?m)^.*"level":"INFO","msg":("request".*"status":[23]|"producer: Producer job counts").*\n`)

// tokenPattern matches access tokens of an issuer (signed JSON) and API tokens.
var tokenPattern = regexp.MustCompile(`eyJ[\w-]+\.|quern_[0-9A-Za-z]{33}`)

func (s *service) run() {
	s.t.Helper()

	s.changing.Lock()
	defer s.changing.Unlock()

	s.process = exec.Command(cmp.Or(setting(s.settings, "QUERN_TEST_PROGRAM"), binary()), "serve")
	// Each process has its own work folder.
	s.process.Env = slices.Concat([]string{"QUERN_SANDBOX_DIR=" + s.t.TempDir()}, s.asServing(s.settings))
	s.process.Stderr = s.written
	process, exited := s.process, make(chan struct{})
	s.exited = exited
	require.NoError(s.t, process.Start())

	go func() {
		defer close(exited)

		_ = process.Wait() // the state is read by the function that ended the process
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

// current returns the process that runs or ran last. The lock is needed because a proxy may end the process meanwhile.
func (s *service) current() (*exec.Cmd, <-chan struct{}) {
	s.changing.Lock()
	defer s.changing.Unlock()

	return s.process, s.exited
}

// listening waits for the log line with the address of a listener, and returns the address.
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

// newKey returns a signing key of the realm that the service has read. If the realm belongs to the test, the key is imported and
// used once, so that the service does not fetch it in many requests at the same moment.
func (s *service) newKey() *signer {
	s.t.Helper()

	if shared := s.realm.shared; shared != nil {
		return &signer{realm: s.realm, key: shared.key, keyID: shared.id}
	}

	key := s.realm.importKey(s.t)
	first := call(s.t, http.MethodGet, s.url+"/user/me", key.token("first"), "")
	require.Equal(s.t, http.StatusOK, first.status, first.body)

	return key
}

// kill ends the process at once, as a crash would.
func (s *service) kill() {
	s.t.Helper()

	process, exited := s.current()
	require.NoError(s.t, kill.Process(s.t, process.Process))
	s.awaitEnd(process, exited)
}

// stop ends the process with SIGTERM. It must exit without an error.
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
	s.awaitEnd(process, exited)
}

func (s *service) awaitEnd(process *exec.Cmd, exited <-chan struct{}) {
	s.t.Helper()

	select {
	case <-exited:
	case <-time.After(patience):
		_ = process.Process.Kill()
		require.Fail(s.t, "quernd does not end")
	}
}

// restart runs the service again after stop or kill, with the same addresses and database.
func (s *service) restart() {
	s.t.Helper()
	s.settings = append(s.settings,
		"QUERN_LISTEN_ADDR="+strings.TrimPrefix(s.root, "http://"), "QUERN_ADMIN_ADDR="+strings.TrimPrefix(s.admin, "http://"))
	s.run()
	s.awaitReady()
}

// log returns the log of the process so far.
func (s *service) log() string { return s.written.String() }

// quernd runs a command that must succeed, and returns its output.
func (s *service) quernd(args ...string) string {
	s.t.Helper()

	printed, err := s.command(args...)
	require.NoError(s.t, err, "quernd %s", strings.Join(args, " "))

	return printed
}

// command runs a command on the database of the service. Its error is the text of standard error.
func (s *service) command(args ...string) (printed string, err error) {
	command := exec.CommandContext(s.t.Context(), binary(), args...)
	command.Env = append(s.place.settings(), "QUERN_DATABASE_URL="+s.databaseURL, "QUERN_DATABASE_ACQUIRE_TIMEOUT=15s",
		"QUERN_SOURCE_KEY="+setting(s.settings, "QUERN_SOURCE_KEY"), "QUERN_SOURCE_OTHER_KEY="+setting(s.settings, "QUERN_SOURCE_OTHER_KEY"))
	output, err := command.Output()

	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}

	return string(output), err
}

// exec changes one row of the database directly, for states that no operation creates.
func (s *service) exec(statement string, args ...any) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		tag, err := connection.Exec(ctx, statement, args...)
		require.NoError(s.t, err)
		require.EqualValues(s.t, 1, tag.RowsAffected(), statement)
	})
}

// output collects the output of a process.
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
