package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// none is the model name for a service without a model.
const none = "none"

// checkNone returns an error if a model answered although none should.
func checkNone(o options, marks []mark) error {
	for _, m := range marks {
		if o.model == none && m.Model != "" && m.Model != "planner" {
			return errors.New("the service has a model: " + m.Model)
		}
	}

	return nil
}

// modelSettings returns the settings for the models of the service: those of the environment, or those of a scripted
// model behind a server with the API of OpenAI. silence stops that server.
func modelSettings(ctx context.Context, o *options, script *script) (settings []string, silence func(), err error) {
	switch {
	case o.model == none:
		return nil, func() {}, nil
	case script == nil:
		for _, setting := range os.Environ() {
			if strings.HasPrefix(setting, "QUERN_MODEL") || strings.HasPrefix(setting, "QUERN_RUN_") {
				settings = append(settings, setting)
			}
		}

		return settings, func() {}, nil
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}

	server := &http.Server{Handler: script, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends when the server is closed

	return scriptSettings(script.name, "http://"+listener.Addr().String()+"/v1"), func() { _ = server.Close() }, nil
}

// conversation is the request for a chat completion.
type conversation struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"` // a text, or parts with texts
	} `json:"messages"`
}

// ServeHTTP answers a chat completion with the script's reply to the question that it finds in the messages.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var about conversation

	if !strings.HasSuffix(r.URL.Path, "/chat/completions") || json.NewDecoder(r.Body).Decode(&about) != nil {
		tell(w, http.StatusNotFound, map[string]any{"error": map[string]any{"message": "Only chat completions are supported.", "type": "invalid_request_error"}})

		return
	}

	text, err := s.say(about)
	if err != nil {
		tell(w, http.StatusInternalServerError, map[string]any{"error": map[string]any{"message": err.Error(), "type": "server_error"}})

		return
	}

	// A token has about four characters.
	input, output := int(r.ContentLength)/4, len(text)/4
	whole := map[string]any{
		"id": "chatcmpl-eval", "object": "chat.completion", "created": time.Now().Unix(), "model": about.Model,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": string(text), "refusal": nil}}},
		"usage":   map[string]any{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
	}

	if !about.Stream {
		tell(w, http.StatusOK, whole)

		return
	}

	w.Header().Set("Content-Type", "text/event-stream")

	whole["object"] = "chat.completion.chunk"
	whole["choices"] = []any{map[string]any{"index": 0, "finish_reason": "stop", "delta": map[string]any{"role": "assistant", "content": string(text)}}}
	chunk, _ := json.Marshal(whole) // texts and numbers cannot fail

	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
}

// say returns the kind of completion that is requested: the records of a document, a plan whose only step is the question, a statement, or an
// answer.
func (s *script) say(about conversation) ([]byte, error) {
	if s.documents != nil {
		return s.documents.Answer(plain(about.Messages[len(about.Messages)-1].Content))
	}

	switch first := plain(about.Messages[0].Content); {
	case strings.HasPrefix(first, "You plan"):
		return s.plan(about)
	case strings.HasPrefix(first, "You answer"):
		return []byte("The rows answer it."), nil
	default:
		return s.statement(about)
	}
}

func (s *script) plan(about conversation) ([]byte, error) {
	type step struct {
		Instruction string `json:"instruction"`
		After       []int  `json:"after"`
	}

	said := struct {
		Outcome        string    `json:"outcome"`
		Interpretation string    `json:"interpretation"`
		Reasoning      string    `json:"reasoning"`
		Steps          []step    `json:"steps"`
		Clarification  *struct{} `json:"clarification"`
	}{Outcome: "refused", Steps: []step{}}

	if q := s.find(about); q != nil {
		known, err := s.answer(q)
		if err != nil {
			return nil, err
		}

		said.Outcome, said.Interpretation, said.Steps = known.Outcome, q.Text, append(said.Steps, step{q.Text, []int{}})
	}

	return json.Marshal(said)
}

// statement returns the completion for the agent nl2ql. Each turn returns the form and the next known statement.
func (s *script) statement(about conversation) ([]byte, error) {
	said := struct {
		Outcome        string    `json:"outcome"`
		Interpretation string    `json:"interpretation"`
		Form           string    `json:"form"`
		Query          string    `json:"query"`
		Reasoning      string    `json:"reasoning"`
		Clarification  *struct{} `json:"clarification"`
	}{Outcome: "refused", Interpretation: "It is not a question of the set.", Reasoning: "The answers of the set are known."}

	q := s.find(about)
	if q == nil {
		return json.Marshal(said)
	}

	s.replays.turn(q.ID)

	known, err := s.answer(q)
	if err != nil {
		return nil, err
	}

	said.Outcome, said.Interpretation, said.Form = known.Outcome, q.Text, string(known.Form)

	turns := 0

	for _, message := range about.Messages {
		if message.Role == "assistant" {
			turns++
		}
	}

	if n := len(known.Queries); n > 0 {
		said.Query = known.Queries[min(turns, n-1)]
	}

	return json.Marshal(said)
}

func tell(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)

	_ = json.NewEncoder(w).Encode(body) // fails only if the caller has disconnected
}

// find returns the question of the set in the latest message that contains one. If one question contains another, it
// returns the longest. Of two questions with the same text it returns the one with more of its tables named in the
// messages.
func (s *script) find(about conversation) *question {
	var whole strings.Builder
	for _, message := range about.Messages {
		whole.WriteString(plain(message.Content))
	}

	for _, message := range slices.Backward(about.Messages) {
		var (
			found *question
			named int
			text  = plain(message.Content)
		)

		for _, q := range s.questions {
			if !strings.Contains(text, q.Text) || (found != nil && len(q.Text) < len(found.Text)) {
				continue
			}

			if n := q.namedIn(whole.String()); found == nil || len(q.Text) > len(found.Text) || n > named {
				found, named = q, n
			}
		}

		if found != nil {
			return found
		}
	}

	return nil
}

// namedIn returns how many of the question's tables a text names.
func (q *question) namedIn(text string) int {
	named := 0

	for _, t := range q.tables() {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(t.dataset) + `\b`).MatchString(text) {
			named++
		}
	}

	return named
}

// plain returns the text of a message.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}

	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}

	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Text
	}

	return strings.Join(texts, "")
}

// scriptSettings returns the settings with which a service uses the scripted model.
func scriptSettings(name, address string) []string {
	return []string{"QUERN_MODELS=eval/" + name, "QUERN_MODEL_EVAL_KIND=openai", "QUERN_MODEL_EVAL_URL=" + address, "QUERN_MODEL_EVAL_LOCAL=true"}
}
