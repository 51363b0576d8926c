package document

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document/paper"
)

// readDocument returns the document and the text that Write makes of it, or the message of the fault.
func readDocument(t *testing.T, content []byte, kind Kind, fields ...string) (d Document, written Written, text, fault string) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))

	r := NewReader(fields)

	d, err := r.Read(path, kind, "", func(int64) {})
	if err == nil {
		written, err = r.Write(d, path+".rows")
	}

	if said, ok := errors.AsType[*engine.FileError](err); ok {
		return d, written, "", said.Message
	}

	require.NoError(t, err)

	made, err := os.ReadFile(path + ".rows")
	require.NoError(t, err)

	return d, written, string(made), ""
}

func prices() [][]string {
	return [][]string{{"Item", "Unit", "Price"}, {"Bolt M6", "box", "1.20"}, {"Nut, \"big\"", "box", "0.80"}, {"Anchor", "", "12.00"}}
}

const pricesText = "\"Item\",\"Unit\",\"Price\"\n\"Bolt M6\",\"box\",\"1.20\"\n\"Nut, \"\"big\"\"\",\"box\",\"0.80\"\n\"Anchor\",,\"12.00\"\n"

func TestTables(t *testing.T) {
	t.Parallel()

	table, bottom := paper.Table(700, 16, []float64{50, 250, 400}, prices())
	drawn := append(paper.Lines(800, "Price list of the shop", "Valid from 2 November 2026, all prices in euros and without tax."), table...)
	drawn = append(drawn, paper.Lines(bottom-30, "Orders below 20 euros cost 3 euros more, whatever is in them.")...)

	for name, one := range map[string]struct {
		content []byte
		kind    Kind
	}{
		"pdf":      {paper.PDF(drawn), PDF},
		"word":     {paper.Word(paper.Paragraph("Price list"), paper.WordTable(prices()), paper.Paragraph("The end.")), Word},
		"html":     {paper.HTML("<h1>Price list</h1>" + paper.HTMLTable(prices()) + "<p>The end."), HTML},
		"markdown": {[]byte("# Price list\n\n" + paper.Markdown(prices()) + "\nThe end.\n"), Markdown},
		"mail":     {paper.Mail("Prices", paper.Part{Header: "Content-Type: text/html; charset=utf-8", Body: string(paper.HTML(paper.HTMLTable(prices())))}), Mail},
		"text mail": {paper.Mail("Prices", paper.Part{
			Header: "Content-Type: text/plain; charset=utf-8",
			Body:   "Dear all,\n\nthese are the prices of the week.\n\nItem         Unit  Price\nBolt M6      box    1.20\nNut, \"big\"   box    0.80\nAnchor              12.00\n\nRegards\n",
		}), Mail},
		"attached": {paper.Mail("Prices",
			paper.Part{Header: "Content-Type: text/plain", Body: "See the attachment."},
			paper.Part{Header: "Content-Type: text/markdown\r\nContent-Disposition: attachment; filename=notes.bin", Body: "\x00\x01"},
			paper.Part{Header: "Content-Type: text/html\r\nContent-Disposition: attachment; filename=prices.html", Body: string(paper.HTML(paper.HTMLTable(prices())))}), Mail},
	} {
		for _, fields := range [][]string{nil, {"item", "price"}} {
			d, written, text, fault := readDocument(t, one.content, one.kind, fields...)
			require.Empty(t, fault, name)

			want := pricesText
			if fields != nil {
				want = "\"item\",\"Unit\",\"price\"\n" + pricesText[len("\"Item\",\"Unit\",\"Price\"\n"):]
			}

			require.Equal(t, want, text, "%s %v %q", name, fields, d.Pages)

			for _, page := range d.Pages {
				for _, block := range page.Blocks {
					require.NotEmpty(t, page.Text[block.From:block.To], name)
				}
			}

			if name == "attached" {
				require.Equal(t, []int{2, 2, 2, 2}, written.Pages)
				require.Len(t, written.Doubts, 1)
			} else {
				require.Equal(t, []int{1, 1, 1, 1}, written.Pages, name)
				require.Empty(t, written.Doubts, name)
			}
		}
	}
}

// TestDamagedWord checks that a Word document whose end is missing is told as one, and not as a zip archive.
func TestDamagedWord(t *testing.T) {
	t.Parallel()

	whole := paper.Word(paper.WordTable(prices()))
	damaged := whole[:len(whole)-100]
	require.True(t, IsWord(bytes.NewReader(damaged), int64(len(damaged))))

	_, _, _, fault := readDocument(t, damaged, Word) //nolint:dogsled // only the fault matters
	require.Contains(t, fault, "The Word document is broken or truncated")

	other := paper.Zip(map[string]string{"a.csv": "n\n1\n"})
	require.False(t, IsWord(bytes.NewReader(other[:len(other)-20]), int64(len(other)-20)))
}
