package internal_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// TestStatements prepares every SQL statement of the module against the migrated schema, so that a name that does not
// exist is found here and not by a user. Statements are constants in files named sql.go or sql_….go.
func TestStatements(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	files, statements := sources(t), 0
	constants := map[string]map[string]ast.Expr{} // by package and name

	for _, file := range files {
		if constants[file.pkg] == nil {
			constants[file.pkg] = map[string]ast.Expr{}
		}

		maps.Copy(constants[file.pkg], constantsOf(file))
	}

	for _, file := range files {
		for name, statement := range sqlConstants(t, file, constants[file.pkg]) {
			_, err := conn.Prepare(t.Context(), "", statement)
			require.NoError(t, err, "%s: %s", file.path, name)

			statements++
		}
	}

	require.Greater(t, statements, 20, "the statements were not found")
}

// isSQL reports whether a file is one for statements.
func isSQL(file source) bool {
	name := path.Base(file.path)

	return name == "sql.go" || strings.HasPrefix(name, "sql_")
}

var looksLikeSQL = regexp.MustCompile(`^\s*((?i:SELECT|INSERT|UPDATE|DELETE|MERGE)|WITH)\s+[^ ]`)

// constantsOf returns the values of the constants of a file, by name.
func constantsOf(file source) map[string]ast.Expr {
	found := map[string]ast.Expr{}

	for _, declaration := range file.tree.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}

		for _, spec := range constants.Specs {
			values, _ := spec.(*ast.ValueSpec)
			for i, value := range values.Values {
				found[values.Names[i].Name] = value
			}
		}
	}

	return found
}

// sqlConstants returns the statements of a file, and fails for a statement that is not a constant in a file for
// statements. A statement may use constants of the whole package.
func sqlConstants(t *testing.T, file source, ofPackage map[string]ast.Expr) map[string]string {
	t.Helper()

	found := map[string]string{}
	inConstants := map[*ast.BasicLit]bool{}

	for name, value := range constantsOf(file) {
		text := evaluate(t, ofPackage, value, inConstants)
		if isSQL(file) && looksLikeSQL.MatchString(text) {
			found[name] = text
		}
	}

	// DuckDB's statements are built for each file or dataset, and run in a sealed process without our schema. Those of extract
	// are built for each table, and run in databases of others. The client has no database, but command texts that begin with a verb.
	exempt := file.pkg == "cmd/quern" || file.pkg == "internal/extract" || file.pkg == "internal/postgres/pgtest" || file.pkg == "internal/engine/duckdb" || file.pkg == "internal/query" ||
		file.path == "internal/ingest/keysql.go" ||
		strings.HasPrefix(file.path, "bench/") || strings.HasPrefix(file.path, "eval/") || file.pkg == "internal/planner" || file.pkg == "internal/form" || strings.HasSuffix(file.path, ".gen.go")

	ast.Inspect(file.tree, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if ok && literal.Kind == token.STRING && !exempt && looksLikeSQL.MatchString(unquote(t, literal)) {
			if !inConstants[literal] || !isSQL(file) {
				t.Errorf("%s: a statement that is not a constant in sql.go: %.60s", file.path, literal.Value)
			}
		}

		return true
	})

	return found
}

// evaluate returns the text of a constant: the concatenation of literals and other constants of the package.
func evaluate(t *testing.T, constants map[string]ast.Expr, value ast.Expr, met map[*ast.BasicLit]bool) string {
	t.Helper()

	switch value := value.(type) {
	case *ast.BasicLit:
		if value.Kind == token.STRING {
			met[value] = true

			return unquote(t, value)
		}
	case *ast.BinaryExpr:
		return evaluate(t, constants, value.X, met) + evaluate(t, constants, value.Y, met)
	case *ast.Ident:
		return evaluate(t, constants, constants[value.Name], met)
	}

	return ""
}

func unquote(t *testing.T, literal *ast.BasicLit) string {
	t.Helper()

	text, err := strconv.Unquote(literal.Value)
	require.NoError(t, err)

	return text
}
