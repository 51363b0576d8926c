package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/record"
)

const (
	chunkBytes   = 6000 // of text that a model sees at once
	chunkOverlap = 1200 // a record of at most this length is whole in one chunk
	answerTokens = 8192
	maxChunks    = 5000 // of all documents of an ingestion

	phaseReading = "reading" // documents, with a model
)

// paper is a document that a model reads.
type paper struct {
	pages    []string
	doubts   []engine.Doubt
	chunks   []record.Chunk
	input    int64 // tokens
	output   int64
	guessed  tally          // what was expected of these tokens
	rest     []record.Chunk // that the sample of a dry run leaves out
	records  record.Records
	anchors  []record.Anchor // of the records
	document []byte          // SHA-256
	path     string          // its rows as delimited text
	first    []int64         // the number of the first row of each page
	columns  []string
}

// isExtracted reports whether a model reads the rows out of the files.
func (i Ingestion) isExtracted() bool { return i.Options.Extract != "" }

// readable returns the definition that a model needs to read documents for a dataset, or the reason why it may not.
//
// Faults: InvalidState.
func (g *Ingest) readable(ctx context.Context, dataset *catalog.Dataset) (definition catalog.Definition, err error) {
	if _, err = g.reader(dataset); err != nil {
		return definition, err
	}

	if dataset != nil {
		err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
			definition, err = g.definitionOf(ctx, q, *dataset)

			return err
		})
	}

	if err == nil && len(definition.SchemaDefinition) == 0 {
		err = fault.New(fault.InvalidState, "A model needs to know which fields to read. Name them in schemaDefinition of the definition of the dataset. A model can draft one from the documents, in a dry run.")
	}

	return definition, err
}

// extract reads the documents with a model and writes their records as delimited text, which is then loaded like any other. A dry run reads a
// sample, or only estimates the tokens.
func (w *working) extract(ctx context.Context) error {
	w.papers, w.kinds = nil, map[string]string{}

	dataset, err := w.current(ctx, w.i.table())
	if err != nil {
		return err
	}

	definition, err := w.readable(ctx, dataset)
	if err != nil {
		return err
	}

	fields, style := w.i.fieldsOf(*dataset, definition)

	for _, f := range fields {
		w.kinds[f.Name] = w.i.typeOf(*dataset, f.Name)
	}

	if err := w.readPapers(ctx); err != nil {
		return err
	}

	chunks, pages := 0, 0

	for _, p := range w.papers {
		p.chunks = record.Split(p.pages, chunkBytes, chunkOverlap)
		chunks, pages = chunks+len(p.chunks), pages+len(p.pages)
	}

	if chunks > maxChunks {
		return &engine.FileError{Code: engine.LimitExceeded, Message: fmt.Sprintf(
			"The documents are too long for a model: %d requests would be necessary, and %d are allowed. Load them in several ingestions.", chunks, maxChunks)}
	}

	w.i.PagesDone, w.i.PagesTotal = 0, pages

	// A person decides about doubts before anything is sent.
	var columns []engine.Column
	for _, f := range fields {
		columns = append(columns, engine.Column{Name: f.Name, Type: cmp.Or(w.kinds[f.Name], engine.Varchar)})
	}

	doubts, err := w.compare(ctx, engine.Inspection{Columns: columns})
	if err != nil {
		return err
	}

	w.i.Doubts = slices.Concat(doubts, w.paperDoubts())

	switch {
	case w.i.Options.Sample > 0:
		w.takeSample()
	case w.i.DryRun:
		return w.estimate(ctx, definition, w.i.asked(fields), columns)
	default:
		if err := w.settled(ctx); err != nil {
			return err
		}
	}

	for n, p := range w.papers {
		reader := &chunkReader{working: w, position: n, about: definition.DataDescription, fields: fields, asked: w.i.asked(fields), paper: p}
		if err := reader.read(ctx, style); err != nil {
			return w.named(inFile(err, n))
		}
	}

	if err := w.correct(ctx); err != nil {
		return err
	}

	if w.i.Options.Sample > 0 {
		return w.showSample(ctx, definition, w.i.asked(fields), columns)
	}

	return w.writePapers()
}

// inFile sets the file that a failure is about.
func inFile(err error, n int) error {
	if failed, ok := errors.AsType[*engine.FileError](err); ok {
		failed.Source = n + 1
	}

	return err
}

// readPapers reads the text of the pages of all documents, in a sealed process of its own: calls of a model must not hold its slot.
func (w *working) readPapers(ctx context.Context) error {
	session, err := w.Engine.Open(ctx, w.Timeout)
	if err != nil {
		return err
	}
	defer session.Close()

	sources, err := w.mount(session, nil)
	defer w.closeArriving()

	if err != nil {
		return err
	}

	if err := w.fetchAll(ctx, ctx); err != nil {
		return err
	}

	counts := make([]int, len(sources))

	for n, source := range sources {
		paged, err := session.Pages(source, w.i.Options.Encoding, w.Bounds, source.Name+".pages")
		if err != nil {
			return w.named(inFile(err, n))
		}

		w.papers = append(w.papers, &paper{doubts: paged.Doubts, document: w.contents[n].digest})
		counts[n] = paged.Pages
	}

	for n, source := range sources {
		path := filepath.Join(w.dir, source.Name+".pages")
		if _, err := session.Take(source.Name+".pages", path); err != nil {
			return err
		}

		if w.papers[n].pages, err = engine.ReadPages(path, counts[n]); err != nil {
			return err
		}

		if err := os.Remove(path); err != nil {
			return err
		}
	}

	return nil
}

// estimate ends a dry run: nothing is sent to a model, and it tells what a load would send.
func (w *working) estimate(ctx context.Context, definition catalog.Definition, asked []record.Field, columns []engine.Column) error {
	var all tally

	for n, p := range w.papers {
		if err := w.tally(ctx, &all, n, definition, asked, p.chunks); err != nil {
			return err
		}
	}

	model, err := w.Models.Choose("", "")
	if err != nil {
		return err
	}

	text := fmt.Sprintf("A load sends the text of %d pages to the model %s of %s in %d requests: about %d tokens, and about %d tokens of answers. The dry run sent nothing.",
		w.i.PagesTotal, model.Name, model.Provider, all.requests, all.input, all.output)
	if all.requests == 0 {
		text = "A load sends nothing: the model has answered about the same text and fields before."
	}

	w.i.Preview = &Preview{Inspection: engine.Inspection{
		Columns: columns, Rows: []map[string]any{}, Doubts: slices.Concat(w.i.Doubts, []engine.Doubt{{Message: text}}),
	}}

	return nil
}

// requestAbout returns the request about a chunk, without the model, and its hash.
func requestAbout(about string, asked []record.Field, c record.Chunk) (request llm.Request, hash [sha256.Size]byte) {
	request = llm.Request{
		System: record.System, Messages: []llm.Message{{Role: llm.User, Text: record.Prompt(about, asked, c)}},
		Schema: &llm.Schema{Name: "records", JSON: record.Schema(asked)}, MaxTokens: answerTokens,
	}

	return request, sha256.Sum256(slices.Concat([]byte(request.System), request.Schema.JSON, []byte(request.Messages[0].Text)))
}

func (w *working) paperDoubts() (doubts []engine.Doubt) {
	for _, p := range w.papers {
		doubts = append(doubts, p.doubts...)
	}

	return doubts
}

// chunkReader reads one document with a model.
type chunkReader struct {
	*working
	*paper

	position int
	about    string
	fields   []record.Field
	asked    []record.Field
	answers  []record.Answered
}

// tally counts requests and about how many tokens they have.
type tally struct{ requests, input, output int64 }

func (t *tally) add(request llm.Request, c record.Chunk) {
	t.requests++
	t.input += int64(record.EstimateTokens(len(request.System) + len(request.Schema.JSON) + len(request.Messages[0].Text)))
	t.output += int64(record.EstimateTokens(c.Size()))
}

// tally adds the requests about chunks of a document that the model has not answered.
func (w *working) tally(ctx context.Context, to *tally, position int, definition catalog.Definition, asked []record.Field, chunks []record.Chunk) error {
	for _, c := range chunks {
		request, hash := requestAbout(definition.DataDescription, asked, c)

		if _, isStored, err := w.storedChunk(ctx, position, hash[:]); err != nil {
			return err
		} else if !isStored {
			to.add(request, c)
		}
	}

	return nil
}

func (r *chunkReader) read(ctx context.Context, style record.Style) (err error) {
	before := r.i.PagesDone

	for _, c := range r.chunks {
		spent := r.input

		if err := r.ask(ctx, c); err != nil {
			return err
		}

		if r.input > spent {
			request, _ := requestAbout(r.about, r.asked, c)
			r.guessed.add(request, c)
		}

		r.i.PagesDone = before + c.Parts[len(c.Parts)-1].Page
		r.i.BytesDone = r.i.BytesTotal * int64(r.i.PagesDone) / int64(max(r.i.PagesTotal, 1))

		if err := r.tell(ctx, phaseReading); err != nil {
			return err
		}
	}

	r.i.PagesDone = before + len(r.paper.pages)

	if r.records, err = record.Assemble(r.fields, style, r.answers); err != nil {
		return fault.Wrap(err, fault.UpstreamUnavailable, "The model did not answer in the required form.")
	}

	r.answers = nil

	return nil
}

// ask adds the answer about a chunk, or the answers about its halves if one answer is too long for it. What was answered before is not asked
// again.
func (r *chunkReader) ask(ctx context.Context, c record.Chunk) error {
	request, hash := requestAbout(r.about, r.asked, c)

	known, isStored, err := r.storedChunk(ctx, r.position, hash[:])
	if err != nil {
		return err
	}

	if !isStored {
		if known, err = r.complete(ctx, c, request); err != nil {
			return err
		}

		if err := r.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return insertChunk(ctx, tx, r.i, r.position, hash[:], known) }); err != nil {
			return err
		}
	}

	r.input, r.output = r.input+known.Input, r.output+known.Output

	if known.Answer != nil {
		r.answers = append(r.answers, record.Answered{Chunk: c, Answer: *known.Answer})

		return nil
	}

	halves := c.Halves(chunkOverlap)
	if halves == nil {
		return &engine.FileError{Code: engine.LimitExceeded, Message: fmt.Sprintf("Page %d has a line about which the answer of the model is too long.", c.Parts[0].Page)}
	}

	for _, half := range halves {
		if err := r.ask(ctx, half); err != nil {
			return err
		}
	}

	return nil
}

// complete returns what the model says about a chunk.
func (r *chunkReader) complete(ctx context.Context, c record.Chunk, request llm.Request) (said chunkAnswer, err error) {
	response, err := r.askModel(ctx, request)
	said.Input, said.Output = response.Usage.InputTokens, response.Usage.OutputTokens

	switch {
	case err == nil && record.Valid(r.fields, response.Text):
		said.Answer = &response.Text

		return said, nil
	case err == nil: // too many records
		return said, nil
	case errors.Is(err, llm.ErrTruncated):
		return said, nil
	case fault.Is(err, fault.UpstreamUnavailable):
		return said, fault.Wrap(err, fault.UpstreamUnavailable, fmt.Sprintf("The model gave no usable answer about page %d of %s. Pages before it need not be read again: retry the ingestion.",
			c.Parts[0].Page, r.i.Files[r.position].Name))
	default:
		return said, err
	}
}

// writePapers writes the records of each document as delimited text. Fields without any value are left out, because nothing says their type.
func (w *working) writePapers() error {
	var columns []int

	for i := range w.papers[0].records.Fields {
		if slices.ContainsFunc(w.papers, func(p *paper) bool {
			return slices.ContainsFunc(p.records.Records, func(r record.Record) bool { return r.Cells[i].Value != "" })
		}) {
			columns = append(columns, i)
		}
	}

	if len(columns) == 0 {
		return &engine.FileError{Code: engine.InvalidFile, Message: "The model found no value that the documents prove, and no correction has one. Look at the descriptions of the fields in the definition."}
	}

	for n, p := range w.papers {
		p.path = filepath.Join(w.dir, "records-"+strconv.Itoa(n))
		if err := p.write(w.Folder.Writer, columns); err != nil {
			return err
		}
	}

	return nil
}

// flagged returns the doubts about fields that were flagged. They name no value, because values of fields are rows.
func (w *working) flagged() (doubts []engine.Doubt) {
	for n, p := range w.papers {
		var (
			parts []string
			count int
		)

		for _, f := range p.records.Flagged() {
			pages := make([]string, 0, listedNames)
			for _, page := range f.Pages[:min(len(f.Pages), listedNames)] {
				pages = append(pages, strconv.Itoa(page))
			}

			if len(f.Pages) > listedNames {
				pages = append(pages, "…")
			}

			parts = append(parts, fmt.Sprintf("%s (%d, page %s)", f.Field, f.Count, strings.Join(pages, ", ")))
			count += f.Count
		}

		if count > 0 {
			doubts = append(doubts, engine.Doubt{Message: fmt.Sprintf("Fields of %s that the document does not prove: %d. They have no value, except if only the page was wrong: %s.",
				w.i.Files[n].Name, count, strings.Join(parts, "; "))})
		}
	}

	return doubts
}
