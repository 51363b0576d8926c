package server

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func loaded(t *testing.T) *contract {
	t.Helper()

	c, err := loadContract()
	require.NoError(t, err)

	return c
}

// TestAddressesInMessages checks that every address in a hint is an operation, and that every parameter of a path has a
// resource.
func TestAddressesInMessages(t *testing.T) {
	t.Parallel()

	c := loaded(t)
	address := regexp.MustCompile(`\b(GET|POST) (/[\w/{}-]+)`)
	texts := []string{}

	for _, text := range origins() {
		texts = append(texts, text)
	}

	for _, resource := range resources() {
		texts = append(texts, resource.from)
	}

	for _, text := range texts {
		found := address.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, found, text)

		for _, one := range found {
			require.Contains(t, c.ids, one[1]+" "+basePath+one[2], text)
		}
	}

	for id, op := range c.operations {
		for _, param := range op.params {
			if param.In == openapi3.ParameterInPath {
				require.Contains(t, resources(), param.Name, id)
			}
		}
	}
}

func TestAbsent(t *testing.T) {
	t.Parallel()

	c := loaded(t)

	const nameWords = "a name has 1 to 128 of the letters a-z and A-Z, digits, dots, underscores and hyphens, and begins with a letter or digit."

	for _, test := range []struct {
		operation string
		values    map[string]string
		want      string
	}{
		{"getDataset", map[string]string{"username": "Ada", "namespace": "shop", "datasetName": "order"}, `There is no dataset "Ada/shop/order" that you can see. GET /schema/Ada/shop/datasets lists those that you can see.`},
		{"createIngestion", map[string]string{"username": "ada", "namespace": "shop", "datasetName": "größen"}, `There is no dataset "ada/shop/größen" that you can see. GET /schema/ada/shop/datasets lists those that you can see. "größen" cannot be a name: ` + nameWords},
		{"ingestRows", map[string]string{"namespace": "shop", "datasetName": "order"}, `There is no dataset "shop/order" that you can see. GET /schema/self/shop/datasets lists those that you can see.`},
		{"getDataset", map[string]string{"username": "ada", "namespace": "my\"\x00 shop", "datasetName": "{username}\xff"}, `There is no dataset "ada/my\"\x00 shop/{username}\xff" that you can see. GET /schema/ada/{namespace}/datasets lists those that you can see. "{username}\xff" cannot be a name: ` + nameWords},
		{"getRun", map[string]string{"runId": "42"}, `There is no run "42" that you can see. GET /query/runs lists your runs, and POST /query/ask begins one.`},
		{"getToken", map[string]string{"id": strings.Repeat("x", 500)}, `There is no API token "` + strings.Repeat("x", 63) + `…" that you can see. GET /user/tokens lists yours.`},
		{"runQuery", nil, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for name, value := range test.values {
			r.SetPathValue(name, value)
		}

		require.Equal(t, test.want, c.operations[test.operation].absent(r))
	}
}

func TestNoOperation(t *testing.T) {
	t.Parallel()

	c := loaded(t)
	end := " All paths begin with /api/v1/; /api/v1/docs lists them."

	for path, want := range map[string]string{
		"/api/v1/dataset/ada/shop/orders":   " Did you mean /api/v1/data/{username}/{namespace}/{datasetName}?",
		"/api/v1/user/me/":                  " Did you mean /api/v1/user/me? No path ends with a slash.",
		"/user/me":                          " Did you mean /api/v1/user/me?",
		"/api/v1//query///runs":             " Did you mean /api/v1/query/runs?",
		"/api/v1/data/ada/shop/orders/row":  " Did you mean /api/v1/data/{username}/{namespace}/{datasetName}/rows?",
		"/api/v1/nothing/like/it":           "",
		"/":                                 " No path ends with a slash.",
		"/api/v1/query/runs/1/2/3/4/5/6/7/": " No path ends with a slash.",
	} {
		require.Equal(t, "There is no operation with this path."+want+end, fault.From(c.noOperation(path)).Message, path)
	}
}

func TestHints(t *testing.T) {
	t.Parallel()

	s := schema(t, `{"type":"object","required":["sessionId"],"properties":{
		"sessionId":{"type":"string","format":"uuid"}, "conversationId":{"type":"string","format":"uuid"},
		"fileIds":{"type":"array","items":{"type":"string","format":"uuid"}},
		"files":{"type":"array","minItems":1,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"size":{"type":"integer"}}}}}}`)

	for text, want := range map[string]fault.Sub{
		`{}`: {Code: "sessionId", Message: "is required; POST /file-upload/prepare returns it"},
		`{"sessionId":"0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01","conversationId":"1"}`: {Code: "conversationId", Message: "is not a valid uuid; GET /query/conversations lists yours, or leave it out"},
		`{"sessionId":"0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01","fileIds":["1"]}`:      {Code: "fileIds.0", Message: "is not a valid uuid; GET /file-upload/{sessionId} lists the files of a session"},
		`{"sessionId":"0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01","files":[]}`:           {Code: "files", Message: "must have at least 1 entry; an entry is an object with the fields: name (required), size"},
		`{"sessionId":"0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01","files":[1]}`:          {Code: "files.0", Message: "must be of type object with the fields: name (required), size"},
	} {
		value, err := parseJSON([]byte(text))
		require.NoError(t, err)
		require.Equal(t, []fault.Sub{want}, violations(s, value), text)
	}
}
