package document

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document/paper"
)

// FuzzRead reads documents of all kinds but PDF, whose reader is not ours.
func FuzzRead(f *testing.F) {
	for n, seed := range [][]byte{
		paper.HTML(paper.HTMLTable(prices())),
		paper.HTML("<table><tr><td colspan=3>a<td rowspan=2>b<tr><th>c</table><h2>d</h2><p style='display:none'>e"),
		[]byte("# Prices\n\n" + paper.Markdown(prices()) + "```\n| a |\n```\nItem   Price\nBolt    1.20\n"),
		[]byte("Item\tPrice\nBolt\t1.20\n\\|a|b\n-|-\n"),
		paper.Mail("=?utf-8?q?a?=", paper.Part{Header: "Content-Type: text/html", Body: paper.HTMLTable(prices())}),
		paper.Mail("x", paper.Part{Header: "Content-Type: text/plain", Body: "a"}, paper.Part{Header: "Content-Disposition: attachment; filename=a.htm", Body: string(paper.HTML("a"))}),
		paper.Word(paper.Paragraph("a"), paper.WordTable(prices())),
		paper.Word(`<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a</w:t><w:br w:type="page"/></w:r></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc></w:tr></w:tbl>`),
	} {
		f.Add(seed, n/2)
	}

	kinds := []Kind{HTML, Markdown, Mail, Word}

	f.Fuzz(func(t *testing.T, data []byte, kind int) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, data, 0o600))

		Detect(data)
		IsMarkdown(data)

		for _, fields := range [][]string{nil, {"item", "price"}} {
			r := NewReader(fields)

			found, err := r.Read(path, kinds[uint(kind)%uint(len(kinds))], "", func(int64) {})
			if err == nil {
				for _, page := range found.Pages {
					for _, block := range page.Blocks {
						require.NotEmpty(t, page.Text[block.From:block.To])
					}
				}

				var written Written
				if written, err = r.Write(found, path+".rows"); err == nil {
					require.Greater(t, len(written.Pages), 1)
				}
			}

			if err != nil {
				_, known := errors.AsType[*engine.FileError](err)
				require.True(t, known, err)
			}
		}
	})
}
