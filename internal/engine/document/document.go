package document

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"quern.dev/quern/internal/engine"
)

// The limits of one document. A mail and its attachments are one document.
const (
	maxPages  = engine.MaxPages
	maxText   = 64 << 20  // bytes of all pages
	maxSource = 256 << 20 // bytes of the file: it is kept in memory
	maxMarkup = MaxMarkup // bytes of HTML, Markdown, mail and of one part of a Word document, unpacked: their elements need much more memory
	maxTime   = 10 * time.Minute
)

// MaxMarkup is how many bytes of a text are read.
const MaxMarkup = 32 << 20

// BlockKind is what a block of a page is.
type BlockKind string

// The kinds of blocks.
const (
	Paragraph BlockKind = "paragraph"
	Heading   BlockKind = "heading"
	Table     BlockKind = "table"
)

// Document is what was read of a document.
type Document struct {
	Pages   []Page
	Omitted []string // names of attachments that are not documents
}

// Page is a page of a document. HTML and Markdown have one. The pages of a mail are its text and then those of its attachments.
type Page struct {
	Text   string
	Blocks []Block
}

// Block is a part of a page: the bytes from From to To of its text.
type Block struct {
	Kind     BlockKind
	From, To int
	Rows     [][]string // of a table, all equally long
}

// Reader reads documents. The first PDF document takes some seconds longer.
type Reader struct {
	fields map[string]string // by folded name
	pdf    pdfium
}

// NewReader returns a reader. The fields are the columns that the rows are to have; there may be none.
func NewReader(fields []string) *Reader {
	r := &Reader{fields: map[string]string{}}

	for _, name := range fields {
		if key := fold(name); key != "" && r.fields[key] == "" {
			r.fields[key] = name
		}
	}

	return r
}

// Read reads a document. read is called with bytes of the file that were read meanwhile.
func (r *Reader) Read(path string, kind Kind, encoding string, read func(bytes int64)) (Document, error) {
	data, err := content(path)
	if err != nil {
		return Document{}, err
	}

	type outcome struct {
		document Document
		err      error
	}

	done := make(chan outcome, 1)

	go func() {
		one := reading{Reader: r, encoding: encoding, read: read}
		err := one.any(kind, data)
		done <- outcome{one.Document, err}
	}()

	select {
	case ended := <-done:
		return ended.document, ended.err
	case <-time.After(maxTime): // the parent ends the process after a failure
		return Document{}, exceeded("Reading the document takes longer than %s.", maxTime)
	}
}

func content(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	data, err := io.ReadAll(io.LimitReader(file, maxSource+1))
	if err == nil && len(data) > maxSource {
		err = exceeded("The document has more than %d bytes.", maxSource)
	}

	return data, err
}

// reading is a document that is being read.
type reading struct {
	*Reader
	Document

	encoding string // of HTML and Markdown, if an option names it
	read     func(bytes int64)
	text     int // bytes of all pages
	parts    int // of mails
	depth    int // of mails in mails
}

func (r *reading) any(kind Kind, data []byte) error {
	if kind != PDF && kind != Word && len(data) > maxMarkup {
		return exceeded("The %s has more than %d bytes.", kind, maxMarkup)
	}

	switch kind {
	case PDF:
		return r.readPDF(data)
	case Word:
		return r.readWord(data)
	case HTML:
		return r.readHTML(data, "")
	case Mail:
		return r.readMail(data)
	case Markdown:
		return r.readMarkdown(string(data))
	default:
		return fmt.Errorf("a document of the kind %q", kind)
	}
}

// add adds a page.
func (r *reading) add(p *composer) error {
	if r.text += p.text.Len(); r.text > maxText {
		return exceeded("The document has more than %d bytes of text.", maxText)
	}

	if len(r.Pages) >= maxPages {
		return exceeded("The document has more than %d pages.", maxPages)
	}

	r.Pages = append(r.Pages, Page{Text: p.text.String(), Blocks: p.blocks})

	return nil
}

// composer composes a page of blocks.
type composer struct {
	text   strings.Builder
	blocks []Block
}

// add adds a block unless its text is blank.
func (c *composer) add(kind BlockKind, text string) {
	if text = strings.TrimSpace(clean(text)); text == "" {
		return
	}

	if c.text.Len() > 0 {
		c.text.WriteString("\n\n")
	}

	from := c.text.Len()
	c.text.WriteString(text)
	c.blocks = append(c.blocks, Block{Kind: kind, From: from, To: c.text.Len()})
}

// addTable adds a table. Its text has one line for each row, with tabs between the cells.
func (c *composer) addTable(rows [][]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}

	var (
		text strings.Builder
		all  [][]string
	)

	for _, row := range rows {
		cells := make([]string, width)
		for i, cell := range row {
			cells[i] = oneLine(cell)
		}

		if line := strings.Join(cells, "\t"); strings.TrimSpace(line) != "" {
			all = append(all, cells)

			text.WriteString(line + "\n")
		}
	}

	before := len(c.blocks)
	if c.add(Table, text.String()); len(c.blocks) > before {
		c.blocks[before].Rows = all
	}
}

// Clean returns a text without carriage returns and characters that no text should have.
func Clean(text string) string { return clean(strings.ReplaceAll(text, "\r\n", "\n")) }

// clean removes characters that no text should have.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u00a0' || r == '\u202f' || r == '\u2007' || r == '\v' || r == '\f' || r == '\r':
			return ' '
		case r < ' ' || r == '\u007f' || r == '\u00ad' || r == '\u200b' || r == '\ufeff' || r == '\u2060':
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\ufffd"))
}

func oneLine(text string) string { return strings.Join(strings.Fields(clean(text)), " ") }

func invalid(format string, args ...any) error {
	return &engine.FileError{Code: engine.InvalidFile, Message: fmt.Sprintf(format, args...)}
}

func exceeded(format string, args ...any) error {
	return &engine.FileError{Code: engine.LimitExceeded, Message: fmt.Sprintf(format, args...)}
}

// within names the part of a document that a fault is about.
func within(err error, what string) error {
	if said, ok := errors.AsType[*engine.FileError](err); ok {
		return &engine.FileError{Code: said.Code, Message: what + ": " + said.Message, Doubt: said.Doubt}
	}

	return err
}

const shown = 100

// shorten cuts a text for use in a message.
func shorten(text string) string {
	if runes := []rune(text[:min(len(text), 4*shown)]); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}

	return strings.ToValidUTF8(text, "")
}
