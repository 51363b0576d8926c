package document

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

const (
	maxNesting = 500     // of elements
	maxCells   = 2 << 20 // of one table, with those that span others
)

// readHTML reads the text that a browser shows without scripts and styles. contentType is the one of its transport, if it is known.
func (r *reading) readHTML(data []byte, contentType string) error {
	page := &composer{}
	if err := r.composeHTML(page, data, contentType); err != nil {
		return err
	}

	return r.add(page)
}

func (r *reading) composeHTML(page *composer, data []byte, contentType string) error {
	if r.encoding != "" {
		contentType = "text/html; charset=" + r.encoding
	}

	found, name, _ := charset.DetermineEncoding(data[:min(len(data), 1024)], contentType)

	decoded, err := io.ReadAll(io.LimitReader(found.NewDecoder().Reader(bytes.NewReader(data)), maxMarkup+1))

	switch {
	case err != nil:
		return invalid("The HTML document is not in the encoding %s.", name)
	case len(decoded) > maxMarkup:
		return exceeded("The HTML document has more than %d bytes.", maxMarkup)
	}

	root, err := html.Parse(bytes.NewReader(decoded))
	if err != nil {
		return invalid("The HTML document is broken: %s.", shorten(err.Error()))
	}

	walk := markup{page: page}
	err = walk.node(root, 0)
	walk.flush()

	return err
}

// markup walks through the elements of an HTML document.
type markup struct {
	page *composer
	text strings.Builder // of the current paragraph
}

func (m *markup) flush() {
	text := oneLine(m.text.String())
	m.text.Reset()
	m.page.add(Paragraph, text)
}

func (m *markup) node(n *html.Node, depth int) error {
	switch {
	case depth > maxNesting:
		return exceeded("The elements of the HTML document are nested in more than %d levels.", maxNesting)
	case n.Type == html.TextNode:
		m.text.WriteString(n.Data)

		return nil
	case n.Type == html.ElementNode && isUnseen(n):
		return nil
	}

	isBlock := n.Type == html.ElementNode && isBlock(n.DataAtom)
	if isBlock {
		m.flush()
	}

	if n.DataAtom == atom.Table && !hasTable(n) {
		return m.table(n)
	}

	from := len(m.page.blocks)

	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if err := m.node(child, depth+1); err != nil {
			return err
		}
	}

	if isBlock {
		m.flush()
	}

	if n.Type == html.ElementNode && slices.Contains([]atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}, n.DataAtom) {
		for i := range m.page.blocks[from:] {
			m.page.blocks[from+i].Kind = Heading
		}
	}

	return nil
}

// isUnseen reports whether an element has no text that a reader sees. Texts that are hidden are often meant for programs.
func isUnseen(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Noscript, atom.Head, atom.Svg, atom.Math, atom.Select, atom.Textarea, atom.Audio, atom.Video, atom.Canvas:
		return true
	default:
	}

	for _, a := range n.Attr {
		value := strings.ToLower(strings.ReplaceAll(a.Val, " ", ""))
		if a.Key == "hidden" || (a.Key == "aria-hidden" && value == "true") ||
			(a.Key == "style" && (strings.Contains(value, "display:none") || strings.Contains(value, "visibility:hidden"))) {
			return true
		}
	}

	return false
}

func isBlock(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br, atom.Caption, atom.Center, atom.Dd, atom.Div, atom.Dl, atom.Dt, atom.Fieldset,
		atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hr, atom.Li, atom.Main,
		atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Table, atom.Td, atom.Th, atom.Tr, atom.Ul:
		return true
	default:
		return false
	}
}

// hasTable reports whether a table contains another table: then it only arranges its cells on the page.
func hasTable(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.DataAtom == atom.Table {
			return true
		}
	}

	return false
}

// table adds a table. A cell that spans rows has its value in each of them; one that spans columns has it in the first.
func (m *markup) table(table *html.Node) error {
	var (
		rows    [][]string
		covered []spanned // by column
		cells   int
	)

	for n := range table.Descendants() {
		if n.DataAtom == atom.Caption {
			m.page.add(Paragraph, oneLine(textOf(n)))
		}

		if n.DataAtom != atom.Tr {
			continue
		}

		row, left, err := rowOf(n, covered)
		if err != nil {
			return err
		}

		if cells += len(row); cells > maxCells {
			return exceeded("A table of the HTML document has more than %d cells.", maxCells)
		}

		rows, covered = append(rows, row), left
	}

	m.page.addTable(rows)

	return nil
}

// spanned is a cell that extends into the rows below.
type spanned struct {
	rows int
	text string
}

const maxSpan = 1000

func rowOf(tr *html.Node, above []spanned) (row []string, below []spanned, err error) {
	below = slices.Clone(above)

	put := func(s spanned) {
		for len(below) <= len(row) {
			below = append(below, spanned{})
		}

		below[len(row)] = spanned{max(s.rows-1, 0), s.text}
		row = append(row, s.text)
	}

	continued := func() {
		for len(row) < len(above) && above[len(row)].rows > 0 {
			put(above[len(row)])
		}
	}

	for n := tr.FirstChild; n != nil; n = n.NextSibling {
		if n.DataAtom != atom.Td && n.DataAtom != atom.Th {
			continue
		}

		continued()

		text := oneLine(textOf(n))
		rows, columns := span(n, "rowspan"), span(n, "colspan")

		for i := range columns {
			if i > 0 {
				text = ""
			}

			put(spanned{rows, text})
		}

		if len(row) > maxCells {
			return nil, nil, exceeded("A row of the HTML document has more than %d cells.", maxCells)
		}
	}

	continued()

	return row, below, nil
}

func span(n *html.Node, name string) int {
	for _, a := range n.Attr {
		if number, err := strconv.Atoi(a.Val); a.Key == name && err == nil {
			return min(max(number, 1), maxSpan)
		}
	}

	return 1
}

// textOf returns the text of an element that a reader sees. The parser limits how deep elements are nested.
func textOf(n *html.Node) string {
	switch {
	case n.Type == html.TextNode:
		return n.Data
	case n.Type == html.ElementNode && isUnseen(n):
		return ""
	}

	var text strings.Builder

	if isBlock(n.DataAtom) {
		text.WriteByte(' ')
	}

	for child := n.FirstChild; child != nil; child = child.NextSibling {
		text.WriteString(textOf(child))
	}

	if isBlock(n.DataAtom) {
		text.WriteByte(' ')
	}

	return text.String()
}
