package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

type answer struct {
	status int
	header http.Header
	body   string
}

// json decodes the body into a value.
func (a *answer) json(t *testing.T, value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), value), a.body)
}

// call sends a request and compares the answer with the contract. Headers are "Name: value". A header given here replaces the one
// made from the other arguments, or removes it if the value is empty.
func call(t *testing.T, method, url, token, body string, headers ...string) *answer {
	t.Helper()

	return send(t, newRequest(t, method, url, token, body, headers...))
}

func newRequest(t *testing.T, method, url, token, body string, headers ...string) *http.Request {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)

	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)

		if value == "" {
			request.Header.Del(name)
		}
	}

	return request
}

// send is call for a request that is already built.
func send(t *testing.T, request *http.Request) *answer {
	t.Helper()

	answer, err := try(request)
	require.NoError(t, err)
	validate(t, request, answer)

	return answer
}

// try sends a request while the service may be down: a failed connection returns an error and does not fail the test, and the
// answer is not compared with the contract. It does not follow redirects.
func try(request *http.Request) (*answer, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}

	return &answer{status: response.StatusCode, header: response.Header, body: string(body)}, nil
}

// validate compares an answer with the contract of its operation. A request that is not an operation can only be answered with an
// ErrorResponse.
func validate(t *testing.T, request *http.Request, answer *answer) {
	t.Helper()

	path, isAPI := strings.CutPrefix(request.URL.Path, "/api/v1/")
	if !isAPI || request.Method == http.MethodOptions {
		return
	}

	require.NotEmpty(t, answer.header.Get("X-Request-ID"))

	method := request.Method
	if method == http.MethodHead {
		method = http.MethodGet
		require.Empty(t, answer.body)
	}

	route := findRoute("/"+path, method)
	if route == nil {
		require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, answer.status)

		if request.Method != http.MethodHead {
			schema := contract().Components.Schemas["ErrorResponse"].Value
			requireError(t, schema, answer)
		}

		return
	}

	response := route.Operation.Responses.Status(answer.status)
	require.NotNil(t, response, "%s %s: status %d is not in the contract: %s", method, route.Path, answer.status, answer.body)

	for name, header := range response.Value.Headers {
		if header.Value.Extensions["x-quern-sometimes"] == true {
			continue
		}

		require.NotEmpty(t, answer.header.Get(name), "%s %s: %d without %s", method, route.Path, answer.status, name)
	}

	require.NoError(t, openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: route},
		Status:                 answer.status,
		Header:                 answer.header,
		Body:                   io.NopCloser(strings.NewReader(answer.body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, SchemaValidationOptions: []openapi3.SchemaValidationOption{
				openapi3.EnableFormatValidation(),
				openapi3.WithStringFormatValidator("uuid", openapi3.NewCallbackValidator(uuid.Validate)),
			},
		},
	}), answer.body)

	if len(response.Value.Content) == 0 {
		require.Empty(t, answer.body)
	}
}

func requireError(t *testing.T, schema *openapi3.Schema, answer *answer) {
	t.Helper()
	require.Equal(t, "application/json", answer.header.Get("Content-Type"))

	var value any
	answer.json(t, &value)
	require.NoError(t, schema.VisitJSON(value), answer.body)
}

// contract returns the document that the service serves, with the marks that it removes when it serves it.
//
//nolint:gochecknoglobals // read once and never changed
var contract = sync.OnceValue(func() *openapi3.T {
	document, err := openapi3.NewLoader().LoadFromData(api.Document)
	if err != nil {
		panic(err)
	}

	return document
})

// findRoute returns the operation at a path, or nil. If two paths match, the one with more fixed segments is used.
func findRoute(path, method string) *routers.Route {
	var (
		found *routers.Route
		most  = -1
	)

	for template, item := range contract().Paths.Map() {
		if fixed, fits := fit(template, path); fits && fixed > most {
			most, found = fixed, nil
			if operation := item.Operations()[method]; operation != nil {
				found = &routers.Route{Spec: contract(), Path: template, PathItem: item, Method: method, Operation: operation}
			}
		}
	}

	return found
}

func fit(template, path string) (fixed int, fits bool) {
	wanted, given := strings.Split(template, "/"), strings.Split(path, "/")
	if len(wanted) != len(given) {
		return 0, false
	}

	for i, segment := range wanted {
		switch {
		case segment == given[i]:
			fixed++
		case !strings.HasPrefix(segment, "{") || given[i] == "":
			return 0, false
		}
	}

	return fixed, true
}
