package e2e

import (
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
)

// smallFile is a file of one part in the response to a prepare. It binds x to its id, and x-upload, x-key and x-url to the rest.
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

// sessionState is the state of the session s.
func sessionState(status string, files ...string) string {
	return fmt.Sprintf(`{"sessionId": "<s>", "sessionStatus": %q, "createdAt": "<created now>", "expiresAt": "<expires now+24h>",
		"files": [%s]}`, status, strings.Join(files, ", "))
}

// finishOf is the request that finishes a file of one part with this content.
func finishOf(x, content string) (do, body string) {
	return "POST /file-upload/<s>/files/<" + x + ">/finish",
		fmt.Sprintf(`{"uploadId": "<%[1]s-upload>", "key": "<%[1]s-key>", "parts": [{"partNumber": 1, "etag": "%[2]x"}]}`, x, md5.Sum([]byte(content)))
}

// uploaded returns the steps that upload and finish a file of the session s.
func uploaded(as, x, content, status string) []step {
	do, body := finishOf(x, content)

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
		finish, finishA = finishOf("a", "again")
		abort           = "POST /file-upload/<s>/abort"
		two             = `{"filesToUpload": [{"filename": "a", "size": 1}, {"filename": "b", "size": 2}]}`
		preparedTwo     = preparedBody("s", smallFile("a", "a", 1), smallFile("b", "b", 2))
	)

	// full is a prepare of size bytes that exceeds the limit.
	full := func(size int64) step {
		return step{
			as: "eight", do: "POST /file-upload/prepare", body: prepareBody(size), status: 429, shows: []string{"Retry-After: 60"},
			want: plainFault("RATE_LIMITED", "At most 100 upload sessions with 100 bytes in total can be open. Finish or abort some."),
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
			{as: "one", do: finish, body: finishA, status: 422, want: invalid("parts", "part 1 has not been uploaded")},
			{do: "PUT <a-url>", body: "first", status: 200},
			{
				as: "one", do: "GET /file-upload/<s>", status: 200,
				want: sessionState("preparing", fileState("a", "orders.csv", 5, "preparing", `{"partNumber": 1, "etag": "<etag any>", "size": 5}`)),
			},
			{as: "one", do: finish, body: finishA, status: 422, want: invalid("parts.0.etag", "is not the ETag of part 1 in the object store; upload the part again and send the ETag of the response")},
			{as: "one", do: finish, body: strings.Replace(finishA, `"partNumber": 1`, `"partNumber": 2`, 1), status: 422, want: `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
				{"code": "parts.0.partNumber", "message": "the file has 1 parts"}, {"code": "parts", "message": "part 1 is not listed"}]}`},
			{
				as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1]}`, status: 200,
				want: `{"fileId": "<a>", "presignedUrls": [{"partNumber": 1, "url": "<a-url signed>", "partSize": 5}]}`, shows: []string{"Cache-Control: no-store"},
			},
			{as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1, 2]}`, status: 422, want: invalid("partNumbers", "the file has 1 parts")},
			{as: "one", do: finish, body: strings.Replace(finishA, "<a-key>", "uploads/x", 1), status: 422, want: invalid("uploadId", "uploadId and key must be those that prepare returned for this file")},
			{as: "one", do: finish, body: strings.Replace(finishA, "<a-upload>", "x", 1), status: 422, want: invalid("uploadId", "uploadId and key must be those that prepare returned for this file")},
		}, uploaded("one", "a", "again", "completed"), []step{
			{as: "one", do: finish, body: finishA, status: 200, want: `{"sessionId": "<s>", "sessionStatus": "completed", "fileId": "<a>", "fileStatus": "completed"}`},
			{as: "one", do: "GET /file-upload/<s>", status: 200, want: sessionState("completed", fileState("a", "orders.csv", 5, "completed", ""))},
			{as: "one", do: "GET /file-upload/<s>/files", status: 200, want: `{"data": [{"fileId": "<a>", "filename": "orders.csv", "size": 5, "completedAt": "<at now>"}]}`},
			{as: "one", do: "POST /file-upload/<s>/files/<a>/urls", body: `{"partNumbers": [1]}`, status: 422, want: plainFault("INVALID_STATE", "The file is completed.")},
			{as: "one", do: abort, status: 422, want: plainFault("INVALID_STATE", "The session is completed.")},
			{as: "one", do: abort + "?fileId=<a>", status: 422, want: plainFault("INVALID_STATE", "The session is completed.")},
		})},
		{name: "the sessions of a caller", steps: slices.Concat([]step{
			{as: "lister", do: "GET /file-upload", status: 200, want: `{"data": []}`},
			{as: "lister", do: "POST /file-upload/prepare", body: prepareBody(1), status: 200, want: preparedBody("open", smallFile("o", "file 0", 1))},
			{as: "lister", do: "POST /file-upload/prepare", body: two, status: 200, want: preparedTwo},
		}, uploaded("lister", "a", "1", "preparing"), []step{
			{as: "lister", do: abort + "?fileId=<b>", status: 200, want: abortedBody("completed")},
			{
				as: "lister", do: "GET /file-upload?limit=1", status: 200, shows: []string{"Cache-Control: no-store"},
				want: `{"data": [{"sessionId": "<s>", "sessionStatus": "completed", "createdAt": "<created now>", "expiresAt": "<expires now+24h>", "files": [
					{"fileId": "<a>", "filename": "a", "size": 1, "fileStatus": "completed", "completedAt": "<at now>"},
					{"fileId": "<b>", "filename": "b", "size": 2, "fileStatus": "aborted"}]}], "nextCursor": "<next any>"}`,
			},
			{
				as: "lister", do: "GET /file-upload?cursor=<next>", status: 200,
				want: `{"data": [{"sessionId": "<open>", "sessionStatus": "preparing", "createdAt": "<created now>", "expiresAt": "<expires now+24h>", "files": [
					{"fileId": "<o>", "filename": "file 0", "size": 1, "fileStatus": "preparing"}]}]}`,
			},
			{as: "another-lister", do: "GET /file-upload?cursor=<next>", status: 422, want: invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")},
			{as: "another-lister", do: "GET /file-upload", status: 200, want: `{"data": []}`},
			{as: "lister", do: "GET /file-upload?limit=0", status: 422, want: invalid("limit", "must be at least 1")},
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
			{as: "three", do: abort + "?fileId=<s>", status: 404, want: plainFault("NOT_FOUND", "The upload session has no file with this id. GET /file-upload/{sessionId} lists its files.")},
			{as: "three", do: abort + "?fileId=x", status: 422, want: invalid("fileId", "is not a valid uuid; GET /file-upload/{sessionId} lists the files of a session")},
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
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(91), status: 422, want: invalid("filesToUpload.0.size", "must be at most 90 bytes")},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(90), status: 200, want: preparedBody("first", smallFile("a", "file 0", 90))},
			{
				as: "six", do: "POST /file-upload/prepare", body: prepareBody(5, 6), status: 429, shows: []string{"Retry-After: 60"},
				want: plainFault("RATE_LIMITED", "At most 2 upload sessions with 100 bytes in total can be open. Finish or abort some."),
			},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(10), status: 200, want: preparedBody("s", smallFile("a", "file 0", 10))},
			{as: "six", do: abort, status: 200, want: abortedBody("aborted")},
			{as: "six", do: "POST /file-upload/prepare", body: prepareBody(1), status: 200, want: preparedBody("s", smallFile("a", "file 0", 1))},
			{
				as: "six", do: "POST /file-upload/prepare", body: prepareBody(1), status: 429, shows: []string{"Retry-After: 60"},
				want: plainFault("RATE_LIMITED", "At most 2 upload sessions with 100 bytes in total can be open. Finish or abort some."),
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
				want: plainFault("PAYLOAD_TOO_LARGE", "These files have 10001 parts; one response can list 10000 at most. Use several sessions."),
			},
		}},
	}
}
