package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
)

const (
	probeContent = "quernd doctor wrote this and removes it"
	probeTTL     = time.Minute
)

// probeKey returns a random key outside the prefixes that the rest of Quern uses.
func probeKey() string { return "doctor/" + uuid.NewString() }

// Probe writes, reads and removes an object, to check that the store permits it.
func (s *Store) Probe(ctx context.Context) (err error) {
	key := probeKey()

	_, err = s.calls.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: s.full(key), Body: strings.NewReader(probeContent)})
	if err != nil {
		return translate(err)
	}

	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()

		err = errors.Join(err, s.Delete(ctx, key))
	}()

	object, err := s.Read(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }()

	content, err := io.ReadAll(io.LimitReader(object, 1<<10))
	if err == nil && !bytes.Equal(content, []byte(probeContent)) {
		err = fmt.Errorf("the store returned %d bytes that differ from the bytes written", len(content))
	}

	return err
}

// ProbePart is a presigned address of a part that is only a test, its content, and a function that removes it.
type ProbePart struct {
	Address string // a secret
	Content []byte
	Drop    func()
}

// BeginProbe opens an upload with one part, which can be sent to the presigned address as clients do.
func (s *Store) BeginProbe(ctx context.Context) (ProbePart, error) {
	key := probeKey()

	uploadID, err := s.CreateUpload(ctx, key)
	if err != nil {
		return ProbePart{}, err
	}

	part := ProbePart{Content: []byte(probeContent), Drop: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()

		_ = s.AbortUpload(ctx, key, uploadID) // if it fails, the store keeps a few bytes
	}}

	part.Address, err = s.PresignPart(ctx, Part{Key: key, UploadID: uploadID, Number: 1, Size: int64(len(part.Content))}, probeTTL)

	return part, err
}
