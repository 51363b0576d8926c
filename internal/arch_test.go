// Package internal_test holds the rules that no single package can check of itself.
package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "quern.dev/quern/"

// allowed is who may import whom within the module, down only. A package that is not here fails the
// test: the moment to ask whether it should exist. "*" is everything.
func allowed() map[string][]string {
	return map[string][]string{
		"cmd/quernd": {"internal/app"},
		"cmd/quern":  {"api", "internal/signin"},

		"internal/app": {"*"},

		"internal/server": {"api", "internal/audit", "internal/auth", "internal/catalog", "internal/fault", "internal/ingest", "internal/query", "internal/run", "internal/upload"},

		"internal/a2a": {"internal/auth", "internal/catalog", "internal/fault", "internal/run"},

		"internal/run": {
			"internal/agent", "internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/fault", "internal/job", "internal/lake",
			"internal/postgres", "internal/query", "internal/tracing",
		},
		"internal/tracing": {"internal/fault"},
		"internal/agent":   {"internal/auth", "internal/catalog", "internal/fault", "internal/grounding", "internal/llm", "internal/planner", "internal/query"},
		"internal/query": {
			"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/engine", "internal/fault", "internal/job",
			"internal/lake", "internal/postgres", "internal/values",
		},
		"internal/ingest": {
			"internal/audit", "internal/auth", "internal/blob", "internal/catalog", "internal/engine", "internal/fault", "internal/job",
			"internal/lake", "internal/postgres", "internal/upload", "internal/values",
		},
		"internal/upload":          {"internal/audit", "internal/auth", "internal/blob", "internal/fault", "internal/job", "internal/postgres"},
		"internal/catalog":         {"internal/audit", "internal/auth", "internal/fault", "internal/lake", "internal/postgres"},
		"internal/auth":            {"internal/audit", "internal/fault", "internal/postgres"},
		"internal/audit":           {"internal/fault", "internal/postgres"},
		"internal/lake":            {"internal/blob", "internal/fault", "internal/postgres"},
		"internal/engine":          {"internal/fault", "internal/sandbox"},
		"internal/engine/duckdb":   {"internal/engine", "internal/engine/xlsx", "internal/sandbox"}, // linked into the server's binary alone
		"internal/engine/xlsx":     {"internal/engine"},                                             // runs where engine/duckdb does
		"internal/sandbox":         {},
		"internal/job":             {"internal/fault", "internal/postgres"},
		"internal/llm":             {"internal/fault", "internal/postgres"},
		"internal/blob":            {"internal/fault"},
		"internal/postgres":        {"internal/fault"},
		"internal/postgres/pgtest": {"internal/job", "internal/postgres", "stack"}, // for tests

		"internal/dev":    {"api", "internal/signin"}, // for `quernd dev` alone
		"internal/signin": {},

		"internal/config":           {},
		"internal/grounding":        {},
		"internal/grounding/sample": {}, // for tests and eval
		"internal/planner":          {},
		"internal/values":           {},
		"internal/fault":            {},
		"api":                       {},
		"api/gen":                   {},
		"stack":                     {},

		"e2e":        {"api", "stack"},
		"e2e/runner": {},
		"bench":      {"api", "stack"},
		"eval":       {"api", "internal/grounding", "internal/grounding/sample", "stack"},

		"release": {},
	}
}

// systems is which packages may know an outside library. One outside system, one package; a library
// that is not here fails the test. Files named sql.go or sql_….go may use pgx, files named worker.go may use River.
func systems() map[string][]string {
	return map[string][]string{
		"github.com/jackc/pgx/v5":                  {"internal/postgres", "internal/postgres/pgtest", "internal/job"}, // River's transactions are pgx's
		"github.com/riverqueue/river":              {"internal/job", "internal/app"},
		"github.com/pressly/goose/v3":              {"internal/postgres"},
		"github.com/aws/aws-sdk-go-v2":             {"internal/blob", "eval"}, // eval empties the place of the service that it started
		"github.com/aws/smithy-go":                 {"internal/blob"},
		"github.com/coreos/go-oidc/v3":             {"internal/auth"},
		"github.com/go-jose/go-jose/v4":            {"internal/auth"},
		"go.opentelemetry.io/otel":                 {"internal/tracing", "internal/llm"}, // there the API alone, for spans
		"github.com/openai/openai-go/v3":           {"internal/llm"},
		"github.com/anthropics/anthropic-sdk-go":   {"internal/llm"},
		"github.com/santhosh-tekuri/jsonschema/v6": {"internal/llm"},
		"golang.org/x/sync":                        {"internal/agent", "internal/auth", "internal/blob", "internal/lake", "internal/upload", "eval"},
		"golang.org/x/sys":                         {"internal/sandbox"},
		"golang.org/x/text":                        {"internal/catalog", "internal/engine/duckdb", "internal/values", "eval", "cmd/quern"},
		"github.com/klauspost/compress":            {"internal/engine/duckdb"},
		"github.com/duckdb/duckdb-go-bindings":     {"internal/engine/duckdb"},
		"github.com/landlock-lsm/go-landlock":      {"internal/sandbox"},
		"github.com/elastic/go-seccomp-bpf":        {"internal/sandbox"},
		"github.com/apache/iceberg-go":             {"internal/lake"}, // the root package alone
		"github.com/apache/arrow-go/v18":           {"internal/lake", "internal/engine/duckdb"},
		"golang.org/x/time":                        {"internal/auth", "internal/server"},
		"github.com/hashicorp/golang-lru/v2":       {"internal/auth", "internal/server"},
		"github.com/getkin/kin-openapi":            {"internal/server", "api/gen"},
		"github.com/a2aproject/a2a-go/v2":          {"internal/a2a"},
		"github.com/rs/cors":                       {"internal/server"},
		"github.com/prometheus/client_golang":      {"internal/server", "internal/app"},
		"github.com/oapi-codegen/runtime":          {"api", "internal/server"},
		"github.com/spf13/cobra":                   {"cmd/quernd", "cmd/quern"},
		"golang.org/x/term":                        {"cmd/quern"},
		"github.com/stretchr/testify":              {"internal/postgres/pgtest"},
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

	// Measures may use any library for their bare twins, black-box tests any client.
	if file.pkg == "bench" || file.pkg == "e2e" {
		return
	}

	// Its other packages parse Substrait's files whenever a process starts, and every query and ingestion starts some.
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

// TestEveryPackageHasADocComment: a package that cannot say what it is for should not exist.
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

type source struct {
	pkg, path  string
	imports    []string
	documented bool
	tree       *ast.File
}

// sources are the Go files of the module without tests. A package of tests alone counts with its doc.go.
func sources(t *testing.T) []source {
	t.Helper()

	var list []source

	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()

		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || (strings.HasPrefix(name, ".") && name != "..")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}

		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}

		relative, err := filepath.Rel("..", file)
		if err != nil {
			return err
		}

		found := source{pkg: filepath.ToSlash(filepath.Dir(relative)), path: filepath.ToSlash(relative), documented: tree.Doc != nil, tree: tree}

		for _, spec := range tree.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}

			found.imports = append(found.imports, imported)
		}

		list = append(list, found)

		return nil
	})
	require.NoError(t, err)

	return list
}
