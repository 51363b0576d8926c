package internal_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// document is a Markdown file of the repository.
type document struct {
	broken  []string // openings of code blocks that Markdown does not accept
	links   []string // targets of its links and pictures, as written
	anchors []string // fragments of its headings
	heads   []string // texts of its headings
	first   string   // first line of text after the title
}

var (
	docLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	docHeading = regexp.MustCompile(`^#{1,6} (.+)$`)
	docCode    = regexp.MustCompile("`[^`]*`")
)

// read parses a Markdown file. It ignores what is in blocks of code, and links that are in code.
func read(text string) (d document) {
	open, seen := false, map[string]int{}

	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")

		if info, isFence := strings.CutPrefix(strings.TrimSpace(line), "```"); isFence {
			if strings.Contains(info, "`") {
				d.broken = append(d.broken, line)
			}

			open = !open

			continue
		}

		if open || line == "" {
			continue
		}

		for _, link := range docLink.FindAllStringSubmatch(docCode.ReplaceAllString(line, ""), -1) {
			d.links = append(d.links, link[1])
		}

		heading := docHeading.FindStringSubmatch(line)
		if heading == nil {
			if d.first == "" && len(d.heads) > 0 {
				d.first = line
			}

			continue
		}

		anchor := fragment(heading[1])
		if seen[anchor]++; seen[anchor] > 1 {
			anchor += fmt.Sprintf("-%d", seen[anchor]-1)
		}

		d.heads, d.anchors = append(d.heads, strings.ReplaceAll(heading[1], "`", "")), append(d.anchors, anchor)
	}

	return d
}

// fragment returns the fragment that GitHub gives a heading.
func fragment(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// files returns the text of all files of the repository with one of the endings, by path.
func files(t *testing.T, endings ...string) map[string]string {
	t.Helper()

	found, root := map[string]string{}, os.DirFS("..")

	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "node_modules", "testdata"}, entry.Name()):
			return fs.SkipDir
		case entry.Type().IsRegular() && slices.Contains(endings, path.Ext(name)):
			text, err := fs.ReadFile(root, name)
			found[name] = string(text)

			return err
		default:
			return nil
		}
	}))

	return found
}

// TestLinks checks that every relative link of every document leads to a file of the repository and its fragment to a heading, and that
// blocks of code are shown as such.
func TestLinks(t *testing.T) {
	t.Parallel()

	documents := map[string]document{}
	for name, text := range files(t, ".md") {
		documents[name] = read(text)
	}

	count := 0

	for name, document := range documents {
		require.Empty(t, document.broken, "%s: no backtick after the opening of a block: it would not be shown as code", name)

		for _, link := range document.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}

			count++

			target, anchor, hasAnchor := strings.Cut(link, "#")
			if target = path.Join(path.Dir(name), target); strings.HasPrefix(link, "#") {
				target = name
			}

			_, err := os.Stat("../" + target)
			require.NoError(t, err, "%s: %s", name, link)

			if hasAnchor {
				require.Contains(t, documents[target].anchors, anchor, "%s: %s", name, link)
			}
		}
	}

	require.Greater(t, count, 200)
}

// TestMentionedDocuments checks the names of documents in code, messages and scripts: docs/operations.md, or
// docs/operations.md, Restore.
func TestMentionedDocuments(t *testing.T) {
	t.Parallel()

	mention := regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(?:, ([A-Z][A-Za-z ]+))?`)
	count := 0

	for name, text := range files(t, ".go", ".sh", ".yaml", ".yml", ".service", ".sql", "") {
		for _, found := range mention.FindAllStringSubmatch(text, -1) {
			count++

			target, _, _ := strings.Cut(found[0], ",")
			heads := read(content(t, target)).heads
			require.True(t, slices.ContainsFunc(heads, func(head string) bool { return strings.HasPrefix(head, strings.TrimSpace(found[1])) }),
				"%s: %s", name, found[0])
		}
	}

	require.Greater(t, count, 30)
}

// TestDocumentsAreFound checks that docs/README.md links to the start page of each group of readers, that every other page is linked from one
// of them, and that every page says at its beginning what it is for.
func TestDocumentsAreFound(t *testing.T) {
	t.Parallel()

	index := read(content(t, "docs/README.md"))
	reached := slices.Clone(index.links)

	for _, group := range []string{"evaluators", "users", "developers", "operators", "contributors"} {
		page := "for-" + group + ".md"
		require.Contains(t, index.links, page)
		require.Contains(t, content(t, "README.md"), "docs/"+page)

		reached = append(reached, read(content(t, "docs/"+page)).links...)
	}

	decisions := read(content(t, "docs/adr/README.md")).links

	for name, text := range files(t, ".md") {
		folder, base := path.Split(name)

		switch {
		case folder == "docs/" && base != "README.md":
			require.Contains(t, reached, base, "no start page leads to it")
			require.Regexp(t, `^[A-Z`+"`*"+`]`, read(text).first, "%s: the first line says what the page is for", name)
		case folder == "docs/adr/" && base != "README.md":
			require.Contains(t, decisions, base, "the index lacks it")
		}
	}
}
