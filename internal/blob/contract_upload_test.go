package blob_test

import (
	"bytes"
	"crypto/sha256"
	"mime"
	"net/http"
	"net/url"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

func contractUpload(t *testing.T, p place) {
	t.Helper()

	contents := [][]byte{random(t, 5*mib), random(t, 5*mib), random(t, 123)}
	key := "uploads/" + uuid.NewString()

	uploadID, err := p.CreateUpload(t.Context(), key)
	require.NoError(t, err)

	parts, err := p.ListParts(t.Context(), key, uploadID)
	require.NoError(t, err)
	require.Empty(t, parts)

	// Parts are sent in any order. Part 2 is sent twice, and the later content counts.
	require.NoError(t, p.put(t.Context(), blob.Part{Key: key, UploadID: uploadID, Number: 2, Size: 7}, []byte("earlier")))

	for _, number := range []int{3, 1, 2} {
		content := contents[number-1]
		part := blob.Part{Key: key, UploadID: uploadID, Number: number, Size: int64(len(content))}
		require.NoError(t, p.put(t.Context(), part, content))
	}

	parts, err = p.ListParts(t.Context(), key, uploadID)
	require.NoError(t, err)
	require.Len(t, parts, 3)

	for i, part := range parts {
		require.Equal(t, i+1, part.Number)
		require.Equal(t, int64(len(contents[i])), part.Size)
	}

	_, err = p.Head(t.Context(), key)
	requireFault(t, fault.NotFound, err)

	require.NoError(t, p.CompleteUpload(t.Context(), key, uploadID, parts, 10*mib+123))
	require.Equal(t, sha256.Sum256(bytes.Join(contents, nil)), sha256.Sum256(p.read(t, key, 0, -1)))
	require.Empty(t, p.open(t))

	// An empty file is an upload of one empty part.
	uploadID, parts = p.upload(t, "nothing", nil)
	require.NoError(t, p.CompleteUpload(t.Context(), "nothing", uploadID, parts, 0))
	require.Empty(t, p.read(t, "nothing", 0, -1))
}

func contractCompleteAgain(t *testing.T, p place) {
	t.Helper()

	uploadID, parts := p.upload(t, "file", []byte("content"))
	require.NoError(t, p.CompleteUpload(t.Context(), "file", uploadID, parts, 7))
	require.NoError(t, p.CompleteUpload(t.Context(), "file", uploadID, parts, 7))
	require.NoError(t, p.AbortUpload(t.Context(), "file", uploadID))
	require.Equal(t, "content", string(p.read(t, "file", 0, -1)))

	_, err := p.ListParts(t.Context(), "file", uploadID)
	requireFault(t, fault.NotFound, err)

	// Of several concurrent calls one makes the object. The others find the object, or report NotFound while it is
	// assembled.
	uploadID, parts = p.upload(t, "raced", []byte("content"))

	var (
		group errgroup.Group
		made  atomic.Int64
	)

	for range 4 {
		group.Go(func() error {
			err := p.CompleteUpload(t.Context(), "raced", uploadID, parts, 7)
			if err == nil {
				made.Add(1)
			}

			if fault.Is(err, fault.NotFound) {
				return nil
			}

			return err
		})
	}

	require.NoError(t, group.Wait())
	require.Positive(t, made.Load())
	require.Equal(t, "content", string(p.read(t, "raced", 0, -1)))
}

func contractWrongParts(t *testing.T, p place) {
	t.Helper()

	big := random(t, 5*mib)
	uploadID, parts := p.upload(t, "too small", []byte("small"), []byte("last"))
	requireFault(t, fault.Conflict, p.CompleteUpload(t.Context(), "too small", uploadID, parts, 9))

	uploadID, parts = p.upload(t, "missing", big, []byte("last"))
	missing := []blob.UploadedPart{parts[0], {Number: 3, ETag: parts[1].ETag}}
	requireFault(t, fault.Conflict, p.CompleteUpload(t.Context(), "missing", uploadID, missing, 5*mib+4))

	wrong := []blob.UploadedPart{parts[0], {Number: 2, ETag: parts[0].ETag}}
	requireFault(t, fault.Conflict, p.CompleteUpload(t.Context(), "missing", uploadID, wrong, 5*mib+4))

	backwards := []blob.UploadedPart{parts[1], parts[0]}
	requireFault(t, fault.Conflict, p.CompleteUpload(t.Context(), "missing", uploadID, backwards, 5*mib+4))

	for _, key := range []string{"too small", "missing"} {
		_, err := p.Head(t.Context(), key)
		requireFault(t, fault.NotFound, err)
	}

	// The failed calls did not damage the upload.
	require.NoError(t, p.CompleteUpload(t.Context(), "missing", uploadID, parts, 5*mib+4))

	uploadID, parts = p.upload(t, "size", []byte("content"))
	require.Error(t, p.CompleteUpload(t.Context(), "size", uploadID, parts, 8))
}

func contractManyParts(t *testing.T, p place) {
	t.Helper()

	const count = 1010

	uploadID, err := p.CreateUpload(t.Context(), "file")
	require.NoError(t, err)

	var group errgroup.Group

	group.SetLimit(16)

	for i := range count {
		group.Go(func() error {
			return p.put(t.Context(), blob.Part{Key: "file", UploadID: uploadID, Number: i + 1, Size: 1}, []byte("x"))
		})
	}

	require.NoError(t, group.Wait())

	parts, err := p.ListParts(t.Context(), "file", uploadID)
	require.NoError(t, err)
	require.Len(t, parts, count)
	require.Equal(t, count, parts[count-1].Number)
}

func contractAbort(t *testing.T, p place) {
	t.Helper()

	uploadID, parts := p.upload(t, "file", []byte("content"))
	part := blob.Part{Key: "file", UploadID: uploadID, Number: 2, Size: 4}
	address, err := p.PresignPart(t.Context(), part, time.Hour)
	require.NoError(t, err)

	require.NoError(t, p.AbortUpload(t.Context(), "file", uploadID))
	require.NoError(t, p.AbortUpload(t.Context(), "file", uploadID))

	response, _ := p.send(t, http.MethodPut, address, []byte("late"))
	require.Equal(t, http.StatusNotFound, response.StatusCode)

	_, err = p.ListParts(t.Context(), "file", uploadID)
	requireFault(t, fault.NotFound, err)
	requireFault(t, fault.NotFound, p.CompleteUpload(t.Context(), "file", uploadID, parts, 7))
	require.Empty(t, p.open(t))
}

func contractUploads(t *testing.T, p place) {
	t.Helper()

	want := map[string]string{}

	for _, key := range []string{"uploads/a/1", "uploads/a/2", "uploads/b/1"} {
		id, err := p.CreateUpload(t.Context(), key)
		require.NoError(t, err)

		want[key] = id
	}

	again, err := p.CreateUpload(t.Context(), "uploads/b/1")
	require.NoError(t, err)

	seen := map[string]string{}

	for upload, err := range p.Uploads(t.Context(), "uploads/a/") {
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), upload.Started, time.Minute)

		seen[upload.Key] = upload.ID
	}

	require.Equal(t, map[string]string{"uploads/a/1": want["uploads/a/1"], "uploads/a/2": want["uploads/a/2"]}, seen)

	var ids []string
	for _, upload := range p.open(t) {
		ids = append(ids, upload.ID)
	}

	require.ElementsMatch(t, []string{want["uploads/a/1"], want["uploads/a/2"], want["uploads/b/1"], again}, ids)
}

func contractPresignScope(t *testing.T, p place) {
	t.Helper()

	mine, _ := p.upload(t, "mine")
	other, _ := p.upload(t, "other")

	p.write(t, "object", []byte("secret"))
	good, err := p.PresignPart(t.Context(), blob.Part{Key: "mine", UploadID: mine, Number: 1, Size: 4}, time.Hour)
	require.NoError(t, err)

	changed := func(change func(address *url.URL, query url.Values)) string {
		address, err := url.Parse(good)
		require.NoError(t, err)

		query := address.Query()
		change(address, query)
		address.RawQuery = query.Encode()

		return address.String()
	}
	set := func(name, value string) string {
		return changed(func(_ *url.URL, query url.Values) { query.Set(name, value) })
	}
	of := func(key string) string {
		return changed(func(address *url.URL, _ url.Values) { address.Path = path.Dir(address.Path) + "/" + key })
	}

	for name, test := range map[string]struct{ method, address string }{
		"another key":      {http.MethodPut, of("other")},
		"another part":     {http.MethodPut, set("partNumber", "2")},
		"another upload":   {http.MethodPut, set("uploadId", other)},
		"a longer life":    {http.MethodPut, set("X-Amz-Expires", "7200")},
		"a later date":     {http.MethodPut, set("X-Amz-Date", time.Now().Add(time.Minute).UTC().Format("20060102T150405Z"))},
		"a whole object":   {http.MethodPut, changed(func(_ *url.URL, q url.Values) { q.Del("partNumber"); q.Del("uploadId") })},
		"reading":          {http.MethodGet, good},
		"reading another":  {http.MethodGet, of("object")},
		"looking":          {http.MethodHead, good},
		"aborting":         {http.MethodDelete, good},
		"completing":       {http.MethodPost, good},
		"no signature":     {http.MethodPut, set("X-Amz-Signature", "")},
		"no authorization": {http.MethodPut, changed(func(_ *url.URL, q url.Values) { clear(q) })},
	} {
		response, answer := p.send(t, test.method, test.address, []byte("evil"))
		require.Contains(t, []int{http.StatusForbidden, http.StatusBadRequest, http.StatusUnauthorized}, response.StatusCode, "%s: %s", name, answer)
		require.NotContains(t, answer, "secret", name)
	}

	for key, id := range map[string]string{"mine": mine, "other": other} {
		parts, err := p.ListParts(t.Context(), key, id)
		require.NoError(t, err)
		require.Empty(t, parts)
	}

	response, answer := p.send(t, http.MethodPut, good, []byte("good"))
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
}

func contractPresignExpiry(t *testing.T, p place) {
	t.Helper()

	p.write(t, "object", []byte("content"))
	uploadID, _ := p.upload(t, "file")
	before := p.with(t, func(c *blob.Config) { c.Now = func() time.Time { return time.Now().Add(-time.Hour) } })

	for ttl, want := range map[time.Duration]int{59 * time.Minute: http.StatusForbidden, 61 * time.Minute: http.StatusOK} {
		put, err := before.PresignPart(t.Context(), blob.Part{Key: "file", UploadID: uploadID, Number: 1, Size: 4}, ttl)
		require.NoError(t, err)
		response, answer := p.send(t, http.MethodPut, put, []byte("late"))
		require.Equal(t, want, response.StatusCode, answer)

		get, err := before.PresignGet(t.Context(), "object", ttl, "f")
		require.NoError(t, err)
		response, answer = p.send(t, http.MethodGet, get, nil)
		require.Equal(t, want, response.StatusCode, answer)
	}
}

func contractPresignedSize(t *testing.T, p place) {
	t.Helper()

	uploadID, _ := p.upload(t, "file")
	enforced := true

	for number, content := range map[int]string{1: "short", 2: "much longer than signed"} {
		address, err := p.PresignPart(t.Context(), blob.Part{Key: "file", UploadID: uploadID, Number: number, Size: 10}, time.Hour)
		require.NoError(t, err)

		response, answer := p.send(t, http.MethodPut, address, []byte(content))
		if response.StatusCode == http.StatusOK {
			enforced = false
		} else {
			require.Equal(t, http.StatusForbidden, response.StatusCode, answer)
		}
	}

	t.Logf("the store enforces a signed Content-Length: %t", enforced)

	// If the store does not enforce it, the sizes of the parts show the difference.
	parts, err := p.ListParts(t.Context(), "file", uploadID)
	require.NoError(t, err)

	if enforced {
		require.Empty(t, parts)
	} else {
		require.NotEmpty(t, parts)
		require.NotEqual(t, int64(10), parts[0].Size)
	}
}

func contractPresignedGet(t *testing.T, p place) {
	t.Helper()

	p.write(t, "object", []byte("<html>"))

	for _, name := range []string{"report.csv", `odd "name"; x.csv`, "Übersicht カナ.csv"} {
		address, err := p.PresignGet(t.Context(), "object", time.Hour, name)
		require.NoError(t, err)

		response, answer := p.send(t, http.MethodGet, address, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, answer)
		require.Equal(t, "<html>", answer)

		kind, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Disposition"))
		require.NoError(t, err)
		require.Equal(t, "attachment", kind)
		require.Equal(t, name, parameters["filename"])

		response, _ = p.send(t, http.MethodPut, address, []byte("evil"))
		require.Equal(t, http.StatusForbidden, response.StatusCode)
	}
}
