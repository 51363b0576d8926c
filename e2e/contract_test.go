package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestContract checks the rules that hold for every list of the contract.
func TestContract(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	bearer, other := key.token("pages"), key.token("others")

	for _, name := range []string{"one", "two"} {
		made := call(t, http.MethodPost, s.url+"/schema/self/namespaces", bearer, `{"name": "`+name+`"}`)
		require.Equal(t, http.StatusCreated, made.status, made.body)
	}

	var page struct{ NextCursor string }

	const list = "/schema/self/namespaces"

	call(t, http.MethodGet, s.url+list+"?limit=1", bearer, "").json(t, &page)
	require.NotEmpty(t, page.NextCursor)

	cursor := "cursor=" + url.QueryEscape(page.NextCursor)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+list+"?limit=2&"+cursor, bearer, "").status, "the same list")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/schema/PAGES/namespaces?"+cursor, bearer, "").status, "the same list by another name")

	refuse := func(t *testing.T, path, bearer string) {
		t.Helper()

		fields := requireFault(t, path, call(t, http.MethodGet, s.url+path, bearer, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")
		require.Equal(t, []string{"cursor"}, fields, path)
	}

	refuse(t, list+"?"+cursor, other)
	refuse(t, "/schema/others/namespaces?"+cursor, bearer)

	paged := 0

	for _, o := range operations() {
		isCursor := func(p *openapi3.Parameter) bool { return p.Name == "cursor" && p.In == openapi3.ParameterInQuery }
		if o.parameter(isCursor) == nil || o.forOperators() {
			continue
		}

		paged++

		t.Run(o.String(), func(t *testing.T) {
			t.Parallel()

			if o.OperationID != "listNamespaces" {
				refuse(t, o.address(uuid.NewString())+"?"+cursor, bearer)
			}

			require.NotNil(t, o.parameter(func(p *openapi3.Parameter) bool { return p.Name == "limit" }), "a list has a limit")
			requireListShape(t, o)
		})
	}

	require.Greater(t, paged, 5)
}

// requireListShape checks that a page is an object with an array and nextCursor.
func requireListShape(t *testing.T, o operation) {
	t.Helper()

	schema := o.Responses.Status(http.StatusOK).Value.Content["application/json"].Schema.Value
	require.NotNil(t, schema.Properties["nextCursor"])
	require.NotContains(t, schema.Required, "nextCursor", "it is absent on the last page")

	arrays := 0

	for name, property := range schema.Properties {
		if property.Value.Type.Is("array") && slices.Contains([]string{"data"}, name) {
			arrays++
		}
	}

	require.Equal(t, 1, arrays)
}
