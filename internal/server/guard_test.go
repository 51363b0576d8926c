package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// TestHeaderLines checks that a list header may have several lines, and a single-value header may not.
func TestHeaderLines(t *testing.T) {
	t.Parallel()

	check := func(name string) (*http.Request, error) {
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		r.Header[name] = []string{`"1"`, `"2", W/"3"`}

		parameter := openapi3.NewHeaderParameter(name).WithSchema(openapi3.NewStringSchema())

		return r, checkParameters(r, &operation{params: []*openapi3.Parameter{parameter}})
	}

	r, err := check("If-Match")
	require.NoError(t, err)
	require.Equal(t, []string{`"1", "2", W/"3"`}, r.Header.Values("If-Match"))

	_, err = check("Idempotency-Key")
	require.True(t, fault.Is(err, fault.ValidationFailed))
}
