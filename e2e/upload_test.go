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

func TestUploadScenarios(t *testing.T) {
	t.Parallel()

	shared := start(t)
	key := shared.newKey()
	playAll(t, shared, key, uploadScenarios())

	t.Run("a file of many parts", func(t *testing.T) {
		t.Parallel()

		size := int64(max(3, loops(20)))*8*mebibyte - 1 // the last part is smaller
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

	t.Run("a name is a text", func(t *testing.T) {
		t.Parallel()

		for _, name := range []string{`"filename": 1, `, `"filename": null, `, `"filename": ["x"], `, ``} {
			body := `{"filesToUpload": [{` + name + `"size": 1}]}`
			answer := call(t, http.MethodPost, shared.url+"/file-upload/prepare", key.token("sizes"), body)
			requireFault(t, body, answer, http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		}
	})

	t.Run("parts that do not fit are named", func(t *testing.T) {
		t.Parallel()

		bearer := key.token("misfit")
		session := prepare(t, shared, bearer, 24*mebibyte)
		file := session.Files[0]
		require.Equal(t, http.StatusOK, put(t, file.PresignedURLs[0].URL, strings.Repeat("x", 8*mebibyte)).status)
		shared.place.putPart(file, 3, strings.Repeat("x", 8*mebibyte-1)) // uploaded directly, because the presigned address does not accept this size
		shared.place.putPart(file, 4, "x")

		refused := session.finish(t, shared, bearer, 0)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status)
		require.JSONEq(t, `{"error_code": "VALIDATION_FAILED", "message": "The request is not valid.", "error_message": "", "sub_errors": [
			{"code": "parts", "message": "part 2 has not been uploaded"},
			{"code": "parts", "message": "part 3 has 8388607 bytes instead of 8388608"},
			{"code": "parts", "message": "part 4 was uploaded, but the file has 3 parts"}]}`, refused.body)
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

			session.Files[0].send(t, 1) // all returned addresses are valid
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

					return answer.comparable(id, "<session>", file, "<file>")
				}

				missing := ask(uuid.NewString(), uuid.NewString())
				require.Equal(t, http.StatusNotFound, missing.status, "%s as %s: %s", operation, who, missing.body)
				require.Equal(t, missing, ask(session.SessionID, session.Files[0].FileID), "%s as %s", operation, who)
			}
		}
	})
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

	// The uploader now knows only the id of the session.
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

		want := []string{"parts"} // missing if the object store refused the part, else of the wrong size
		require.Equal(t, want, requireFault(t, "too large", session.finish(t, s, bearer, 0), http.StatusUnprocessableEntity, "VALIDATION_FAILED"))

		session.Files[0].send(t, 5)
		session.requireFinished(t, session.finish(t, s, bearer, 0), 0, "completed")
	})
}

// TestPresignScope checks that a presigned address is valid for one part of one file, by PUT, while the file is open.
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
