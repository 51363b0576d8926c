package internal_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked returns what a program contains: the packages of this module, and the other modules.
func linked(t *testing.T, program string) (packages, modules []string) {
	t.Helper()

	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{.Path}} {{$.ImportPath}}{{end}}`, "../cmd/"+program)
	list.Stderr = t.Output()
	list.Env = os.Environ()

	if program != "quern-engine" {
		list.Env = append(list.Env, "CGO_ENABLED=0") // fails if a package is only C
	}

	listed, err := list.Output()
	require.NoError(t, err)

	for line := range strings.Lines(string(listed)) {
		library, path, found := strings.Cut(strings.TrimSpace(line), " ")

		switch own, is := strings.CutPrefix(path, module); {
		case is:
			packages = append(packages, own)
		case found:
			modules = append(modules, library)
		}
	}

	slices.Sort(modules)

	return packages, slices.Compact(modules)
}

// TestEngineContainsLittle checks that a sealed process contains only what it needs. Each start initializes all linked
// packages, and a process starts for each statement and each file. Fewer packages also give hostile input less code to exploit.
func TestEngineContainsLittle(t *testing.T) {
	t.Parallel()

	packages, modules := linked(t, "quern-engine")
	require.ElementsMatch(t, []string{
		"cmd/quern-engine", "internal/build", "internal/disk", "internal/engine", "internal/engine/document", "internal/engine/duckdb", "internal/engine/xlsx", "internal/fault", "internal/sandbox",
	}, packages)

	modules = slices.DeleteFunc(modules, func(name string) bool { return strings.HasPrefix(name, "github.com/duckdb/duckdb-go-bindings/lib/") })
	require.Equal(t, []string{
		"github.com/andybalholm/brotli",
		"github.com/apache/arrow-go/v18",
		"github.com/apache/thrift",
		"github.com/cespare/xxhash/v2",
		"github.com/duckdb/duckdb-go-bindings",
		"github.com/elastic/go-seccomp-bpf",
		"github.com/goccy/go-json",
		"github.com/google/flatbuffers",
		"github.com/google/uuid",
		"github.com/jolestar/go-commons-pool/v2", // for go-pdfium
		"github.com/klauspost/compress",
		"github.com/klauspost/cpuid/v2",
		"github.com/klippa-app/go-pdfium", // reads PDF documents
		"github.com/landlock-lsm/go-landlock",
		"github.com/pierrec/lz4/v4",
		"github.com/tetratelabs/wazero", // runs PDFium as WebAssembly
		"github.com/zeebo/xxh3",
		"golang.org/x/exp",
		"golang.org/x/net",  // HTML and its encodings; for gRPC
		"golang.org/x/sync", // for arrow-go
		"golang.org/x/sys",
		"golang.org/x/text",
		"google.golang.org/genproto/googleapis/rpc", // for gRPC
		"google.golang.org/grpc",                    // arrow-go reads schemas with the package that also serves them
		"google.golang.org/protobuf",                // for gRPC
		"kernel.org/pub/linux/libs/security/libcap/psx",
	}, modules)
}

// TestServerContainsNoEngine checks that the server needs no C compiler and does not contain what reads hostile files.
func TestServerContainsNoEngine(t *testing.T) {
	t.Parallel()

	packages, modules := linked(t, "quernd")
	require.Contains(t, packages, "internal/sandbox")
	require.NotContains(t, packages, "internal/engine/duckdb")
	require.NotContains(t, packages, "internal/engine/xlsx")
	require.NotContains(t, packages, "internal/engine/document")

	for _, name := range modules {
		require.False(t, strings.HasPrefix(name, "github.com/duckdb/"), name)
	}
}
