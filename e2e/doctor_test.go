package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// finding is one line of the output of `quernd doctor`.
type finding struct{ Status, Check, Found, Fix string }

// patient is the configuration that the doctor checks. Its settings name servers that work.
type patient struct {
	t        *testing.T
	realm    *realm
	place    *place
	token    string // an access token of bob
	settings []string
	secrets  []string // texts that the doctor must not print
}

const doctorOrigin = "https://doctor.test"

func newPatient(t *testing.T) *patient {
	t.Helper()

	p := &patient{t: t, realm: newRealm(t), place: ownBucket(t)}
	database := createDatabase(t)
	mind := newModel(t, func(conversation) any { return map[string]string{"answer": "yes"} })
	key, secret := "sk-"+uuid.NewString(), uuid.NewString()+uuid.NewString()

	p.settings = append([]string{
		"QUERN_PUBLIC_URL=http://quern.test", "QUERN_SECRET=" + secret, "QUERN_DATABASE_URL=" + database, "QUERN_SANDBOX_DIR=" + t.TempDir(),
		"QUERN_OIDC_ISSUER=" + p.realm.issuer(), "QUERN_OIDC_AUDIENCE=quern", "QUERN_OIDC_TIMEOUT=20s", "QUERN_CORS_ORIGINS=" + doctorOrigin,
		"QUERN_MODELS=mind/one", "QUERN_MODEL_MIND_KIND=openai", "QUERN_MODEL_MIND_URL=" + mind.server.URL, "QUERN_MODEL_MIND_LOCAL=true",
		"QUERN_MODEL_MIND_KEY=" + key, "QUERN_TRACING_KIND=phoenix", "QUERN_TRACING_ENDPOINT=" + stack.Env(t, "QUERN_TEST_PHOENIX_URL"),
	}, p.place.settings()...)
	p.secrets = []string{key, secret, password(t, database), stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), "X-Amz-"}

	p.token = p.realm.password("bob")

	migrated, err := p.quernd("migrate")
	require.NoError(t, err, migrated)

	return p
}

// ownBucket returns a location in its own bucket, because allowed origins are a setting of a whole bucket.
func ownBucket(t *testing.T) *place {
	t.Helper()

	own := *newPlace(t)
	own.bucket = "doctor-" + uuid.NewString()

	_, err := own.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &own.bucket})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := own.client.DeleteBucket(context.WithoutCancel(t.Context()), &s3.DeleteBucketInput{Bucket: &own.bucket})
		require.NoError(t, err)
	})

	return &own
}

// quernd runs a command with the settings.
func (p *patient) quernd(args ...string) (printed string, err error) {
	var out bytes.Buffer

	command := exec.CommandContext(p.t.Context(), binary(), args...)
	command.Env = p.settings
	command.Stdout, command.Stderr = &out, &out
	err = command.Run()

	return out.String(), err
}

// examine runs the doctor with some settings replaced. The exit code must be 1 if and only if a check fails, and no secret may be
// printed.
func (p *patient) examine(t *testing.T, settings ...string) (findings []finding) {
	t.Helper()

	command := exec.CommandContext(t.Context(), binary(), "doctor", "--json")
	command.Env = slices.Concat(p.settings, settings)

	var out, wrote bytes.Buffer

	command.Stdout, command.Stderr = &out, &wrote
	err := command.Run()
	require.NoError(t, json.Unmarshal(out.Bytes(), &findings), out.String()+wrote.String())

	failed := false
	for _, f := range findings {
		failed = failed || f.Status == "fail"
	}

	if exit, is := errors.AsType[*exec.ExitError](err); failed {
		require.True(t, is, out.String())
		require.Equal(t, 1, exit.ExitCode())
		require.Contains(t, wrote.String(), "checks failed")
	} else {
		require.NoError(t, err, out.String()+wrote.String())
	}

	for _, secret := range p.secrets {
		require.NotContains(t, out.String()+wrote.String(), secret)
	}

	require.Empty(t, tokenPattern.FindString(out.String()+wrote.String()), "it prints a token")

	return findings
}

// requireFound checks that a check fails with this reason and this remedy.
func requireFound(t *testing.T, findings []finding, check, found, fix string) {
	t.Helper()

	for _, f := range findings {
		if f.Check == check {
			require.Equal(t, "fail", f.Status, "%+v", findings)
			require.Contains(t, f.Found, found)
			require.Contains(t, f.Fix, fix)

			return
		}
	}

	require.Fail(t, "no such check", "%s in %+v", check, findings)
}

// TestDoctor checks that the doctor reports nothing for a working configuration, and the fault and its remedy for each broken
// one.
func TestDoctor(t *testing.T) {
	t.Parallel()

	p := newPatient(t)

	allowed, err := p.quernd("store", "cors", doctorOrigin)
	require.NoError(t, err, allowed)

	for _, f := range p.examine(t, "QUERN_DOCTOR_TOKEN="+p.token) {
		require.Equal(t, "ok", f.Status, "%+v", f)
	}

	misspelt := p.examine(t, "QUERN_SOURCES_HOSTS=store.test")
	require.Equal(t, "warn", misspelt[0].Status, "%+v", misspelt)
	require.Equal(t, "no such setting: QUERN_SOURCES_HOSTS; the most similar is QUERN_SOURCE_HOSTS", misspelt[0].Found)

	require.Empty(t, p.place.objects(), "its objects are gone")
	require.Empty(t, p.place.uploads(), "its uploads are gone")

	printed, err := p.quernd("doctor")
	require.NoError(t, err, printed)
	require.Regexp(t, `(?m)^ok    sandbox          (full|reduced)$`, printed)
	require.Regexp(t, `(?m)^ok    store CORS       pages of https://doctor\.test can upload$`, printed)

	for _, c := range []struct {
		name              string
		settings          func(t *testing.T) []string
		check, found, fix string
	}{
		{"a setting is missing", given("QUERN_OIDC_AUDIENCE="), "settings", "QUERN_OIDC_AUDIENCE is required", "docs/configuration.md"},
		{
			"wrong password of the database", p.database(func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "wrong-password") }),
			"database", "refuses the role or its password", "user and password in QUERN_DATABASE_URL",
		},
		{"no database", p.database(func(u *url.URL) { u.Path = "/nowhere" }), "database", "the database does not exist", "CREATE DATABASE"},
		{"no server", p.database(func(u *url.URL) { u.Host = nobody(t) }), "database", "cannot be reached", "host, port"},
		{"schema not migrated", p.empty, "database schema", "version 0, this program needs", "quernd migrate"},
		{"no right to create", p.powerless, "database rights", "cannot create tables", "GRANT CREATE ON SCHEMA public"},
		{"no rights to tables", p.stranger, "database schema", "cannot read it", "quernd migrate --grant"},
		{"no bucket", given("QUERN_S3_BUCKET=nowhere-" + uuid.NewString()), "object store", "the bucket does not exist", "QUERN_S3_BUCKET"},
		{"wrong secret key", given("QUERN_S3_SECRET_KEY=wrong-secret-key"), "object store", "refuses the signature", "QUERN_S3_SECRET_KEY"},
		{"wrong access key", given("QUERN_S3_ACCESS_KEY=wrong-access-key"), "object store", "does not know the key", "QUERN_S3_ACCESS_KEY"},
		{"public address leads nowhere", given("QUERN_S3_PUBLIC_ENDPOINT=http://" + nobody(t)), "public store", "cannot reach it", "QUERN_S3_PUBLIC_ENDPOINT"},
		{"no CORS", given("QUERN_CORS_ORIGINS=https://elsewhere.test"), "store CORS", "pages of https://elsewhere.test cannot upload", "quernd store cors https://elsewhere.test"},
		{"no issuer", given("QUERN_OIDC_ISSUER=http://" + nobody(t)), "issuer", "cannot be read", "QUERN_OIDC_ISSUER"},
		{"another issuer", given("QUERN_OIDC_ISSUER=" + p.realm.issuer() + "/"), "issuer", "its name is " + p.realm.issuer() + ", the setting is", "exactly that name"},
		{"no key of the algorithm", given("QUERN_OIDC_ALGORITHMS=ES512"), "issuer", "keys signs with ES512", "QUERN_OIDC_ALGORITHMS"},
		{"wrong audience", p.bearing("QUERN_OIDC_AUDIENCE=another"), "token", `contains none of ["another"]`, "QUERN_OIDC_AUDIENCE"},
		{"claim is missing", p.bearing("QUERN_OIDC_USERNAME_CLAIM=nickname"), "token", "the claim nickname is missing", "QUERN_OIDC_USERNAME_CLAIM"},
		{"key of the model refused", answering(http.StatusUnauthorized, `{"error": {"code": "invalid_api_key"}}`), "model mind/one", "status_401 invalid_api_key", "QUERN_MODEL_MIND_KEY"},
		{"model without schemas", chatty, "model mind/one", `does not match the JSON schema: "Yes, of course."`, "structured output"},
		{"provider without schemas", answering(http.StatusBadRequest, `{"error": {"type": "invalid_request_error"}}`), "model mind/one", "refuses a request with a schema", "structured output"},
		{"tracing refuses", refusing, "tracing", "status 401", "QUERN_TRACING_KEY"},
		{"tracing leads nowhere", given("QUERN_TRACING_ENDPOINT=http://" + nobody(t)), "tracing", "cannot be reached", "QUERN_TRACING_ENDPOINT"},
		{"clock is off", p.late, "clock", "differs by 1h0m", "NTP"},
		{"no engine", given("QUERN_SANDBOX_ENGINE=/nowhere/quern-engine"), "sandbox", "/nowhere/quern-engine: no such file", "install the quern-engine"},
		{"another program", given("QUERN_SANDBOX_ENGINE=/bin/true"), "sandbox", "/bin/true", "QUERN_SANDBOX_ENGINE"},
		{"folder cannot be written", unwritable, "sandbox folder", "not a directory", "QUERN_SANDBOX_DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			findings := p.examine(t, c.settings(t)...)
			requireFound(t, findings, c.check, c.found, c.fix)

			failed := 0
			for _, f := range findings {
				if f.Status == "fail" {
					failed++
				}
			}

			require.LessOrEqual(t, failed, 2, "a fault is told once, and once more by what depends on it: %+v", findings)
		})
	}
}

func given(settings ...string) func(*testing.T) []string {
	return func(*testing.T) []string { return settings }
}

// nobody returns an address on which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()

	server := httptest.NewServer(nil)
	defer server.Close()

	return server.Listener.Addr().String()
}

// database changes the address of the database.
func (p *patient) database(change func(*url.URL)) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()

		address, err := url.Parse(strings.TrimPrefix(p.settings[2], "QUERN_DATABASE_URL="))
		require.NoError(t, err)
		change(address)

		return []string{"QUERN_DATABASE_URL=" + address.String()}
	}
}

func (p *patient) empty(t *testing.T) []string {
	t.Helper()

	return []string{"QUERN_DATABASE_URL=" + createDatabase(t)}
}

// powerless is a role that may connect to an empty database and may create nothing in it.
func (p *patient) powerless(t *testing.T) []string {
	t.Helper()

	return []string{"QUERN_DATABASE_URL=" + newRole(t, createDatabase(t))}
}

// stranger is a role without grants in a migrated database.
func (p *patient) stranger(t *testing.T) []string {
	t.Helper()

	return []string{"QUERN_DATABASE_URL=" + newRole(t, strings.TrimPrefix(p.settings[2], "QUERN_DATABASE_URL="))}
}

// newRole creates a role without any rights, and returns the address of the database for it.
func newRole(t *testing.T, database string) string {
	t.Helper()

	name, secret := "e2e_"+strings.ReplaceAll(uuid.NewString(), "-", ""), uuid.NewString()

	run := func(statement string) {
		withDatabase(t, stack.Env(t, "QUERN_TEST_DATABASE_URL"), func(ctx context.Context, connection *pgx.Conn) {
			_, err := connection.Exec(ctx, statement)
			require.NoError(t, err)
		})
	}
	run(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, secret))
	t.Cleanup(func() { run("DROP ROLE " + name) })

	address, err := url.Parse(database)
	require.NoError(t, err)

	address.User = url.UserPassword(name, secret)

	return address.String()
}

// bearing adds a token to the settings.
func (p *patient) bearing(settings ...string) func(*testing.T) []string {
	return given(append(settings, "QUERN_DOCTOR_TOKEN="+p.token)...)
}

// answering is a model provider that returns the same response to every request.
func answering(status int, body string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()

		return []string{"QUERN_MODEL_MIND_URL=" + alike(t, status, body)}
	}
}

func alike(t *testing.T, status int, body string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)

	return server.URL
}

func refusing(t *testing.T) []string {
	t.Helper()

	return []string{"QUERN_TRACING_ENDPOINT=" + alike(t, http.StatusUnauthorized, "")}
}

// chatty is a model that ignores the requested schema.
func chatty(t *testing.T) []string {
	t.Helper()

	return []string{"QUERN_MODEL_MIND_URL=" + newModel(t, func(conversation) any { return "Yes,\n of course." }).server.URL}
}

// late is the issuer behind a proxy whose clock is an hour behind.
func (p *patient) late(t *testing.T) []string {
	t.Helper()

	to, err := url.Parse(stack.Env(t, "QUERN_TEST_KEYCLOAK_URL"))
	require.NoError(t, err)

	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Set("Date", time.Now().Add(-time.Hour-30*time.Second).UTC().Format(http.TimeFormat))

			return nil
		},
	})
	t.Cleanup(server.Close)

	return []string{"QUERN_OIDC_ISSUER=" + p.realm.through(server.Listener.Addr().String()).issuer()}
}

// unwritable is a folder below a file, because root can write everywhere else.
func unwritable(t *testing.T) []string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	return []string{"QUERN_SANDBOX_DIR=" + filepath.Join(file, "below")}
}
