package blob_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/stack"
)

const mib = 1 << 20

// place is a separate store for one test, at a random prefix of the test bucket.
type place struct {
	*blob.Store

	config blob.Config
}

func newPlace(t *testing.T) place {
	t.Helper()

	pathStyle, err := strconv.ParseBool(stack.Env(t, "QUERN_TEST_S3_PATH_STYLE"))
	require.NoError(t, err)

	p := place{config: blob.Config{
		Endpoint:  stack.Env(t, "QUERN_TEST_S3_ENDPOINT"),
		Region:    stack.Env(t, "QUERN_TEST_S3_REGION"),
		Bucket:    stack.Env(t, "QUERN_TEST_S3_BUCKET"),
		AccessKey: stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"),
		SecretKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"),
		PathStyle: pathStyle,
		Prefix:    "contract/" + uuid.NewString(),
		Client:    newClient(t),
		Now:       time.Now,
	}}
	p.Store = p.with(t, func(*blob.Config) {})

	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())

		var group errgroup.Group

		group.SetLimit(16)

		for object, err := range p.List(ctx, "") {
			require.NoError(t, err)
			group.Go(func() error { return p.Delete(ctx, object.Key) })
		}

		for upload, err := range p.Uploads(ctx, "") {
			require.NoError(t, err)
			group.Go(func() error { return p.AbortUpload(ctx, upload.Key, upload.ID) })
		}

		require.NoError(t, group.Wait())
	})

	return p
}

// with returns a store at the same location with other settings.
func (p place) with(t *testing.T, change func(*blob.Config)) *blob.Store {
	t.Helper()

	config := p.config
	change(&config)

	store, err := blob.New(config)
	require.NoError(t, err)

	return store
}

func newClient(t *testing.T) *http.Client {
	t.Helper()

	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)

	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// send uses a presigned address as a client does.
func (p place) send(t *testing.T, method, address string, content []byte, headers ...string) (*http.Response, string) {
	t.Helper()

	response, answer, err := p.try(t.Context(), method, address, content, headers...)
	require.NoError(t, err)

	return response, answer
}

func (p place) try(ctx context.Context, method, address string, content []byte, headers ...string) (*http.Response, string, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, "", err
	}

	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}

	response, err := p.config.Client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()

	answer, err := io.ReadAll(response.Body)

	return response, string(answer), err
}

// put uploads a part as clients do.
func (p place) put(ctx context.Context, part blob.Part, content []byte) error {
	address, err := p.PresignPart(ctx, part, time.Hour)
	if err != nil {
		return err
	}

	response, answer, err := p.try(ctx, http.MethodPut, address, content)
	if err == nil && (response.StatusCode != http.StatusOK || response.Header.Get("ETag") == "") {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}

	return err
}

// upload opens an upload and puts the parts, numbered from 1.
func (p place) upload(t *testing.T, key string, parts ...[]byte) (uploadID string, uploaded []blob.UploadedPart) {
	t.Helper()

	uploadID, err := p.CreateUpload(t.Context(), key)
	require.NoError(t, err)

	for i, content := range parts {
		part := blob.Part{Key: key, UploadID: uploadID, Number: i + 1, Size: int64(len(content))}
		require.NoError(t, p.put(t.Context(), part, content))
	}

	uploaded, err = p.ListParts(t.Context(), key, uploadID)
	require.NoError(t, err)
	require.Len(t, uploaded, len(parts))

	return uploadID, uploaded
}

func (p place) write(t *testing.T, key string, content []byte) {
	t.Helper()

	size, err := p.Write(t.Context(), key, bytes.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, int64(len(content)), size)
}

func (p place) read(t *testing.T, key string, offset, length int64) []byte {
	t.Helper()

	object, err := p.Read(t.Context(), key, offset, length)
	require.NoError(t, err)
	content, err := io.ReadAll(object)
	require.NoError(t, err)
	require.NoError(t, object.Close())

	return content
}

func (p place) keys(t *testing.T, prefix string) []string {
	t.Helper()

	var keys []string

	for object, err := range p.List(t.Context(), prefix) {
		require.NoError(t, err)

		keys = append(keys, object.Key)
	}

	return keys
}

func (p place) open(t *testing.T) []blob.Upload {
	t.Helper()

	var uploads []blob.Upload

	for upload, err := range p.Uploads(t.Context(), "") {
		require.NoError(t, err)

		uploads = append(uploads, upload)
	}

	return uploads
}

func random(t *testing.T, size int) []byte {
	t.Helper()

	content := make([]byte, size)
	_, err := rand.Read(content)
	require.NoError(t, err)

	return content
}

func requireFault(t *testing.T, code fault.Code, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, code, fault.From(err).Code, err)
}

// TestBlobContract checks what Quern requires of a store. It runs against the store of the test stack. To check
// another store, set QUERN_TEST_S3_ENDPOINT, _REGION, _BUCKET, _ACCESS_KEY, _SECRET_KEY and _PATH_STYLE.
func TestBlobContract(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]func(t *testing.T, p place){
		"objects":         contractObjects,
		"ranges":          contractRanges,
		"keys":            contractKeys,
		"list":            contractList,
		"stream":          contractStream,
		"failing stream":  contractFailingStream,
		"file":            contractFile,
		"upload":          contractUpload,
		"complete again":  contractCompleteAgain,
		"wrong parts":     contractWrongParts,
		"many parts":      contractManyParts,
		"abort":           contractAbort,
		"open uploads":    contractUploads,
		"presign scope":   contractPresignScope,
		"presign expiry":  contractPresignExpiry,
		"presigned size":  contractPresignedSize,
		"presigned get":   contractPresignedGet,
		"origins":         contractOrigins,
		"deployment":      contractDeployment,
		"deployment race": contractDeploymentRace,
		"wrong secret":    contractWrongSecret,
		"missing bucket":  contractMissingBucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newPlace(t))
		})
	}
}
