package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unguarded returns the code that may start goroutines without recovering, and the reasons.
func unguarded() map[string]string {
	return map[string]string{
		"internal/sandbox/":         "it moves processes and frames, and reads no value; in a child a panic ends only the child",
		"internal/engine/document/": "it runs in a child",
		"internal/engine/duckdb/":   "it runs in a child",
		"internal/dev/":             "a command",
		"internal/app/doctor.go":    "a command",
		"internal/app/dev.go":       "a command",
		"internal/fault/":           "it is what recovers",

		"internal/a2a/stream.go: forward(ctx, events, channel, written)":           "forward recovers",
		"internal/app/serve.go: a.keep(background, loop)":                          "keep recovers",
		"internal/app/serve.go: failed <- l.server.Serve(l.listener)":              "net/http, whose handlers recover",
		"internal/lake/cache.go: c.fetch(ctx, file, read, item)":                   "fetch recovers around the download",
		"internal/query/index.go: x.fill(context.WithoutCancel(ctx), one, object)": "fill recovers around the opening",
	}
}

// TestGoroutinesRecover checks that all goroutines recover: a panic in a goroutine that does not recover ends the
// process, and with it the work of all users.
func TestGoroutinesRecover(t *testing.T) {
	t.Parallel()

	require.NoError(t, filepath.WalkDir("../internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		set := token.NewFileSet()

		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		path = strings.TrimPrefix(path, "../")

		ast.Inspect(file, func(n ast.Node) bool {
			var begun ast.Node

			switch n := n.(type) {
			case *ast.GoStmt:
				begun = n.Call
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" && len(n.Args) == 1 {
					begun = n.Args[0]
				}
			}

			if begun != nil && !isGuarded(t, set, path, begun) {
				t.Errorf("%s: this goroutine does not recover. Defer fault.Recover or use fault.Try.", set.Position(begun.Pos()))
			}

			return true
		})

		return nil
	}))
}

func isGuarded(t *testing.T, set *token.FileSet, path string, begun ast.Node) bool {
	t.Helper()

	var text bytes.Buffer

	require.NoError(t, printer.Fprint(&text, set, begun))

	if strings.Contains(text.String(), "fault.Recover(&err)") || strings.Contains(text.String(), "fault.Try(") {
		return true
	}

	for place := range unguarded() {
		folder, code, isLine := strings.Cut(place, ": ")
		if strings.HasPrefix(path, folder) && (!isLine || strings.Contains(text.String(), code)) {
			return true
		}
	}

	return false
}
