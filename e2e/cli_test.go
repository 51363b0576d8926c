package e2e

import (
	"bytes"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quernBinary returns the path of the command-line client, built as it is released.
var quernBinary = sync.OnceValue(func() string { //nolint:gochecknoglobals // built once
	path, err := common.program("quern", []string{"CGO_ENABLED=0"}, "-trimpath", "quern.dev/quern/cmd/quern")
	if err != nil {
		panic(err)
	}

	return path
})

// cli is a user of the command line with a separate home folder.
type cli struct {
	t    *testing.T
	home string
	env  []string
}

// printed is the output and the exit code of a command.
type printed struct {
	out, err string
	code     int
}

func newCLI(t *testing.T, env ...string) *cli {
	t.Helper()

	home := t.TempDir()

	return &cli{t: t, home: home, env: append([]string{"QUERN_HOME=" + home, "HOME=" + home, "TZ=UTC", "PATH=" + os.Getenv("PATH")}, env...)}
}

// signedIn returns a user who authenticates with an API token in the environment, as programs do.
func (s *service) signedIn(t *testing.T, bearer string) *cli {
	t.Helper()

	return newCLI(t, "QUERN_SERVER="+s.root, "QUERN_TOKEN="+bearer)
}

func (c *cli) command(args ...string) *exec.Cmd {
	command := exec.CommandContext(c.t.Context(), quernBinary(), args...)
	command.Env = c.env

	return command
}

// try runs a command with empty standard input.
func (c *cli) try(args ...string) printed { return c.feed("", args...) }

func (c *cli) feed(input string, args ...string) (got printed) {
	c.t.Helper()

	var out, err bytes.Buffer

	command := c.command(args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &err

	if failed := command.Run(); failed != nil {
		exit, is := errors.AsType[*exec.ExitError](failed)
		require.True(c.t, is, failed)

		got.code = exit.ExitCode()
	}

	got.out, got.err = out.String(), err.String()

	return got
}

// run runs a command that must succeed, and returns its output.
func (c *cli) run(args ...string) string {
	c.t.Helper()

	got := c.try(args...)
	require.Zero(c.t, got.code, "quern %s\n%s%s", strings.Join(args, " "), got.out, got.err)

	return got.out
}

// browser follows the pages of Keycloak. It keeps cookies itself: they are Secure, which browsers accept on loopback and Go's
// cookie jar does not.
type browser struct {
	t       *testing.T
	cookies map[string]string
}

func (b *browser) open(request *http.Request) (page string, at *url.URL) {
	b.t.Helper()

	for range 10 {
		for name, value := range b.cookies {
			request.AddCookie(&http.Cookie{Name: name, Value: value})
		}

		response, err := http.DefaultTransport.RoundTrip(request)
		require.NoError(b.t, err)

		for _, cookie := range response.Cookies() {
			b.cookies[cookie.Name] = cookie.Value
		}

		body, err := io.ReadAll(response.Body)
		require.NoError(b.t, err)
		require.NoError(b.t, response.Body.Close())

		if response.StatusCode != http.StatusFound {
			require.Equal(b.t, http.StatusOK, response.StatusCode, string(body))

			return string(body), request.URL
		}

		next, err := response.Location()
		require.NoError(b.t, err)

		request = b.get(next.String())
	}

	require.Fail(b.t, "too many redirects")

	return "", nil
}

func (b *browser) get(address string) *http.Request {
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	require.NoError(b.t, err)

	return request
}

// submit submits the form of a page.
func (b *browser) submit(page string, at *url.URL, fields url.Values) (string, *url.URL) {
	b.t.Helper()

	action := formAction.FindStringSubmatch(page)
	require.NotNil(b.t, action, "no form: %s", page)

	for _, hidden := range regexp.MustCompile(`<input type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		fields.Set(hidden[1], html.UnescapeString(hidden[2]))
	}

	address, err := at.Parse(html.UnescapeString(action[1]))
	require.NoError(b.t, err)

	return b.open(newForm(b.t, address.String(), fields))
}

// signIn opens the address that the command printed and signs in there.
func (b *browser) signIn(address, user string) (page string, at *url.URL) {
	b.t.Helper()

	page, at = b.open(b.get(address))

	return b.submit(page, at, url.Values{"username": {user}, "password": {user + "-pw"}})
}

// login runs `quern login` and calls do with the address that the command prints.
func (c *cli) login(do func(b *browser, address string), args ...string) printed {
	c.t.Helper()

	var out bytes.Buffer

	written := &output{}
	command := c.command(append([]string{"login"}, args...)...)
	command.Stdout, command.Stderr = &out, written
	require.NoError(c.t, command.Start())

	var address string

	await(c.t, "the address is there", func() bool {
		address = regexp.MustCompile(`(?m)^  (http\S+)$`).FindString(written.String())

		return address != ""
	})
	do(&browser{c.t, map[string]string{}}, strings.TrimSpace(address))
	require.NoError(c.t, command.Wait(), written.String())

	return printed{out: out.String(), err: written.String()}
}

// TestLogin checks that users can sign in by both flows with the Keycloak of the stack, that an expired token is renewed, and
// that only the user can read the file of credentials.
func TestLogin(t *testing.T) {
	t.Parallel()

	s := start(t)
	c := newCLI(t)

	got := c.try("whoami")
	require.Equal(t, 3, got.code)
	require.Contains(t, got.err, "quern login https://")
	require.Equal(t, 2, c.try("login").code)
	require.Contains(t, c.try("login", "http://192.0.2.1").err, "is not encrypted")

	device := c.login(func(b *browser, address string) {
		page, at := b.signIn(address, "ada")
		b.submit(page, at, url.Values{"accept": {"Yes"}})
	}, s.root)
	require.Equal(t, "Signed in at "+s.root+" as ada.\n", device.out)
	require.Contains(t, c.run("whoami"), "ada@quern.test")

	kept := filepath.Join(c.home, "credentials.json")
	info, err := os.Stat(kept)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// An expired token is renewed with the refresh token, once.
	content, err := os.ReadFile(kept)
	require.NoError(t, err)

	expired := regexp.MustCompile(`"expiresAt": "[^"]*"`).ReplaceAll(content, []byte(`"expiresAt": "2020-01-01T00:00:00Z"`))
	expired = regexp.MustCompile(`"accessToken": "[^"]*"`).ReplaceAll(expired, []byte(`"accessToken": "worthless"`))
	require.NoError(t, os.WriteFile(kept, expired, 0o600))
	require.Contains(t, c.run("whoami"), "ada@quern.test")
	renewed, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.NotContains(t, string(renewed), "worthless")

	require.NoError(t, os.WriteFile(kept, regexp.MustCompile(`"refreshToken": "[^"]*"`).ReplaceAll(expired, []byte(`"refreshToken": "no"`)), 0o600))
	got = c.try("whoami")
	require.Equal(t, 3, got.code)
	require.Contains(t, got.err, "Sign in again")

	// The code flow redirects to this machine. A forged redirect is refused.
	browsed := newCLI(t)
	browsed.login(func(b *browser, address string) {
		sent, err := url.Parse(address)
		require.NoError(t, err)

		forged, err := http.Get(sent.Query().Get("redirect_uri") + "?code=x&state=y")
		require.NoError(t, err)
		require.NoError(t, forged.Body.Close())
		require.Equal(t, http.StatusNotFound, forged.StatusCode)

		page, _ := b.signIn(address, "bob")
		require.Contains(t, page, "close this window")
	}, s.root, "--flow", "browser")
	require.Contains(t, browsed.run("whoami"), "analysts")

	// A token in the environment takes precedence over the sign-in, and a flag over both.
	token := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.realm.password("eve"), `{"name": "cli"}`))
	require.Contains(t, browsed.run("whoami", "--token", token), "eve@quern.test")

	browsed.env = append(browsed.env, "QUERN_TOKEN="+token)
	require.Contains(t, browsed.run("whoami"), "eve@quern.test")

	require.Contains(t, browsed.run("logout"), "Signed out")
	content, err = os.ReadFile(filepath.Join(browsed.home, "credentials.json"))
	require.NoError(t, err)
	require.NotContains(t, string(content), "eyJ")

	requireQuickStart(t, browsed)
}

// requireQuickStart checks that the program is small and starts quickly. The best of ten starts counts, because other tests run
// at the same time.
func requireQuickStart(t *testing.T, c *cli) {
	t.Helper()

	best := time.Hour

	for range 10 {
		began := time.Now()

		c.run("version")

		best = min(best, time.Since(began))
	}

	require.Less(t, best, 50*time.Millisecond)

	info, err := os.Stat(quernBinary())
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(25_000_000))
	t.Logf("starts in %s, has %d bytes", best, info.Size())
}
