package internal_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/job"
)

func content(t *testing.T, path string) string {
	t.Helper()

	text, err := os.ReadFile("../" + path)
	require.NoError(t, err)

	return string(text)
}

// found returns what a pattern matches in a file; all matches must be the same.
func found(t *testing.T, path, pattern string) string {
	t.Helper()

	var values []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(content(t, path), -1) {
		values = append(values, match[1])
	}

	values = slices.Compact(values)
	require.Len(t, values, 1, "%s: %s", path, pattern)

	return values[0]
}

// TestImages checks that deploy/ uses the versions that everything else was tested with.
func TestImages(t *testing.T) {
	t.Parallel()

	const dockerfile, compose = "deploy/Dockerfile", "deploy/compose.yaml"

	require.Equal(t, found(t, "go.mod", `(?m)^go (\S+)$`), found(t, dockerfile, `golang:([\d.]+)-`))
	require.Equal(t, found(t, dockerfile, `golang:[\d.]+-(\w+)`), found(t, dockerfile, `debian:(\w+)-slim`))
	require.Equal(t, found(t, "stack/versitygw", `(?m)^VERSION=(\S+)`), found(t, dockerfile, `cmd/versitygw@(\S+)`))
	require.Equal(t, found(t, "stack/keycloak", `(?m)^VERSION=(\S+)`), found(t, compose, `keycloak/keycloak:(\S+)`))
	require.Equal(t, found(t, "stack/phoenix", `(?m)^VERSION=(\S+)`), found(t, compose, `phoenix:version-(\S+)`))
}

// variable matches what compose replaces: ${NAME:-default} and ${NAME:?message}.
var variable = regexp.MustCompile(`\$\{(\w+):([-?])([^}]*)\}`)

// TestCompose checks, as far as possible without compose, that the file is valid, and that its settings exist.
func TestCompose(t *testing.T) {
	t.Parallel()

	var file struct {
		Name     string
		Services map[string]struct {
			Image         string
			Build         struct{ Context, Dockerfile, Target string }
			Command       []string
			DependsOn     map[string]struct{ Condition string } `yaml:"depends_on"`
			Environment   map[string]string
			EnvFile       []map[string]string `yaml:"env_file"`
			Healthcheck   map[string]any
			Profiles      []string
			Ports         []string
			Volumes       []string
			Tmpfs         []string
			ReadOnly      bool     `yaml:"read_only"`
			CapDrop       []string `yaml:"cap_drop"`
			SecurityOpt   []string `yaml:"security_opt"`
			NetworkMode   string   `yaml:"network_mode"`
			StopGrace     string   `yaml:"stop_grace_period"`
			RestartPolicy string   `yaml:"restart"`
		}
		Volumes map[string]any
	}

	decoder := yaml.NewDecoder(strings.NewReader(content(t, "deploy/compose.yaml")))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))

	for name, service := range file.Services {
		for other := range service.DependsOn {
			require.Contains(t, file.Services, other, name)
		}

		for _, port := range service.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: %s is open to others", name, port)
		}

		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if ours, is := strings.CutPrefix(source, "../"); is { // relative to deploy/
				require.FileExists(t, "../"+ours, name)
			} else {
				require.Contains(t, file.Volumes, source, name)
			}
		}

		if target := service.Build.Target; target != "" {
			require.FileExists(t, "../"+service.Build.Dockerfile)
			require.Contains(t, content(t, service.Build.Dockerfile), " AS "+target+"\n", name)
			require.True(t, service.ReadOnly, name)
			require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		}
	}

	for _, name := range []string{"quernd", "migrate"} {
		settings := map[string]string{}

		for setting, value := range file.Services[name].Environment {
			settings[setting] = variable.ReplaceAllStringFunc(value, func(text string) string {
				parts := variable.FindStringSubmatch(text)
				if parts[2] == "-" {
					return parts[3]
				}

				return strings.Repeat("x", 32)
			})
		}

		var environ []string
		for setting, value := range settings {
			environ = append(environ, setting+"="+value)
		}

		require.Empty(t, config.Unknown(environ), name)

		_, err := config.Read[config.Serve](func(setting string) (string, bool) {
			value, given := settings[setting]

			return value, given
		})
		require.NoError(t, err, name)
	}

	require.Equal(t, []string{"keycloak"}, file.Services["keycloak"].Profiles)
	require.Equal(t, []string{"phoenix"}, file.Services["phoenix"].Profiles)
}

// TestStopTime checks that deploy/ allows as much time to stop as stopping takes, and some more.
func TestStopTime(t *testing.T) {
	t.Parallel()

	defaults, err := config.Read[config.Serve](func(name string) (string, bool) {
		return map[string]string{
			"QUERN_PUBLIC_URL": "http://quern.test", "QUERN_SECRET": strings.Repeat("x", 32), "QUERN_DATABASE_URL": "postgres://x", "QUERN_S3_ENDPOINT": "http://x",
			"QUERN_S3_BUCKET": "x", "QUERN_S3_ACCESS_KEY": "x", "QUERN_S3_SECRET_KEY": "x", "QUERN_OIDC_ISSUER": "http://x", "QUERN_OIDC_AUDIENCE": "x",
		}[name], true
	})
	require.NoError(t, err)

	spans, err := time.ParseDuration(found(t, "internal/app/serve.go", `traceTime += (\d+) \* time\.Second`) + "s")
	require.NoError(t, err)

	const room = 10 * time.Second

	longest := defaults.Server.DrainDelay + defaults.Server.ShutdownTimeout + job.StopTime + spans

	for _, given := range []string{
		found(t, "deploy/quernd.service", `(?m)^TimeoutStopSec=(\d+)$`) + "s",
		found(t, "deploy/compose.yaml", `stop_grace_period: (\S+)`),
		found(t, chart+"/values.yaml", `(?m)^terminationGracePeriodSeconds: (\d+)$`) + "s",
	} {
		allowed, err := time.ParseDuration(given)
		require.NoError(t, err)
		require.GreaterOrEqual(t, allowed, longest+room)
	}

	require.Contains(t, content(t, "docs/operations.md"), fmt.Sprintf("`QUERN_DRAIN_DELAY` + `QUERN_SHUTDOWN_TIMEOUT` + %.0f s", (job.StopTime+spans).Seconds()))
	require.Contains(t, content(t, "docs/operations.md"), fmt.Sprintf("With the defaults these are %.0f s.", longest.Seconds()))
}

// TestRestartIsNoUpgrade checks that a restart of the service does not migrate the database.
func TestRestartIsNoUpgrade(t *testing.T) {
	t.Parallel()

	require.NotRegexp(t, `(?m)^Exec\w+=.*migrate`, content(t, "deploy/quernd.service"))
	require.NotContains(t, content(t, chart+"/templates/deployment.yaml"), "migrate")
}

const chart = "deploy/helm/quern"

// TestChart checks that the settings of the chart exist, and that the role without background work has the settings of all workers.
// `make helm` checks what the chart renders.
func TestChart(t *testing.T) {
	t.Parallel()

	type values struct {
		Settings map[string]string
		Roles    map[string]struct{ Settings map[string]string }
	}

	read := func(path string) (read values) {
		require.NoError(t, yaml.Unmarshal([]byte(content(t, path)), &read), path)

		return read
	}

	defaults := read(chart + "/values.yaml")
	known := func(settings map[string]string) {
		for name := range settings {
			require.Empty(t, config.Unknown([]string{name + "=x"}))
		}
	}

	known(read(chart + "/ci/small.yaml").Settings)
	known(read(chart + "/ci/full.yaml").Settings)

	for _, role := range defaults.Roles {
		known(role.Settings)
	}

	var workers []string

	for _, name := range regexp.MustCompile(`QUERN_\w+_(?:WORKERS|SENDERS)\b`).FindAllString(content(t, "docs/configuration.md"), -1) {
		if !slices.Contains(workers, name) {
			workers = append(workers, name)
		}
	}

	require.NotEmpty(t, workers)

	for _, name := range workers {
		require.Equal(t, "0", defaults.Roles["api"].Settings[name], name)
	}
}
