package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// place is a location in the test bucket that the tests inspect directly.
type place struct {
	endpoint, bucket, prefix string

	t      *testing.T
	client *s3.Client
}

// newPlace returns an empty location. Its objects are deleted when the test ends.
func newPlace(t *testing.T) *place {
	t.Helper()

	return emptied(placeAt(t, "e2e/"+uuid.NewString()+"/"))
}

// placeAt returns a location that another service or test may use too, so its objects stay when the test ends.
func placeAt(t *testing.T, prefix string) *place {
	t.Helper()

	p := &place{endpoint: stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), bucket: stack.Env(t, "QUERN_TEST_S3_BUCKET"), prefix: prefix, t: t}
	p.client = s3.New(s3.Options{
		BaseEndpoint: &p.endpoint, UsePathStyle: true, Region: stack.Env(t, "QUERN_TEST_S3_REGION"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), SecretAccessKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY")}, nil
		}),
	})

	return p
}

// emptied deletes the objects of a location when the test ends.
func emptied(p *place) *place {
	p.t.Cleanup(func() {
		ctx := context.WithoutCancel(p.t.Context())

		for key := range p.objects() {
			_, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &p.bucket, Key: new(p.prefix + key)})
			require.NoError(p.t, err)
		}

		for id, key := range p.uploads() {
			_, err := p.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &p.bucket, Key: new(p.prefix + key), UploadId: &id})
			require.NoError(p.t, err)
		}
	})

	return p
}

// settings returns the settings of a service with this location.
func (p *place) settings() []string {
	p.t.Helper()

	return []string{
		"QUERN_S3_ENDPOINT=" + p.endpoint, "QUERN_S3_BUCKET=" + p.bucket, "QUERN_S3_PREFIX=" + p.prefix,
		"QUERN_S3_REGION=" + stack.Env(p.t, "QUERN_TEST_S3_REGION"),
		"QUERN_S3_ACCESS_KEY=" + stack.Env(p.t, "QUERN_TEST_S3_ACCESS_KEY"),
		"QUERN_S3_SECRET_KEY=" + stack.Env(p.t, "QUERN_TEST_S3_SECRET_KEY"),
	}
}

// objects returns the size of each object by its key, without the objects epoch and mark.
func (p *place) objects() map[string]int64 {
	p.t.Helper()

	sizes := map[string]int64{}
	pages := s3.NewListObjectsV2Paginator(p.client, &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: &p.prefix})

	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(p.t.Context()))
		require.NoError(p.t, err)

		for _, object := range page.Contents {
			sizes[strings.TrimPrefix(*object.Key, p.prefix)] = aws.ToInt64(object.Size)
		}
	}

	// These objects bind the location to the database. The mark appears and changes as time passes.
	delete(sizes, "epoch")
	delete(sizes, "mark")

	return sizes
}

// uploads returns the key of each open multipart upload, by its id.
func (p *place) uploads() map[string]string {
	p.t.Helper()

	keys := map[string]string{}
	pages := s3.NewListMultipartUploadsPaginator(p.client, &s3.ListMultipartUploadsInput{Bucket: &p.bucket, Prefix: &p.prefix})

	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(p.t.Context()))
		require.NoError(p.t, err)

		for _, upload := range page.Uploads {
			keys[*upload.UploadId] = strings.TrimPrefix(*upload.Key, p.prefix)
		}
	}

	return keys
}

// put sends a part to its presigned address, as any client would.
func put(t *testing.T, address, content string) *answer {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(content))
	require.NoError(t, err)

	answer, err := try(request)
	require.NoError(t, err)

	if answer.status == http.StatusOK {
		sentParts.Store(identityOf(t, address), answer.header.Get("ETag"))
	}

	return answer
}

// sentParts has the ETags that the store returned, by part.
var sentParts sync.Map //nolint:gochecknoglobals // put has no other place to keep them for finish

// identityOf identifies the part that a presigned address is for. Renewed addresses of a part have the same identity.
func identityOf(t *testing.T, address string) string {
	t.Helper()

	parsed, err := url.Parse(address)
	require.NoError(t, err)

	return parsed.Query().Get("uploadId") + "/" + parsed.Query().Get("partNumber")
}

// putPart uploads a part directly, without the service and its presigned addresses.
func (p *place) putPart(file preparedFile, number int32, content string) {
	p.t.Helper()

	_, err := p.client.UploadPart(p.t.Context(), &s3.UploadPartInput{
		Bucket: &p.bucket, Key: new(p.prefix + file.Key), UploadId: &file.UploadID, PartNumber: &number, Body: strings.NewReader(content),
	})
	require.NoError(p.t, err)
}

// begin opens a multipart upload directly, without the service.
func (p *place) begin(key string) (id string) {
	p.t.Helper()

	upload, err := p.client.CreateMultipartUpload(p.t.Context(), &s3.CreateMultipartUploadInput{Bucket: &p.bucket, Key: new(p.prefix + key)})
	require.NoError(p.t, err)

	return *upload.UploadId
}
