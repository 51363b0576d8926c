package internal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPoolNeverNested checks that code that holds a connection of the database does not take a second one and does not
// wait for anything else. If as many callers as the pool has connections each waited for one more, all of them would
// wait forever.
//
// A function holds a connection if it has a transaction, a Querier or a connection as a parameter. The test follows
// every call from there, through interfaces to all implementations in the module and through function values to
// everything that is assigned to them. It fails if one of them reaches the pool, another system, or a function that
// waits.
func TestPoolNeverNested(t *testing.T) {
	t.Parallel()

	g := newCalls(t)

	for _, holder := range g.holders {
		if path := g.path(holder); path != nil {
			t.Errorf("this holds a connection and reaches something that waits:\n\t%s", strings.Join(path, "\n\t→ "))
		}
	}

	require.Greater(t, len(g.holders), 300, "the functions that hold a connection were not found")

	// Functions that are known to take a connection or to wait for the store must be found.
	for _, name := range []string{
		"(*" + module + "internal/lake.Lake).Files", "(*" + module + "internal/lake.Lake).Fetch", "(*" + module + "internal/query.Query).Run",
		"(" + module + "internal/catalog.Catalog).Describe", "(" + module + "internal/upload.Uploads).Finish", "(*" + module + "internal/ingest.Ingest).Append",
	} {
		require.Contains(t, g.edges, name, "the function is not there any more")
		require.NotNil(t, g.path(name), name)
	}
}

// waits returns the functions that take a connection, or wait for something other than the database, by the prefixes of
// their names.
func waits() []string {
	return []string{
		"(*" + module + "internal/postgres.DB).with", "(*" + module + "internal/postgres.DB).Pool", "(*github.com/jackc/pgx/v5/pgxpool.Pool).",
		"(*github.com/aws/aws-sdk-go-v2/service/s3.Client).", "(*net/http.Client).", "(net/http.RoundTripper).", "(*net.Dialer).", "net.Dial",
		"(*" + module + "internal/engine.Engine).", "(*" + module + "internal/engine.Session).", "(*" + module + "internal/sandbox.",
		"(*os/exec.Cmd).", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker", "(*sync.WaitGroup).Wait", "(*sync.Cond).Wait",
		"(*golang.org/x/sync/errgroup.Group).", "(*golang.org/x/sync/singleflight.Group).", "(*golang.org/x/sync/semaphore.Weighted).Acquire",
		"(*golang.org/x/time/rate.Limiter).Wait", channel,
	}
}

const channel = "a channel"

// calls is the call graph, by names. Functions without a name are named by their position.
type calls struct {
	t        *testing.T
	files    *token.FileSet
	edges    map[string]map[string]bool
	holders  []string
	concrete []types.Type // types of the module
}

func newCalls(t *testing.T) *calls {
	t.Helper()

	g := &calls{t: t, files: token.NewFileSet(), edges: map[string]map[string]bool{}}

	var (
		trees    = map[*types.Package][]*ast.File{}
		info     = &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}}
		checked  = map[string]*types.Package{}
		listed   = packages(t)
		exported = map[string]string{}
	)

	for _, one := range listed {
		exported[one.ImportPath] = one.Export
	}

	foreign := importer.ForCompiler(g.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) })
	config := types.Config{Importer: importing(func(path string) (*types.Package, error) {
		if own := checked[path]; own != nil {
			return own, nil
		}

		return foreign.Import(path)
	})}

	// The list contains a package after those that it imports.
	for _, one := range listed {
		if !strings.HasPrefix(one.ImportPath, module+"internal/") {
			continue
		}

		var list []*ast.File

		for _, name := range one.GoFiles {
			tree, err := parser.ParseFile(g.files, filepath.Join(one.Dir, name), nil, 0)
			require.NoError(t, err)

			list = append(list, tree)
		}

		pkg, err := config.Check(one.ImportPath, g.files, list, info)
		require.NoError(t, err)

		checked[one.ImportPath], trees[pkg] = pkg, list
	}

	for pkg := range trees {
		for _, name := range pkg.Scope().Names() {
			if named, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && !named.IsAlias() && !types.IsInterface(named.Type()) {
				g.concrete = append(g.concrete, types.NewPointer(named.Type()))
			}
		}
	}

	for pkg, list := range trees {
		for _, tree := range list {
			r := &reader{calls: g, info: info, receivers: map[*ast.Ident]types.Type{}, quiet: pkg.Path() == module+"internal/postgres"}
			r.read(tree, "")
		}
	}

	slices.Sort(g.holders)

	return g
}

type importing func(string) (*types.Package, error)

func (i importing) Import(path string) (*types.Package, error) { return i(path) }

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// packages returns the packages that use the database and all that they import, compiled.
func packages(t *testing.T) (list []listedPackage) {
	t.Helper()

	users := map[string]bool{}

	for _, file := range sources(t) {
		if strings.HasPrefix(file.pkg, "internal/") && !strings.HasSuffix(file.pkg, "/pgtest") && slices.Contains(file.imports, module+"internal/postgres") {
			users[module+file.pkg] = true
		}
	}

	arguments := []string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles"}
	for user := range users {
		arguments = append(arguments, user)
	}

	output, err := exec.CommandContext(t.Context(), "go", arguments...).Output()
	require.NoError(t, err)

	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var one listedPackage

		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return list
		}

		require.NoError(t, err)

		list = append(list, one)
	}
}

func (g *calls) add(from, to string) {
	if g.edges[from] == nil {
		g.edges[from] = map[string]bool{}
	}

	if to != "" {
		g.edges[from][to] = true
	}
}

// path returns the shortest path from a function to one that waits, or nil if there is none.
func (g *calls) path(from string) []string {
	before := map[string]string{from: ""}

	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]

		if slices.ContainsFunc(waits(), func(prefix string) bool { return strings.HasPrefix(here, prefix) }) {
			var path []string
			for ; here != ""; here = before[here] {
				path = append(path, here)
			}

			slices.Reverse(path)

			return path
		}

		for next := range g.edges[here] {
			if _, met := before[next]; !met {
				before[next] = here
				queue = append(queue, next)
			}
		}
	}

	return nil
}

// reader collects the calls in a file.
type reader struct {
	*calls

	info      *types.Info
	receivers map[*ast.Ident]types.Type // receivers of the called methods, by their names
	quiet     bool                      // for the package that hands out connections
}

// read adds the calls in a function.
func (r *reader) read(tree ast.Node, function string) {
	ast.Inspect(tree, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if declared, ok := r.info.Defs[node.Name].(*types.Func); ok && node.Body != nil {
				r.enter(name(declared), declared.Signature(), node.Body)
			}

			return false
		case *ast.FuncLit:
			signature, _ := r.info.TypeOf(node).(*types.Signature)
			r.enter(r.at(node), signature, node.Body)
			r.add(function, r.at(node))

			return false
		case *ast.SelectorExpr:
			if selection := r.info.Selections[node]; selection != nil {
				r.receivers[node.Sel] = selection.Recv().Underlying()
			}
		case *ast.SelectStmt:
			r.add(function, channel)
		case *ast.UnaryExpr:
			if node.Op == token.ARROW {
				r.add(function, channel)
			}
		case *ast.Ident:
			for _, target := range r.targets(node) {
				r.add(function, target)
			}
		case *ast.CallExpr:
			r.pass(node)
		case *ast.AssignStmt:
			for i, right := range node.Rhs {
				if i < len(node.Lhs) && len(node.Lhs) == len(node.Rhs) {
					r.assign(r.variable(node.Lhs[i]), right)
				}
			}
		case *ast.KeyValueExpr:
			r.assign(r.variable(node.Key), node.Value)
		}

		return true
	})
}

// enter reads the body of a function as a function of its own.
func (r *reader) enter(function string, signature *types.Signature, body *ast.BlockStmt) {
	r.add(function, "")
	r.read(body, function)

	for parameter := range signature.Params().Variables() {
		switch parameter.Type().String() {
		case "github.com/jackc/pgx/v5.Tx", module + "internal/postgres.Tx", module + "internal/postgres.Querier", "*github.com/jackc/pgx/v5/pgxpool.Conn":
			if !r.quiet {
				r.holders = append(r.holders, function)
			}
		}
	}
}

// targets returns the functions that a name may refer to.
func (r *reader) targets(ident *ast.Ident) (list []string) {
	switch used := r.info.Uses[ident].(type) {
	case *types.Func:
		contract, ok := r.receivers[ident].(*types.Interface)
		if !ok {
			return []string{name(used)}
		}

		list = append(list, name(used))

		for _, candidate := range r.concrete {
			if types.Implements(candidate, contract) {
				method, _, _ := types.LookupFieldOrMethod(candidate, true, used.Pkg(), used.Name())
				if method, ok := method.(*types.Func); ok {
					list = append(list, name(method))
				}
			}
		}
	case *types.Var:
		return []string{r.value(used)}
	}

	return list
}

// value returns the name of a variable that holds a function, or "" for other variables.
func (r *reader) value(v *types.Var) string {
	if v == nil {
		return ""
	}

	v = v.Origin()
	if _, ok := v.Type().Underlying().(*types.Signature); !ok {
		return ""
	}

	return fmt.Sprintf("%s at %s", v.Name(), r.files.Position(v.Pos()))
}

func (r *reader) variable(expression ast.Expr) *types.Var {
	var ident *ast.Ident

	switch expression := expression.(type) {
	case *ast.Ident:
		ident = expression
	case *ast.SelectorExpr:
		ident = expression.Sel
	default:
		return nil
	}

	if v, ok := r.info.ObjectOf(ident).(*types.Var); ok {
		return v
	}

	return nil
}

// assign records that calling the variable may call the functions in the expression.
func (r *reader) assign(to *types.Var, expression ast.Expr) {
	variable := r.value(to)
	if variable == "" {
		return
	}

	switch expression := expression.(type) {
	case *ast.FuncLit:
		r.add(variable, r.at(expression))
	case *ast.Ident:
		for _, target := range r.targets(expression) {
			r.add(variable, target)
		}
	case *ast.SelectorExpr:
		r.assign(to, expression.Sel)
	}
}

// pass assigns the arguments of a call to the parameters of the called function.
func (r *reader) pass(call *ast.CallExpr) {
	ident, ok := call.Fun.(*ast.Ident)
	if selector, is := call.Fun.(*ast.SelectorExpr); is {
		ident, ok = selector.Sel, true
	}

	if !ok {
		return
	}

	called, ok := r.info.Uses[ident].(*types.Func)
	if !ok {
		return
	}

	parameters := called.Origin().Signature().Params()
	for i, argument := range call.Args {
		r.assign(parameters.At(min(i, parameters.Len()-1)), argument)
	}
}

func (r *reader) at(node ast.Node) string { return "func at " + r.files.Position(node.Pos()).String() }

func name(f *types.Func) string { return f.Origin().FullName() }
