package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()

	document, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation()))

	return document
}

// served returns the document that clients get, also as text.
func served(t *testing.T) (document *openapi3.T, text string) {
	t.Helper()

	tree, err := api.Served()
	require.NoError(t, err)

	encoded, err := json.Marshal(tree)
	require.NoError(t, err)

	document, err = openapi3.NewLoader().LoadFromData(encoded)
	require.NoError(t, err)
	require.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation()))

	return document, string(encoded)
}

// eachOperation calls do with "METHOD /path" and the operation.
func eachOperation(document *openapi3.T, do func(name string, operation *openapi3.Operation)) {
	for address, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			do(method+" "+address, operation)
		}
	}
}

// TestPlannedOperations checks that testdata/planned.txt lists exactly the operations that are planned but not
// implemented. The list only shrinks: an operation is removed in the change that implements it.
func TestPlannedOperations(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("testdata/planned.txt")
	require.NoError(t, err)

	var planned []string

	eachOperation(load(t), func(name string, operation *openapi3.Operation) {
		if operation.Extensions["x-quern-planned"] == true {
			planned = append(planned, name)
		}
	})

	require.ElementsMatch(t, strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), planned)
}

// TestNothingIsWrittenTwice checks that openapi.yaml has no two equal objects with more than three values, such as
// parameters, headers, responses and schemas. What is needed twice is a component. Examples may be equal.
func TestNothingIsWrittenTwice(t *testing.T) {
	t.Parallel()

	text, err := load(t).MarshalJSON()
	require.NoError(t, err)

	var document map[string]any
	require.NoError(t, json.Unmarshal(text, &document))

	first := map[string]string{} // where each object was seen first

	var visit func(at string, value any) (values int)

	visit = func(at string, value any) (values int) {
		switch value := value.(type) {
		case map[string]any:
			for key, member := range value {
				isExample := key == "example" || key == "examples" && path.Base(at) != "properties"
				if isExample {
					values++
				} else {
					values += visit(at+"/"+key, member)
				}
			}

			if values > 3 {
				object, err := json.Marshal(value)
				require.NoError(t, err)
				require.Empty(t, first[string(object)], "%s is the same: it belongs to the components", at)

				first[string(object)] = at
			}
		case []any:
			for i, element := range value {
				values += visit(fmt.Sprint(at, "/", i), element)
			}
		default:
			values = 1
		}

		return values
	}

	visit("", document)
}

// TestServedDocument checks that nothing planned and no mark is served, that every response has the header that api/gen
// adds, and that every JSON body has an example. served has checked that the examples are valid.
func TestServedDocument(t *testing.T) {
	t.Parallel()

	require.False(t, bytes.Contains(api.Document, []byte("x-quern-planned")))

	document, text := served(t)
	require.NotContains(t, strings.ReplaceAll(text, `"x-go-type-name"`, ""), `"x-`, "generators of Go clients read only this mark")

	requireExample := func(content openapi3.Content, body string) {
		if media := content["application/json"]; media != nil {
			require.True(t, media.Example != nil || len(media.Examples) > 0, "%s has no example", body)
		}
	}

	eachOperation(document, func(name string, operation *openapi3.Operation) {
		if operation.RequestBody != nil {
			requireExample(operation.RequestBody.Value.Content, name)
		}

		for status, response := range operation.Responses.Map() {
			require.NotEmpty(t, response.Value.Headers["X-Request-Id"], "%s %s", name, status)
			requireExample(response.Value.Content, name+" "+status)
		}
	})
}

func TestEveryOperation(t *testing.T) {
	t.Parallel()

	document := load(t)
	ids := map[string]bool{}

	require.Equal(t, openapi3.SecurityRequirements{{"bearerAuth": {}}, {"openId": {"openid"}}}, document.Security)

	eachOperation(document, func(name string, operation *openapi3.Operation) {
		require.NotEmpty(t, operation.OperationID, name)
		require.False(t, ids[operation.OperationID], "%s: operationId twice", name)
		ids[operation.OperationID] = true

		require.Len(t, operation.Tags, 1, name)
		require.NotEmpty(t, operation.Summary, name)

		public := operation.Security != nil
		if public {
			require.Empty(t, *operation.Security, "%s: public, or as the whole document says", name)
		}

		require.Equal(t, isPublic(name), public, name)
		require.Equal(t, isSpecified(name), strings.HasPrefix(operation.Description, "Part of the interface specification.\n"), name)

		if operation.RequestBody != nil {
			require.NotEmpty(t, operation.RequestBody.Value.Content, name)
		}
	})
}

func isPublic(name string) bool {
	return slices.Contains([]string{
		"GET /openapi.json", "GET /docs", "GET /a2a", "GET /a2a/{agent}", "GET /a2a/{agent}/.well-known/agent-card.json",
	}, name)
}

// isSpecified reports whether the interface specification fixes an operation. What it fixes of the agents is in preview,
// as their tag says.
func isSpecified(name string) bool {
	return slices.Contains([]string{
		"POST /query/runs/{runId}/feedback",
		"PUT /data/{username}/{namespace}/{datasetName}/inferDefinition",
		"DELETE /permissions/namespaces/{username}/{namespace}/shares",
		"POST /file-upload/prepare",
		"POST /file-upload/{sessionId}/abort",
		"GET /permissions/datasets/{username}/{namespace}/{datasetName}/shares",
		"GET /query/conversations/{conversationId}",
		"GET /permissions/namespaces/{username}/{namespace}/shares",
	}, name)
}
