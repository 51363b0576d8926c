package config_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/config"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md")

const reference = "../../docs/configuration.md"

func environment(pairs ...string) func(string) (string, bool) {
	values := map[string]string{
		"QUERN_PUBLIC_URL":    "https://quern.test/",
		"QUERN_SECRET":        strings.Repeat("s", 32),
		"QUERN_DATABASE_URL":  "postgres://quern:hunter2@127.0.0.1/quern",
		"QUERN_OIDC_ISSUER":   "https://issuer.test/",
		"QUERN_OIDC_AUDIENCE": "quern",
		"QUERN_S3_ENDPOINT":   "https://s3.test",
		"QUERN_S3_BUCKET":     "quern",
		"QUERN_S3_ACCESS_KEY": "access",
		"QUERN_S3_SECRET_KEY": "secret",
	}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}

	return func(name string) (string, bool) {
		value, ok := values[name]

		return value, ok
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()

	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(config.Reference()), 0o600))
	}

	page, err := os.ReadFile(reference)
	require.NoError(t, err)
	require.Equal(t, config.Reference(), string(page), "run make generate")
}

// TestReferenceBeginsWithWhatIsNeeded checks that the first table has about a dozen settings, that the example sets all of
// them, and that the service accepts the example.
func TestReferenceBeginsWithWhatIsNeeded(t *testing.T) {
	t.Parallel()

	first, _, found := strings.Cut(config.Reference(), "\n## Tuning\n")
	require.True(t, found)

	var needed, given []string

	for _, row := range regexp.MustCompile("(?m)^\\| `(QUERN_[A-Z0-9_]+)` \\|").FindAllStringSubmatch(first, -1) {
		needed = append(needed, row[1])
	}

	folder, example := t.TempDir(), map[string]string{}

	for _, line := range regexp.MustCompile(`(?m)^(QUERN_[A-Z0-9_]+)=(.+)$`).FindAllStringSubmatch(first, -1) {
		name, value := line[1], line[2]
		if strings.HasSuffix(name, "_FILE") {
			value = filepath.Join(folder, filepath.Base(value))
			require.NoError(t, os.WriteFile(value, []byte(strings.Repeat("s", 32)+"\n"), 0o600))
		}

		example[name] = value
		given = append(given, strings.TrimSuffix(name, "_FILE"))
	}

	require.ElementsMatch(t, needed, given)
	require.Len(t, needed, 12)

	_, err := config.Read[config.Serve](func(name string) (string, bool) {
		value, ok := example[name]

		return value, ok
	})
	require.NoError(t, err)
}

// TestNoLimitOfA2A checks that no setting is about A2A alone: the limits of REST apply to both.
func TestNoLimitOfA2A(t *testing.T) {
	t.Parallel()

	settings := regexp.MustCompile("(?m)^\\| `(QUERN_[A-Z0-9_]+)` \\|").FindAllString(config.Reference(), -1)
	require.Greater(t, len(settings), 50)
	require.NotContains(t, strings.Join(settings, " "), "A2A")
}

func TestDefaultsAndValues(t *testing.T) {
	t.Parallel()

	got, err := config.Read[config.Serve](environment(
		"QUERN_TRUSTED_PROXIES", "10.0.0.0/8, ::1/128",
		"QUERN_MAX_BODY", "2MiB",
		"QUERN_RATE_LIMIT", "2.5",
		"QUERN_OIDC_PROXY", "http://127.0.0.1:3128",
	))

	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", got.Server.ListenAddr)
	require.Equal(t, config.Origin("https://quern.test"), got.Server.PublicURL)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, got.Server.TrustedProxies)
	require.Equal(t, config.Bytes(2<<20), got.Server.MaxBody)
	require.InDelta(t, 2.5, got.Server.RateLimit, 0)
	require.Equal(t, config.URL("http://127.0.0.1:3128"), got.OIDC.Proxy)
	require.Equal(t, 60*time.Second, got.OIDC.ClockSkew)
	require.Equal(t, config.URL("https://issuer.test/"), got.OIDC.Issuer, "some issuers end with a slash")
	require.Equal(t, "postgres://quern:hunter2@127.0.0.1/quern", got.Database.URL.Reveal())
}

func TestEveryProblemIsNamedAtOnceWithoutItsValue(t *testing.T) {
	t.Parallel()

	_, err := config.Read[config.Serve](environment(
		"QUERN_SECRET", "too-short-5ecret",
		"QUERN_PUBLIC_URL", "https://leak-1/path",
		"QUERN_RATE_BURST", "leak-2",
		"QUERN_REQUEST_TIMEOUT", "-1s",
		"QUERN_MAX_BODY", "leak-3",
		"QUERN_TRUSTED_PROXIES", "leak-4",
		"QUERN_DATABASE_POOLER", "leak-5",
		"QUERN_LOG_LEVEL", "leak-6",
		"QUERN_OIDC_AUDIENCE", "",
	))

	require.Error(t, err)

	for _, name := range []string{
		"QUERN_SECRET must have at least 32", "QUERN_PUBLIC_URL", "QUERN_RATE_BURST", "QUERN_REQUEST_TIMEOUT",
		"QUERN_MAX_BODY", "QUERN_TRUSTED_PROXIES", "QUERN_DATABASE_POOLER", "QUERN_LOG_LEVEL", "QUERN_OIDC_AUDIENCE is required",
	} {
		require.ErrorContains(t, err, name)
	}

	require.NotContains(t, err.Error(), "leak")
	require.NotContains(t, err.Error(), "5ecret")
}

func TestValueFromFile(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(path, []byte("postgres://from-file/quern\n"), 0o600))

	_, err := config.Read[config.Operate](environment("QUERN_DATABASE_URL_FILE", path))
	require.ErrorContains(t, err, "QUERN_DATABASE_URL is set twice")

	got, err := config.Read[config.Operate](func(name string) (string, bool) {
		return path, name == "QUERN_DATABASE_URL_FILE"
	})
	require.NoError(t, err)
	require.Equal(t, "postgres://from-file/quern", got.Database.URL.Reveal())

	_, err = config.Read[config.Operate](func(name string) (string, bool) {
		return path + "-absent", name == "QUERN_DATABASE_URL_FILE"
	})
	require.ErrorContains(t, err, "QUERN_DATABASE_URL cannot be read from its file")
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()

	holder := struct {
		Secret  config.Secret
		Pointer *config.Secret
	}{Secret: config.NewSecret("hunter2")}
	holder.Pointer = &holder.Secret

	asJSON, err := json.Marshal(holder)
	require.NoError(t, err)

	var log strings.Builder

	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", holder.Secret, "holder", holder)

	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x %d", holder.Secret, holder.Secret, holder.Secret, holder.Secret, holder.Secret, holder.Secret, holder.Secret),
		fmt.Sprintf("%v %+v %#v", holder, holder, holder), string(asJSON), log.String(), fmt.Sprintf("%x", "hunter2")[:0],
	} {
		require.NotContains(t, text, "hunter2")
		require.NotContains(t, text, "68756e74657232")
	}
}

func TestModels(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("sk-1\n"), 0o600))

	got, err := config.Read[config.Serve](environment(
		"QUERN_MODELS", "far-away/gpt-x, near/meta/llama-3, far-away/gpt-y",
		"QUERN_MODEL_FAR_AWAY_KIND", "openai", "QUERN_MODEL_FAR_AWAY_KEY_FILE", file, "QUERN_MODEL_FAR_AWAY_EXPOSURE", "values",
		"QUERN_MODEL_NEAR_KIND", "openai", "QUERN_MODEL_NEAR_URL", "http://127.0.0.1:8000/v1", "QUERN_MODEL_NEAR_LOCAL", "true",
		"QUERN_MODEL_NEAR_TIMEOUT", "10m", "QUERN_MODEL_NEAR_CONCURRENCY", "1",
	))
	require.NoError(t, err)
	require.Equal(t, []config.NamedProvider{
		{Name: "far-away", Models: []string{"gpt-x", "gpt-y"}, Provider: config.Provider{
			Kind: "openai", Key: config.NewSecret("sk-1"), Exposure: "values", Concurrency: 8, Timeout: 2 * time.Minute,
		}},
		{Name: "near", Models: []string{"meta/llama-3"}, Provider: config.Provider{
			Kind: "openai", URL: "http://127.0.0.1:8000/v1", Local: true, Concurrency: 1, Timeout: 10 * time.Minute,
		}},
	}, got.Model.Providers)

	_, err = config.Read[config.Serve](environment(
		"QUERN_MODELS", "a/x,b/x,c/x,d/x", "QUERN_MODEL_A_KIND", "openai", "QUERN_MODEL_B_KIND", "leak", "QUERN_MODEL_C_KIND", "openai",
		"QUERN_MODEL_C_LOCAL", "true"))
	require.ErrorContains(t, err, "QUERN_MODEL_A_EXPOSURE is required, because a is not local")
	require.ErrorContains(t, err, "QUERN_MODEL_A_LOCAL=true")
	require.ErrorContains(t, err, "QUERN_MODEL_B_KIND must be one of")
	require.ErrorContains(t, err, "QUERN_MODEL_C_URL is required")
	require.ErrorContains(t, err, "QUERN_MODEL_D_KIND is required")
	require.NotContains(t, err.Error(), "leak")

	for _, wrong := range []string{"gpt-x", "/gpt-x", "far/", "Far/x", "far_away/x"} {
		_, err = config.Read[config.Serve](environment("QUERN_MODELS", wrong))
		require.ErrorContains(t, err, "QUERN_MODELS is not a list")
	}

	require.Equal(t, []string{"QUERN_MODEL_FAR_KYE", "QUERN_MODEL_NEAR_KEY"}, config.Unknown([]string{
		"QUERN_MODELS=far/x", "QUERN_MODEL_FAR_KIND=openai", "QUERN_MODEL_FAR_KEY_FILE=/x", "QUERN_MODEL_FAR_KYE=x", "QUERN_MODEL_NEAR_KEY=x",
	}))
}

func TestUnknownVariables(t *testing.T) {
	t.Parallel()

	require.Equal(t, []string{"QUERN_OIDC_ISUER", "QUERN_RUN_SCRIPTED"}, config.Unknown([]string{
		"PATH=/bin", "QUERN_OIDC_ISUER=x", "QUERN_RUN_SCRIPTED=true", "QUERN_SECRET_FILE=/x", "QUERN_TEST_DATABASE_URL=x", "QUERN_STACK_DIR=x", "QUERN_TOKEN=x",
		"QUERN_CONNECTION_SECRET_NIGHTLY=x",
	}))
	require.Equal(t, "QUERN_OIDC_ISSUER", config.Nearest("QUERN_OIDC_ISUER", nil))
	require.Equal(t, "QUERN_SOURCE_HOSTS", config.Nearest("QUERN_SOURCES_HOSTS", nil))
	require.Empty(t, config.Nearest("QUERN_SOMETHING_THAT_NOBODY_CALLS_LIKE_THIS", nil))
}
