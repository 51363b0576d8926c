package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const largestQuern = 25_000_000

// TestQuern checks that the published `quern` for this machine needs no library, is small, prints its version, and has
// a complete list of modules.
func TestQuern(t *testing.T) { //nolint:paralleltest // it changes the folder
	t.Chdir("..")

	out, name := t.TempDir(), "quern_linux_"+runtime.GOARCH
	require.NoError(t, release(t.Context(), out, "v1.2.3", name))

	archive := filepath.Join(out, "quern_1.2.3_linux_"+runtime.GOARCH)
	unpack := exec.CommandContext(t.Context(), "tar", "-xzf", archive+".tar.gz", "-C", out)
	require.NoError(t, unpack.Run())

	path := filepath.Join(archive, "quern")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(largestQuern))

	program, err := elf.Open(path)
	require.NoError(t, err)

	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "it is static")
	require.NoError(t, program.Close())

	for _, args := range []string{"version", "--version"} {
		printed, err := exec.CommandContext(t.Context(), path, args).Output()
		require.NoError(t, err)
		require.Contains(t, string(printed), "v1.2.3")
	}

	require.FileExists(t, filepath.Join(archive, "LICENSE"))
	require.FileExists(t, filepath.Join(archive, "README.md"))
	requireBill(t, archive+".cdx.json", path)

	content, err := os.ReadFile(archive + ".tar.gz")
	require.NoError(t, err)

	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	require.Contains(t, string(sums), fmt.Sprintf("%x  quern_1.2.3_linux_%s.tar.gz\n", sha256.Sum256(content), runtime.GOARCH))

	// The same commit produces the same bytes, also from another folder.
	again := t.TempDir()
	require.NoError(t, release(t.Context(), again, "v1.2.3", name))

	twin, err := os.ReadFile(filepath.Join(again, "quern_1.2.3_linux_"+runtime.GOARCH+".tar.gz"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, twin), "the second build differs")

	first, err := os.ReadFile(archive + ".cdx.json")
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(again, filepath.Base(archive)+".cdx.json"))
	require.NoError(t, err)
	require.Equal(t, string(first), string(second), "the second list differs")
}

// TestReleaseNeedsTheConsole checks that no quernd is released without its web pages.
func TestReleaseNeedsTheConsole(t *testing.T) {
	t.Parallel()

	dist := t.TempDir()
	server, client := target{program: "quernd"}, target{program: "quern"}

	require.ErrorContains(t, server.checkConsole(dist), "run `make web` first")
	require.NoError(t, client.checkConsole(dist))

	require.NoError(t, os.WriteFile(filepath.Join(dist, "index.html"), nil, 0o600))
	require.NoError(t, server.checkConsole(dist))
}

// requireBill checks that the list contains exactly the modules of the program and the standard library, and has the
// checksum of the program.
func requireBill(t *testing.T, path, binary string) {
	t.Helper()

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	var list struct {
		BomFormat, SpecVersion, SerialNumber string

		Metadata struct {
			Component  struct{ Name, Version, Purl string }
			Properties []struct{ Name, Value string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	require.NoError(t, json.Unmarshal(content, &list))
	require.Equal(t, "CycloneDX", list.BomFormat)
	require.Equal(t, "1.6", list.SpecVersion)
	require.NotEmpty(t, list.SerialNumber)
	require.Equal(t, "quern.dev/quern", list.Metadata.Component.Name)
	require.Equal(t, "v1.2.3", list.Metadata.Component.Version)
	require.Contains(t, list.Metadata.Component.Purl, "#cmd/quern")

	program, err := os.ReadFile(binary)
	require.NoError(t, err)
	require.Contains(t, list.Metadata.Properties, struct{ Name, Value string }{"cdx:gomod:binary:hash:SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))})

	said, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	require.NoError(t, err)

	modules := strings.Count(string(said), "\tdep\t")
	require.Positive(t, modules)
	require.Len(t, list.Components, modules+1)

	for _, one := range list.Components {
		require.True(t, one.Name == "std" || strings.Contains(string(said), one.Name+"\t"+one.Version), one.Name)
		require.Contains(t, one.Purl, "pkg:golang/")
	}
}
