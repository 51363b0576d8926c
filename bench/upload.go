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

			rate, err := s.place.timed(ctx, b.upload, func() (string, error) { return s.upload(ctx, b.upload, part) })
			if err != nil {
				return 0, "", err
			}

			after, err := s.passed()
			most = max(most, after-before)

			return rate, fmt.Sprintf("%s, %d bytes through quernd", perSecond(rate), after-before), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			rate, err := s.place.timed(ctx, b.upload, func() (string, error) { return s.place.upload(ctx, b.upload, part) })

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

// upload is what a client of ours does.
func (s *service) upload(ctx context.Context, size int64, content []byte) (key string, err error) {
	session, err := s.prepare(ctx, size)
	if err != nil {
		return "", err
	}

	file := session.Files[0]
	if file.PartSize != uploadPart {
		return "", fmt.Errorf("parts have %d bytes and not %d: the sides cannot be compared", file.PartSize, uploadPart)
	}

	finish := api.FinishUpload{Key: file.Key, UploadID: file.UploadID, Parts: make([]api.FinishedPart, len(file.PresignedUrls))}

	puts, putting := errgroup.WithContext(ctx)
	puts.SetLimit(uploadParallel)

	for i, part := range file.PresignedUrls {
		puts.Go(func() error {
			etag, err := put(putting, s.place.http, part.URL, content[:part.PartSize])
			finish.Parts[i] = api.FinishedPart{PartNumber: int32(i + 1), Etag: etag}

			return err
		})
	}

	if err := puts.Wait(); err != nil {
		return "", err
	}

	var done api.FinishedUpload

	path := fmt.Sprintf("/file-upload/%s/files/%s/finish", session.SessionID, file.FileID)
	if err := s.ask(ctx, "ada", http.MethodPost, path, finish, &done); err != nil {
		return "", err
	}

	if done.SessionStatus != api.Completed {
		return "", fmt.Errorf("the session is %s", done.SessionStatus)
	}

	return file.Key, nil
}

func (s *service) prepare(ctx context.Context, size int64) (session api.PreparedUpload, err error) {
	files := api.PrepareUpload{FilesToUpload: []api.FileToUpload{{Filename: "bench", Size: size}}}

	err = s.ask(ctx, "ada", http.MethodPost, "/file-upload/prepare", files, &session)

	return session, err
}

func put(ctx context.Context, client *http.Client, address string, content []byte) (etag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(content))
	if err != nil {
		return "", err
	}

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
func (p *place) upload(ctx context.Context, size int64, content []byte) (key string, err error) {
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
				Body: bytes.NewReader(content[:min(uploadPart, size-int64(i)*uploadPart)]),
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
