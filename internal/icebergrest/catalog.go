package icebergrest

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
)

// Catalog answers Trino. It is an http.Handler.
type Catalog struct {
	Schemas

	Lake   *lake.Lake
	Log    *slog.Logger
	Secret string // shared with Trino; it opens nothing but the configuration of the protocol
}

// failure is an error in the form of Iceberg's protocol.
type failure struct {
	status        int
	kind, message string
}

func (f *failure) Error() string { return f.message }

var (
	errToken    = &failure{http.StatusUnauthorized, "NotAuthorizedException", "The bearer token is missing or not valid."}
	errReadOnly = &failure{http.StatusForbidden, "ForbiddenException", "This catalog is read only."}
	errSchema   = &failure{http.StatusNotFound, "NoSuchNamespaceException", "There is no such schema."}
	errTable    = &failure{http.StatusNotFound, "NoSuchTableException", "There is no such table."}
	errPath     = &failure{http.StatusNotFound, "NotFoundException", "There is nothing at this address."}
	errLate     = &failure{http.StatusServiceUnavailable, "ServiceUnavailableException", "The catalog cannot reach its database. Try again."}
)

// ServeHTTP answers one request.
func (c *Catalog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")

	answer, err := c.answer(r)
	if err != nil {
		answer = c.explain(r.Context(), w, err)
	}

	content, err := json.Marshal(answer)
	if err != nil {
		c.Log.ErrorContext(r.Context(), "an answer of the catalog could not be written", "error", err)

		return
	}

	_, _ = w.Write(content) // the client may have left
}

// explain writes the status of an error and returns its body. The error itself is only logged.
func (c *Catalog) explain(ctx context.Context, w http.ResponseWriter, err error) any {
	said, ok := err.(*failure) //nolint:errorlint // never wrapped
	if !ok {
		c.Log.WarnContext(ctx, "the catalog could not answer", "error", err)

		said = errLate
	}

	w.WriteHeader(said.status)

	return map[string]any{"error": map[string]any{"message": said.message, "type": said.kind, "code": said.status}}
}

// answer checks the token first, so that nobody without one learns which addresses there are.
func (c *Catalog) answer(r *http.Request) (any, error) {
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		return nil, errToken
	}

	parts, ok := split(r.URL.EscapedPath())
	if ok && len(parts) == 1 && parts[0] == "config" && r.Method == http.MethodGet && c.isSecret(token) {
		return configuration(), nil
	}

	tables, err := c.tables(r.Context(), token)

	switch {
	case err != nil:
		return nil, err
	case tables == nil && !c.isSecret(token):
		return nil, errToken
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return nil, errReadOnly
	case !ok || len(parts) == 0:
		return nil, errPath
	}

	return c.read(r.Context(), parts, tables)
}

func (c *Catalog) isSecret(token string) bool {
	given, expected := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(c.Secret))

	return subtle.ConstantTimeCompare(given[:], expected[:]) == 1
}

// read answers the addresses that Trino reads. tables is what the token shows; nothing with the shared secret.
func (c *Catalog) read(ctx context.Context, parts []string, tables []Table) (any, error) {
	switch {
	case parts[0] == "config" && len(parts) == 1:
		return configuration(), nil
	case parts[0] != "namespaces":
		return nil, errPath
	case len(parts) == 1:
		return map[string]any{"namespaces": []string{}}, nil // names are never listed
	}

	if !has(tables, parts[1]) {
		return nil, errSchema
	}

	switch {
	case len(parts) == 2:
		return map[string]any{"namespace": []string{parts[1]}, "properties": map[string]string{}}, nil
	case len(parts) == 3 && (parts[2] == "tables" || parts[2] == "views"):
		return map[string]any{"identifiers": []string{}}, nil
	case len(parts) == 4 && parts[2] == "tables":
		return c.table(ctx, tables, parts[1], parts[3])
	default:
		return nil, errTable
	}
}

func (c *Catalog) table(ctx context.Context, tables []Table, schema, name string) (any, error) {
	t, ok := find(tables, schema, name)
	if !ok {
		return nil, errTable
	}

	metadata, err := c.Lake.Pinned(ctx, t.lake(), t.Snapshot)
	if fault.Is(err, fault.NotFound) {
		return nil, errTable
	}

	// Trino wants an address of the metadata, but never reads it.
	return map[string]any{"metadata-location": "quern:" + t.Snapshot.String(), "metadata": metadata, "config": map[string]string{}}, err
}

func has(tables []Table, schema string) bool {
	for _, t := range tables {
		if t.Schema == schema {
			return true
		}
	}

	return false
}

// configuration lists the requests that the catalog answers. Clients then do not send others, such as those for views.
func configuration() any {
	return map[string]any{
		"defaults":  map[string]string{},
		"overrides": map[string]string{"rest-metrics-reporting-enabled": "false"},
		"endpoints": []string{
			"GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}", "HEAD /v1/{prefix}/namespaces/{namespace}",
			"GET /v1/{prefix}/namespaces/{namespace}/tables", "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
			"HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
		},
	}
}
