package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// vendor returns responses in the formats that the documentation of a vendor shows.
type vendor struct {
	kind     Kind
	path     string
	complete func(text, finish string) string
	events   func(parts []string, finish string) []string // the last events end the stream
	failure  func(word, message string) string
	stop     string
	length   string
	refusal  string
	input    int64 // tokens of each answer, including cached ones
	output   int64
}

func jsonAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
}

func refuse(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}

		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// streamed sends events. end runs after them, to break off or hang; nil ends the response normally.
func streamed(events []string, end func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")

		for _, event := range events {
			_, _ = w.Write([]byte(event + "\n\n"))
			_ = http.NewResponseController(w).Flush()
		}

		if end != nil {
			end(w, r)
		}
	}
}

func torn(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

const countSchema = `{"type":"object","properties":{"reading":{"type":"string","minLength":1},"count":{"type":"integer","minimum":0},
	"note":{"type":"string"}},"required":["reading","count"],"additionalProperties":false}`

type wireCase struct {
	name    string
	answers func(v vendor) []http.HandlerFunc
	schema  bool
	stream  bool
	within  time.Duration // timeout of the caller; 0 means none
	text    string        // expected text of the answer
	told    string
	err     error
	fault   fault.Code
	after   time.Duration // minimum duration of the call
	rows    func(v vendor) []row
}

func done(v vendor, turn, attempt int) row { return row{"done", "", turn, attempt, v.input, v.output} }

func one(state, why string) func(vendor) []row {
	return func(vendor) []row { return []row{{State: state, Error: why, Turn: 1, Attempt: 1}} }
}

func wireCases() []wireCase {
	const good = `{"reading":"all","count":3}`

	return []wireCase{
		{
			name: "success", text: "Three.",
			answers: func(v vendor) []http.HandlerFunc { return []http.HandlerFunc{jsonAnswer(v.complete("Three.", v.stop))} },
			rows:    func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "stream with usage", stream: true, text: "Three of them.", told: "Three of them.",
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{"Three", " of", " them."}, v.stop), nil)}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "schema", schema: true, text: good,
			answers: func(v vendor) []http.HandlerFunc { return []http.HandlerFunc{jsonAnswer(v.complete(good, v.stop))} },
			rows:    func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "schema in a stream", schema: true, stream: true, text: good, told: good,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{good[:9], good[9:]}, v.stop), nil)}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "429 with Retry-After", text: "Three.", after: time.Second,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{
					refuse(http.StatusTooManyRequests, v.failure("rate_limit_error", "slow down"), "Retry-After", "1"), jsonAnswer(v.complete("Three.", v.stop)),
				}
			},
			rows: func(v vendor) []row {
				return []row{{State: "failed", Error: "status_429 rate_limit_error", Turn: 1, Attempt: 1}, done(v, 1, 2)}
			},
		},
		{
			name: "Retry-After beyond the deadline", fault: fault.Unavailable, within: 5 * time.Second,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{refuse(http.StatusTooManyRequests, v.failure("rate_limit_error", "slow down"), "Retry-After", "40")}
			},
			rows: one("failed", "status_429 rate_limit_error"),
		},
		{
			name: "529", text: "Three.",
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{refuse(529, v.failure("overloaded_error", "Overloaded")), jsonAnswer(v.complete("Three.", v.stop))}
			},
			rows: func(v vendor) []row {
				return []row{{State: "failed", Error: "status_529 overloaded_error", Turn: 1, Attempt: 1}, done(v, 1, 2)}
			},
		},
		{
			name: "500, then a proxy's page, then 500", fault: fault.Unavailable,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{
					refuse(500, v.failure("api_error", "internal")), refuse(502, "<html>bad gateway</html>", "X-Proxy", "yes"), refuse(500, v.failure("api_error", "internal")),
				}
			},
			rows: func(vendor) []row {
				return []row{{State: "failed", Error: "status_500 api_error", Turn: 1, Attempt: 1}, {State: "failed", Error: "status_502", Turn: 1, Attempt: 2}, {State: "failed", Error: "status_500 api_error", Turn: 1, Attempt: 3}}
			},
		},
		{
			name: "a key that is refused and told back", fault: fault.UpstreamUnavailable,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{refuse(http.StatusUnauthorized, v.failure("authentication_error", "Incorrect API key provided: "+key))}
			},
			rows: one("failed", "status_401 authentication_error"),
		},
		{
			name: "stream torn before the first text", stream: true, text: "Three.", told: "Three.",
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events(nil, v.stop)[:1], torn), streamed(v.events([]string{"Three."}, v.stop), nil)}
			},
			rows: func(v vendor) []row {
				return []row{{"unknown", "cut", 1, 1, v.begun(), 0}, done(v, 1, 2)}
			},
		},
		{
			name: "stream torn after text", stream: true, told: "Three", text: "Three", fault: fault.Unavailable,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{"Three", " of"}, v.stop)[:v.untilText()], torn)}
			},
			rows: func(v vendor) []row { return []row{{"unknown", "cut", 1, 1, v.begun(), 0}} },
		},
		{
			name: "stream that ends too early, politely", stream: true, told: "Three", text: "Three", fault: fault.Unavailable,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{"Three", " of"}, v.stop)[:v.untilText()], nil)}
			},
			rows: func(v vendor) []row { return []row{{"unknown", "cut", 1, 1, v.begun(), 0}} },
		},
		{
			name: "hanging", fault: fault.Timeout, within: 3 * time.Second,
			answers: func(vendor) []http.HandlerFunc { return []http.HandlerFunc{hang} },
			rows:    one("unknown", "deadline"),
		},
		{
			name: "hanging in a stream", stream: true, told: "Three", text: "Three", fault: fault.Timeout, within: 3 * time.Second,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{"Three", " of"}, v.stop)[:v.untilText()], hang)}
			},
			rows: func(v vendor) []row { return []row{{"unknown", "deadline", 1, 1, v.begun(), 0}} },
		},
		{
			name: "refusal", schema: true, err: ErrRefused, fault: fault.UpstreamUnavailable, text: "",
			answers: func(v vendor) []http.HandlerFunc { return []http.HandlerFunc{jsonAnswer(v.complete("", v.refusal))} },
			rows:    func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "refusal in a stream", stream: true, err: ErrRefused, fault: fault.UpstreamUnavailable,
			answers: func(v vendor) []http.HandlerFunc { return []http.HandlerFunc{streamed(v.events(nil, v.refusal), nil)} },
			rows:    func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "length", schema: true, err: ErrTruncated, fault: fault.UpstreamUnavailable, text: `{"reading":"al`,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{jsonAnswer(v.complete(`{"reading":"al`, v.length))}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "not JSON, then repaired", schema: true, text: good,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{jsonAnswer(v.complete("There are 3.", v.stop)), jsonAnswer(v.complete("```json\n"+good+"\n```", v.stop))}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1), done(v, 2, 1)} },
		},
		{
			name: "wrong schema, then repaired", schema: true, text: good,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{jsonAnswer(v.complete(`{"reading":"all","count":-3}`, v.stop)), jsonAnswer(v.complete(good, v.stop))}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1), done(v, 2, 1)} },
		},
		{
			name: "wrong twice", schema: true, err: ErrSchema, fault: fault.UpstreamUnavailable, text: `{"count":3}`,
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{jsonAnswer(v.complete(`{"count":"3"}`, v.stop)), jsonAnswer(v.complete(`{"count":3}`, v.stop))}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1), done(v, 2, 1)} },
		},
		{
			name: "wrong in a stream that was told", schema: true, stream: true, err: ErrSchema, fault: fault.UpstreamUnavailable, text: "Three.", told: "Three.",
			answers: func(v vendor) []http.HandlerFunc {
				return []http.HandlerFunc{streamed(v.events([]string{"Three."}, v.stop), nil)}
			},
			rows: func(v vendor) []row { return []row{done(v, 1, 1)} },
		},
		{
			name: "another server", fault: fault.UpstreamUnavailable,
			answers: func(vendor) []http.HandlerFunc {
				return []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>welcome</html>")) }}
			},
			rows: one("unknown", "garbled"),
		},
		{
			name: "a redirect elsewhere", fault: fault.UpstreamUnavailable,
			answers: func(vendor) []http.HandlerFunc {
				return []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				}}
			},
			rows: one("unknown", "garbled"),
		},
	}
}

// begun returns the input tokens that are known when a stream begins. untilText returns the number of events up to the
// first text.
func (v vendor) begun() int64 {
	if v.kind == Anthropic {
		return v.input
	}

	return 0
}

func (v vendor) untilText() int {
	if v.kind == Anthropic {
		return 4
	}

	return 2
}

func testWire(t *testing.T, v vendor) {
	t.Helper()

	for _, c := range wireCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			server := script(t, c.answers(v)...)
			b := newBench(t, Provider{Kind: v.kind, URL: server.URL + v.base()})
			request := b.request(t)

			if c.schema {
				request.Schema = &Schema{Name: "count", JSON: json.RawMessage(countSchema)}
			}

			ctx := t.Context()
			if c.within > 0 {
				var cancel context.CancelFunc

				ctx, cancel = context.WithTimeout(ctx, c.within)
				defer cancel()
			}

			var (
				told strings.Builder
				got  Response
				err  error
			)

			began := time.Now()

			if c.stream {
				got, err = b.Stream(ctx, b.call, request, func(text string) error {
					told.WriteString(text)

					return nil
				})
			} else {
				got, err = b.Complete(ctx, b.call, request)
			}

			if c.fault == "" {
				require.NoError(t, err)
			} else {
				require.Equal(t, c.fault, fault.From(err).Code, "%v", err)
				require.NotContains(t, err.Error(), key)
			}

			if c.err != nil {
				require.ErrorIs(t, err, c.err)
			}

			if c.within > 0 {
				require.Less(t, time.Since(began), c.within+5*time.Second)
			}

			require.Equal(t, c.text, got.Text)
			require.Equal(t, c.told, told.String())
			require.GreaterOrEqual(t, time.Since(began), c.after)

			rows := b.rows(t)
			require.Equal(t, c.rows(v), rows)
			require.Len(t, server.asked(), len(c.answers(v)))

			var input, output int64
			for _, one := range rows {
				input, output = input+one.Input, output+one.Output
			}

			require.Equal(t, input, got.Usage.InputTokens)
			require.Equal(t, output, got.Usage.OutputTokens)
			require.Equal(t, input+output, b.settled[b.call.Account], "what is in the ledger is counted")
			require.NotContains(t, b.log.text(), key)
			require.NotContains(t, fmt.Sprintf("%+v %+v", b.Models, b.providers[0]), key)

			for _, asked := range server.asked() {
				require.Equal(t, v.path, asked.path)
				require.NotContains(t, asked.raw, key)
			}
		})
	}
}

func (v vendor) base() string {
	if v.kind == OpenAI {
		return "/v1"
	}

	return ""
}

var errEnough = errors.New("enough")

func testListener(t *testing.T, v vendor) {
	t.Helper()

	server := script(t, streamed(v.events([]string{"Three", " of", " them"}, v.stop), nil))
	b := newBench(t, Provider{Kind: v.kind, URL: server.URL + v.base()})

	_, err := b.Stream(t.Context(), b.call, b.request(t), func(string) error { return errEnough })
	require.ErrorIs(t, err, errEnough)
	require.Equal(t, []row{{"unknown", "listener", 1, 1, v.begun(), 0}}, b.rows(t))
}
