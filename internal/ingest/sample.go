package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/record"
)

// Preview is the outcome of a dry run.
type Preview struct {
	engine.Inspection

	Definition *record.Proposal `json:"definition,omitempty"`
}

// mayRead checks whether a model may do with the documents what the request asks for.
//
// Faults: ValidationFailed, InvalidState.
func (g *Ingest) mayRead(ctx context.Context, dataset catalog.Dataset, request *Request) (err error) {
	switch {
	case request.Sample > 0 && (!request.DryRun || request.Options.Extract != engine.ExtractModel):
		return fault.Invalid("sample", "needs dryRun and the option extract: model")
	case request.Draft && (!request.DryRun || request.Options.Extract != ""):
		return fault.Invalid("draft", "needs dryRun, and no option extract")
	}

	request.Options.Sample = request.Sample

	switch {
	case request.Draft:
		request.Options.Extract = engine.ExtractDefinition
		_, err = g.reader(&dataset)
	case request.Options.Extract != "":
		_, err = g.readable(ctx, &dataset)
	}

	return err
}

// takeSample keeps the parts of the documents that a dry run reads: the first part of each document, then the second of each, and so on.
func (w *working) takeSample() {
	taken := make([]int, len(w.papers))

	for left, before := w.i.Options.Sample, 0; left > 0 && left != before; {
		before = left

		for n, p := range w.papers {
			if left > 0 && taken[n] < len(p.chunks) {
				taken[n]++
				left--
			}
		}
	}

	w.i.PagesTotal = 0

	for n, p := range w.papers {
		if taken[n] < len(p.chunks) {
			p.chunks, p.rest = p.chunks[:taken[n]], p.chunks[taken[n]:]
			p.pages = p.pages[:lastPage(p.chunks)]
		}

		w.i.PagesTotal += len(p.pages)
	}
}

// lastPage returns the number of the last page of chunks, 0 if there are none.
func lastPage(chunks []record.Chunk) int {
	if len(chunks) == 0 {
		return 0
	}

	parts := chunks[len(chunks)-1].Parts

	return parts[len(parts)-1].Page
}

// showSample converts the records of a sample as a load would. It adds a doubt with the tokens that the sample took and those that a load would take.
func (w *working) showSample(ctx context.Context, definition catalog.Definition, asked []record.Field, columns []engine.Column) error {
	var (
		took, guessed, rest tally
		read, all           int
	)

	for n, p := range w.papers {
		read, all = read+len(p.chunks), all+len(p.chunks)+len(p.rest)
		took.input, took.output = took.input+p.input, took.output+p.output
		guessed.input, guessed.output = guessed.input+p.guessed.input, guessed.output+p.guessed.output

		if err := w.tally(ctx, &rest, n, definition, asked, p.rest); err != nil {
			return err
		}
	}

	model, err := w.Models.Choose("", "")
	if err != nil {
		return err
	}

	text := fmt.Sprintf("The model %s of %s read %d of %d parts of the documents, with %d tokens, and %d tokens of answers. Nothing was loaded, and the answers are kept. ",
		model.Name, model.Provider, read, all, took.input, took.output)

	if rest.requests == 0 {
		text += "A load sends nothing more."
	} else {
		text += fmt.Sprintf("A load sends %d more requests: about %d tokens, and about %d tokens of answers.",
			rest.requests, scaled(rest.input, took.input, guessed.input), scaled(rest.output, took.output, guessed.output))
	}

	w.sampled = []engine.Doubt{{Message: text}}

	err = w.writePapers()
	if failed, isFailure := errors.AsType[*engine.FileError](err); isFailure { // the records show why
		w.i.Preview = &Preview{Inspection: engine.Inspection{
			Columns: columns, Rows: []map[string]any{}, Doubts: slices.Concat(w.i.Doubts, w.flagged(), []engine.Doubt{{Message: failed.Message}}),
		}}

		return nil
	}

	return err
}

// scaled multiplies an estimate by the ratio of the tokens that the sample took to those that were estimated for it. Some providers report no tokens;
// then the estimate stays.
func scaled(estimate, took, guessed int64) int64 {
	if took == 0 || guessed == 0 {
		return estimate
	}

	return estimate * took / guessed
}

const (
	draftBytes = 12_000 // of text that a model sees to propose a definition
	draftFiles = 8
)

// propose asks the model for a definition of the documents and puts it into the preview. Only a person saves a definition.
func (w *working) propose(ctx context.Context) error {
	w.papers = nil

	if err := w.readPapers(ctx); err != nil {
		return err
	}

	samples := w.papers[:min(len(w.papers), draftFiles)]

	var documents []record.Chunk

	for _, p := range samples {
		if chunks := record.Split(p.pages, draftBytes/len(samples), 0); len(chunks) > 0 {
			documents = append(documents, chunks[0])
		}
	}

	if err := w.tell(ctx, phaseReading); err != nil {
		return err
	}

	response, err := w.askModel(ctx, llm.Request{
		System: record.ProposeSystem, Messages: []llm.Message{{Role: llm.User, Text: record.ProposePrompt(documents)}},
		Schema: &llm.Schema{Name: "definition", JSON: json.RawMessage(record.ProposeSchema)}, MaxTokens: answerTokens,
	})
	if err != nil && !fault.Is(err, fault.UpstreamUnavailable) {
		return err
	}

	found := record.Proposal{}
	if err == nil {
		found, err = record.ReadProposal(documents, response.Text)
	}

	if err != nil || len(found.Fields) == 0 {
		return fault.Wrap(err, fault.UpstreamUnavailable, "The model proposed no field that the documents state. Try again, try other documents, or write the definition yourself.")
	}

	model, err := w.Models.Choose("", "")
	if err != nil {
		return err
	}

	text := fmt.Sprintf("The model %s of %s proposed this from the beginnings of %d of %d documents, with %d tokens, and %d tokens of answers. Nothing was saved.",
		model.Name, model.Provider, len(documents), len(w.papers), response.Usage.InputTokens, response.Usage.OutputTokens)
	if found.Left > 0 {
		text += fmt.Sprintf(" Fields left out, because no words of the documents state them or because of their names: %d.", found.Left)
	}

	w.i.Preview = &Preview{
		Inspection: engine.Inspection{Columns: []engine.Column{}, Rows: []map[string]any{}, Doubts: slices.Concat(w.paperDoubts(), []engine.Doubt{{Message: text}})},
		Definition: &found,
	}

	return nil
}
