package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// prepared is the answer to a prepare.
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
	PartNumber int // only in renewed ones
	URL        string
	PartSize   int64
}

// prepare begins a session of files with these sizes.
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

// partsOf are the contents of the parts of a file, all alike.
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

// finish asks for the end of a file. What the client says of the parts does not count.
func (p prepared) finish(t *testing.T, s *service, bearer string, file int) *answer {
	t.Helper()

	return send(t, p.finishRequest(t, s.url, bearer, file))
}

func (p prepared) finishRequest(t *testing.T, url, bearer string, file int) *http.Request {
	t.Helper()

	f := p.Files[file]

	return newRequest(t, http.MethodPost, url+"/file-upload/"+p.SessionID+"/files/"+f.FileID+"/finish", bearer,
		fmt.Sprintf(`{"uploadId": %q, "key": %q, "parts": [{"partNumber": 1, "etag": "x"}]}`, f.UploadID, f.Key))
}

// requireFinished: the file is complete, and its session has the status.
func (p prepared) requireFinished(t *testing.T, answer *answer, file int, status string) {
	t.Helper()
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	require.JSONEq(t, fmt.Sprintf(`{"sessionId": %q, "sessionStatus": %q, "fileId": %q, "fileStatus": "completed"}`,
		p.SessionID, status, p.Files[file].FileID), answer.body)
}

// smallFile is a file of one part in the answer to a prepare; x is bound to its id, x-upload, x-key and x-url to the rest.
func smallFile(x, name string, size int) string {
	return fmt.Sprintf(`{"fileId": "<%[1]s uuid>", "uploadId": "<%[1]s-upload any>", "key": "<%[1]s-key key>", "filename": %[2]q, "partSize": 8388608,
		"presignedUrls": [{"url": "<%[1]s-url signed>", "partSize": %[3]d}]}`, x, name, size)
}

func preparedBody(x string, files ...string) string {
	return `{"sessionId": "<` + x + ` uuid>", "files": [` + strings.Join(files, ", ") + `]}`
}

// fileState is the same file in the state of the session.
func fileState(x, name string, size int, status, parts string) string {
	return fmt.Sprintf(`{"fileId": "<%[1]s>", "uploadId": "<%[1]s-upload>", "key": "<%[1]s-key>", "filename": %[2]q, "size": %[3]d, "partSize": 8388608,
		"fileStatus": %[4]q, "parts": [%[5]s]}`, x, name, size, status, parts)
}

// sessionState is that of the session s.
func sessionState(status string, files ...string) string {
	return fmt.Sprintf(`{"sessionId": "<s>", "sessionStatus": %q, "createdAt": "<created now>", "expiresAt": "<expires now+24h>",
		"files": [%s]}`, status, strings.Join(files, ", "))
}

func finishOf(x string) (do, body string) {
	return "POST /file-upload/<s>/files/<" + x + ">/finish",
		`{"uploadId": "<` + x + `-upload>", "key": "<` + x + `-key>", "parts": [{"partNumber": 1, "etag": "x"}]}`
}

// uploaded are the steps that upload and finish a file of the session s.
func uploaded(as, x, content, status string) []step {
	do, body := finishOf(x)

	return []step{
		{do: "PUT <" + x + "-url>", body: content, status: 200},
		{as: as, do: do, body: body, status: 200, want: `{"sessionId": "<s>", "sessionStatus": "` + status + `", "fileId": "<` + x + `>", "fileStatus": "completed"}`},
	}
}

func abortedBody(status string) string {
	return `{"sessionId": "<s>", "sessionStatus": "` + status + `"}`
}

func uploadScenarios() []scenario {
	var (
		finish, finishA = finishOf("a")
		abort           = "POST /file-upload/<s>/abort"
		two             = `{"filesToUpload": [{"filename": "a", "size": 1}, {"filename": "b", "size": 2}]}`
		preparedTwo     = preparedBody("s", smallFile("a", "a", 1), smallFile("b", "b", 2))
	)

	// full is a prepare of so many bytes for which there is no room.
	full := func(size int64) step {
		return step{
			as: "eight", do: "POST /file-upload/prepare", body: prepareBody(size), status: 429, shows: []string{"Retry-After: 60"},
			want: plainFault("RATE_LIMITED", "At most 100 upload sessions with 100 bytes can be open at once. Finish or abort some."),
		}
	}

	return []scenario{
		{name: "a file from its first byte to its last", steps: slices.Concat([]step{
			{
				as: "one", do: "POST /file-upload/prepare", body: `{"filesToUpload": [{"filename": "orders.csv", "size": 5}]}`, status: 200,
				want: preparedBody("s", smallFile("a", "orders.csv", 5)), shows: []string{"Cache-Control: no-store"},
			},
			{as: "one", do: "GET /file-upload/<s>", status: 200, want: sessionState("preparing", fileState("a", "orders.csv", 5, "preparing", "")), shows: []string{"Cache-Control: no-store"}},
			{as: "one", do: "GET /file-upload/<s>/files", status: 200, want: `{"data": []}`},
			{as: "one", do: finish, body: finishA, status: 422, want: invalid("parts.1", "has not been uploaded")},
			{do: "PUT <a-url>", body: "first", status: 200},
			{
				as: "one", do: "GET /file-upload/<s>", status: 200,
				want: sessionState("preparing", fileState("a", "orders.csv", 5, "preparing", `{"partNumber": 1, "etag": "<etag any>", "size": 5}`)),
			},
			{
				as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1]}`, status: 200,
				want: `{"fileId": "<a>", "presignedUrls": [{"partNumber": 1, "url": "<a-url signed>", "partSize": 5}]}`, shows: []string{"Cache-Control: no-store"},
			},
			{as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1, 2]}`, status: 422, want: invalid("partNumbers", "the file has 1 parts")},
			{as: "one", do: finish, body: strings.Replace(finishA, "<a-key>", "uploads/x", 1), status: 422, want: invalid("uploadId", "uploadId and key must be those that prepare gave for this file")},
			{as: "one", do: finish, body: strings.Replace(finishA, "<a-upload>", "x", 1), status: 422, want: invalid("uploadId", "uploadId and key must be those that prepare gave for this file")},
		}, uploaded("one", "a", "again", "completed"), []step{
			{as: "one", do: finish, body: finishA, status: 200, want: `{"sessionId": "<s>", "sessionStatus": "completed", "fileId": "<a>", "fileStatus": "completed"}`},
			{as: "one", do: "GET /file-upload/<s>", status: 200, want: sessionState("completed", fileState("a", "orders.csv", 5, "completed", ""))},
			{as: "one", do: "GET /file-upload/<s>/files", status: 200, want: `{"data": [{"fileId": "<a>", "filename": "orders.csv", "size": 5, "completedAt": "<at now>"}]}`},
			{as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1]}`, status: 422, want: plainFault("INVALID_STATE", "The file is completed.")},
			{as: "one", do: abort, status: 422, want: plainFault("INVALID_STATE", "The session is completed.")},
			{as: "one", do: abort + "?fileId=<a>", status: 422, want: plainFault("INVALID_STATE", "The session is completed.")},
		})},
		{name: "an abort withdraws what was finished", steps: slices.Concat([]step{
			{as: "two", do: "POST /file-upload/prepare", body: two, status: 200, want: preparedTwo},
		}, uploaded("two", "a", "1", "preparing"), []step{
			{as: "two", do: abort, status: 200, want: abortedBody("aborted")},
			{as: "two", do: abort, status: 200, want: abortedBody("aborted")},
			{as: "two", do: abort + "?fileId=<b>", status: 200, want: abortedBody("aborted")},
			{as: "two", do: "GET /file-upload/<s>", status: 200, want: sessionState("aborted", fileState("a", "a", 1, "aborted", ""), fileState("b", "b", 2, "aborted", ""))},
			{as: "two", do: "GET /file-upload/<s>/files", status: 200, want: `{"data": []}`},
			{as: "two", do: finish, body: finishA, status: 422, want: plainFault("INVALID_STATE", "The file was aborted.")},
			{as: "two", do: "POST /file-upload/<s>/files/<b>/urls", body: `{"partNumbers": [1]}`, status: 422, want: plainFault("INVALID_STATE", "The file is aborted.")},
		})},
		{name: "abort of one file while another is open", steps: slices.Concat([]step{
			{as: "three", do: "POST /file-upload/prepare", body: two, status: 200, want: preparedTwo},
			{as: "three", do: abort + "?fileId=<a>", status: 200, want: abortedBody("preparing")},
			{as: "three", do: abort + "?fileId=<a>", status: 200, want: abortedBody("preparing")},
			{as: "three", do: abort + "?fileId=<s>", status: 404, want: absent},
			{as: "three", do: abort + "?fileId=x", status: 422, want: invalid("fileId", "is not a valid uuid")},
			{as: "three", do: "GET /file-upload/<s>", status: 200, want: sessionState("preparing", fileState("a", "a", 1, "aborted", ""), fileState("b", "b", 2, "preparing", ""))},
		}, uploaded("three", "b", "22", "completed"))},
		{name: "abort of one file when the rest is finished", steps: slices.Concat([]step{
			{as: "four", do: "POST /file-upload/prepare", body: two, status: 200, want: preparedTwo},
		}, uploaded("four", "a", "1", "preparing"), []step{
			{as: "four", do: abort + "?fileId=<b>", status: 200, want: abortedBody("completed")},
			{as: "four", do: "GET /file-upload/<s>/files", status: 200, want: `{"data": [{"fileId": "<a>", "filename": "a", "size": 1, "completedAt": "<at now>"}]}`},
			{as: "four", do: abort, status: 422, want: plainFault("INVALID_STATE", "The session is completed.")},
		})},
		{name: "abort of one file after the other", steps: []step{
			{as: "five", do: "POST /file-upload/prepare", body: two, status: 200, want: preparedTwo},
			{as: "five", do: abort + "?fileId=<b>", status: 200, want: abortedBody("preparing")},
			{as: "five", do: abort + "?fileId=<a>", status: 200, want: abortedBody("aborted")},
			{as: "five", do: abort + "?fileId=<a>", status: 200, want: abortedBody("aborted")},
		}},
		{name: "how much can be open at once", settings: []string{"QUERN_UPLOAD_MAX_OPEN_SESSIONS=2", "QUERN_UPLOAD_MAX_OPEN_BYTES=100", "QUERN_UPLOAD_MAX_FILE=90"}, steps: []step{
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(91), status: 422, want: invalid("filesToUpload.0.size", "must be at most 90")},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(90), status: 200, want: preparedBody("first", smallFile("a", "file 0", 90))},
			{
				as: "six", do: "POST /file-upload/prepare", body: prepareBody(5, 6), status: 429, shows: []string{"Retry-After: 60"},
				want: plainFault("RATE_LIMITED", "At most 2 upload sessions with 100 bytes can be open at once. Finish or abort some."),
			},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(10), status: 200, want: preparedBody("s", smallFile("a", "file 0", 10))},
			{as: "six", do: abort, status: 200, want: abortedBody("aborted")},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(1), status: 200, want: preparedBody("s", smallFile("a", "file 0", 1))},
			{
				as: "six", do: "POST /file-upload/prepare", body: prepareBody(1), status: 429, shows: []string{"Retry-After: 60"},
				want: plainFault("RATE_LIMITED", "At most 2 upload sessions with 100 bytes can be open at once. Finish or abort some."),
			},
			{as: "another", do: "POST /file-upload/prepare", body: prepareBody(1), status: 200, want: preparedBody("t", smallFile("b", "file 0", 1))},
		}},
		{name: "what ends makes room for as many bytes", settings: []string{"QUERN_UPLOAD_MAX_OPEN_BYTES=100"}, steps: slices.Concat([]step{
			{as: "eight", do: "POST /file-upload/prepare", body: prepareBody(60), status: 200, want: preparedBody("s", smallFile("a", "file 0", 60))},
			full(41),
			{as: "eight", do: "POST /file-upload/prepare", body: prepareBody(15, 25), status: 200, want: preparedBody("t", smallFile("b", "file 0", 15), smallFile("c", "file 1", 25))},
			full(1),
		}, uploaded("eight", "a", strings.Repeat("x", 60), "completed"), []step{
			full(61),
			{as: "eight", do: "POST /file-upload/prepare", body: prepareBody(60), status: 200, want: preparedBody("s", smallFile("a", "file 0", 60))},
			full(1),
			{as: "eight", do: "POST /file-upload/<t>/abort?fileId=<c>", status: 200, want: strings.Replace(abortedBody("preparing"), "<s>", "<t>", 1)},
			full(26),
			{as: "eight", do: abort, status: 200, want: abortedBody("aborted")},
			full(86),
			{as: "eight", do: "POST /file-upload/prepare", body: prepareBody(85), status: 200, want: preparedBody("s", smallFile("a", "file 0", 85))},
			full(1),
		})},
		{name: "too many parts for one answer", steps: []step{
			{
				as: "seven", do: "POST /file-upload/prepare", body: prepareBody(9_999*8*mebibyte, 8*mebibyte+1), status: 413,
				want: plainFault("PAYLOAD_TOO_LARGE", "These files have 10001 parts; one answer has 10000 at most. Use several sessions."),
			},
		}},
	}
}

func TestUploadScenarios(t *testing.T) {
	t.Parallel()

	shared := start(t)
	key := shared.newKey()
	playAll(t, shared, key, uploadScenarios())

	t.Run("a file of many parts", func(t *testing.T) {
		t.Parallel()

		size := int64(max(3, loops(20)))*8*mebibyte - 1 // the last one is smaller
		bearer := key.token("many-parts")
		session := prepare(t, shared, bearer, size)
		session.Files[0].send(t, size)
		session.requireFinished(t, session.finish(t, shared, bearer, 0), 0, "completed")
		require.Equal(t, size, shared.place.objects()[session.Files[0].Key])
	})

	t.Run("a hundred files", func(t *testing.T) {
		t.Parallel()

		bearer := key.token("many-files")
		session := prepare(t, shared, bearer, slices.Repeat([]int64{1}, 100)...)

		for i, file := range session.Files {
			require.Equal(t, fmt.Sprintf("file %d", i), file.Filename)
			file.send(t, 1)
			session.requireFinished(t, session.finish(t, shared, bearer, i), i, map[bool]string{true: "completed", false: "preparing"}[i == 99])
		}

		tooMany := call(t, http.MethodPost, shared.url+"/file-upload/prepare", bearer, prepareBody(slices.Repeat([]int64{1}, 101)...))
		requireFault(t, "101 files", tooMany, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
	})

	t.Run("names", func(t *testing.T) {
		t.Parallel()

		bearer := key.token("names")

		for name, status := range map[string]int{
			"two words": 200, "ünï-кот-🙂": 200, "../../etc/passwd": 200, "/": 200, ".": 200, `a\b"c`: 200, "<script>": 200, "%2e%2e%2f": 200, " ": 200,
			strings.Repeat("x", 255): 200, strings.Repeat("ä", 127) + "x": 200,
			strings.Repeat("x", 256): 422, strings.Repeat("ä", 128): 422, "": 422, "a\nb": 422, "a\x00b": 422, "\x7f": 422, "a\u0085b": 422, "\u009f": 422,
		} {
			body := encode(t, map[string]any{"filesToUpload": []any{map[string]any{"filename": name, "size": 1}}})
			answer := call(t, http.MethodPost, shared.url+"/file-upload/prepare", bearer, body)
			require.Equal(t, status, answer.status, "%q: %s", name, answer.body)

			if status != http.StatusOK {
				require.Equal(t, []string{"filesToUpload.0.filename"}, requireFault(t, name, answer, status, "VALIDATION_FAILED"))

				continue
			}

			var session prepared
			answer.json(t, &session)
			require.Equal(t, name, session.Files[0].Filename)
			require.NotContains(t, session.Files[0].Key, "etc")

			session.Files[0].send(t, 1)
			session.requireFinished(t, session.finish(t, shared, bearer, 0), 0, "completed")
		}
	})

	t.Run("sizes", func(t *testing.T) {
		t.Parallel()

		for _, size := range []string{"0", "-1", "1.5", `"1"`, "9223372036854775807", "1e30", "null"} {
			body := `{"filesToUpload": [{"filename": "x", "size": ` + size + `}]}`
			answer := call(t, http.MethodPost, shared.url+"/file-upload/prepare", key.token("sizes"), body)
			requireFault(t, size, answer, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		}
	})

	t.Run("parts that do not fit are named", func(t *testing.T) {
		t.Parallel()

		bearer := key.token("misfit")
		session := prepare(t, shared, bearer, 24*mebibyte)
		file := session.Files[0]
		require.Equal(t, http.StatusOK, put(t, file.PresignedURLs[0].URL, strings.Repeat("x", 8*mebibyte)).status)
		shared.place.putPart(file, 3, strings.Repeat("x", 8*mebibyte-1)) // past the service, whose address the store does not take for it
		shared.place.putPart(file, 4, "x")

		refused := session.finish(t, shared, bearer, 0)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status)
		require.JSONEq(t, `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
			{"code": "parts.2", "message": "has not been uploaded"},
			{"code": "parts.3", "message": "has 8388607 bytes, and should have 8388608"},
			{"code": "parts.4", "message": "is not a part of this file"}]}`, refused.body)
		require.NotContains(t, shared.place.objects(), file.Key)
	})

	t.Run("a repeated prepare is the same session", func(t *testing.T) {
		t.Parallel()

		bearer, header := key.token("repeater"), "Idempotency-Key: "+uuid.NewString()
		ask := func() *http.Request {
			return newRequest(t, http.MethodPost, shared.url+"/file-upload/prepare", bearer, prepareBody(1, 2), header)
		}

		var first prepared

		for i, answer := range append(atOnce(t, 8, func(int) *http.Request { return ask() }), send(t, ask())) {
			var session prepared

			require.Equal(t, http.StatusOK, answer.status, answer.body)
			answer.json(t, &session)

			if i == 0 {
				first = session
			}

			session.Files[0].send(t, 1) // its addresses are good, whichever they are
			require.Equal(t, first.withoutURLs(), session.withoutURLs())
		}

		other := call(t, http.MethodPost, shared.url+"/file-upload/prepare", bearer, prepareBody(1), header)
		require.Equal(t, http.StatusUnprocessableEntity, other.status)
		require.Contains(t, other.body, "Idempotency-Key")
	})

	t.Run("finishes and aborts at once", func(t *testing.T) {
		t.Parallel()

		bearer := key.token("racer")

		for range rounds(100) {
			session := prepare(t, shared, bearer, 1, 1)
			session.Files[0].send(t, 1)

			for _, answer := range atOnce(t, 4, func(int) *http.Request { return session.finishRequest(t, shared.url, bearer, 0) }) {
				session.requireFinished(t, answer, 0, "preparing")
			}

			session.Files[1].send(t, 1)
			answers := atOnce(t, 2, func(i int) *http.Request {
				if i == 0 {
					return newRequest(t, http.MethodPost, shared.url+"/file-upload/"+session.SessionID+"/abort", bearer, "")
				}

				return session.finishRequest(t, shared.url, bearer, 1)
			})

			state := call(t, http.MethodGet, shared.url+"/file-upload/"+session.SessionID, bearer, "").body
			if answers[0].status == http.StatusOK {
				require.Equal(t, http.StatusUnprocessableEntity, answers[1].status, answers[1].body)
				require.NotContains(t, state, "completed")
			} else {
				session.requireFinished(t, answers[1], 1, "completed")
				require.NotContains(t, state, "aborted")
			}
		}
	})

	t.Run("what is another's and what is not there differ in no byte", func(t *testing.T) {
		t.Parallel()

		victim := key.token("upload-victim")
		session := prepare(t, shared, victim, 1)
		reaches := restrictedToken(t, shared, victim, target("self", makeDataset(t, shared, victim), ""))

		for _, operation := range operations() {
			if !strings.Contains(operation.path, "{sessionId}") {
				continue
			}

			for who, bearer := range map[string]string{"stranger": key.token("upload-stranger"), "restricted": reaches} {
				ask := func(id, file string) *answer {
					body := ""
					if operation.schema() != nil {
						body = encode(t, operation.body(t))
					}

					answer := call(t, operation.method, shared.url+strings.NewReplacer("{sessionId}", id, "{fileId}", file).Replace(operation.path), bearer, body)
					for _, name := range []string{"X-Request-Id", "Date"} {
						answer.header.Del(name)
					}

					return answer
				}

				missing := ask(uuid.NewString(), uuid.NewString())
				require.Equal(t, http.StatusNotFound, missing.status, "%s as %s: %s", operation, who, missing.body)
				require.Equal(t, missing, ask(session.SessionID, session.Files[0].FileID), "%s as %s", operation, who)
			}
		}
	})
}

// withoutURLs is what every answer about the session has alike.
func (p prepared) withoutURLs() prepared {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		p.Files[i].PresignedURLs = nil
	}

	return p
}

func TestUploadResume(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("resumer")
	count := max(4, loops(20))
	stopped := count*7/20 + 1
	size := int64(count)*8*mebibyte - 5
	contents := partsOf(size)
	session := prepare(t, s, bearer, size)
	file := session.Files[0]
	address := s.url + "/file-upload/" + session.SessionID

	for i := range stopped {
		require.Equal(t, http.StatusOK, put(t, file.PresignedURLs[i].URL, contents[i]).status)
	}

	// The uploader knows nothing any more but the id of the session.
	var state struct {
		Files []struct {
			FileID, UploadID, Key string
			Size, PartSize        int64
			Parts                 []struct {
				PartNumber int
				Size       int64
			}
		}
	}

	call(t, http.MethodGet, address, bearer, "").json(t, &state)
	require.Len(t, state.Files, 1)
	require.Len(t, state.Files[0].Parts, stopped)

	stored := map[int]bool{}

	for i, part := range state.Files[0].Parts {
		require.Equal(t, i+1, part.PartNumber)
		require.EqualValues(t, len(contents[i]), part.Size)
		stored[part.PartNumber] = true
	}

	var missing []int

	for number := 1; int64(number-1)*state.Files[0].PartSize < state.Files[0].Size; number++ {
		if !stored[number] {
			missing = append(missing, number)
		}
	}

	require.Len(t, missing, count-stopped)

	var renewed struct {
		PresignedURLs []presigned `json:"presignedUrls"`
	}

	call(t, http.MethodPost, address+"/files/"+file.FileID+"/urls", bearer, encode(t, map[string]any{"partNumbers": missing})).json(t, &renewed)
	require.Len(t, renewed.PresignedURLs, len(missing))

	for i, part := range renewed.PresignedURLs {
		require.Equal(t, missing[i], part.PartNumber)
		require.Equal(t, http.StatusOK, put(t, part.URL, contents[part.PartNumber-1]).status)
	}

	session.requireFinished(t, session.finish(t, s, bearer, 0), 0, "completed")
	require.Equal(t, size, s.place.objects()[file.Key])

	t.Run("a part that is too large", func(t *testing.T) {
		t.Parallel()

		session := prepare(t, s, bearer, 5)
		answer := put(t, session.Files[0].PresignedURLs[0].URL, "longer than five")
		t.Logf("the store answers %d", answer.status)

		want := []string{"parts.1"} // missing if the store refused it, of the wrong size if not
		require.Equal(t, want, requireFault(t, "too large", session.finish(t, s, bearer, 0), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

		session.Files[0].send(t, 5)
		session.requireFinished(t, session.finish(t, s, bearer, 0), 0, "completed")
	})
}

// TestPresignScope: an address is for one part of one file, by PUT, while the file is open.
func TestPresignScope(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("scoper")
	session := prepare(t, s, bearer, 8*mebibyte+4, 4)
	one, other := session.Files[0], session.Files[1]
	address, content := one.PresignedURLs[1].URL, "four" // the last part

	for name, changed := range map[string]string{
		"another part":      strings.Replace(address, "partNumber=2", "partNumber=1", 1),
		"another key":       strings.NewReplacer(one.Key, other.Key).Replace(address),
		"another upload":    strings.NewReplacer(one.UploadID, other.UploadID).Replace(address),
		"another file":      strings.NewReplacer(one.Key, other.Key, one.UploadID, other.UploadID).Replace(address),
		"a longer life":     strings.Replace(address, "X-Amz-Expires=3600", "X-Amz-Expires=36000", 1),
		"the whole object":  strings.NewReplacer("partNumber=2&", "", "uploadId="+one.UploadID+"&", "").Replace(address),
		"the place's owner": strings.NewReplacer("/"+one.Key, "/deployment", "partNumber=2&", "", "uploadId="+one.UploadID+"&", "").Replace(address),
	} {
		require.NotEqual(t, address, changed, name)
		require.Equal(t, http.StatusForbidden, put(t, changed, content).status, name)
	}

	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPost} {
		request := newRequest(t, method, address, "", "")
		answer, err := try(request)
		require.NoError(t, err)
		require.Equal(t, http.StatusForbidden, answer.status, method)
	}

	require.NotContains(t, call(t, http.MethodGet, s.url+"/file-upload/"+session.SessionID, bearer, "").body, "partNumber", "nothing arrived")
	require.Equal(t, http.StatusOK, put(t, address, content).status)

	abort := func(query string) {
		answer := call(t, http.MethodPost, s.url+"/file-upload/"+session.SessionID+"/abort"+query, bearer, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
	}
	abort("?fileId=" + one.FileID)
	require.Equal(t, http.StatusNotFound, put(t, address, content).status, "its file is aborted")
	require.Equal(t, http.StatusOK, put(t, other.PresignedURLs[0].URL, content).status, "the other one is not")
	abort("")
	require.Equal(t, http.StatusNotFound, put(t, other.PresignedURLs[0].URL, content).status)
	require.Empty(t, s.place.uploads())
}
