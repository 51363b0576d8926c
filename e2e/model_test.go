package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is a server with the API of OpenAI that answers what a test defines.
type model struct {
	server *httptest.Server

	down atomic.Bool // the model answers 503

	mu     sync.Mutex
	heard  []string // bodies of all requests
	answer func(said conversation) any
}

// conversation is the messages of one request to a model.
type conversation []struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// question returns the question of the caller.
func (c conversation) question() string {
	for _, message := range c {
		if _, question, ok := strings.Cut(message.Content, "\nQuestion:\n"); ok && message.Role == "user" {
			return question
		}
	}

	return ""
}

// complaint returns the error message about the model's last reply, or an empty text in the first attempt.
func (c conversation) complaint() string {
	if last := c[len(c)-1]; len(c) > 3 {
		return last.Content
	}

	return ""
}

// drafted is a reply of the nl2ql agent's model.
type drafted struct {
	Outcome        string `json:"outcome"`
	Interpretation string `json:"interpretation"`
	Form           string `json:"form,omitempty"`
	Query          string `json:"query"`
	Reasoning      string `json:"reasoning"`
	Clarification  any    `json:"clarification"`
}

// fills returns a reply with a form.
func fills(form string) drafted {
	return drafted{Outcome: "answer", Interpretation: "As it was asked.", Form: form, Reasoning: "It says so."}
}

func selects(query string) drafted {
	return drafted{Outcome: "answer", Interpretation: "As it was asked.", Query: query, Reasoning: "It says so."}
}

// newModel starts a model. A text that answer returns is sent unchanged, any other value as JSON.
func newModel(t *testing.T, answer func(said conversation) any) *model {
	t.Helper()

	m := &model{answer: answer}
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model    string       `json:"model"`
			Messages conversation `json:"messages"`
		}

		body := new(strings.Builder)
		if err := json.NewDecoder(io.TeeReader(r.Body, body)).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}

		m.mu.Lock()
		m.heard = append(m.heard, body.String())
		m.mu.Unlock()

		said := m.answer(request.Messages)

		if m.down.Load() {
			http.Error(w, "{}", http.StatusServiceUnavailable)

			return
		}

		content, isText := said.(string)
		if !isText {
			encoded, _ := json.Marshal(said)
			content = string(encoded)
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request.Model,
			"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content}}},
			"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
		})
	}))
	t.Cleanup(m.server.Close)

	return m
}

// requests returns the bodies of all requests so far.
func (m *model) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return append([]string(nil), m.heard...)
}

// option is an option of a clarification.
type option struct {
	Number                int
	Interpretation, Query string
	Explained             []explained
}

// explained says what words were taken for.
type explained struct{ Words, As, Dataset, Column, How string }

// concluded is a run that has ended or waits for a choice.
type concluded struct {
	RunID, ConversationID, Status string

	Result struct {
		Response, Interpretation, Outcome, Model string
		Clarification                            struct {
			Question string
			Options  []option
		}
		Steps []struct {
			Instruction, Query, Reasoning string
			Data                          []map[string]any
			RowCount                      int
			Basis                         string
			Explained                     []explained
			Doubts                        []struct{ Kind, Text string }
		}
		Usage     struct{ InputTokens, OutputTokens int }
		AsOf      []struct{ Dataset string }
		Basis     string
		Explained []explained
		Verified  *answeredBy
		Doubts    []struct{ Kind, Text string }
	}
	Error struct{ Code, Message string }
}

// cells returns the values of the only row.
func (c concluded) cells(t *testing.T) map[string]any {
	t.Helper()
	require.Len(t, c.Result.Steps, 1, "%+v", c)
	require.Len(t, c.Result.Steps[0].Data, 1, "%+v", c)
	delete(c.Result.Steps[0].Data[0], "__metadata")

	return c.Result.Steps[0].Data[0]
}

// asks sends a question to nl2ql and waits until the run has ended. more contains further members of the request.
func (d *filled) asks(question, more string) (run concluded) {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	body := fmt.Sprintf(`{"username": %q, "namespace": %q, "agent": "nl2ql", "query": %s%s}`, d.owner, d.namespace, encode(d.t, question), more)
	answer := call(d.t, http.MethodPost, d.s.url+"/query/ask", d.bearer, body, "Accept: application/json", "Prefer: wait=60")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &run)

	return run
}

// settings makes this the only model of a service, as a local model that may see all data.
func (m *model) settings() []string {
	return []string{"QUERN_MODELS=here/small", "QUERN_MODEL_HERE_KIND=openai", "QUERN_MODEL_HERE_LOCAL=true", "QUERN_MODEL_HERE_URL=" + m.server.URL + "/v1"}
}

// silentModel returns the settings of a model that is configured and does not answer.
func silentModel() []string {
	return []string{"QUERN_MODELS=here/small", "QUERN_MODEL_HERE_KIND=openai", "QUERN_MODEL_HERE_LOCAL=true", "QUERN_MODEL_HERE_URL=http://127.0.0.1:9/v1"}
}

// external returns settings for external models. Each provider is named after the exposure of its models.
func external(models map[string]*model) (settings []string) {
	var names []string

	for name, m := range models {
		prefix := "QUERN_MODEL_" + strings.ToUpper(name)
		names = append(names, name+"/large")
		settings = append(settings, prefix+"_KIND=openai", prefix+"_EXPOSURE="+name, prefix+"_URL="+m.server.URL+"/v1")
	}

	return append(settings, "QUERN_MODELS="+strings.Join(names, ","))
}
