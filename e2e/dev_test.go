package e2e

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// development is a `quernd dev` process with its own folder.
type development struct {
	t      *testing.T
	cli    *cli
	folder string
	flags  []string

	process *exec.Cmd
	written *output
	exited  chan struct{}
}

func newDevelopment(t *testing.T) *development {
	t.Helper()

	// If the test runs as root, PostgreSQL runs as another user, which must be able to enter the folder.
	above := t.TempDir()
	require.NoError(t, os.Chmod(above, 0o711))
	require.NoError(t, os.Chmod(filepath.Dir(above), 0o711))

	d := &development{t: t, cli: newCLI(t), folder: filepath.Join(above, "dev")}
	d.flags = []string{"dev", "--dir", d.folder, "--port", free(t), "--issuer-port", free(t)}

	t.Cleanup(func() {
		if d.process != nil && t.Failed() {
			t.Logf("quernd dev wrote:\n%s", d.written)
		}

		for _, id := range d.processes() {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}

		await(t, "they are gone", func() bool { return len(d.processes()) == 0 })
	})

	return d
}

func free(t *testing.T) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)

	return port
}

// toolsFolder returns the folder in which make installs tools.
func toolsFolder(t *testing.T) string {
	t.Helper()

	if given := os.Getenv("QUERN_TOOLS_DIR"); given != "" {
		return given
	}

	cache, err := os.UserCacheDir()
	require.NoError(t, err)

	return filepath.Join(cache, "quern", "tools")
}

// command returns a quernd command with the flags. Its PATH has the object store that `make stack` installs.
func (d *development) command(flags ...string) *exec.Cmd {
	d.t.Helper()
	quernBinary() // quernd looks for quern in its own folder

	stores, err := filepath.Glob(filepath.Join(toolsFolder(d.t), "versitygw-*"))
	require.NoError(d.t, err)
	require.NotEmpty(d.t, stores, "run `make stack`")

	command := exec.Command(binary(), flags...)
	command.Env = []string{"QUERN_HOME=" + d.cli.home, "HOME=" + d.cli.home, "PATH=" + stores[0] + ":" + os.Getenv("PATH")}

	return command
}

// start starts quernd dev and returns when it has printed its commands.
func (d *development) start() {
	d.t.Helper()

	d.written, d.exited = &output{}, make(chan struct{})
	d.process = d.command(d.flags...)
	d.process.Stdout, d.process.Stderr = d.written, d.written
	require.NoError(d.t, d.process.Start())

	process, exited := d.process, d.exited

	go func() {
		defer close(exited)

		_ = process.Wait() // the exit state is read by the function that ended the process
	}()

	// The first start creates a database cluster and loads the sample.
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline) && !strings.Contains(d.written.String(), "Press Ctrl-C to stop"); {
		select {
		case <-exited:
			deadline = time.Now()
		case <-time.After(20 * time.Millisecond):
		}
	}

	require.Contains(d.t, d.written.String(), "Press Ctrl-C to stop", "it ended or is slow")
}

// end sends a signal, and returns how long the process took to end.
func (d *development) end(signal syscall.Signal) time.Duration {
	d.t.Helper()

	began := time.Now()

	require.NoError(d.t, d.process.Process.Signal(signal))

	select {
	case <-d.exited:
	case <-time.After(patience):
		require.Fail(d.t, "quernd dev does not end")
	}

	return time.Since(began)
}

// processes returns the ids of the processes that have the folder in their command lines: quernd dev, the object store and
// PostgreSQL.
func (d *development) processes() (ids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(string(content), d.folder) {
			ids = append(ids, id)
		}
	}

	return ids
}

// printedCommands returns the printed commands that the user is to copy, without the login.
func (d *development) printedCommands() (commands []string) {
	for _, match := range regexp.MustCompile(`(?m)^  (\S*quern .+)$`).FindAllStringSubmatch(d.written.String(), -1) {
		if !strings.Contains(match[1], " login ") {
			commands = append(commands, match[1])
		}
	}

	return commands
}

// shell runs a printed command.
func (d *development) shell(line string) string {
	d.t.Helper()

	command := exec.CommandContext(d.t.Context(), "sh", "-c", line)
	command.Env = d.cli.env
	said, err := command.CombinedOutput()
	require.NoError(d.t, err, "%s\n%s", line, said)

	return string(said)
}

func (d *development) url() string {
	return regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(d.written.String())
}

// TestDev runs one command, then the printed commands, up to an answer from an uploaded file. It checks that quernd dev can be
// started again however it ended.
func TestDev(t *testing.T) {
	t.Parallel()

	d := newDevelopment(t)
	d.start()

	commands := d.printedCommands()
	require.Len(t, commands, 6)
	require.Contains(t, d.shell(commands[0]), "Loaded 269 rows")

	for i, part := range []string{"Postbus    126", "18", "10768.6", "Espresso Machine", "9"} {
		require.Contains(t, d.shell(commands[i+1]), part, commands[i+1])
	}

	d.signInPage()
	d.otherPeople()
	d.documentedToken()
	d.secondStart()

	// A signal ends everything in order and within 10 seconds.
	require.Less(t, d.end(syscall.SIGINT), 10*time.Second)
	require.True(t, d.process.ProcessState.Success(), d.process.ProcessState.String())
	require.Empty(t, d.processes())
	require.Contains(t, d.file("postgres.log"), "database system is shut down")
	require.Contains(t, d.file("quernd.log"), "msg=stopped")
	require.NotContains(t, d.file("quernd.log"), "level=ERROR")

	// All data and the sign-in still exist, and the sample is not loaded again.
	d.start()
	require.NotContains(t, d.written.String(), "Loading the sample")
	require.Contains(t, d.shell(commands[1]), "Postbus    126")

	// A killed quernd dev leaves its servers running. The next start ends them.
	d.end(syscall.SIGKILL)

	left := d.processes()
	require.GreaterOrEqual(t, len(left), 2)
	d.start()
	require.Contains(t, d.shell(commands[1]), "Postbus    126")

	for _, id := range left {
		require.NotContains(t, d.processes(), id)
	}

	// Everything is killed, and the process id in PostgreSQL's file belongs to another process.
	d.end(syscall.SIGKILL)

	for _, id := range d.processes() {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}

	await(t, "they are gone", func() bool { return len(d.processes()) == 0 })
	d.claimPostgres(os.Getpid())
	d.start()
	require.Contains(t, d.shell(commands[1]), "Postbus    126")

	// The end of a server that quernd dev needs ends quernd dev, with the reason.
	store, err := strconv.Atoi(strings.TrimSpace(d.file("store/pid")))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(store, syscall.SIGKILL))

	select {
	case <-d.exited:
	case <-time.After(patience):
		require.Fail(t, "it does not notice")
	}

	require.Equal(t, 1, d.process.ProcessState.ExitCode())
	require.Contains(t, d.written.String(), "versitygw has stopped")
	require.Empty(t, d.processes())
}

func (d *development) file(name string) string {
	d.t.Helper()

	content, err := os.ReadFile(filepath.Join(d.folder, name))
	require.NoError(d.t, err)

	return string(content)
}

// claimPostgres replaces the process id in PostgreSQL's file.
func (d *development) claimPostgres(id int) {
	d.t.Helper()

	files, err := filepath.Glob(filepath.Join(d.folder, "postgres", "*", "postmaster.pid"))
	require.NoError(d.t, err)
	require.Len(d.t, files, 1)

	content, err := os.ReadFile(files[0])
	require.NoError(d.t, err)

	_, rest, _ := strings.Cut(string(content), "\n")
	require.NoError(d.t, os.WriteFile(files[0], []byte(strconv.Itoa(id)+"\n"+rest), 0o600))
}

// otherPeople signs in two other users, one by each flow.
func (d *development) otherPeople() {
	d.t.Helper()

	for user, flow := range map[string]string{"bob": "device", "carol": "browser"} {
		c := newCLI(d.t)
		said := c.login(func(b *browser, address string) {
			page, at := b.open(b.get(address))
			require.Contains(d.t, page, "no passwords")

			page, _ = b.submit(page, at, url.Values{"username": {user}})
			require.Contains(d.t, page, "close this window")
		}, d.url(), "--flow", flow)
		require.Equal(d.t, "Signed in at "+d.url()+" as "+user+".\n", said.out)
		require.Contains(d.t, c.run("whoami"), user+"@example.com")
	}
}

// documentedToken gets a token as api.md describes it, with curl alone.
func (d *development) documentedToken() {
	d.t.Helper()

	content, err := os.ReadFile("../docs/api.md")
	require.NoError(d.t, err)

	ran := 0

	for _, block := range docBlocks(d.t, string(content)) {
		if block.info == "sh run=TestDev" {
			ran++
			command := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(block.text, "http://127.0.0.1:8080", d.url()))
			command.Dir, command.Env = d.t.TempDir(), append(os.Environ(), "NO_PROXY=127.0.0.1")
			said, err := command.CombinedOutput()
			require.NoError(d.t, err, "%s", said)
			require.Equal(d.t, *block.prints, string(said))
		}
	}

	require.Equal(d.t, 1, ran)
}

// secondStart checks that a second quernd dev gets neither the folder nor the ports, and that its error says what to do.
func (d *development) secondStart() {
	d.t.Helper()

	said, err := d.command(d.flags...).CombinedOutput()
	require.Error(d.t, err)
	require.Contains(d.t, string(said), "already runs on "+d.folder)

	elsewhere := slices.Clone(d.flags)
	elsewhere[2] = filepath.Join(filepath.Dir(d.folder), "another")

	said, err = d.command(elsewhere...).CombinedOutput()
	require.Error(d.t, err)
	require.Contains(d.t, string(said), "port "+elsewhere[4]+" cannot be used")
	require.Contains(d.t, string(said), "port "+elsewhere[6]+" cannot be used")
	require.Contains(d.t, string(said), "--issuer-port")
}

// TestDevIssuer checks that all servers of `quernd dev` listen on loopback only, and that `quernd serve` has no issuer.
func TestDevIssuer(t *testing.T) {
	t.Parallel()

	d := newDevelopment(t)
	d.start()

	var open []netip.AddrPort

	for _, id := range d.processes() {
		open = append(open, listeners(t, id)...)
	}

	require.GreaterOrEqual(t, len(open), 5, "the API, its metrics, the issuer, the object store, PostgreSQL")

	for _, at := range open {
		require.True(t, at.Addr().IsLoopback(), at.String())
	}

	issuer := "http://127.0.0.1:" + d.flags[6]

	for host, status := range map[string]int{"": http.StatusOK, "evil.example": http.StatusMisdirectedRequest, "evil.example:" + d.flags[6]: http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+"/.well-known/openid-configuration", nil)
		require.NoError(t, err)

		request.Host = host

		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, status, answer.StatusCode, host)
	}

	s := start(t)
	process, _ := s.current()
	require.Len(t, listeners(t, process.Process.Pid), 2, "the API and its metrics")

	for _, path := range []string{"/.well-known/openid-configuration", "/jwks", "/authorize", "/device", "/activate", "/token"} {
		require.Equal(t, http.StatusNotFound, plainStatus(t, s.root+path), path)
	}

	without := exec.CommandContext(t.Context(), binary(), "serve")
	without.Env = slices.DeleteFunc(slices.Clone(s.settings), func(setting string) bool { return strings.HasPrefix(setting, "QUERN_OIDC_ISSUER=") })
	said, err := without.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "QUERN_OIDC_ISSUER is required")
}

func plainStatus(t *testing.T, address string) int {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)

	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())

	return answer.StatusCode
}

// listeners returns the TCP addresses on which a process listens.
func listeners(t *testing.T, id int) (list []netip.AddrPort) {
	t.Helper()

	sockets := map[string]bool{}

	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", id))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}

	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		require.NoError(t, err)

		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != "0A" || !sockets[fields[9]] { // 0A is the state "listening"
				continue
			}

			list = append(list, kernelAddress(t, fields[1]))
		}
	}

	return list
}

// kernelAddress parses an address in the kernel's format: words of four bytes, each in the byte order of the machine.
func kernelAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()

	address, port, _ := strings.Cut(text, ":")

	bytes, err := hex.DecodeString(address)
	require.NoError(t, err)

	for i := 0; i < len(bytes); i += 4 {
		slices.Reverse(bytes[i : i+4])
	}

	parsed, valid := netip.AddrFromSlice(bytes)
	require.True(t, valid)

	number, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)

	return netip.AddrPortFrom(parsed.Unmap(), uint16(number))
}
