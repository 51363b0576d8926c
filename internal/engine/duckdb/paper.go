package duckdb

import (
	"os"
	"path/filepath"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document"
)

// fromDocument converts a document to text. It reports false for other files.
func (p *program) fromDocument(f *plainFile, name string) (done bool, err error) {
	kind := document.Detect(f.head)

	if kind == "" && f.isOffice() {
		if kind, err = f.wordKind(); err != nil {
			return false, err
		}
	}

	if kind == "" || f.format != "" {
		return false, nil
	}

	return true, p.convertDocument(f, name, kind)
}

// fromText is fromDocument for a text in UTF-8 of which only now is known that it is a document.
func (p *program) fromText(f *plainFile, name string) (done bool, err error) {
	kind := document.Detect(f.head)
	if kind == "" && document.IsMarkdown(f.head) && p.options.Delimiter == "" && p.options.Header == nil && p.options.SkipRows == 0 {
		kind = document.Markdown
	}

	if kind == "" {
		return false, nil
	}

	return true, p.convertDocument(f, name, kind)
}

func (f *plainFile) wordKind() (document.Kind, error) {
	if err := f.arrive(); err != nil {
		return "", err
	}

	file, err := os.Open(f.path)
	if err != nil {
		return "", err
	}
	defer file.Close()

	if document.IsWord(file, f.size) {
		return document.Word, nil
	}

	return "", nil
}

func (p *program) convertDocument(f *plainFile, name string, kind document.Kind) error {
	if err := f.arrive(); err != nil {
		return err
	}

	if p.papers == nil {
		p.papers = document.NewReader(p.fields)
	}

	encoding := p.options.Encoding
	if kind == document.Markdown {
		if _, err := f.check(); err != nil { // other kinds name their encoding
			return err
		}
	}

	found, err := p.papers.Read(f.path, kind, encoding, func(bytes int64) { p.read.Add(bytes) })
	if err != nil {
		return ours(err)
	}

	if p.paged != nil {
		return p.paged.write(found)
	}

	to := filepath.Join(p.tmp, name+".rows")

	written, err := p.papers.Write(found, to)
	if err != nil {
		return ours(err)
	}

	f.format, f.paper = engine.FormatText, &written

	return f.become(to)
}

// doubts returns what is in doubt about the conversion of a workbook or document to text.
func (f *plainFile) doubts() []engine.Doubt {
	switch {
	case f.sheet != nil:
		return f.sheet.Doubts
	case f.paper != nil:
		return f.paper.Doubts
	default:
		return nil
	}
}

// pages returns the number of the first row of each page; none for files without pages.
func (f *plainFile) pages() (first []int64) {
	if f.paper == nil {
		return nil
	}

	for n, page := range f.paper.Pages[1:] { // the first record is the header
		for len(first) < page {
			first = append(first, int64(n)+1)
		}
	}

	return first
}
