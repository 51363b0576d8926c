package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/eval/documents"
)

// documentsSuite asks no questions. A scripted model reads documents with known mistakes, and what the service made of its answers is compared
// with what the documents state.
const documentsSuite = "documents"

const (
	documentsSeed  = 1
	documentsEvery = 12 // claims for each mistake
)

func measureDocuments(ctx context.Context, o options) error {
	o.model = "scripted"
	corpus := documents.Corpus(documentsSeed)

	if err := writeCorpus(filepath.Join(o.out, documentsSuite), corpus); err != nil {
		return err
	}

	model := documents.NewModel(corpus, documentsSeed, documentsEvery, documents.Mistakes()...)

	s, stop, err := open(ctx, &o, &script{name: o.model, documents: model})
	if err != nil {
		return err
	}
	defer stop()

	begin, figures := time.Now(), documents.NewFigures()

	// One ingestion loads the documents that have the same kind, layout and language.
	for from, to := 0, 0; from < len(corpus); from = to {
		for to < len(corpus) && corpus[to].Group() == corpus[from].Group() {
			to++
		}

		found, err := s.readDocuments(ctx, corpus[from:to])
		if err != nil {
			return fmt.Errorf("%s: %w", corpus[from].Group(), err)
		}

		for _, d := range corpus[from:to] {
			figures.Add(model, d, found[d.Name])
		}

		fmt.Fprintf(os.Stderr, "eval: %d of %d documents read, %v\n", to, len(corpus), time.Since(begin).Round(time.Second))
	}

	if err := figures.Print(os.Stdout); err != nil {
		return err
	}

	return figures.Check()
}

// writeCorpus writes the documents, and what they state, into a folder.
func writeCorpus(folder string, corpus []*documents.Document) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}

	for _, d := range corpus {
		if err := os.WriteFile(filepath.Join(folder, d.Name), d.Content, 0o600); err != nil {
			return err
		}
	}

	gold, err := json.MarshalIndent(corpus, "", " ")
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(folder, "gold.json"), gold, 0o600)
}

// readDocuments loads documents of one kind into a dataset of their own, with the definition of the kind. It returns what was found in each of
// them, by its name.
func (s *service) readDocuments(ctx context.Context, group []*documents.Document) (map[string][]documents.Found, error) {
	kind, t := documents.KindOf(group[0]), table{namespace: documentsSuite, dataset: group[0].Group()}
	descriptions, types := map[string]string{}, map[string]string{}

	for _, f := range kind.Fields {
		descriptions[f.Name], types[f.Name] = f.Description, f.Type
	}

	made, err := s.api.CreateDatasetWithResponse(ctx, t.namespace, t.dataset, nil, api.InferDefinitionChange{DataDescription: &kind.About, SchemaDefinition: &descriptions})
	if err != nil {
		return nil, err
	}

	if made.JSON201 == nil {
		return nil, refusal("creating the dataset", made.HTTPResponse, made.Body)
	}

	files := make([]upload, len(group))
	for i, d := range group {
		files[i] = upload{d.Name, d.Content}
	}

	session, err := s.upload(ctx, files...)
	if err != nil {
		return nil, err
	}

	id, err := s.ingest(ctx, t, api.NewIngestion{
		SessionID: session, Mode: new(api.NewIngestionModeReplace), Accept: &[]api.DoubtCode{api.All},
		Options: &api.IngestionOptions{Extract: new(api.IngestionOptionsExtractModel), Types: &types},
	})
	if err != nil {
		return nil, err
	}

	rows, err := s.sourced(ctx, t)
	if err != nil {
		return nil, err
	}

	return s.records(ctx, t, id, rows)
}

// sourced returns the rows of a dataset by the file that they came from and their number in it.
func (s *service) sourced(ctx context.Context, t table) (map[string]api.Row, error) {
	all := `SELECT * FROM "` + t.dataset + `"` //nolint:unqueryvet // a statement of a user

	got, err := s.api.RunQueryWithResponse(ctx, nil, api.RunQueryJSONRequestBody{Username: &s.user, Namespace: &t.namespace, Query: all})
	if err != nil {
		return nil, err
	}

	if got.JSON200 == nil {
		return nil, refusal("reading the rows", got.HTTPResponse, got.Body)
	}

	rows := map[string]api.Row{}

	for _, row := range got.JSON200.Data {
		var metadata struct {
			Source struct {
				File string
				Row  int64
			}
		}

		text, err := json.Marshal(row["__metadata"])
		if err == nil {
			err = json.Unmarshal(text, &metadata)
		}

		if err != nil {
			return nil, err
		}

		rows[rowName(metadata.Source.File, metadata.Source.Row)] = row
	}

	return rows, nil
}

func rowName(file string, row int64) string { return file + " " + strconv.FormatInt(row, 10) }

// records returns the records of an ingestion with the values of their rows, by file.
func (s *service) records(ctx context.Context, t table, id api.IngestionID, rows map[string]api.Row) (map[string][]documents.Found, error) {
	found := map[string][]documents.Found{}

	for cursor := (*string)(nil); ; {
		page, err := s.api.ListDocumentRecordsWithResponse(ctx, s.user, t.namespace, t.dataset, id, &api.ListDocumentRecordsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}

		if page.JSON200 == nil {
			return nil, refusal("reading the records", page.HTTPResponse, page.Body)
		}

		for _, r := range page.JSON200.Data {
			one := documents.Found{}

			var row api.Row

			if r.Row != nil {
				name := rowName(r.File, *r.Row)
				if row = rows[name]; row == nil {
					return nil, fmt.Errorf("a record has the row %s, which does not exist", name)
				}

				delete(rows, name)
			}

			for name, f := range r.Fields {
				one[name] = cellOf(f, row[name])
			}

			found[r.File] = append(found[r.File], one)
		}

		if cursor = page.JSON200.NextCursor; cursor == nil {
			break
		}
	}

	if len(rows) > 0 {
		return nil, fmt.Errorf("%d rows have no record", len(rows))
	}

	return found, nil
}

func cellOf(f api.DocumentField, v any) documents.Cell {
	c := documents.Cell{Value: valueText(v), Quote: f.Quote}

	if f.Flag != nil {
		c.Flag = string(*f.Flag)
	}

	if f.Page != nil && f.From != nil && f.To != nil {
		c.Page, c.From, c.To = int(*f.Page), int(*f.From), int(*f.To)
	}

	return c
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
