package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"

	"quern.dev/quern/internal/fault"
)

// method handles a request. Exactly one field is set: answer returns one value, stream returns events.
type method struct {
	answer func(context.Context, handler, json.RawMessage) (any, error)
	stream func(context.Context, handler, json.RawMessage) iter.Seq2[protocol.Event, error]
}

func methods() map[string]method {
	return map[string]method{
		"SendMessage":          answer(handler.send),
		"SendStreamingMessage": stream(handler.SendStreamingMessage),
		"GetTask":              answer(handler.GetTask),
		"ListTasks":            answer(handler.ListTasks),
		"CancelTask":           answer(handler.CancelTask),
		"SubscribeToTask":      stream(handler.SubscribeToTask),
		"GetExtendedAgentCard": answer(func(h handler, ctx context.Context, _ *protocol.GetExtendedAgentCardRequest) (card, error) {
			return h.extended(ctx)
		}),
		"CreateTaskPushNotificationConfig": answer(handler.CreateTaskPushConfig),
		"GetTaskPushNotificationConfig":    answer(handler.GetTaskPushConfig),
		"ListTaskPushNotificationConfigs":  answer(handler.ListTaskPushConfigs),
		"DeleteTaskPushNotificationConfig": answer(func(h handler, ctx context.Context, r *protocol.DeleteTaskPushConfigRequest) (struct{}, error) {
			return struct{}{}, h.DeleteTaskPushConfig(ctx, r)
		}),
	}
}

func answer[P, R any](do func(handler, context.Context, *P) (R, error)) method {
	return method{answer: func(ctx context.Context, h handler, params json.RawMessage) (any, error) {
		var p P
		if err := decode(params, &p); err != nil {
			return nil, err
		}

		return do(h, ctx, &p)
	}}
}

func stream[P any](do func(handler, context.Context, *P) iter.Seq2[protocol.Event, error]) method {
	return method{stream: func(ctx context.Context, h handler, params json.RawMessage) iter.Seq2[protocol.Event, error] {
		var p P
		if err := decode(params, &p); err != nil {
			return func(yield func(protocol.Event, error) bool) { yield(nil, err) }
		}

		return do(h, ctx, &p)
	}}
}

// response is a JSON-RPC response.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

// writeTime is how long a client may take to receive one write.
const writeTime = 10 * time.Second

// call serves POST /a2a/{agent}. Its failures are JSON-RPC responses with status 200.
func (a *Agents) call(w http.ResponseWriter, r *http.Request, p profile) error {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a response lasts as long as the task; fails only in tests

	asked, err := a.read(w, r)
	if err == nil {
		err = checkVersion(r)
	}

	wanted, isKnown := methods()[asked.Method]
	if err == nil && !isKnown {
		err = protocol.NewError(protocol.ErrMethodNotFound, "There is no such method.")
	}

	if err != nil {
		a.fail(w, r, asked.ID, err)

		return nil
	}

	activate(w, r)

	h := handler{Agents: a, agent: p, who: a.Who(r.Context())}

	if wanted.stream != nil {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()

		a.stream(w, r.WithContext(ctx), asked.ID, wanted.stream(ctx, h, asked.Params), stop)

		return nil
	}

	result, err := wanted.answer(r.Context(), h, asked.Params)
	if err != nil {
		a.fail(w, r, asked.ID, err)

		return nil
	}

	respond(w, response{ID: asked.ID, Result: result})

	return nil
}

func respond(w http.ResponseWriter, answer response) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // fails only in tests
	answer.Version = "2.0"

	write(w, answer)
}

func (a *Agents) fail(w http.ResponseWriter, r *http.Request, id json.RawMessage, err error) {
	respond(w, response{ID: id, Error: a.failed(r.Context(), err)})
}

// failed returns the error for the client. It also records errors for the operator, unless they are errors of the protocol
// or the client has disconnected.
func (a *Agents) failed(ctx context.Context, err error) *failure {
	told := failureOf(err)
	if _, isOurs := errors.AsType[*protocol.Error](err); !isOurs && !errors.Is(ctx.Err(), context.Canceled) {
		a.Note(ctx, err)
	}

	return &told
}

// checkVersion accepts only version 1.0 of the protocol, with any patch number. No version means 1.0.
func checkVersion(r *http.Request) error {
	given := r.Header.Values(protocol.SvcParamVersion)
	if len(given) == 0 {
		given = r.URL.Query()[protocol.SvcParamVersion]
	}

	for _, version := range given {
		parts := strings.Split(strings.TrimSpace(version), ".")
		if version != "" && strings.Join(parts[:min(len(parts), 2)], ".") != string(protocol.Version) {
			return protocol.NewError(protocol.ErrVersionNotSupported, "This agent supports version 1.0 of the protocol.").
				WithErrorInfoMeta(map[string]string{"supportedVersions": string(protocol.Version)})
		}
	}

	return nil
}

// activate sets the response header that lists the extension of this service if the client requests it.
func activate(w http.ResponseWriter, r *http.Request) {
	for _, line := range r.Header.Values(protocol.SvcParamExtensions) {
		names := strings.Split(line, ",")
		if slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == metadataURI }) {
			w.Header().Set(protocol.SvcParamExtensions, metadataURI)
		}
	}
}

func tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.")
}
