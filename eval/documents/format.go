package documents

import (
	"encoding/base64"
	"fmt"
	"html"
	"mime"
	"strings"

	"quern.dev/quern/internal/engine/document/paper"
)

// format is how a sheet becomes a file, as the end of its name.
type format string

const (
	asPDF      format = "pdf"
	asWord     format = "docx"
	asHTML     format = "html"
	asMarkdown format = "md"
	asText     format = "txt"
	asMail     format = "eml"
)

const (
	pageLines   = 46 // of a printed page
	lineLetters = 88
	mailLetters = 72
	cellLetters = 30 // of the first wide column of a printed table
	wideColumn  = 2  // its number
)

func (f format) isPaged() bool { return f == asPDF || f == asWord || f == asText }

// height returns how many lines of a printed page a block takes, with the gap below it.
func (f format) height(b block) int {
	switch b.kind {
	case heading:
		return 2
	case row:
		return len(wrapped(b.cells))
	default:
		return len(wrap(b.cells[0], lineLetters)) + 1
	}
}

// file returns the content of the file.
func (f format) file(s *sheet) []byte {
	switch f {
	case asPDF:
		return printPDF(s)
	case asWord:
		return printWord(s)
	case asHTML:
		return paper.HTML(markup(s))
	case asMarkdown:
		return []byte(strings.ReplaceAll(markdown(s), "\f", ""))
	case asText:
		return []byte(plain(s.pages, lineLetters))
	default:
		return printMail(s)
	}
}

// wrap breaks a text into lines.
func wrap(text string, letters int) (lines []string) {
	line := ""

	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > letters:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}

	return append(lines, line)
}

// wrapped breaks the wide cell of a row of a printed table into lines. The other cells stand beside the first one.
func wrapped(cells []string) (lines [][]string) {
	if len(cells) <= wideColumn {
		return [][]string{cells}
	}

	for n, text := range wrap(cells[wideColumn], cellLetters) {
		line := make([]string, len(cells))
		if n == 0 {
			copy(line, cells)
		}

		line[wideColumn] = text
		lines = append(lines, line)
	}

	return lines
}

const (
	printTop  = 800.0
	printLeft = 50.0
	halfWay   = 330.0 // where the second of two texts beside each other begins
	lineGap   = 14.0
	rowGap    = 15.0
	wrapGap   = 11.0 // within a row
)

func printPDF(s *sheet) []byte {
	var pages [][]paper.Print

	for _, blocks := range s.pages {
		var page []paper.Print

		y := printTop

		for n, b := range blocks {
			if n > 0 && (b.kind != row || blocks[n-1].kind != row) {
				y -= lineGap
			}

			var prints []paper.Print

			prints, y = s.printBlock(y, b)
			page = append(page, prints...)
		}

		pages = append(pages, page)
	}

	return paper.PDF(pages...)
}

// printBlock returns the prints of a block that begins at a height, and where it ends.
func (s *sheet) printBlock(y float64, b block) (prints []paper.Print, bottom float64) {
	switch b.kind {
	case footer:
		return []paper.Print{{X: printLeft, Y: 30, Size: 8, Text: b.cells[0]}}, y
	case heading:
		return []paper.Print{{X: printLeft, Y: y, Size: 14, Text: b.cells[0]}}, y - lineGap
	case row:
		for n, line := range wrapped(b.cells) {
			if n > 0 {
				y += rowGap - wrapGap
			}

			prints = append(prints, s.printRow(y, line)...)
			y -= rowGap
		}

		return prints, y
	default:
		for i, cell := range b.cells {
			for n, line := range wrap(cell, lineLetters) {
				prints = append(prints, paper.Print{X: printLeft + float64(i)*(halfWay-printLeft), Y: y - lineGap*float64(n), Size: 10, Text: line})
			}
		}

		return prints, y - lineGap*float64(len(wrap(b.cells[0], lineLetters)))
	}
}

func (s *sheet) printRow(y float64, cells []string) (prints []paper.Print) {
	for n, cell := range cells {
		if cell == "" {
			continue
		}

		if x := s.columns[n]; x < 0 {
			prints = append(prints, paper.Right(-x, y, cell))
		} else {
			prints = append(prints, paper.Print{X: x, Y: y, Size: 10, Text: cell})
		}
	}

	return prints
}

func printWord(s *sheet) []byte {
	var parts []string

	for n, blocks := range s.pages {
		if n > 0 {
			parts = append(parts, `<w:p><w:r><w:br w:type="page"/></w:r></w:p>`)
		}

		for _, run := range runs(blocks) {
			switch run[0].kind {
			case row:
				var rows [][]string
				for _, b := range run {
					rows = append(rows, b.cells)
				}

				parts = append(parts, paper.WordTable(rows))
			case heading:
				parts = append(parts, `<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>`+html.EscapeString(run[0].cells[0])+`</w:t></w:r></w:p>`)
			default:
				parts = append(parts, paper.Paragraph(strings.Join(run[0].cells, "\t")))
			}
		}
	}

	return paper.Word(parts...)
}

// runs returns the blocks one by one, and the rows of a table together.
func runs(blocks []block) (all [][]block) {
	for _, b := range blocks {
		if last := len(all) - 1; b.kind == row && last >= 0 && all[last][0].kind == row {
			all[last] = append(all[last], b)
		} else {
			all = append(all, []block{b})
		}
	}

	return all
}

// markup returns the body of an HTML document. It has what no reader sees: a script, and an old price that is hidden.
func markup(s *sheet) string {
	var body strings.Builder

	body.WriteString(`<script>var price = "99.99";</script><div style="display: none">999.00 EUR</div>`)

	for _, run := range runs(s.pages[0]) {
		switch run[0].kind {
		case row:
			var rows [][]string
			for _, b := range run {
				rows = append(rows, b.cells)
			}

			body.WriteString(paper.HTMLTable(rows))
		case heading:
			fmt.Fprintf(&body, "<h2>%s</h2>\n", html.EscapeString(run[0].cells[0]))
		default:
			text := html.EscapeString(strings.Join(run[0].cells, "\t"))
			fmt.Fprintf(&body, "<p>%s</p>\n", strings.ReplaceAll(text, " €", "&nbsp;€"))
		}
	}

	return body.String()
}

func markdown(s *sheet) string {
	var text strings.Builder

	for _, run := range runs(s.pages[0]) {
		switch run[0].kind {
		case row:
			var rows [][]string
			for _, b := range run {
				rows = append(rows, b.cells)
			}

			text.WriteString(paper.Markdown(rows) + "\n")
		case heading:
			text.WriteString("# " + run[0].cells[0] + "\n\n")
		default:
			text.WriteString(strings.Join(run[0].cells, "\t") + "\n\n")
		}
	}

	return text.String()
}

// plain returns pages as text. The cells of tables are aligned by blanks.
func plain(pages [][]block, letters int) string {
	var text strings.Builder

	for n, blocks := range pages {
		if n > 0 {
			text.WriteString("\f")
		}

		for _, run := range runs(blocks) {
			for _, b := range run {
				switch {
				case b.kind == row:
					text.WriteString(aligned(b.cells) + "\n")
				case strings.HasPrefix(b.cells[0], "> "):
					text.WriteString(b.cells[0] + "\n")
				default:
					text.WriteString(strings.Join(wrap(strings.Join(b.cells, " "), letters), "\n") + "\n")
				}
			}

			if !strings.HasPrefix(run[0].cells[0], "> ") {
				text.WriteString("\n")
			}
		}
	}

	return text.String()
}

func aligned(cells []string) string {
	var line strings.Builder
	for _, cell := range cells {
		fmt.Fprintf(&line, "%-26s  ", cell)
	}

	return strings.TrimRight(line.String(), " ")
}

// printMail writes a mail. Its first block is its header. With an attachment, its text is HTML.
func printMail(s *sheet) []byte {
	head := s.pages[0][0].cells

	var mail strings.Builder

	for n, name := range []string{"From", "To", "Date", "Subject"} {
		fmt.Fprintf(&mail, "%s: %s\r\n", name, mime.QEncoding.Encode("utf-8", strings.TrimPrefix(head[n], name+": ")))
	}

	mail.WriteString("MIME-Version: 1.0\r\n")

	kind, body := "text/plain", plain([][]block{s.pages[0][1:]}, mailLetters)
	if s.attached != nil {
		kind, body = "text/html", string(paper.HTML(markup(&sheet{pages: [][]block{s.pages[0][1:]}})))
	}

	header := "Content-Type: " + kind + "; charset=utf-8\r\nContent-Transfer-Encoding: 8bit"
	if s.attached == nil {
		return []byte(mail.String() + header + "\r\n\r\n" + body)
	}

	mail.WriteString("Content-Type: multipart/mixed; boundary=\"seam\"\r\n\r\n--seam\r\n" + header + "\r\n\r\n" + body +
		"\r\n--seam\r\nContent-Type: application/pdf; name=\"list.pdf\"\r\nContent-Disposition: attachment; filename=\"list.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\n")

	for packed := base64.StdEncoding.EncodeToString(s.attached.format.file(s.attached)); packed != ""; {
		line := packed[:min(len(packed), 76)]
		packed = packed[len(line):]

		mail.WriteString(line + "\r\n")
	}

	mail.WriteString("--seam--\r\n")

	return []byte(mail.String())
}
