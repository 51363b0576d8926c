package internal_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"quern.dev/quern/internal/config"
)

func content(t *testing.T, path string) string {
	t.Helper()

	text, err := os.ReadFile("../" + path)
	require.NoError(t, err)

	return string(text)
}

// found is what a pattern finds in a file, once or always the same.
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

// TestImages: what deploy/ builds and fetches is of the versions that everything else was tried with.
func TestImages(t *testing.T) {
	t.Parallel()

	const dockerfile, compose = "deploy/Dockerfile", "deploy/compose.yaml"

	require.Equal(t, found(t, "go.mod", `(?m)^go (\S+)$`), found(t, dockerfile, `golang:([\d.]+)-`))
	require.Equal(t, found(t, dockerfile, `golang:[\d.]+-(\w+)`), found(t, dockerfile, `debian:(\w+)-slim`))
	require.Equal(t, found(t, "stack/versitygw", `(?m)^VERSION=(\S+)`), found(t, dockerfile, `cmd/versitygw@(\S+)`))
	require.Equal(t, found(t, "stack/keycloak", `(?m)^VERSION=(\S+)`), found(t, compose, `keycloak/keycloak:(\S+)`))
	require.Equal(t, found(t, "stack/phoenix", `(?m)^VERSION=(\S+)`), found(t, compose, `phoenix:version-(\S+)`))
}

// variable is what compose puts in: ${NAME:-default} and ${NAME:?what it must be}.
var variable = regexp.MustCompile(`\$\{(\w+):([-?])([^}]*)\}`)

// TestCompose: the file is one that compose reads, as far as that can be known without it, and its settings are settings.
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
			if ours, is := strings.CutPrefix(source, "../"); is { // as seen from deploy/
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
