package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/exchange"
)

func (h handlers) exchange() exchange.Exchange {
	return exchange.Exchange{Catalog: h.catalog, Query: h.query, Verified: h.verified}
}

func (h handlers) ExportSemantics(ctx context.Context, request api.ExportSemanticsRequestObject) (api.ExportSemanticsResponseObject, error) {
	text, err := h.exchange().Export(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace))
	if err != nil {
		return nil, err
	}

	return api.ExportSemantics200JSONResponse{Document: text}, nil
}

func (h handlers) ImportSemantics(ctx context.Context, request api.ImportSemanticsRequestObject) (api.ImportSemanticsResponseObject, error) {
	isTrial := value(request.Body.DryRun)

	done, err := h.exchange().Import(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.Body.Document, isTrial)
	if err != nil {
		return nil, err
	}

	shown := api.ImportSemantics200JSONResponse{
		DryRun: isTrial, Datasets: []api.ImportedDataset{}, Verified: []api.ImportedQuestion{}, NotImported: []api.NotImported{}, More: done.More,
	}

	for _, d := range done.Datasets {
		one := api.ImportedDataset{Dataset: d.Dataset, Changes: make([]api.ImportedEntry, len(d.Changes))}
		for i, c := range d.Changes {
			one.Changes[i] = api.ImportedEntry{Kind: api.ImportedEntryKind(c.Kind), Name: c.Name, From: optionalText(c.From), To: c.To}
		}

		shown.Datasets = append(shown.Datasets, one)
	}

	for _, q := range done.Verified {
		change := api.QuestionChanged
		if q.IsNew {
			change = api.QuestionAdded
		}

		shown.Verified = append(shown.Verified, api.ImportedQuestion{Question: q.Question, Change: change})
	}

	for _, issue := range done.Issues {
		shown.NotImported = append(shown.NotImported, api.NotImported{Entry: issue.Entry, Reason: issue.Reason})
	}

	return shown, nil
}
