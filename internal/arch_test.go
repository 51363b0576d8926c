// Package internal_test contains the rules that no single package can check itself.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "quern.dev/quern/"

// allowed returns which packages of the module each package may import. Imports only point downwards. A package that is
// not listed fails the test, so that adding one is a deliberate decision. "*" means every package.
func allowed() map[string][]string {
	return map[string][]string{
		"cmd/quernd":       {"internal/app", "internal/build"},
		"cmd/quern-engine": {"internal/engine", "internal/engine/duckdb", "internal/sandbox"},
		"cmd/quern":        {"api", "internal/build", "internal/cron", "internal/signin"},

		"internal/app": {"*"},

		"internal/server": {"api", "internal/audit", "internal/auth", "internal/benchmark", "internal/build", "internal/catalog", "internal/connection", "internal/event", "internal/exchange", "internal/fault", "internal/feed", "internal/ingest", "internal/lexicon", "internal/meaning", "internal/query", "internal/run", "internal/source", "internal/span", "internal/upload", "internal/verified", "internal/webhook"},

		"internal/webhook": {"internal/audit", "internal/auth", "internal/catalog", "internal/event", "internal/fault", "internal/feed", "internal/guard", "internal/job", "internal/postgres"},
		"internal/feed":    {"internal/auth", "internal/catalog", "internal/connection", "internal/event", "internal/fault", "internal/job", "internal/postgres"},

		"internal/connection": {"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/event", "internal/extract", "internal/fault", "internal/guard", "internal/postgres"},
		"internal/cron":       {},
		"internal/guard":      {},
		"internal/extract":    {"internal/fault"},
		"internal/source": {
			"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/connection", "internal/cron", "internal/event", "internal/extract", "internal/fault", "internal/ingest",
			"internal/job", "internal/lake",
			"internal/postgres", "internal/upload",
		},

		"internal/exchange": {"internal/auth", "internal/catalog", "internal/fault", "internal/meaning", "internal/query", "internal/verified"},

		"internal/a2a": {"internal/auth", "internal/catalog", "internal/fault", "internal/lexicon", "internal/run", "internal/webhook"},
		"internal/mcp": {"internal/audit", "internal/auth", "internal/catalog", "internal/fault", "internal/meaning", "internal/query", "internal/run", "internal/verified"},

		"internal/run": {
			"internal/agent", "internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/disk", "internal/event", "internal/fault", "internal/grounding", "internal/job", "internal/lake",
			"internal/postgres", "internal/query", "internal/tracing",
		},
		"internal/benchmark": {
			"internal/agent", "internal/audit", "internal/auth", "internal/catalog", "internal/fault", "internal/job", "internal/postgres", "internal/query", "internal/run",
			"internal/verified",
		},
		"internal/erase": {
			"internal/audit", "internal/catalog", "internal/fault", "internal/ingest", "internal/job", "internal/lake", "internal/postgres", "internal/query", "internal/run",
			"internal/tracing", "internal/upload",
		},
		"internal/takeout":  {"internal/blob", "internal/fault", "internal/postgres"},
		"internal/tracing":  {"internal/fault", "internal/span"},
		"internal/agent":    {"internal/auth", "internal/catalog", "internal/doubt", "internal/fault", "internal/form", "internal/grounding", "internal/llm", "internal/meaning", "internal/planner", "internal/query", "internal/verified"},
		"internal/verified": {"internal/audit", "internal/auth", "internal/catalog", "internal/event", "internal/fault", "internal/lexicon", "internal/postgres", "internal/query"},
		"internal/query": {
			"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/disk", "internal/engine", "internal/engine/trino", "internal/fault",
			"internal/icebergrest", "internal/job", "internal/lake", "internal/lexicon", "internal/meaning", "internal/postgres", "internal/span", "internal/values",
		},
		"internal/ingest": {
			"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/disk", "internal/engine", "internal/event", "internal/fault", "internal/job",
			"internal/lake", "internal/lexicon", "internal/llm", "internal/meaning", "internal/postgres", "internal/query", "internal/record", "internal/upload", "internal/values",
		},
		"internal/upload":                {"internal/audit", "internal/auth", "internal/blob", "internal/fault", "internal/job", "internal/postgres"},
		"internal/catalog":               {"internal/audit", "internal/auth", "internal/event", "internal/fault", "internal/job", "internal/lake", "internal/lexicon", "internal/meaning", "internal/postgres"},
		"internal/auth":                  {"internal/audit", "internal/fault", "internal/postgres"},
		"internal/audit":                 {"internal/fault", "internal/postgres"},
		"internal/event":                 {"internal/postgres"},
		"internal/backup":                {"internal/blob", "internal/fault"},
		"internal/lake":                  {"internal/blob", "internal/disk", "internal/fault", "internal/postgres"},
		"internal/icebergrest":           {"internal/fault", "internal/lake", "internal/postgres"},
		"internal/engine":                {"internal/build", "internal/disk", "internal/fault", "internal/sandbox"},
		"internal/engine/document":       {"internal/engine"},                                                                         // runs in the same process as engine/duckdb
		"internal/engine/duckdb":         {"internal/engine", "internal/engine/document", "internal/engine/xlsx", "internal/sandbox"}, // linked only into cmd/quern-engine
		"internal/engine/document/paper": {},                                                                                          // for tests
		"internal/engine/trino":          {"internal/engine", "internal/fault"},
		"internal/engine/xlsx":           {"internal/engine"}, // runs in the same process as engine/duckdb
		"internal/sandbox":               {},
		"internal/disk":                  {"internal/fault"},
		"internal/job":                   {"internal/fault", "internal/postgres", "internal/span"},
		"internal/llm":                   {"internal/fault", "internal/postgres"},
		"internal/blob":                  {"internal/fault"},
		"internal/postgres":              {"internal/fault", "internal/span"},
		"internal/blob/blobtest":         {"internal/blob", "stack"},                     // for tests
		"internal/postgres/pgtest":       {"internal/job", "internal/postgres", "stack"}, // for tests

		"internal/dev":    {"api", "internal/signin"}, // only for `quernd dev`
		"internal/signin": {},

		"internal/build":     {},
		"internal/config":    {"internal/lexicon"},
		"internal/doubt":     {"internal/form", "internal/lexicon", "internal/meaning", "internal/planner"},
		"internal/form":      {"internal/meaning"},
		"internal/grounding": {"internal/lexicon"},
		"internal/meaning":   {"internal/lexicon"},
		"internal/planner":   {"internal/form", "internal/lexicon", "internal/meaning"},

		"internal/record":  {},
		"internal/values":  {"internal/lexicon"},
		"internal/lexicon": {},
		"internal/fault":   {},
		"internal/span":    {"internal/fault"},
		"api":              {},
		"api/gen":          {},
		"stack":            {},

		"e2e":           {"api", "e2e/kill", "eval/sample", "internal/engine/document/paper", "internal/grounding", "stack"},
		"e2e/kill":      {},
		"e2e/runner":    {"e2e/kill"},
		"bench":         {"bench/ask", "bench/catalog", "bench/ingest", "bench/query", "bench/rig", "stack"},
		"bench/ask":     {"api", "bench/catalog", "bench/ingest", "bench/query", "bench/rig", "stack"},
		"bench/query":   {"api", "bench/catalog", "bench/ingest", "bench/rig", "stack"},
		"bench/ingest":  {"api", "bench/rig", "internal/engine/document/paper", "stack"},
		"bench/catalog": {"api", "bench/rig", "stack"},
		"bench/rig":     {"api", "stack"},

		"eval":           {"api", "eval/documents", "eval/sample", "internal/grounding", "stack"},
		"eval/documents": {"internal/engine/document/paper"},
		"eval/sample":    {},

		"release": {},
		"web":     {},
	}
}

// systems returns which packages may import each external library. Each outside system is used by one package; a
// library that is not listed fails the test. Files named sql.go or sql_….go may use pgx, files named worker.go may use
// River.
func systems() map[string][]string {
	return map[string][]string{
		"github.com/jackc/pgx/v5":                  {"internal/extract", "internal/postgres", "internal/postgres/pgtest", "internal/job"}, // River's transactions are those of pgx
		"github.com/riverqueue/river":              {"internal/job", "internal/app"},
		"github.com/pressly/goose/v3":              {"internal/postgres"},
		"github.com/aws/aws-sdk-go-v2":             {"internal/blob", "eval"}, // eval empties the location of the service that it started
		"github.com/aws/smithy-go":                 {"internal/blob"},
		"github.com/cespare/xxhash/v2":             {"internal/ingest"},
		"github.com/coreos/go-oidc/v3":             {"internal/auth"},
		"github.com/go-jose/go-jose/v4":            {"internal/auth"},
		"go.opentelemetry.io/otel":                 {"internal/span", "internal/tracing", "internal/llm"}, // llm uses only the API, for spans
		"github.com/openai/openai-go/v3":           {"internal/llm"},
		"github.com/anthropics/anthropic-sdk-go":   {"internal/llm"},
		"github.com/santhosh-tekuri/jsonschema/v6": {"internal/llm"},
		"golang.org/x/sync":                        {"internal/agent", "internal/auth", "internal/backup", "internal/blob", "internal/lake", "internal/query", "internal/upload", "bench", "e2e/runner", "eval"},
		"golang.org/x/sys":                         {"internal/sandbox"},
		"golang.org/x/text":                        {"internal/engine", "internal/engine/duckdb", "internal/lexicon", "eval", "cmd/quern"},
		"github.com/klauspost/compress":            {"internal/engine/duckdb", "internal/server"},
		"github.com/klippa-app/go-pdfium":          {"internal/engine/document"},
		"github.com/tetratelabs/wazero":            {"internal/engine/document"},
		"golang.org/x/net":                         {"internal/engine/document"},
		"github.com/duckdb/duckdb-go-bindings":     {"internal/engine/duckdb"},
		"github.com/landlock-lsm/go-landlock":      {"internal/sandbox"},
		"github.com/elastic/go-seccomp-bpf":        {"internal/sandbox"},
		"github.com/apache/iceberg-go":             {"internal/lake"}, // only the root package
		"github.com/apache/arrow-go/v18":           {"internal/extract", "internal/lake", "internal/engine/duckdb"},
		"golang.org/x/time":                        {"internal/auth", "internal/server"},
		"github.com/hashicorp/golang-lru/v2":       {"internal/auth", "internal/query", "internal/server"},
		"github.com/getkin/kin-openapi":            {"internal/server", "api/gen"},
		"github.com/a2aproject/a2a-go/v2":          {"internal/a2a"},
		"github.com/modelcontextprotocol/go-sdk":   {"internal/mcp"},
		"github.com/rs/cors":                       {"internal/server"},
		"go.yaml.in/yaml/v3":                       {"cmd/quern", "internal/exchange"},
		"github.com/prometheus/client_golang":      {"internal/server", "internal/app"},
		"github.com/oapi-codegen/runtime":          {"api", "internal/server"},
		"github.com/spf13/cobra":                   {"cmd/quernd", "cmd/quern"},
		"golang.org/x/term":                        {"cmd/quern"},
		"github.com/stretchr/testify":              {"internal/blob/blobtest", "internal/postgres/pgtest"},
		"github.com/google/uuid":                   {"*"},
	}
}

func TestImportMap(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}

	for _, file := range sources(t) {
		seen[file.pkg] = true

		permitted, onMap := allowed()[file.pkg]
		if !onMap {
			t.Errorf("package %s is not on the map of internal/arch_test.go", file.pkg)

			continue
		}

		for _, imported := range file.imports {
			local, isLocal := strings.CutPrefix(imported, module)

			switch {
			case isLocal:
				if !slices.Contains(permitted, local) && !slices.Contains(permitted, "*") {
					t.Errorf("%s: %s may not import %s", file.path, file.pkg, local)
				}
			case strings.Contains(strings.Split(imported, "/")[0], "."):
				checkSystem(t, file, imported)
			}
		}
	}

	for pkg := range allowed() {
		if !seen[pkg] {
			t.Errorf("the map has the package %s, which does not exist", pkg)
		}
	}
}

func checkSystem(t *testing.T, file source, imported string) {
	t.Helper()

	// Measures may use any library for their bare twins, and black-box tests any client.
	if strings.HasPrefix(file.pkg, "bench/") || file.pkg == "e2e" {
		return
	}

	// The other packages of iceberg-go parse Substrait's files whenever a process starts, also for commands that take less time
	// than that.
	if strings.HasPrefix(imported, "github.com/apache/iceberg-go/") {
		t.Errorf("%s: only tests may import %s", file.path, imported)
	}

	for library, packages := range systems() {
		if imported != library && !strings.HasPrefix(imported, library+"/") {
			continue
		}

		statements := (library == "github.com/jackc/pgx/v5" && isSQL(file)) ||
			(library == "github.com/riverqueue/river" && path.Base(file.path) == "worker.go")
		if !statements && !slices.Contains(packages, file.pkg) && !slices.Contains(packages, "*") {
			t.Errorf("%s: only %v may import %s", file.path, packages, library)
		}

		return
	}

	t.Errorf("%s: the library %s is on no list of internal/arch_test.go", file.path, imported)
}

// TestProgramsContainNoTestCode checks that what only tests, measures and evaluation need is not in the programs.
func TestProgramsContainNoTestCode(t *testing.T) {
	t.Parallel()

	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if .Module}}{{$p := .ImportPath}}{{range .GoFiles}}{{$p}}/{{.}}{{"\n"}}{{end}}{{end}}`, "../cmd/...").Output()
	require.NoError(t, err)
	require.Contains(t, string(listed), module+"internal/agent/agent.go\n")

	for name := range strings.Lines(string(listed)) {
		name, ours := strings.CutPrefix(strings.TrimSpace(name), module)
		folder, _, _ := strings.Cut(name, "/")
		test := slices.Contains([]string{"bench", "e2e", "eval", "release", "stack"}, folder) || strings.Contains(name, "/pgtest/") || strings.Contains(name, "/blobtest/") ||
			strings.HasSuffix(name, "/script.go") || strings.HasSuffix(name, "/scripted.go")
		require.False(t, ours && test, name)
	}
}

// TestEveryPackageHasADocComment checks that every package says what it is for.
func TestEveryPackageHasADocComment(t *testing.T) {
	t.Parallel()

	documented := map[string]bool{}
	for _, file := range sources(t) {
		documented[file.pkg] = documented[file.pkg] || file.documented
	}

	for pkg, has := range documented {
		if !has {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

// maxLines is the hard limit for a file. CONTRIBUTING.md has the soft limits.
const maxLines = 500

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// TestFileLength checks that no Go file is too long, tests included and generated files excepted.
func TestFileLength(t *testing.T) {
	t.Parallel()

	for _, file := range goFiles(t) {
		text := content(t, file)
		head, _, _ := strings.Cut(text, "\npackage ")

		if lines := strings.Count(text, "\n"); lines > maxLines && !generated.MatchString(head) {
			t.Errorf("%s has %d lines, but at most %d are allowed. Split it by subject.", file, lines, maxLines)
		}
	}
}

// goFiles returns the paths of the Go files of the module.
func goFiles(t *testing.T) []string {
	t.Helper()

	var list []string

	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()

		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || (strings.HasPrefix(name, ".") && name != "..")):
			return filepath.SkipDir
		case entry.IsDir() && name != ".." && isModule(file):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}

		relative, err := filepath.Rel("..", file)
		list = append(list, filepath.ToSlash(relative))

		return err
	})
	require.NoError(t, err)

	return list
}

// isModule reports whether a folder is a module of its own.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))

	return err == nil
}

type source struct {
	pkg, path  string
	imports    []string
	documented bool
	tree       *ast.File
}

// sources returns the Go files of the module without tests. A package that contains only tests counts with its doc.go.
func sources(t *testing.T) []source {
	t.Helper()

	var list []source

	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}

		tree, err := parser.ParseFile(token.NewFileSet(), file, content(t, file), parser.ParseComments)
		require.NoError(t, err)

		found := source{pkg: path.Dir(file), path: file, documented: tree.Doc != nil, tree: tree}

		for _, spec := range tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)

			found.imports = append(found.imports, imported)
		}

		list = append(list, found)
	}

	return list
}
