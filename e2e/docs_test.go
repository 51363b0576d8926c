package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docBlock is a fenced block of a document.
type docBlock struct {
	line, end  int
	info, text string
	prints     *string // the text of the next block, if that block follows directly and has no language
}

// TestDocs runs every block of commands in the documents, each document in its own shell against its own service. A block without
// a language directly after a block of commands is the expected output.
//
//   - sh: is run, and no command may fail.
//   - sh fails: is run, and its last command must fail.
//   - sh not run: WHY
//   - sh run=NAME: is run by another test: TestA2ADocument, TestDocumentedRoles, TestDev.
//
// The commands of a document run as the user ada. docAddress in a document is replaced by the address of the service.
func TestDocs(t *testing.T) {
	t.Parallel()

	documents, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, documents)

	for _, document := range append(documents, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		content, err := os.ReadFile(document)
		require.NoError(t, err)

		var commands []docBlock

		for _, block := range docBlocks(t, string(content)) {
			language, how, _ := strings.Cut(block.info, " ")
			where := fmt.Sprintf("%s:%d", document, block.line)

			switch reason, isNotRun := strings.CutPrefix(how, "not run:"); {
			case language != "sh":
				require.False(t, looksLikeCommand.MatchString(block.text), "%s: commands stand in a block of sh", where)
			case isNotRun:
				require.NotEmpty(t, strings.TrimSpace(reason), "%s: why is it not run?", where)
			case how == "" || how == "fails":
				commands = append(commands, block)
			default:
				require.True(t, strings.HasPrefix(how, "run="), "%s: %q", where, block.info)
			}
		}

		if len(commands) > 0 {
			t.Run(filepath.Base(document), func(t *testing.T) {
				t.Parallel()
				newDocSession(t).play(t, commands)
			})
		}
	}
}

// looksLikeCommand matches a line that a reader would type.
var looksLikeCommand = regexp.MustCompile(`(?m)^(\$ |(sudo )?(quernd?|bin/quernd?|curl|make|docker|go) [a-z-])`)

func docBlocks(t *testing.T, document string) (blocks []docBlock) {
	t.Helper()

	open, number := false, 0

	for line := range strings.Lines(document) {
		number++

		switch info, isFence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case isFence && !open:
			open = true
			blocks = append(blocks, docBlock{line: number, info: info})
		case isFence:
			open = false
			blocks[len(blocks)-1].end = number
		case open:
			blocks[len(blocks)-1].text += line
		}
	}

	require.False(t, open, "a block does not end")

	for i, block := range blocks {
		if i > 0 && block.info == "" && block.line == blocks[i-1].end+1 {
			blocks[i-1].prints = &block.text
		}
	}

	return blocks
}

type docSession struct {
	s      *service
	folder string
	env    []string
}

func newDocSession(t *testing.T) *docSession {
	t.Helper()

	s := start(t)
	ada, bob := s.realm.password("ada"), s.realm.password("bob")
	require.Equal(t, 200, call(t, "GET", s.url+"/user/me", bob, "").status, "bob has been here")

	token := value(t, call(t, "POST", s.url+"/user/tokens", ada, `{"name": "documents", "role": "owner"}`))
	c := s.signedIn(t, token)
	path := "PATH=" + filepath.Dir(quernBinary()) + ":" + os.Getenv("PATH")

	return &docSession{s: s, folder: c.home, env: slices.Concat(s.settings, c.env, []string{
		"QUERN_DATABASE_DIRECT_URL=" + s.databaseURL, "QUERN_TOKEN=" + token, path,
	})}
}

// play runs the blocks in order in one shell, so that variables persist.
func (d *docSession) play(t *testing.T, blocks []docBlock) {
	t.Helper()

	script := new(strings.Builder)
	fmt.Fprintln(script, `set -o pipefail; trap 'echo "$BASH_COMMAND" >>failed' ERR; set -E`)

	for i, block := range blocks {
		fmt.Fprintf(script, "rm -f failed\n{\n%s\n} >output-%d 2>&1 </dev/null\ntouch failed; mv failed failed-%d\n", d.real(block.text), i, i)
	}

	command := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	command.Dir, command.Env = d.folder, d.env
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)

	for i, block := range blocks {
		output, err := os.ReadFile(filepath.Join(d.folder, fmt.Sprintf("output-%d", i)))
		require.NoError(t, err)
		failed, err := os.ReadFile(filepath.Join(d.folder, fmt.Sprintf("failed-%d", i)))
		require.NoError(t, err)

		require.Equal(t, strings.HasSuffix(block.info, " fails"), len(failed) > 0, "line %d: %s\n%s", block.line, failed, output)

		if block.prints != nil {
			require.Regexp(t, d.pattern(*block.prints), steady(strings.ReplaceAll(string(output), d.s.root, docAddress)), "line %d prints:\n%s", block.line, output)
		}
	}
}

// docAddress is the address of the service in the documents.
const docAddress = "http://127.0.0.1:8080"

func (d *docSession) real(text string) string { return strings.ReplaceAll(text, docAddress, d.s.root) }

// pattern returns a pattern for an expected output, in which … stands for any text.
func (d *docSession) pattern(output string) string {
	return `(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(steady(output)), "…", ".*") + `\z`
}

var docVarying = []variation{ //nolint:gochecknoglobals // never changed
	{regexp.MustCompile(`"elapsedMs":\d+`), `"elapsedMs":<n>`},
	{regexp.MustCompile(`\(\d[\d.]*(µs|ms|s)\)`), "(<time>)"},
}

// steady replaces text that differs in every run.
func steady(text string) string {
	text = uuidPattern.ReplaceAllString(text, "<id>")
	for _, one := range slices.Concat(varying, docVarying) {
		text = one.pattern.ReplaceAllString(text, one.name)
	}

	return text
}
