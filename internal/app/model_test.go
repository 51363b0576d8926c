package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
)

// TestTokensAreUsage checks that the tokens of models count as usage of the caller, and that the daily limit applies.
func TestTokensAreUsage(t *testing.T) {
	t.Parallel()

	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++

		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Three."}],
			"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":3,"output_tokens":10}}`))
	}))
	t.Cleanup(server.Close)

	app, _ := newApp(t, "QUERN_MODELS", "far/m", "QUERN_MODEL_FAR_KIND", "anthropic", "QUERN_MODEL_FAR_URL", server.URL, "QUERN_MODEL_FAR_EXPOSURE", "schema")
	who := auth.Principal{Account: uuid.Must(uuid.NewV7())}

	// Only the usage of accounts that exist is kept.
	require.NoError(t, app.db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `
			INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
			VALUES ($1, 'person', 'ada', '', '', '', '', '{}', now(), now())`, who.Account)

		return err
	}))

	model, err := app.models.Choose("m", "")
	require.NoError(t, err)
	require.Equal(t, llm.Model{Name: "m", Provider: "far", Exposure: llm.ExposeSchema}, model)

	ask := func() error {
		_, err := app.models.Complete(t.Context(), llm.Call{Account: who.Account, Run: uuid.Must(uuid.NewV7()), Purpose: "query"},
			llm.Request{Model: model, Messages: []llm.Message{{Role: llm.User, Text: "How many?"}}})

		return err
	}

	require.NoError(t, ask())

	usage, err := catalog.Catalog{DB: app.db, Now: time.Now}.Usage(t.Context(), who)
	require.NoError(t, err)
	require.Equal(t, []catalog.Used{{Kind: catalog.Tokens, Amount: 25}}, usage.Items)

	require.NoError(t, app.db.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `INSERT INTO limits (account_id, kind, amount) VALUES ($1, 'tokens', 20)`, who.Account)

		return err
	}))
	require.Equal(t, fault.RateLimited, fault.From(ask()).Code)
	require.Equal(t, 1, asked, "it is refused before anybody is asked")
}
