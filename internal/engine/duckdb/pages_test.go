//go:build !race

package duckdb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document/paper"
	"quern.dev/quern/internal/sandbox"
)

// TestPages reads the pages of documents and texts, and refuses what is neither. The race detector would compile PDFium for minutes, so it does not run this test.
func TestPages(t *testing.T) {
	t.Parallel()

	s := children(t, sandbox.Full)

	for name, test := range map[string]struct {
		content []byte
		pages   []string
		refused string
	}{
		"pdf":      {content: paper.PDF(paper.Lines(800, "One"), paper.Lines(800, "Two", "Three")), pages: []string{"One", "Two\nThree"}},
		"html":     {content: paper.HTML("<p>Größe</p><script>no</script>"), pages: []string{"Größe"}},
		"text":     {content: []byte("\xef\xbb\xbfa\r\nb\fc\x07"), pages: []string{"a\nb", "c"}},
		"csv":      {content: []byte("a,b\n1,2\n"), pages: []string{"a,b\n1,2\n"}},
		"json":     {content: []byte(`{"a": 1}`), refused: "The file is no document"},
		"parquet":  {content: []byte("PAR1...."), refused: "The file is no document"},
		"blank":    {content: []byte(" \n\f\n "), refused: "it has no text"},
		"encoding": {content: []byte("Gr\xf6\xdfe"), refused: "not in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			require.NoError(t, os.WriteFile(path, test.content, 0o600))

			opened := session(t, s, path, "file")

			paged, err := opened.Pages(engine.Source{Name: "file"}, "", bounds(), "pages")
			if test.refused != "" {
				require.ErrorContains(t, err, test.refused)

				return
			}

			require.NoError(t, err)
			require.Equal(t, len(test.pages), paged.Pages)

			to := filepath.Join(dir, "pages")
			_, err = opened.Take("pages", to)
			require.NoError(t, err)

			pages, err := engine.ReadPages(to, paged.Pages)
			require.NoError(t, err)
			require.Equal(t, test.pages, pages)

			_, err = engine.ReadPages(to, paged.Pages+1)
			require.Error(t, err)
		})
	}
}
