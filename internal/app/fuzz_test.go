package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/stack"
)

// newApp returns the whole service, without listeners, on a database of its own, and the API token of an owner. No
// process listens on the address of its issuer. Pairs are names and values of additional settings.
func newApp(tb testing.TB, pairs ...string) (*App, string) {
	tb.Helper()

	values := map[string]string{
		"QUERN_PUBLIC_URL": "http://quern.test", "QUERN_SECRET": strings.Repeat("s", 32), "QUERN_DATABASE_URL": pgtest.URL(tb),
		"QUERN_SANDBOX_DIR": tb.TempDir(), "QUERN_SANDBOX_ENGINE": "/proc/self/exe", "QUERN_SANDBOX_IDLE_PROCESSES": "1", "QUERN_OIDC_ISSUER": "http://127.0.0.1:1", "QUERN_OIDC_AUDIENCE": "quern", "QUERN_DATABASE_MAX_CONNS": "4",
		"QUERN_S3_ENDPOINT": stack.Env(tb, "QUERN_TEST_S3_ENDPOINT"), "QUERN_S3_BUCKET": stack.Env(tb, "QUERN_TEST_S3_BUCKET"), "QUERN_S3_PREFIX": uuid.NewString() + "/",
		"QUERN_S3_ACCESS_KEY": stack.Env(tb, "QUERN_TEST_S3_ACCESS_KEY"), "QUERN_S3_SECRET_KEY": stack.Env(tb, "QUERN_TEST_S3_SECRET_KEY"),
	}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}

	c, err := config.Read[config.Serve](func(name string) (string, bool) {
		value, ok := values[name]

		return value, ok
	})
	require.NoError(tb, err)

	app, err := New(tb.Context(), c, slog.New(slog.DiscardHandler))
	require.NoError(tb, err)
	tb.Cleanup(app.Close)

	ada := auth.Principal{Account: uuid.Must(uuid.NewV7()), Username: "ada"}

	require.NoError(tb, app.db.Do(tb.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(tb.Context(), `WITH name AS (INSERT INTO directory_names VALUES ('ada', $1))
			INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
			VALUES ($1, 'person', 'ada', '', '', '', '', '{}', now(), now())`, ada.Account)

		return err
	}))

	_, token, err := auth.Tokens{DB: app.db, Now: time.Now, DefaultLifetime: time.Hour, MaxLifetime: time.Hour}.
		Create(tb.Context(), ada, auth.NewToken{Name: "fuzz", Role: auth.Owner})
	require.NoError(tb, err)

	return app, token
}

type target struct {
	method, path string
	example      []byte
}

// targets returns all operations of the contract, in a fixed order.
func targets(tb testing.TB) []target {
	tb.Helper()

	document, err := openapi3.NewLoader().LoadFromData(api.Document)
	require.NoError(tb, err)

	var list []target

	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			found := target{method: method, path: path}
			if operation.RequestBody != nil {
				found.example, err = json.Marshal(operation.RequestBody.Value.Content["application/json"].Example)
				require.NoError(tb, err)
			}

			list = append(list, found)
		}
	}

	slices.SortFunc(list, func(a, b target) int { return strings.Compare(a.path+a.method, b.path+b.method) })

	return list
}

var pathParameter = regexp.MustCompile(`\{[^}]+\}`)

// FuzzOperations sends arbitrary input to every operation. The status must be below 500, and every error must be an
// ErrorResponse.
func FuzzOperations(f *testing.F) {
	app, token := newApp(f)
	operations := targets(f)

	for i, operation := range operations {
		f.Add(uint8(i), "0199c0de-1a2b-7c3d-8e4f-5a6b7c8d9e01", "limit=1", "application/json", "key", operation.example)
		f.Add(uint8(i), "1", "", "", "", []byte(`{"filesToUpload":[{"filename":"x","size":9223372036854775808}],"partNumbers":[1e3]}`))
		f.Add(uint8(i), "self", "cursor=AZnA3hosfD2OT1prfI2eAQ", "", "", []byte(`{"name":"x","expires_at":null}`))
	}

	f.Fuzz(func(t *testing.T, index uint8, parameter, query, contentType, key string, body []byte) {
		operation := operations[int(index)%len(operations)]
		path := pathParameter.ReplaceAllLiteralString(operation.path, url.PathEscape(parameter))

		request, err := http.NewRequestWithContext(t.Context(), operation.method, "/api/v1"+path, bytes.NewReader(body))
		if err != nil {
			t.Skip() // not a valid request
		}

		request.URL.RawQuery = query
		request.RemoteAddr = "127.0.0.1:1"

		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": contentType, "Idempotency-Key": key} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}

		recorder := httptest.NewRecorder()
		app.Handler().ServeHTTP(recorder, request)

		if recorder.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %s answered %d: %s", request.Method, request.URL, recorder.Code, recorder.Body)
		}

		if recorder.Code >= http.StatusBadRequest {
			var answer api.ErrorResponse
			if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || !answer.ErrorCode.Valid() || answer.Message == "" {
				t.Fatalf("%s %s answered %d without an ErrorResponse: %s", request.Method, request.URL, recorder.Code, recorder.Body)
			}
		}
	})
}
