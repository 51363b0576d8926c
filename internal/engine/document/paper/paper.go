// Package paper makes documents for tests and measures: small files of every kind that package document reads, with tables and texts whose
// rows are known.
package paper

import (
	"archive/zip"
	"bytes"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
)

// Print is a text at a place of a page, in points from the left and the bottom.
type Print struct {
	X, Y, Size float64
	Text       string
}

// PDF returns a PDF document. Texts may have the letters of windows-1252.
func PDF(pages ...[]Print) []byte {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"}

	var kids []string

	for _, page := range pages {
		var content strings.Builder
		for _, p := range page {
			fmt.Fprintf(&content, "BT /F1 %.1f Tf 1 0 0 1 %.2f %.2f Tm (%s) Tj ET\n", p.Size, p.X, p.Y, escaped(p.Text))
		}

		kids = append(kids, fmt.Sprintf("%d 0 R", len(objects)+1))
		objects = append(objects,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", len(objects)+2),
			Stream("", content.String()))
	}

	objects[1] = fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", len(pages), strings.Join(kids, " "))

	return Objects(objects, "/Root 1 0 R")
}

// Stream returns the object of a stream. more is added to its dictionary.
func Stream(more, content string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", more, len(content), content)
}

// Objects returns a PDF file with these objects, the first of which has the number 1.
func Objects(objects []string, trailer string) []byte {
	var file bytes.Buffer

	file.WriteString("%PDF-1.7\n")

	places := make([]int, len(objects))

	for n, object := range objects {
		places[n] = file.Len()
		fmt.Fprintf(&file, "%d 0 obj\n%s\nendobj\n", n+1, object)
	}

	at := file.Len()

	fmt.Fprintf(&file, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)

	for _, place := range places {
		fmt.Fprintf(&file, "%010d 00000 n \n", place)
	}

	fmt.Fprintf(&file, "trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, at)

	return file.Bytes()
}

func escaped(text string) string {
	var out strings.Builder

	for _, r := range text {
		switch {
		case r == '(' || r == ')' || r == '\\':
			out.WriteString("\\" + string(r))
		case r == '€':
			out.WriteString("\\200")
		case r > '~':
			fmt.Fprintf(&out, "\\%03o", r)
		default:
			out.WriteRune(r)
		}
	}

	return out.String()
}

// Table returns the prints of a table whose columns begin at the given places, from the top downwards, and where it ends.
func Table(top, pitch float64, columns []float64, rows [][]string) (prints []Print, bottom float64) {
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" {
				prints = append(prints, Print{columns[i], top, 10, cell})
			}
		}

		top -= pitch
	}

	return prints, top
}

// Lines returns the prints of lines of text.
func Lines(top float64, lines ...string) (prints []Print) {
	for n, line := range lines {
		prints = append(prints, Print{50, top - 14*float64(n), 10, line})
	}

	return prints
}

// Word returns a Word document of paragraphs and tables, which Paragraph and WordTable return.
func Word(blocks ...string) []byte {
	return Zip(map[string]string{
		"[Content_Types].xml": `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels": `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" ` +
			`Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
		"word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` +
			strings.Join(blocks, "") + `</w:body></w:document>`,
	})
}

// Zip returns a zip archive. Equal parts give equal bytes.
func Zip(parts map[string]string) []byte {
	var file bytes.Buffer

	archive := zip.NewWriter(&file)

	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, err := archive.Create(name)
		if err == nil {
			_, err = part.Write([]byte(parts[name]))
		}

		if err != nil {
			panic(err) // memory does not fail
		}
	}

	if err := archive.Close(); err != nil {
		panic(err)
	}

	return file.Bytes()
}

// Paragraph returns a paragraph of a Word document.
func Paragraph(text string) string {
	return `<w:p><w:r><w:t xml:space="preserve">` + html.EscapeString(text) + `</w:t></w:r></w:p>`
}

// WordTable returns a table of a Word document.
func WordTable(rows [][]string) string {
	var table strings.Builder

	table.WriteString("<w:tbl>")

	for _, row := range rows {
		table.WriteString("<w:tr>")

		for _, cell := range row {
			table.WriteString("<w:tc>" + Paragraph(cell) + "</w:tc>")
		}

		table.WriteString("</w:tr>")
	}

	return table.String() + "</w:tbl>"
}

// HTML returns an HTML document with a body.
func HTML(body string) []byte {
	return []byte("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>x</title></head><body>" + body + "</body></html>\n")
}

// HTMLTable returns a table of an HTML document.
func HTMLTable(rows [][]string) string {
	var table strings.Builder

	table.WriteString("<table>")

	for _, row := range rows {
		table.WriteString("<tr>")

		for _, cell := range row {
			table.WriteString("<td>" + html.EscapeString(cell) + "</td>")
		}

		table.WriteString("</tr>\n")
	}

	return table.String() + "</table>"
}

// Markdown returns a table in Markdown.
func Markdown(rows [][]string) string {
	var table strings.Builder

	for n, row := range rows {
		table.WriteString("| " + strings.Join(row, " | ") + " |\n")

		if n == 0 {
			table.WriteString(strings.Repeat("| --- ", len(row)) + "|\n")
		}
	}

	return table.String()
}

// Part is a part of a mail: its header without the blank line, and its body.
type Part struct{ Header, Body string }

// Mail returns a mail with a subject and parts. One part is the mail itself.
func Mail(subject string, parts ...Part) []byte {
	head := "From: office@example.test\r\nTo: shop@example.test\r\nDate: Mon, 02 Nov 2026 08:00:00 +0000\r\nSubject: " + subject + "\r\nMIME-Version: 1.0\r\n"

	if len(parts) == 1 {
		return []byte(head + parts[0].Header + "\r\n\r\n" + parts[0].Body)
	}

	var mail strings.Builder

	mail.WriteString(head + "Content-Type: multipart/mixed; boundary=\"seam\"\r\n\r\n")

	for _, part := range parts {
		mail.WriteString("--seam\r\n" + part.Header + "\r\n\r\n" + part.Body + "\r\n")
	}

	return []byte(mail.String() + "--seam--\r\n")
}

// Right returns a print of a number of 10 points that ends at x.
func Right(x, y float64, text string) Print {
	const digit, sign = 5.56, 2.78

	for _, r := range text {
		if r >= '0' && r <= '9' {
			x -= digit
		} else {
			x -= sign
		}
	}

	return Print{x, y, 10, text}
}
