package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// tolerant reports whether the operation ignores fields and parameters that it does not know: those of the interface
// specification and of the agents do.
func (o operation) tolerant() bool {
	return strings.HasPrefix(o.Description, "Part of the interface specification.\n") || slices.Contains(o.Tags, "Agents")
}

// queryNames returns the names of the parameters of the query.
func (o operation) queryNames() []string {
	var names []string

	for _, reference := range o.Parameters {
		if reference.Value.In == openapi3.ParameterInQuery {
			names = append(names, reference.Value.Name)
		}
	}

	return names
}

// checkQuery sends parameters that the operation does not know, and each that it knows in a wrong way.
func checkQuery(t *testing.T, s *service, operation operation, token string) {
	t.Helper()

	address := s.url + operation.address(uuid.NewString())
	body := ""

	if operation.schema() != nil {
		body = encode(t, operation.body(t))
	}

	ask := func(query string) *answer { return call(t, operation.method, address+query, token, body) }
	refuse := func(query, field, message string) {
		t.Helper()

		refused := ask(query)
		require.Contains(t, requireFault(t, query, refused, http.StatusUnprocessableEntity, "VALIDATION_FAILED"), field)
		require.Contains(t, refused.body, message, query)
	}
	names := operation.queryNames()

	for _, name := range names {
		refuse("?"+name+"=1&"+name+"=2", name, "is given more than once; give it once")
	}

	if operation.tolerant() {
		// Not the whole status: what the first request deletes, the second does not find.
		isRefused := ask("").status == http.StatusUnprocessableEntity
		require.Equal(t, isRefused, ask("?zzz=1&%00=2&=3").status == http.StatusUnprocessableEntity, "unknown parameters")

		return
	}

	for _, name := range names {
		refuse("?"+strings.ToUpper(name)+"=1", strings.ToUpper(name), `did you mean \"`+name+`\"?`)
	}

	known := "it has no parameters in the query, so leave it out"
	if len(names) > 0 {
		slices.Sort(names)
		known = "known parameters: " + strings.Join(names, ", ")
	}

	refuse("?zzz=1", "zzz", known)
	refuse("?zzz", "zzz", known)
	refuse("?=1", "", "is not a parameter of this operation")
	refuse("?zzz=1&z%00z=1", "z\x00z", "is not a parameter of this operation")
	refuse("?"+strings.Repeat("z", 100)+"=1", strings.Repeat("z", 63)+"…", "is not a parameter of this operation")

	if operation.schema() == nil || operation.isRows() {
		return
	}

	for name := range operation.schema().Properties {
		if !slices.Contains(names, name) {
			refuse("?"+url.QueryEscape(name)+"=1", name, "send it as a field of the body")
		}
	}
}

// address fills the parameters of the path: each id with one that does not exist, the user with the caller, numbers with
// 0, and all others with any name.
func (o operation) address(id string) string {
	path := o.path

	for _, reference := range o.Parameters {
		value := "x"

		switch p := reference.Value; {
		case isID(p):
			value = id
		case p.Name == "username":
			value = "self"
		case p.Name == "recordId":
			value = "0-1"
		case p.Schema.Value.Type.Is("integer"):
			value = "0"
		}

		path = strings.ReplaceAll(path, "{"+reference.Value.Name+"}", value)
	}

	return path
}
