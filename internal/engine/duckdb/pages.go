package duckdb

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/document"
)

// paging is a request for the pages of a document.
type paging struct {
	to   string
	done *engine.Paged // nil until they are written
}

// pagesOf writes the text of the pages of a document or of a text.
func (p *program) pagesOf(request engine.PagesRequest) (engine.Paged, error) {
	p.bounds, p.options = request.Bounds, engine.Options{Encoding: request.Encoding}
	p.paged = &paging{to: filepath.Join(p.tmp, filepath.Base(request.Output))}

	defer func() { p.paged = nil }()

	file, err := p.unpack(request.Source)
	if err != nil {
		return engine.Paged{}, err
	}

	if p.paged.done == nil {
		if err := p.paged.plain(file); err != nil {
			return engine.Paged{}, err
		}
	}

	return *p.paged.done, nil
}

// plain writes a text that is no document of a known kind. A form feed ends a page.
func (g *paging) plain(f plainFile) error {
	if f.format != engine.FormatText || f.sheet != nil {
		return invalid("The file is no document: its rows can be read without a model. Load it without the option extract.")
	}

	if _, err := f.check(); err != nil {
		return err
	}

	file, err := f.open()
	if err != nil {
		return err
	}
	defer file.Close()

	data, err := io.ReadAll(io.LimitReader(file, document.MaxMarkup+1))
	if err != nil {
		return err
	}

	if len(data) > document.MaxMarkup {
		return &failure{code: engine.LimitExceeded, message: "The text is too long for a model. Split the file."}
	}

	var found document.Document
	for text := range strings.SplitSeq(strings.TrimPrefix(string(data), mark), "\f") {
		found.Pages = append(found.Pages, document.Page{Text: document.Clean(text)})
	}

	return g.write(found)
}

func (g *paging) write(found document.Document) error {
	file, err := os.Create(g.to)
	if err != nil {
		return err
	}
	defer file.Close()

	out := bufio.NewWriterSize(file, 1<<20)
	encoder, some := json.NewEncoder(out), false

	if len(found.Pages) > engine.MaxPages {
		return &failure{code: engine.LimitExceeded, message: "The document has too many pages. Split the file."}
	}

	for _, page := range found.Pages {
		if err := encoder.Encode(page.Text); err != nil {
			return err
		}

		some = some || strings.TrimSpace(page.Text) != ""
	}

	if !some {
		return invalid("The document is empty: it has no text.")
	}

	if err := out.Flush(); err != nil {
		return err
	}

	g.done = &engine.Paged{Pages: len(found.Pages), Doubts: document.Omitted(found)}

	return file.Close()
}
