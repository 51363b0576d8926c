package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
)

const (
	uploadParallel = 4
	UploadPart     = 8 << 20
)

// Content returns a reader of size bytes of a file from an offset on.
type Content func(offset, size int64) io.ReadSeeker

// Again returns the content of a file that repeats the same part.
func Again(part []byte) Content {
	return func(_, size int64) io.ReadSeeker { return bytes.NewReader(part[:size]) }
}

// OfFile returns the content of a file.
func OfFile(file io.ReaderAt) Content {
	return func(offset, size int64) io.ReadSeeker { return io.NewSectionReader(file, offset, size) }
}

// Session is a completed upload.
type Session struct {
	ID  uuid.UUID
	Key string // key of its last file
}

// Upload uploads files of these sizes, all with the same content, as a client of the service does.
func (s *Service) Upload(ctx context.Context, from Content, sizes ...int64) (Session, error) {
	prepared, err := s.Prepare(ctx, sizes...)
	if err != nil {
		return Session{}, err
	}

	var done api.FinishedUpload

	for _, file := range prepared.Files {
		parts, err := s.putParts(ctx, file, from)
		if err != nil {
			return Session{}, err
		}

		path := fmt.Sprintf("/file-upload/%s/files/%s/finish", prepared.SessionID, file.FileID)
		if err := s.Ask(ctx, "ada", http.MethodPost, path, api.FinishUpload{Key: file.Key, UploadID: file.UploadID, Parts: parts}, &done); err != nil {
			return Session{}, err
		}
	}

	if done.SessionStatus != api.UploadStatusCompleted {
		return Session{}, fmt.Errorf("the session is %s", done.SessionStatus)
	}

	return Session{prepared.SessionID, prepared.Files[len(sizes)-1].Key}, nil
}

func (s *Service) putParts(ctx context.Context, file api.PreparedFile, from Content) ([]api.FinishedPart, error) {
	if file.PartSize != UploadPart {
		return nil, fmt.Errorf("parts have %d bytes and not %d: the sides cannot be compared", file.PartSize, UploadPart)
	}

	parts := make([]api.FinishedPart, len(file.PresignedUrls))

	puts, putting := errgroup.WithContext(ctx)
	puts.SetLimit(uploadParallel)

	for i, part := range file.PresignedUrls {
		puts.Go(func() error {
			etag, err := put(putting, s.Location.http, part.URL, from(int64(i)*file.PartSize, part.PartSize), part.PartSize)
			parts[i] = api.FinishedPart{PartNumber: int32(i + 1), Etag: etag}

			return err
		})
	}

	return parts, puts.Wait()
}

func (s *Service) Prepare(ctx context.Context, sizes ...int64) (prepared api.PreparedUpload, err error) {
	files := make([]api.FileToUpload, len(sizes))
	for i, size := range sizes {
		files[i] = api.FileToUpload{Filename: fmt.Sprintf("bench-%d", i), Size: size}
	}

	err = s.Ask(ctx, "ada", http.MethodPost, "/file-upload/prepare", api.PrepareUpload{FilesToUpload: files}, &prepared)

	return prepared, err
}

func put(ctx context.Context, client *http.Client, address string, part io.Reader, size int64) (etag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, part)
	if err != nil {
		return "", err
	}

	request.ContentLength = size

	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("putting a part: %s %s", response.Status, body)
	}

	return response.Header.Get("ETag"), err
}

// Upload uses the SDK alone. It does not sign the content: uploads to presigned addresses do not either, and the
// checksum would make the SDK look slower than it is.
func (p *Location) Upload(ctx context.Context, size int64, from Content) (key string, err error) {
	key = "bare/" + rand.Text()

	begun, err := p.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &p.Bucket, Key: p.Full(key)})
	if err != nil {
		return "", err
	}

	parts := make([]types.CompletedPart, (size+UploadPart-1)/UploadPart)

	puts, putting := errgroup.WithContext(ctx)
	puts.SetLimit(uploadParallel)

	for i := range parts {
		puts.Go(func() error {
			number := new(int32(i + 1))

			sent, err := p.Client.UploadPart(putting, &s3.UploadPartInput{
				Bucket: &p.Bucket, Key: p.Full(key), UploadId: begun.UploadId, PartNumber: number,
				Body: from(int64(i)*UploadPart, min(UploadPart, size-int64(i)*UploadPart)),
			}, s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
			if err != nil {
				return err
			}

			parts[i] = types.CompletedPart{PartNumber: number, ETag: sent.ETag}

			return nil
		})
	}

	if err := puts.Wait(); err != nil {
		return "", err
	}

	_, err = p.Client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &p.Bucket, Key: p.Full(key), UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})

	return key, err
}
