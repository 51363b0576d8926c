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

// probeKey is where no rule of ours looks.
func probeKey() string { return "doctor/" + uuid.NewString() }

// Probe writes, reads and removes an object, to see whether it can.
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
		err = fmt.Errorf("it gave back %d other bytes than it got", len(content))
	}

	return err
}

// ProbePart is the presigned address of a part that nobody needs, its content, and what drops it again.
type ProbePart struct {
	Address string // a secret
	Content []byte
	Drop    func()
}

// BeginProbe opens an upload whose only part anybody may send, as clients do.
func (s *Store) BeginProbe(ctx context.Context) (ProbePart, error) {
	key := probeKey()

	uploadID, err := s.CreateUpload(ctx, key)
	if err != nil {
		return ProbePart{}, err
	}

	part := ProbePart{Content: []byte(probeContent), Drop: func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()

		_ = s.AbortUpload(ctx, key, uploadID) // the store keeps some bytes longer
	}}

	part.Address, err = s.PresignPart(ctx, Part{Key: key, UploadID: uploadID, Number: 1, Size: int64(len(part.Content))}, probeTTL)

	return part, err
}
