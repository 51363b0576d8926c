package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

const (
	defaultWait = 60 * time.Second
	maxWait     = 110 * time.Second
	eventStream = "text/event-stream"
)

// ask handles POST /query/ask.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}

	var body api.Question
	if err := decode(r, &body); err != nil {
		return err
	}

	return s.answer(w, r, form, func() (run.Run, int64, error) {
		made, err := s.config.Runs.Ask(r.Context(), callOf(r.Context()).who, asked(r, body))

		return made, 0, err
	})
}

// answerForm is the form of the answer that a client requested.
type answerForm struct {
	wait   time.Duration // zero means not at all
	asJSON bool
}

func formOf(r *http.Request) (form answerForm, err error) {
	form.asJSON = !wantsStream(r.Header.Values("Accept"))
	form.wait, err = preferredWait(r.Header.Get("Prefer"))

	return form, err
}

// answer starts a run or continues one and writes it in the form that the client requested. start also returns the number of the
// event after which a stream begins.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, form answerForm, start func() (run.Run, int64, error)) error {
	do := func() error {
		made, after, err := start()
		if err != nil {
			return err
		}

		w.Header().Set("Location", *address(s.config.PublicURL, "query", "runs", made.ID.String()))

		switch {
		case form.wait == 0:
			writeJSON(w, http.StatusAccepted, showRun(made))

			return nil
		case form.asJSON:
			return s.awaitRun(w, r, made, form.wait)
		default:
			return s.stream(w, r, made.ID, after)
		}
	}

	if form.wait == 0 || form.asJSON {
		return do()
	}

	return s.reserved(r, do)
}

// chooseOption handles POST /query/runs/{runId}/choose.
func (s *Server) chooseOption(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}

	var body api.OptionChoice
	if err := decode(r, &body); err != nil {
		return err
	}

	return s.answer(w, r, form, func() (run.Run, int64, error) {
		made, err := s.config.Runs.Choose(r.Context(), callOf(r.Context()).who, pathID(r, "runId"), int(body.Option))
		if err != nil {
			return made, 0, err
		}

		return made, made.Question.LastChosen().Event - 1, nil
	})
}

// wantsStream reports whether the client names event streams and does not prefer JSON. A client that accepts anything
// gets JSON, which every HTTP client can read.
func wantsStream(accept []string) bool {
	named := strings.Contains(strings.ToLower(strings.Join(accept, ",")), eventStream)

	return named && quality(accept, eventStream) > 0 && quality(accept, eventStream) >= quality(accept, "application/json")
}

// preferredWait returns how long the client wants to wait; zero means not at all.
func preferredWait(prefer string) (time.Duration, error) {
	for part := range strings.SplitSeq(prefer, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")

		switch {
		case strings.EqualFold(name, "respond-async"):
			return 0, nil
		case strings.EqualFold(name, "wait"):
			seconds, err := strconv.Atoi(value)
			if err != nil || seconds < 1 {
				return 0, fault.Invalid("Prefer", "wait must be a number of seconds")
			}

			return min(time.Duration(seconds)*time.Second, maxWait), nil
		}
	}

	return defaultWait, nil
}

func asked(r *http.Request, body api.Question) run.Ask {
	want := run.Ask{Agent: "assistant", Question: run.Question{Username: body.Username, Namespace: body.Namespace, Text: body.Query}}
	q := &want.Question

	if body.Agent != nil {
		want.Agent = string(*body.Agent)
	}

	if body.ConversationID != nil {
		want.Conversation = *body.ConversationID
	}

	if body.Datasets != nil {
		q.Datasets = *body.Datasets
	}

	if body.AsOf != nil {
		q.AsOf = *body.AsOf
	}

	for to, from := range map[*string]*string{&q.HelperPrompt: body.HelperPrompt, &q.Model: body.Model, &q.Provider: body.Provider, &q.TimeZone: body.TimeZone} {
		if from != nil {
			*to = *from
		}
	}

	if key := r.Header.Get("Idempotency-Key"); key != "" {
		want.Once = once(r.Context(), &key)
	}

	return want
}

// awaitRun writes the run when it has ended or waits for a choice, or its current state when the client's waiting time is over.
func (s *Server) awaitRun(w http.ResponseWriter, r *http.Request, made run.Run, wait time.Duration) error {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + streamWrite)) // only connections of tests do not support it

	waiting, stop := context.WithTimeout(r.Context(), wait)
	defer stop()

	who := callOf(r.Context()).who
	if err := s.config.Runs.Await(waiting, who, made.ID); err != nil && waiting.Err() == nil {
		return err
	}

	found, err := s.config.Runs.Get(r.Context(), who, made.ID)
	if err != nil {
		return err
	}

	status := http.StatusOK
	if found.Status == run.Running {
		status = http.StatusAccepted
	}

	writeJSON(w, status, showRun(found))

	return nil
}
