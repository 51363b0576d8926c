package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

// TestAskAgain checks that a request to a busy service is repeated with the same body, and that a broken stream is
// resumed where it broke.
func TestAskAgain(t *testing.T) {
	t.Parallel()

	var (
		run   = uuid.Must(uuid.NewV7())
		asked int
		heard []string
		mux   = http.NewServeMux()
	)

	mux.HandleFunc("GET /api/v1/user/me", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"username": "ada"}`)
	})
	mux.HandleFunc("POST /api/v1/query/ask", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		heard = append(heard, string(body))

		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)

			return
		}

		_, _ = fmt.Fprintf(w, "id: 1\nevent: runStarted\ndata: {\"runId\": %q}\n\n: still here\n\nid: 2\nevent: queryExecuting\ndata: {}\n\nid: 3\nevent: st", run)
	})
	mux.HandleFunc("GET /api/v1/query/runs/"+run.String()+"/events", func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header.Get("Last-Event-ID"))

		_, _ = io.WriteString(w, "id: 3\nevent: queryExecuting\ndata: {}\n\nid: 4\nevent: runCompleted\n"+
			`data: {"result": {"outcome": "answer", "response": "", "steps": [{"columns": [{"name": "n", "type": "bigint"}], "data": [{"n": 12345678901234567}]}]}}`+"\n\n")
	})

	server := httptest.NewServer(mux)
	defer server.Close()

	s, err := newService(t.Context(), server.URL, "token")
	require.NoError(t, err)

	got, err := s.ask(t.Context(), api.Question{Query: "How many?"})
	require.NoError(t, err)
	require.Len(t, heard, 3)
	require.Contains(t, heard[0], "How many?")
	require.Equal(t, heard[0], heard[1])
	require.Equal(t, "2", heard[2])
	require.Equal(t, 2, got.attempts)
	require.Equal(t, "12345678901234567", fmt.Sprint(rowsOf(got.result.Steps[0]).Rows[0][0]))
}

func TestDiscreet(t *testing.T) {
	t.Parallel()

	refusal := fmt.Errorf("question 7: %w", &refused{"asking", "404 Not Found", "no namespace wtq-secret"})

	require.Contains(t, discreet(refusal, "dev").Error(), "secret")
	require.Equal(t, "asking: 404 Not Found", discreet(refusal, heldOut).Error())
	require.NotContains(t, discreet(errors.New("open secret.csv"), heldOut).Error(), "secret")
}
