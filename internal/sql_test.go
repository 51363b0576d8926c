package internal_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// TestStatements prepares every SQL statement of the module against the migrated schema: a name that
// does not exist is found here and not by a user. Statements are constants in files named sql.go or sql_….go.
func TestStatements(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	statements := 0

	for _, file := range sources(t) {
		for name, statement := range sqlConstants(t, file) {
			_, err := conn.Prepare(t.Context(), "", statement)
			require.NoError(t, err, "%s: %s", file.path, name)

			statements++
		}
	}

	require.Greater(t, statements, 20, "the statements were not found")
}

// isSQL tells whether a file is one for statements.
func isSQL(file source) bool {
	name := path.Base(file.path)

	return name == "sql.go" || strings.HasPrefix(name, "sql_")
}

var looksLikeSQL = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|MERGE)\s+[^ ]`)

// sqlConstants returns the statements of a file, and fails for one that stands anywhere else than in a
// constant of sql.go.
func sqlConstants(t *testing.T, file source) map[string]string {
	t.Helper()

	found := map[string]string{}
	inConstants := map[*ast.BasicLit]bool{}

	for _, declaration := range file.tree.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}

		for _, spec := range constants.Specs {
			values, _ := spec.(*ast.ValueSpec)
			for i, value := range values.Values {
				text := evaluate(t, file, value, inConstants)
				if isSQL(file) && looksLikeSQL.MatchString(text) {
					found[values.Names[i].Name] = text
				}
			}
		}
	}

	// DuckDB's statements are made for each file or dataset, and run in a child without a schema of ours. The client has no database, but
	// commands that begin with a verb.
	exempt := file.pkg == "cmd/quern" || file.pkg == "internal/postgres/pgtest" || file.pkg == "internal/engine/duckdb" || file.pkg == "internal/query" ||
		file.pkg == "bench" || file.pkg == "eval" || file.pkg == "internal/planner" || strings.HasSuffix(file.path, ".gen.go")

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

// evaluate returns the text of a constant: literals and other constants of the file, put together.
func evaluate(t *testing.T, file source, value ast.Expr, met map[*ast.BasicLit]bool) string {
	t.Helper()

	switch value := value.(type) {
	case *ast.BasicLit:
		if value.Kind == token.STRING {
			met[value] = true

			return unquote(t, value)
		}
	case *ast.BinaryExpr:
		return evaluate(t, file, value.X, met) + evaluate(t, file, value.Y, met)
	case *ast.Ident:
		if object := file.tree.Scope.Lookup(value.Name); object != nil {
			spec, _ := object.Decl.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name == value.Name {
					return evaluate(t, file, spec.Values[i], met)
				}
			}
		}
	}

	return ""
}

func unquote(t *testing.T, literal *ast.BasicLit) string {
	t.Helper()

	text, err := strconv.Unquote(literal.Value)
	require.NoError(t, err)

	return text
}
