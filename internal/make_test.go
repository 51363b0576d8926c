package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMakeConsole checks which targets build the console: release always, dev if npm is there, build never. npm is a stand-in,
// which nothing calls.
func TestMakeConsole(t *testing.T) {
	t.Parallel()

	const installed, built = "cd web && npm install", "(cd web && npm run build)"

	for name, test := range map[string]struct {
		npm             bool
		args            []string
		contains, lacks []string
	}{
		"web":              {true, []string{"web"}, []string{installed, built}, nil},
		"dev":              {true, []string{"dev"}, []string{installed, built, "bin/quernd dev"}, nil},
		"dev without npm":  {false, []string{"dev"}, []string{"npm is not installed", "bin/quernd dev"}, []string{"npm install", "npm run"}},
		"build":            {true, []string{"build"}, []string{"./cmd/quernd ./cmd/quern\n", "./cmd/quern-engine\n"}, []string{"npm"}},
		"release":          {true, []string{"release"}, []string{installed, built, "go run ./release"}, nil},
		"only the client":  {true, []string{"release", "ONLY=quern_linux_amd64"}, []string{"go run ./release"}, []string{"npm"}},
		"only the service": {true, []string{"release", "ONLY=quernd_linux_amd64"}, []string{built, "go run ./release"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			said := dryMake(t, test.npm, test.args...)
			for _, part := range test.contains {
				require.Contains(t, said, part)
			}

			for _, part := range test.lacks {
				require.NotContains(t, said, part)
			}
		})
	}
}

// dryMake returns what make would run, in a folder that has only what decides about the console.
func dryMake(t *testing.T, npm bool, args ...string) string {
	t.Helper()

	folder, path := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{"Makefile": content(t, "Makefile"), "stack/versitygw": "VERSION=v0", "web/package.json": "{}", "web/package-lock.json": "{}"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}

	if npm {
		require.NoError(t, os.WriteFile(filepath.Join(path, "npm"), []byte("#!/bin/sh\n"), 0o700))
	}

	for _, tool := range []string{"bash", "make", "find", "sed"} {
		found, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(found, filepath.Join(path, tool)))
	}

	command := exec.CommandContext(t.Context(), "make", append([]string{"-n"}, args...)...)
	command.Dir, command.Env = folder, []string{"PATH=" + path, "HOME=" + folder}
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)

	return string(said)
}
