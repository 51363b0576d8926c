package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

func contractObjects(t *testing.T, p place) {
	t.Helper()

	began := time.Now().Add(-time.Minute) // clocks may differ slightly

	p.write(t, "a/one", []byte("1"))
	p.write(t, "a/none", nil)
	require.Equal(t, "1", string(p.read(t, "a/one", 0, -1)))
	require.Empty(t, p.read(t, "a/none", 0, -1))

	first, err := p.Head(t.Context(), "a/one")
	require.NoError(t, err)
	require.Equal(t, "a/one", first.Key)
	require.Equal(t, int64(1), first.Size)
	require.True(t, first.Modified.After(began))

	p.write(t, "a/one", []byte("two"))
	second, err := p.Head(t.Context(), "a/one")
	require.NoError(t, err)
	require.Equal(t, int64(3), second.Size)
	require.NotEqual(t, first.ETag, second.ETag)

	empty, err := p.Head(t.Context(), "a/none")
	require.NoError(t, err)
	require.Zero(t, empty.Size)

	require.NoError(t, p.Delete(t.Context(), "a/one"))
	require.NoError(t, p.Delete(t.Context(), "a/one"))
	_, err = p.Head(t.Context(), "a/one")
	requireFault(t, fault.NotFound, err)
	_, err = p.Read(t.Context(), "a/one", 0, -1)
	requireFault(t, fault.NotFound, err)
}

func contractRanges(t *testing.T, p place) {
	t.Helper()

	p.write(t, "digits", []byte("0123456789"))
	p.write(t, "empty", nil)

	for name, test := range map[string]struct {
		key            string
		offset, length int64
		want           string
	}{
		"all":             {"digits", 0, -1, "0123456789"},
		"start":           {"digits", 0, 3, "012"},
		"middle":          {"digits", 4, 2, "45"},
		"one":             {"digits", 9, 1, "9"},
		"to the end":      {"digits", 7, -1, "789"},
		"over the end":    {"digits", 8, 100, "89"},
		"at the end":      {"digits", 10, 1, ""},
		"beyond the end":  {"digits", 1000, 10, ""},
		"beyond, all":     {"digits", 1000, -1, ""},
		"nothing":         {"digits", 5, 0, ""},
		"of an empty one": {"empty", 0, 10, ""},
	} {
		require.Equal(t, test.want, string(p.read(t, test.key, test.offset, test.length)), name)
	}

	_, err := p.Read(t.Context(), "absent", 3, 4)
	requireFault(t, fault.NotFound, err)
}

func contractKeys(t *testing.T, p place) {
	t.Helper()

	names := []string{"カタカナ/ünïcode-ø", "with space", "100%", "a+b", "q?x=1&y#z", "c,d;e:f@g=h", "(i)[j]{k}'l'!*$", "%2F%20", "emoji-🦉"}
	for i, name := range names {
		content := []byte("content " + name)
		p.write(t, name, content)
		require.Equal(t, content, p.read(t, name, 0, -1), name)

		head, err := p.Head(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, int64(len(content)), head.Size, name)

		address, err := p.PresignGet(t.Context(), name, time.Minute, "f")
		require.NoError(t, err)
		response, answer := p.send(t, http.MethodGet, address, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, name+answer)
		require.Equal(t, string(content), answer, name)

		key := fmt.Sprintf("parts-%d/%s", i, name)
		uploadID, parts := p.upload(t, key, content)
		require.NoError(t, p.CompleteUpload(t.Context(), key, uploadID, parts, int64(len(content))), name)
		require.Equal(t, content, p.read(t, key, 0, -1), name)
		require.NoError(t, p.Delete(t.Context(), key), name)
	}

	require.ElementsMatch(t, names, p.keys(t, ""))
}

func contractList(t *testing.T, p place) {
	t.Helper()

	const objects = 1010

	var group errgroup.Group

	group.SetLimit(16)

	for i := range objects {
		group.Go(func() error {
			_, err := p.Write(t.Context(), fmt.Sprintf("many/%04d", i), strings.NewReader("x"))

			return err
		})
	}

	require.NoError(t, group.Wait())
	p.write(t, "other/1", nil)

	keys := p.keys(t, "many/")
	require.Len(t, keys, objects)

	for i, key := range keys {
		require.Equal(t, fmt.Sprintf("many/%04d", i), key)
	}

	require.Equal(t, []string{"other/1"}, p.keys(t, "oth"))
	require.Empty(t, p.keys(t, "absent/"))
	require.Len(t, p.keys(t, "many/10"), 10)

	for object, err := range p.List(t.Context(), "many/") {
		require.NoError(t, err)
		require.Equal(t, int64(1), object.Size)

		break
	}
}

func contractStream(t *testing.T, p place) {
	t.Helper()

	for _, size := range []int{8*mib - 1, 8 * mib, 8*mib + 1, 20 * mib} {
		content := random(t, size)
		written, err := p.Write(t.Context(), "stream", iotest.HalfReader(bytes.NewReader(content)))
		require.NoError(t, err)
		require.Equal(t, int64(size), written)
		require.Equal(t, sha256.Sum256(content), sha256.Sum256(p.read(t, "stream", 0, -1)))
	}

	require.Empty(t, p.open(t))
}

func contractFailingStream(t *testing.T, p place) {
	t.Helper()

	failure := errors.New("the source broke")

	for _, size := range []int{10, 17 * mib} {
		_, err := p.Write(t.Context(), "broken", io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(failure)))
		require.ErrorIs(t, err, failure)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Write(ctx, "broken", io.MultiReader(bytes.NewReader(make([]byte, 17*mib)), readerFunc(func([]byte) (int, error) {
		cancel()

		return 0, io.EOF
	})))
	require.ErrorIs(t, err, context.Canceled)

	_, err = p.Head(t.Context(), "broken")
	requireFault(t, fault.NotFound, err)
	require.Empty(t, p.open(t))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func contractOrigins(t *testing.T, p place) {
	t.Helper()

	neighbour := p.with(t, func(c *blob.Config) { c.Prefix += "-neighbour" })
	require.NoError(t, neighbour.AllowOrigins(t.Context(), []string{"https://neighbour.test"}))
	require.NoError(t, p.AllowOrigins(t.Context(), []string{"https://old.test"}))
	require.NoError(t, p.AllowOrigins(t.Context(), []string{"https://a.test", "https://b.test"}))

	uploadID, _ := p.upload(t, "file")
	address, err := p.PresignPart(t.Context(), blob.Part{Key: "file", UploadID: uploadID, Number: 1, Size: 4}, time.Hour)
	require.NoError(t, err)

	allowed := func(origin string) bool {
		response, _ := p.send(t, http.MethodOptions, address, nil, "Origin", origin, "Access-Control-Request-Method", http.MethodPut)

		return response.StatusCode < 300 && response.Header.Get("Access-Control-Allow-Origin") == origin
	}

	require.True(t, allowed("https://a.test"))
	require.True(t, allowed("https://b.test"))
	require.True(t, allowed("https://neighbour.test"))
	require.False(t, allowed("https://old.test"))
	require.False(t, allowed("https://evil.test"))

	response, answer := p.send(t, http.MethodPut, address, []byte("good"), "Origin", "https://a.test")
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
	require.Equal(t, "https://a.test", response.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, strings.ToLower(response.Header.Get("Access-Control-Expose-Headers")), "etag")

	require.NoError(t, p.AllowOrigins(t.Context(), nil))
	require.False(t, allowed("https://a.test"))
	require.True(t, allowed("https://neighbour.test"))
	require.NoError(t, neighbour.AllowOrigins(t.Context(), nil))
	require.False(t, allowed("https://neighbour.test"))
	require.NoError(t, neighbour.AllowOrigins(t.Context(), nil))
}

func contractDeployment(t *testing.T, p place) {
	t.Helper()

	_, err := p.Deployment(t.Context())
	requireFault(t, fault.NotFound, err)

	require.NoError(t, p.ClaimDeployment(t.Context(), "first"))
	require.NoError(t, p.ClaimDeployment(t.Context(), "first"))

	err = p.ClaimDeployment(t.Context(), "second")
	requireFault(t, fault.Conflict, err)
	require.ErrorContains(t, err, `"first"`)

	id, err := p.Deployment(t.Context())
	require.NoError(t, err)
	require.Equal(t, "first", id)

	neighbour := p.with(t, func(c *blob.Config) { c.Prefix += "/neighbour" })
	require.NoError(t, neighbour.ClaimDeployment(t.Context(), "second"))
}

func contractDeploymentRace(t *testing.T, p place) {
	t.Helper()

	for round := range 20 {
		store := p.with(t, func(c *blob.Config) { c.Prefix += fmt.Sprintf("/%d", round) })
		results := make([]error, 4)

		var group errgroup.Group
		for i := range results {
			group.Go(func() error {
				results[i] = store.ClaimDeployment(t.Context(), strconv.Itoa(i))

				return nil
			})
		}

		require.NoError(t, group.Wait())

		holder, err := store.Deployment(t.Context())
		require.NoError(t, err)

		for i, result := range results {
			if strconv.Itoa(i) == holder {
				require.NoError(t, result)
			} else {
				requireFault(t, fault.Conflict, result)
			}
		}
	}
}

func contractWrongSecret(t *testing.T, p place) {
	t.Helper()

	stranger := p.with(t, func(c *blob.Config) { c.SecretKey = "not-the-secret" })

	_, err := stranger.Head(t.Context(), "object")
	requireFault(t, fault.Internal, err)
	_, err = stranger.Write(t.Context(), "object", strings.NewReader("x"))
	requireFault(t, fault.Internal, err)
	require.NotContains(t, err.Error(), "not-the-secret")

	address, err := stranger.PresignGet(t.Context(), "object", time.Hour, "f")
	require.NoError(t, err)
	response, _ := p.send(t, http.MethodGet, address, nil)
	require.Equal(t, http.StatusForbidden, response.StatusCode)
}

// contractMissingBucket checks that a missing bucket, a mistake of the operator, is not reported as a missing file.
func contractMissingBucket(t *testing.T, p place) {
	t.Helper()

	nowhere := p.with(t, func(c *blob.Config) { c.Bucket = "quern-" + uuid.NewString() })

	_, err := nowhere.CreateUpload(t.Context(), "file")
	requireFault(t, fault.Internal, err)
	_, err = nowhere.Read(t.Context(), "file", 0, -1)
	requireFault(t, fault.Internal, err)
	requireFault(t, fault.Internal, nowhere.ClaimDeployment(t.Context(), "id"))
}

func contractFile(t *testing.T, p place) {
	t.Helper()

	for _, size := range []int{0, 1, 16 * mib, 16*mib + 1, 70 * mib} {
		content := random(t, size)
		require.NoError(t, p.WriteFile(t.Context(), "file", bytes.NewReader(content), int64(size)))
		require.True(t, bytes.Equal(content, p.read(t, "file", 0, -1)), size)
	}

	// An interrupted write leaves the previous object unchanged, and leaves no upload open.
	content := random(t, 40*mib)
	require.Error(t, p.WriteFile(t.Context(), "file", failingFile{bytes.NewReader(content)}, int64(len(content))))

	object, err := p.Head(t.Context(), "file")
	require.NoError(t, err)
	require.Equal(t, int64(70*mib), object.Size)
	require.Empty(t, p.open(t))

	require.Equal(t, "s3://"+p.config.Bucket+"/"+p.config.Prefix+"/a/b", p.URI("a/b"))
}

// failingFile cannot be read from 32 MiB on.
type failingFile struct{ *bytes.Reader }

func (f failingFile) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= 32*mib {
		return 0, errors.New("the disk is gone")
	}

	return f.Reader.ReadAt(p, offset)
}
