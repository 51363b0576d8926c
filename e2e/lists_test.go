package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelList checks that a caller sees the models of all providers, the default first, and nothing about how they are reached.
func TestModelList(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_MODELS=far/large,near/small,far/tiny", "QUERN_MODEL_FAR_KIND=anthropic", "QUERN_MODEL_FAR_KEY=hidden-key", "QUERN_MODEL_FAR_EXPOSURE=values",
		"QUERN_MODEL_NEAR_KIND=openai", "QUERN_MODEL_NEAR_URL=http://127.0.0.1:9/v1", "QUERN_MODEL_NEAR_LOCAL=true")
	bearer := s.newKey().token("chooser")

	listed := call(t, http.MethodGet, s.url+"/query/models", bearer, "")
	require.Equal(t, http.StatusOK, listed.status, listed.body)
	require.JSONEq(t, `{"data": [
		{"name": "large", "provider": "far", "default": true, "exposure": "values"},
		{"name": "tiny", "provider": "far", "default": false, "exposure": "values"},
		{"name": "small", "provider": "near", "default": false, "exposure": "rows"}]}`, listed.body)

	none := start(t)
	require.JSONEq(t, `{"data": []}`, call(t, http.MethodGet, none.url+"/query/models", none.newKey().token("chooser"), "").body)
}
