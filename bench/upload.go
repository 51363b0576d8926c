package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
)

const (
	uploadParallel = 4
	uploadPart     = 8 << 20
	uploadPassing  = 10_000_000 // bytes that quernd may read and write for one upload, of whatever size
)

// runUpload measures a file that goes through a session to the store, in bytes a second, beside the SDK
// alone with parts of the same size and as many at once. None of the file may pass through the service.
func runUpload(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx, "QUERN_JOB_WORKERS=0") // what jobs read and write would count
	if err != nil {
		return nil, err
	}
	defer stop()

	part := make([]byte, uploadPart) // of both sides, again and again
	_, _ = rand.Read(part)           // never fails

	var most int64 // that passed in one upload

	oursRate, bareRate, err := alternate(ctx, b.uploads,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			before, err := s.passed()
			if err != nil {
				return 0, "", err
			}

			rate, err := s.place.timed(ctx, b.upload, func() (string, error) {
				session, err := s.upload(ctx, again(part), b.upload)

				return session.key, err
			})
			if err != nil {
				return 0, "", err
			}

			after, err := s.passed()
			most = max(most, after-before)

			return rate, fmt.Sprintf("%s, %d bytes through quernd", perSecond(rate), after-before), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			rate, err := s.place.timed(ctx, b.upload, func() (string, error) { return s.place.upload(ctx, b.upload, again(part)) })

			return rate, perSecond(rate), err
		}})
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "upload: at most %d bytes passed through quernd for a file of %d\n", most, b.upload)

	if most >= uploadPassing {
		return nil, fmt.Errorf("%d bytes passed through quernd for one upload, and fewer than %d should", most, uploadPassing)
	}

	return []result{{name: "upload", ours: perSecond(oursRate), bare: perSecond(bareRate), ratio: oursRate / bareRate}}, nil
}

func perSecond(bytes float64) string { return fmt.Sprintf("%.0fMB/s", bytes/1e6) }

// timed returns the bytes a second of an upload, and removes what it made.
func (p *place) timed(ctx context.Context, size int64, upload func() (key string, err error)) (float64, error) {
	begin := time.Now()

	key, err := upload()
	if err != nil {
		return 0, err
	}

	took := time.Since(begin)

	return float64(size) / took.Seconds(), p.remove(ctx, key)
}

// content gives the bytes of a file from an offset on.
type content func(offset, size int64) io.ReadSeeker

// again is a file that has nothing but the same part.
func again(part []byte) content {
	return func(_, size int64) io.ReadSeeker { return bytes.NewReader(part[:size]) }
}

// ofFile is what is in a file.
func ofFile(file io.ReaderAt) content {
	return func(offset, size int64) io.ReadSeeker { return io.NewSectionReader(file, offset, size) }
}

// session is a completed upload.
type session struct {
	id  uuid.UUID
	key string // of its last file
}

// upload is what a client of ours does: files of these sizes, all with the same content.
func (s *service) upload(ctx context.Context, from content, sizes ...int64) (session, error) {
	prepared, err := s.prepare(ctx, sizes...)
	if err != nil {
		return session{}, err
	}

	var done api.FinishedUpload

	for _, file := range prepared.Files {
		parts, err := s.putParts(ctx, file, from)
		if err != nil {
			return session{}, err
		}

		path := fmt.Sprintf("/file-upload/%s/files/%s/finish", prepared.SessionID, file.FileID)
		if err := s.ask(ctx, "ada", http.MethodPost, path, api.FinishUpload{Key: file.Key, UploadID: file.UploadID, Parts: parts}, &done); err != nil {
			return session{}, err
		}
	}

	if done.SessionStatus != api.UploadStatusCompleted {
		return session{}, fmt.Errorf("the session is %s", done.SessionStatus)
	}

	return session{prepared.SessionID, prepared.Files[len(sizes)-1].Key}, nil
}

func (s *service) putParts(ctx context.Context, file api.PreparedFile, from content) ([]api.FinishedPart, error) {
	if file.PartSize != uploadPart {
		return nil, fmt.Errorf("parts have %d bytes and not %d: the sides cannot be compared", file.PartSize, uploadPart)
	}

	parts := make([]api.FinishedPart, len(file.PresignedUrls))

	puts, putting := errgroup.WithContext(ctx)
	puts.SetLimit(uploadParallel)

	for i, part := range file.PresignedUrls {
		puts.Go(func() error {
			etag, err := put(putting, s.place.http, part.URL, from(int64(i)*file.PartSize, part.PartSize), part.PartSize)
			parts[i] = api.FinishedPart{PartNumber: int32(i + 1), Etag: etag}

			return err
		})
	}

	return parts, puts.Wait()
}

func (s *service) prepare(ctx context.Context, sizes ...int64) (prepared api.PreparedUpload, err error) {
	files := make([]api.FileToUpload, len(sizes))
	for i, size := range sizes {
		files[i] = api.FileToUpload{Filename: fmt.Sprintf("bench-%d", i), Size: size}
	}

	err = s.ask(ctx, "ada", http.MethodPost, "/file-upload/prepare", api.PrepareUpload{FilesToUpload: files}, &prepared)

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

// upload is the SDK alone. It signs no content, because presigned addresses do not either: summing it up
// would make the SDK the slower one.
func (p *place) upload(ctx context.Context, size int64, from content) (key string, err error) {
	key = "bare/" + rand.Text()

	begun, err := p.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &p.bucket, Key: p.full(key)})
	if err != nil {
		return "", err
	}

	parts := make([]types.CompletedPart, (size+uploadPart-1)/uploadPart)

	puts, putting := errgroup.WithContext(ctx)
	puts.SetLimit(uploadParallel)

	for i := range parts {
		puts.Go(func() error {
			number := new(int32(i + 1))

			sent, err := p.client.UploadPart(putting, &s3.UploadPartInput{
				Bucket: &p.bucket, Key: p.full(key), UploadId: begun.UploadId, PartNumber: number,
				Body: from(int64(i)*uploadPart, min(uploadPart, size-int64(i)*uploadPart)),
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

	_, err = p.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &p.bucket, Key: p.full(key), UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})

	return key, err
}
