package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/catalog"
)

func (h handlers) CreateDataset(ctx context.Context, request api.CreateDatasetRequestObject) (api.CreateDatasetResponseObject, error) {
	made, err := h.catalog.CreateDataset(ctx, callOf(ctx).who, catalog.NewDataset{
		Namespace: request.Namespace, Name: request.DatasetName, Definition: definitionChange(request.Body),
		Once: once(ctx, request.Params.IdempotencyKey),
	})
	if err != nil {
		return nil, err
	}

	return api.CreateDataset201JSONResponse{
		Body: showDataset(made), Headers: api.CreateDataset201ResponseHeaders{Location: h.address("data", made.Owner, made.Namespace, made.Name)},
	}, nil
}

func (h handlers) GetDataset(ctx context.Context, request api.GetDatasetRequestObject) (api.GetDatasetResponseObject, error) {
	found, err := h.catalog.Describe(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	return api.GetDataset200JSONResponse(showDataset(found)), nil
}

func (h handlers) UpdateDataset(ctx context.Context, request api.UpdateDatasetRequestObject) (api.UpdateDatasetResponseObject, error) {
	var change catalog.DatasetChange
	if request.Body.Name != nil {
		change.Name = *request.Body.Name
	}

	if request.Body.Exposure != nil {
		change.Exposure = catalog.Exposure(*request.Body.Exposure)
	}

	if request.Body.Namespace != nil {
		change.Namespace = *request.Body.Namespace
	}

	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	changed, err := h.catalog.UpdateDataset(ctx, callOf(ctx).who, at, change)
	if err != nil {
		return nil, err
	}

	return api.UpdateDataset200JSONResponse(showDataset(changed)), nil
}

func (h handlers) DeleteDataset(ctx context.Context, request api.DeleteDatasetRequestObject) (api.DeleteDatasetResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)
	if err := h.catalog.DeleteDataset(ctx, callOf(ctx).who, at); err != nil {
		return nil, err
	}

	return api.DeleteDataset204Response{}, nil
}

func (h handlers) ClearDataset(ctx context.Context, request api.ClearDatasetRequestObject) (api.ClearDatasetResponseObject, error) {
	cleared, err := h.ingest.Clear(ctx, callOf(ctx).who, datasetPath(request.Username, request.Namespace, request.DatasetName))
	if err != nil {
		return nil, err
	}

	return api.ClearDataset200JSONResponse(showDataset(cleared)), nil
}

func (h handlers) GetInferDefinition(ctx context.Context, request api.GetInferDefinitionRequestObject) (api.GetInferDefinitionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	found, err := h.catalog.GetDefinition(ctx, callOf(ctx).who, at)
	if err != nil {
		return nil, err
	}

	return api.GetInferDefinition200JSONResponse{
		Body: definition(found), Headers: api.GetInferDefinition200ResponseHeaders{ETag: new(etag(found.Revision))},
	}, nil
}

func (h handlers) PutInferDefinition(ctx context.Context, request api.PutInferDefinitionRequestObject) (api.PutInferDefinitionResponseObject, error) {
	at := datasetPath(request.Username, request.Namespace, request.DatasetName)

	saved, err := h.catalog.PutDefinition(ctx, callOf(ctx).who, at, definitionChange(request.Body), ifMatch(request.Params.IfMatch))
	if err != nil {
		return nil, err
	}

	return api.PutInferDefinition201JSONResponse{
		Body: definition(saved), Headers: api.PutInferDefinition201ResponseHeaders{
			ETag: new(etag(saved.Revision)), Location: h.address("data", callOf(ctx).who.NameOf(request.Username), request.Namespace, request.DatasetName, "inferDefinition"),
		},
	}, nil
}

func datasetPath(username, namespace, dataset string) catalog.Path {
	return catalog.Path{Username: username, Namespace: namespace, Dataset: dataset}
}

func definitionChange(body *api.InferDefinitionChange) catalog.Change {
	if body == nil {
		return catalog.Change{}
	}

	return catalog.Change{DataDescription: body.DataDescription, SchemaDefinition: body.SchemaDefinition}
}

func definition(d catalog.Definition) api.InferDefinition {
	return api.InferDefinition{DataDescription: d.DataDescription, SchemaDefinition: d.SchemaDefinition}
}

// showDataset converts a dataset to its form in the API. Its engine is the one that reads its rows.
func showDataset(d catalog.Description) api.Dataset {
	metadata := api.DatasetMetadata{
		ColumnNames: []string{}, Columns: []api.DatasetColumn{}, RowCount: d.RowCount, Engine: string(d.Engine),
		DataDescription: d.Definition.DataDescription, SchemaDefinition: d.Definition.SchemaDefinition,
	}

	if d.SnapshotID != uuid.Nil {
		metadata.SnapshotID, metadata.ByteCount = &d.SnapshotID, &d.Bytes
	}

	if d.Key.Declared() {
		metadata.Key = new(showKey(d.Key))
	}

	metadata.RefreshedAt = optionalTime(d.RefreshedAt)

	for _, column := range d.Columns {
		metadata.ColumnNames = append(metadata.ColumnNames, column.Name)
		metadata.Columns = append(metadata.Columns, api.DatasetColumn{
			Name: column.Name, Type: column.Type, Nullable: column.Nullable, Description: d.Definition.SchemaDefinition[column.Name],
		})
	}

	return api.Dataset{Dataset: api.DatasetRef{Name: d.Name, Namespace: d.Namespace, Owner: d.Owner}, Metadata: metadata}
}

func etag(revision int64) string { return fmt.Sprintf(`"%d"`, revision) }

// ifMatch returns the revisions that an If-Match header names. It returns nil, which means any revision, without a
// header and for "*": "*" only requires that the resource exists, as the path does. A tag that is not a strong ETag of
// Quern matches nothing.
func ifMatch(header *string) []int64 {
	if header == nil || strings.TrimSpace(*header) == "*" {
		return nil
	}

	revisions := []int64{}

	for tag := range strings.SplitSeq(*header, ",") {
		var revision int64

		tag = strings.TrimSpace(tag)
		if _, err := fmt.Sscanf(tag, `"%d"`, &revision); err == nil && etag(revision) == tag {
			revisions = append(revisions, revision)
		}
	}

	return revisions
}
