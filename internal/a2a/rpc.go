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

	result, err := patiently(w, r, func(ctx context.Context) (any, error) { return wanted.answer(ctx, h, asked.Params) })
	if err != nil {
		a.fail(w, r, asked.ID, err)

		return nil
	}

	respond(w, response{ID: asked.ID, Result: result})

	return nil
}

// patiently calls do. While it works, it writes white space, which JSON allows before a value, so that a client with a
// limit for the time between two bytes does not give up.
func patiently(w http.ResponseWriter, r *http.Request, do func(context.Context) (any, error)) (result any, err error) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()

	done := make(chan struct{})

	go func() {
		defer close(done)

		err = fault.Try(func() (err error) {
			result, err = do(ctx)

			return err
		})
	}()

	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()

	for {
		select {
		case <-done:
			return result, err
		case <-quiet.C:
			w.Header().Set("Content-Type", jsonType)
			w.Header().Set("X-Accel-Buffering", "no")

			control := http.NewResponseController(w)
			_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // fails only in tests
			_, _ = w.Write([]byte("\n"))                            // on failure the client has disconnected, which ends ctx
			_ = control.Flush()
		}
	}
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

// activate sets the response header that lists the extensions of this service that the client requests.
func activate(w http.ResponseWriter, r *http.Request) {
	asked := strings.Split(strings.Join(r.Header.Values(protocol.SvcParamExtensions), ","), ",")

	var active []string

	for _, uri := range []string{metadataURI, artifactsURI} {
		if slices.ContainsFunc(asked, func(name string) bool { return strings.TrimSpace(name) == uri }) {
			active = append(active, uri)
		}
	}

	if active != nil {
		w.Header().Set(protocol.SvcParamExtensions, strings.Join(active, ","))
	}
}

func tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "The request is too large.")
}
