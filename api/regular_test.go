package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// camelCase is the style of all names of fields and parameters.
var camelCase = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// eachProperty calls do for every property of the component schemas, at every depth.
func eachProperty(document *openapi3.T, do func(at, name string, schema *openapi3.Schema)) {
	var visit func(at string, reference *openapi3.SchemaRef)

	visit = func(at string, reference *openapi3.SchemaRef) {
		if reference == nil || reference.Ref != "" {
			return // a component, which is visited by its own name
		}

		for name, property := range reference.Value.Properties {
			do(at, name, property.Value)
			visit(at+"."+name, property)
		}

		visit(at, reference.Value.Items)
		visit(at, reference.Value.AdditionalProperties.Schema)

		for _, part := range slices.Concat(reference.Value.AllOf, reference.Value.AnyOf, reference.Value.OneOf) {
			visit(at, part)
		}
	}

	for name, schema := range document.Components.Schemas {
		visit(name, schema)
	}
}

// TestRegular checks the rules by which a client guesses a name, a status or a shape. What the interface specification or the agent
// protocol fixes is listed as an exception.
func TestRegular(t *testing.T) {
	t.Parallel()

	document := load(t)

	t.Run("names and times of fields", func(t *testing.T) {
		t.Parallel()

		eachProperty(document, func(at, name string, schema *openapi3.Schema) {
			fixed := []string{"ErrorResponse.error_code", "ErrorResponse.error_message", "ErrorResponse.sub_errors"} // the specification
			if !slices.Contains(fixed, at+"."+name) && !strings.HasPrefix(name, "__") {
				require.Regexp(t, camelCase, name, at)
			}

			// timestamp is fixed by Standard Webhooks.
			isTime := schema.Format == "date-time"
			require.Equal(t, isTime, strings.HasSuffix(name, "At") && name != "rowsAt" || isTime && slices.Contains([]string{"at", "asOf", "timestamp"}, name), "%s.%s: a time is RFC 3339, and its name ends with At", at, name)
		})
	})

	t.Run("parameters", func(t *testing.T) {
		t.Parallel()

		eachOperation(document, func(name string, operation *openapi3.Operation) {
			for _, parameter := range operation.Parameters {
				if parameter.Value.In != openapi3.ParameterInHeader {
					require.Regexp(t, camelCase, parameter.Value.Name, name)
				}
			}
		})
	})

	t.Run("what is created has an address", func(t *testing.T) {
		t.Parallel()

		// Operations that make something without an address of its own, or whose status the specification fixes.
		others := map[string]string{
			"POST /file-upload/prepare":                                              "specification",
			"POST /data/{username}/{namespace}/{datasetName}/rows":                   "rows",
			"POST /data/{username}/{namespace}/{datasetName}/rows/delete":            "rows",
			"POST /ingest/{namespace}/{datasetName}":                                 "rows",
			"POST /permissions/namespaces/{username}/{namespace}/shares":             "sets the role of a grant",
			"POST /permissions/datasets/{username}/{namespace}/{datasetName}/shares": "sets the role of a grant",
			"POST /connections/{connectionId}/shares":                                "as the other shares",
		}

		eachOperation(document, func(name string, operation *openapi3.Operation) {
			located := func(status string) bool {
				response := operation.Responses.Value(status)

				return response != nil && response.Value.Headers["Location"] != nil
			}

			if operation.Responses.Value("201") != nil {
				require.True(t, located("201"), "%s: 201 needs Location", name)
			}

			creates := slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "Idempotency-Key" })
			if creates && others[name] == "" {
				require.True(t, located("201") || located("202"), "%s creates something: its answer is 201 or 202 with Location", name)
			}
		})
	})

	t.Run("lists", func(t *testing.T) {
		t.Parallel()

		// Arrays by the specification, and lists that cannot grow.
		others := []string{"listAgents", "listNamespaceShares", "listDatasetShares", "listConnectionShares", "listUploadFiles", "listModels", "listPieces"}

		eachOperation(document, func(name string, operation *openapi3.Operation) {
			isList := strings.HasPrefix(operation.OperationID, "list") || strings.HasPrefix(operation.OperationID, "search")
			if !isList || slices.Contains(others, operation.OperationID) {
				return
			}

			schema := operation.Responses.Value("200").Value.Content["application/json"].Schema.Value
			require.NotNil(t, schema.Properties["data"], name)
			require.True(t, schema.Properties["data"].Value.Type.Is("array"), name)
			require.NotNil(t, schema.Properties["nextCursor"], name)
			require.NotContains(t, schema.Required, "nextCursor", "%s: it is absent on the last page", name)
		})
	})
}
