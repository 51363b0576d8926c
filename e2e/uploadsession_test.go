package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prepared is the response to a prepare.
type prepared struct {
	SessionID string
	Files     []preparedFile
}

type preparedFile struct {
	FileID, UploadID, Key, Filename string
	PartSize                        int64
	PresignedURLs                   []presigned `json:"presignedUrls"`
}

type presigned struct {
	PartNumber int // only in renewed addresses
	URL        string
	PartSize   int64
}

// prepare starts a session of files with these sizes.
func prepare(t *testing.T, s *service, bearer string, sizes ...int64) (session prepared) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/file-upload/prepare", bearer, prepareBody(sizes...))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &session)

	return session
}

func prepareBody(sizes ...int64) string {
	var files []string
	for i, size := range sizes {
		files = append(files, fmt.Sprintf(`{"filename": "file %d", "size": %d}`, i, size))
	}

	return `{"filesToUpload": [` + strings.Join(files, ", ") + `]}`
}

const mebibyte = 1 << 20

// partsOf returns the contents of the parts of a file.
func partsOf(size int64) (parts []string) {
	for ; size > 0; size -= 8 * mebibyte {
		parts = append(parts, strings.Repeat("x", int(min(size, 8*mebibyte))))
	}

	return parts
}

// send uploads all parts.
func (f preparedFile) send(t *testing.T, size int64) {
	t.Helper()

	parts := partsOf(size)
	require.Len(t, f.PresignedURLs, len(parts))

	for i, part := range parts {
		require.EqualValues(t, len(part), f.PresignedURLs[i].PartSize)
		require.Equal(t, http.StatusOK, put(t, f.PresignedURLs[i].URL, part).status)
	}
}

// finish finishes a file from the parts that put has sent.
func (p prepared) finish(t *testing.T, s *service, bearer string, file int) *answer {
	t.Helper()

	return send(t, p.finishRequest(t, s.url, bearer, file))
}

func (p prepared) finishRequest(t *testing.T, url, bearer string, file int) *http.Request {
	t.Helper()

	f := p.Files[file]

	var parts []string

	for i, part := range f.PresignedURLs {
		etag, ok := sentParts.Load(identityOf(t, part.URL))
		if !ok {
			etag = "not sent"
		}

		parts = append(parts, fmt.Sprintf(`{"partNumber": %d, "etag": %q}`, i+1, etag))
	}

	return newRequest(t, http.MethodPost, url+"/file-upload/"+p.SessionID+"/files/"+f.FileID+"/finish", bearer,
		fmt.Sprintf(`{"uploadId": %q, "key": %q, "parts": [%s]}`, f.UploadID, f.Key, strings.Join(parts, ", ")))
}

// requireFinished checks that the file is completed, and that its session has the status.
func (p prepared) requireFinished(t *testing.T, answer *answer, file int, status string) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.JSONEq(t, fmt.Sprintf(`{"sessionId": %q, "sessionStatus": %q, "fileId": %q, "fileStatus": "completed"}`,
		p.SessionID, status, p.Files[file].FileID), answer.body)
}

// withoutURLs returns the session without its addresses, which differ in each response.
func (p prepared) withoutURLs() prepared {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		p.Files[i].PresignedURLs = nil
	}

	return p
}
