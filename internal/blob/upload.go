package blob

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"quern.dev/quern/internal/fault"
)

// CreateUpload opens a multipart upload. If the answer is lost, the upload stays open, its id is not known, and
// Uploads lists it.
func (s *Store) CreateUpload(ctx context.Context, key string) (uploadID string, err error) {
	upload, err := s.calls.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.full(key)})
	if err != nil {
		return "", translate(err)
	}

	return aws.ToString(upload.UploadId), nil
}

// UploadedPart is a part that the store has.
type UploadedPart struct {
	Number int
	Size   int64
	ETag   string
}

// ListParts returns all parts of an open upload, by number. NotFound if the upload is not open.
func (s *Store) ListParts(ctx context.Context, key, uploadID string) ([]UploadedPart, error) {
	var parts []UploadedPart

	pages := s3.NewListPartsPaginator(s.calls, &s3.ListPartsInput{Bucket: &s.bucket, Key: s.full(key), UploadId: &uploadID})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, translate(err)
		}

		for _, part := range page.Parts {
			parts = append(parts, UploadedPart{
				Number: int(aws.ToInt32(part.PartNumber)), Size: aws.ToInt64(part.Size), ETag: aws.ToString(part.ETag),
			})
		}
	}

	return parts, nil
}

// CompleteUpload assembles the object from all its parts and checks its size. It can be repeated: it succeeds if the
// upload is no longer open and an object of this size exists.
//
// Faults: NotFound if neither the upload nor the object exists, or another call is assembling the object. Conflict if
// the parts differ from those in the store or do not add up to the size.
func (s *Store) CompleteUpload(ctx context.Context, key, uploadID string, parts []UploadedPart, size int64) error {
	completed := make([]types.CompletedPart, len(parts))
	for i, part := range parts {
		completed[i] = types.CompletedPart{PartNumber: new(int32(part.Number)), ETag: &part.ETag} //nolint:gosec // at most 10,000
	}

	_, err := s.transfers.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: s.full(key), UploadId: &uploadID, MpuObjectSize: &size,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: completed},
	})

	switch {
	case hasCode(err, "InvalidPart", "InvalidPartOrder", "EntityTooSmall"):
		return fault.Wrap(translate(err), fault.Conflict, "The parts do not form a valid file.")
	case err != nil && !hasCode(err, "NoSuchUpload"):
		return translate(err)
	}

	object, err := s.Head(ctx, key)
	if err != nil {
		return err
	}

	if object.Size != size {
		return fault.New(fault.Conflict, fmt.Sprintf("The file has %d bytes instead of %d.", object.Size, size))
	}

	return nil
}

// AbortUpload ends an upload and removes its parts. It succeeds if the upload is not open.
func (s *Store) AbortUpload(ctx context.Context, key, uploadID string) error {
	if err := s.mayRemove(ctx); err != nil {
		return err
	}

	_, err := s.calls.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: s.full(key), UploadId: &uploadID})
	if hasCode(err, "NoSuchUpload") {
		return nil
	}

	return translate(err)
}

// Upload is an open multipart upload.
type Upload struct {
	Key     string
	ID      string
	Started time.Time
}

// Uploads yields the open uploads whose keys begin with prefix. It stops after the first error.
func (s *Store) Uploads(ctx context.Context, prefix string) iter.Seq2[Upload, error] {
	return func(yield func(Upload, error) bool) {
		pages := s3.NewListMultipartUploadsPaginator(s.calls, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: s.full(prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Upload{}, translate(err))

				return
			}

			for _, found := range page.Uploads {
				upload := Upload{
					Key: strings.TrimPrefix(aws.ToString(found.Key), s.prefix),
					ID:  aws.ToString(found.UploadId), Started: aws.ToTime(found.Initiated),
				}
				if !yield(upload, nil) {
					return
				}
			}
		}
	}
}

// DeleteBegun removes an object that may be incomplete, and aborts its open uploads.
func (s *Store) DeleteBegun(ctx context.Context, key string) error {
	for upload, err := range s.Uploads(ctx, key) {
		if err != nil {
			return err
		}

		if err := s.AbortUpload(ctx, upload.Key, upload.ID); err != nil {
			return err
		}
	}

	return s.Delete(ctx, key)
}
