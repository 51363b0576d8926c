package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGeneratedClients checks that four generators make clients from the served contract without a warning, and that the
// clients work. Each client makes the same calls: rows are stored and read in pages, a question is asked, and the bodies of two
// errors are decoded.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()

	g := &generated{d: newPublic(t), document: filepath.Join(t.TempDir(), "openapi.json")}
	served := call(t, http.MethodGet, g.d.s.url+"/openapi.json", "", "")
	require.NoError(t, os.WriteFile(g.document, []byte(served.body), 0o600))

	t.Run("openapi-typescript", g.typescript)
	t.Run("openapi-python-client", g.pythonClient)
	t.Run("openapi-generator", g.generator)
	t.Run("oapi-codegen", g.codegen)
}

// generated is a service and the file with the contract that it serves.
type generated struct {
	d        *filled
	document string
}

// call runs the program that calls the service. Each program uses the namespace `name`.
func (g *generated) call(t *testing.T, folder, name string, program ...string) {
	t.Helper()

	peer := exec.CommandContext(t.Context(), program[0], program[1:]...)
	peer.Dir = folder
	peer.Env = append(os.Environ(), "QUERN_URL="+g.d.s.url, "QUERN_TOKEN="+g.d.bearer, "QUERN_NAMESPACE="+name, "QUERN_QUESTION="+oneStep,
		"NO_PROXY=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	output, err := peer.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "every call was answered as documented")
}

// made runs a generator or a compiler, which must succeed, and returns its output.
func made(t *testing.T, folder string, program ...string) string {
	t.Helper()

	command := exec.CommandContext(t.Context(), program[0], program[1:]...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))

	return string(output)
}

// copyPeer copies files of a peer to a folder.
func copyPeer(t *testing.T, folder, peer string, names ...string) {
	t.Helper()

	for _, name := range names {
		content, err := os.ReadFile(filepath.Join("peers", peer, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
}

// typescript also checks the types, because the program is compiled with the strictest settings.
func (g *generated) typescript(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	copyPeer(t, folder, "typescript", "package.json", "smoke.ts")
	require.NoError(t, os.Symlink(filepath.Join(installed(t, "typescript"), "node_modules"), filepath.Join(folder, "node_modules")))

	// Without --default-non-nullable false, the generator treats fields with a default as required, even in requests.
	output := made(t, folder, "node_modules/.bin/openapi-typescript", g.document, "--output", "schema.ts", "--default-non-nullable", "false")
	require.NotContains(t, strings.ToLower(output), "warn")

	made(t, folder, "node_modules/.bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "smoke.ts")
	g.call(t, folder, "typescript", "node", "smoke.js")
}

func (g *generated) pythonClient(t *testing.T) {
	t.Parallel()

	folder, tools := t.TempDir(), filepath.Join(installed(t, "openapi-python-client"), "bin")
	copyPeer(t, folder, "openapi-python-client", "config.yaml", "smoke.py")

	made(t, folder, filepath.Join(tools, "openapi-python-client"), "generate", "--fail-on-warning", "--path", g.document,
		"--config", "config.yaml", "--meta", "none", "--output-path", "quern_client")
	g.call(t, folder, "python-client", filepath.Join(tools, "python"), "smoke.py")
}

func (g *generated) generator(t *testing.T) {
	t.Parallel()

	folder, tools := t.TempDir(), installed(t, "openapi-generator")
	copyPeer(t, folder, "openapi-generator", "smoke.py")

	output := made(t, folder, "java", "-jar", filepath.Join(tools, "openapi-generator-cli.jar"), "generate", "--generator-name", "python",
		"--input-spec", g.document, "--output", ".", "--package-name", "quern_client",
		"--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false")
	for line := range strings.Lines(output) {
		// The generator prints this line for every document, even one with a single operation.
		if !strings.HasSuffix(line, "Failed to get the schema name: null\n") {
			require.NotRegexp(t, `\b(WARN|ERROR)\b`, line)
		}
	}

	g.call(t, folder, "generator", filepath.Join(tools, "python", "bin", "python"), "smoke.py")
}

func (g *generated) codegen(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	copyPeer(t, folder, "oapi-codegen", "go.mod", "go.sum", "main.go")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "quern"), 0o700))

	output := made(t, folder, filepath.Join(installed(t, "oapi-codegen"), "oapi-codegen"), "-generate", "models,client", "-package", "quern",
		"-o", "quern/client.gen.go", g.document)
	require.Empty(t, output)

	made(t, folder, "go", "build", "-o", "smoke", ".")
	g.call(t, folder, "codegen", "./smoke")
}
