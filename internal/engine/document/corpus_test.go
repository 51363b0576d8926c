package document

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/eval/documents"
)

// TestCorpusIsReadAsWritten reads documents of the corpus of the suite documents. Each page has the words that were written on it, in their order.
func TestCorpusIsReadAsWritten(t *testing.T) {
	t.Parallel()

	kinds := map[string]Kind{".pdf": PDF, ".docx": Word, ".html": HTML, ".md": Markdown, ".eml": Mail}
	reader, files := NewReader(nil), 0

	for _, d := range documents.Corpus(1) {
		kind, isDocument := kinds[filepath.Ext(d.Name)]
		if !isDocument || (!strings.Contains(d.Name, "-2.") && d.Name != "prices-1-de-3.pdf") { // not the shortest ones, and of the long ones only one
			continue
		}

		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, d.Content, 0o600))

		read, err := reader.Read(path, kind, "", func(int64) {})
		require.NoError(t, err, d.Name)
		require.Len(t, read.Pages, len(d.Pages), d.Name)

		for n, page := range read.Pages {
			require.Equal(t, d.Pages[n], strings.Join(strings.Fields(page.Text), " "), "%s, page %d", d.Name, n+1)
		}

		files++
	}

	require.Equal(t, 23, files)
}
