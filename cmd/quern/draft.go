package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"quern.dev/quern/api"
)

// draftFrom shows the definition that a model proposes from documents.
func (p *program) draftFrom(ctx context.Context, client *api.Client, at name, paths []string) error {
	files, _, err := collect(paths)
	if err != nil {
		return err
	}

	if _, err := p.isNew(ctx, client, at); err != nil {
		return err
	}

	files = batches(files)[0] // a model sees only the first documents

	path, err := p.statePath(files)
	if err != nil {
		return err
	}

	session, err := p.send(ctx, client, files, path, parallelParts)
	if err != nil {
		return p.stop(ctx, err, "Stopped. Give the same command again to continue.")
	}

	l := &loading{program: p, client: client, at: at, wish: &uploadWish{dryRun: true, draft: true}, session: session, first: true}

	tried, err := l.ingest(ctx, true)
	if err != nil {
		return p.stop(ctx, err, "Stopped waiting. Give the same command again to see the draft.")
	}

	if err := forget(path); err != nil || tried.Preview == nil || tried.Preview.Definition == nil {
		return err
	}

	made := *tried.Preview.Definition
	if err := p.showDraft(made); err != nil {
		return err
	}

	l.tell(tried.Preview.Doubts)

	return nil
}

// showDraft prints a proposed definition. As JSON it is what --file reads.
func (p *program) showDraft(made api.DraftedDefinition) error {
	type said struct{ Column, Text, Quote string }

	var all []said
	for column, text := range made.SchemaDefinition {
		all = append(all, said{column, text, made.Quotes[column]})
	}

	sortBy(all, func(s said) string { return s.Column })

	columns := []column[said]{
		{"column", func(s said) any { return s.Column }}, {"description", func(s said) any { return s.Text }}, {"words of a document", func(s said) any { return s.Quote }},
	}
	if p.format == "csv" {
		heads, rows := cells(all, columns)

		return p.csv(heads, rows)
	}

	return one(p, api.InferDefinition{DataDescription: made.DataDescription, SchemaDefinition: made.SchemaDefinition}, func() {
		p.facts(fact{"description", made.DataDescription})
		p.out.printf("\n")
		p.table(cells(all, columns))
		p.out.printf("\nTo save it, write it to a file with --output json, edit the file, and send it with --file.\n")
	})
}

// defineFrom saves the definition that a file has.
func (p *program) defineFrom(ctx context.Context, client *api.Client, at name, file string) error {
	content, err := contentOf(file)
	if err != nil {
		return err
	}

	saved, err := api.Read[api.InferDefinition](client.PutInferDefinitionWithBody(ctx, at.owner, at.namespace, at.dataset, nil, "application/json", bytes.NewReader(content)))

	return orShow(err, func() error { return p.showDefinition(saved) })
}

// contentOf returns the content of a file, or of standard input for "-".
func contentOf(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}

	return os.ReadFile(file)
}
