package server

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/upload"
)

func (h handlers) PrepareUpload(ctx context.Context, request api.PrepareUploadRequestObject) (api.PrepareUploadResponseObject, error) {
	files := make([]upload.NewFile, 0, len(request.Body.FilesToUpload))
	for _, file := range request.Body.FilesToUpload {
		files = append(files, upload.NewFile{Name: file.Filename, Size: file.Size})
	}

	session, err := h.uploads.Prepare(ctx, callOf(ctx).who, files, once(ctx, request.Params.IdempotencyKey))
	if err != nil {
		return nil, err
	}

	response := api.PrepareUpload200JSONResponse{SessionID: session.ID, Files: make([]api.PreparedFile, 0, len(session.Files))}

	for _, file := range session.Files {
		urls, err := h.uploads.URLs(ctx, file)
		if err != nil {
			return nil, err
		}

		prepared := api.PreparedFile{FileID: file.ID, UploadID: file.UploadID, Key: file.Key, Filename: file.Name, PartSize: file.PartSize}
		for _, u := range urls {
			prepared.PresignedUrls = append(prepared.PresignedUrls, api.PresignedURL{URL: u.URL, PartSize: u.Size})
		}

		response.Files = append(response.Files, prepared)
	}

	return response, nil
}

func (h handlers) ListUploads(ctx context.Context, request api.ListUploadsRequestObject) (api.ListUploadsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.uploads.List(ctx, callOf(ctx).who, after, pageLimit(request.Params.Limit))
	page := api.ListUploads200JSONResponse{Data: make([]api.UploadItem, len(found)), NextCursor: nextCursor(ctx, next)}

	for i, session := range found {
		page.Data[i] = api.UploadItem{
			SessionID: session.ID, SessionStatus: api.UploadStatus(session.Status), CreatedAt: session.CreatedAt, ExpiresAt: session.ExpiresAt,
			Files: make([]api.UploadItemFile, len(session.Files)),
		}

		for j, file := range session.Files {
			page.Data[i].Files[j] = api.UploadItemFile{
				FileID: file.ID, Filename: file.Name, Size: file.Size, FileStatus: api.UploadStatus(file.Status), CompletedAt: optionalTime(file.CompletedAt),
			}
		}
	}

	return page, err
}

func (h handlers) GetUpload(ctx context.Context, request api.GetUploadRequestObject) (api.GetUploadResponseObject, error) {
	session, err := h.uploads.Get(ctx, callOf(ctx).who, request.SessionID)
	if err != nil {
		return nil, err
	}

	parts, err := h.uploads.Parts(ctx, session)
	if err != nil {
		return nil, err
	}

	response := api.GetUpload200JSONResponse{
		SessionID: session.ID, SessionStatus: api.UploadStatus(session.Status), CreatedAt: session.CreatedAt, ExpiresAt: session.ExpiresAt,
		Files: make([]api.UploadFile, 0, len(session.Files)),
	}

	for i, file := range session.Files {
		shown := api.UploadFile{
			FileID: file.ID, UploadID: file.UploadID, Key: file.Key, Filename: file.Name, Size: file.Size, PartSize: file.PartSize,
			FileStatus: api.UploadStatus(file.Status), Parts: []api.StoredPart{},
		}
		for _, part := range parts[i] {
			shown.Parts = append(shown.Parts, api.StoredPart{PartNumber: int32(part.Number), Etag: part.ETag, Size: part.Size}) //nolint:gosec // at most 10,000
		}

		response.Files = append(response.Files, shown)
	}

	return response, nil
}

func (h handlers) ListUploadFiles(ctx context.Context, request api.ListUploadFilesRequestObject) (api.ListUploadFilesResponseObject, error) {
	session, err := h.uploads.Get(ctx, callOf(ctx).who, request.SessionID)
	if err != nil {
		return nil, err
	}

	response := api.ListUploadFiles200JSONResponse{Data: []api.CompletedFile{}}

	for _, file := range session.Files {
		if file.Status == upload.Completed {
			response.Data = append(response.Data, api.CompletedFile{FileID: file.ID, Filename: file.Name, Size: file.Size, CompletedAt: file.CompletedAt})
		}
	}

	return response, nil
}

func (h handlers) RenewUploadUrls(ctx context.Context, request api.RenewUploadUrlsRequestObject) (api.RenewUploadUrlsResponseObject, error) {
	numbers := make([]int, 0, len(request.Body.PartNumbers))
	for _, number := range request.Body.PartNumbers {
		numbers = append(numbers, int(number))
	}

	urls, err := h.uploads.Renew(ctx, callOf(ctx).who, request.SessionID, request.FileID, numbers)
	if err != nil {
		return nil, err
	}

	response := api.RenewUploadUrls200JSONResponse{FileID: request.FileID, PresignedUrls: make([]api.NumberedURL, 0, len(urls))}
	for _, u := range urls {
		response.PresignedUrls = append(response.PresignedUrls, api.NumberedURL{PartNumber: int32(u.Number), URL: u.URL, PartSize: u.Size}) //nolint:gosec // at most 10,000
	}

	return response, nil
}

func (h handlers) FinishUpload(ctx context.Context, request api.FinishUploadRequestObject) (api.FinishUploadResponseObject, error) {
	parts := upload.Parts{UploadID: request.Body.UploadID, Key: request.Body.Key}
	for _, part := range request.Body.Parts {
		parts.Sent = append(parts.Sent, upload.SentPart{Number: int(part.PartNumber), ETag: part.Etag})
	}

	done, err := h.uploads.Finish(ctx, callOf(ctx).who, request.SessionID, request.FileID, parts)
	if err != nil {
		return nil, err
	}

	return api.FinishUpload200JSONResponse{
		SessionID: request.SessionID, SessionStatus: api.UploadStatus(done.Session), FileID: request.FileID, FileStatus: api.UploadStatus(done.File),
	}, nil
}

func (h handlers) AbortUpload(ctx context.Context, request api.AbortUploadRequestObject) (api.AbortUploadResponseObject, error) {
	file := uuid.Nil
	if request.Params.FileID != nil {
		file = *request.Params.FileID
	}

	status, err := h.uploads.Abort(ctx, callOf(ctx).who, request.SessionID, file)
	if err != nil {
		return nil, err
	}

	return api.AbortUpload200JSONResponse{SessionID: request.SessionID, SessionStatus: api.UploadStatus(status)}, nil
}
