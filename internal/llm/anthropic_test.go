package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func indexOf(text, part string) int { return strings.Index(text, part) }

func anthropicVendor() vendor {
	event := func(kind, body string) string { return "event: " + kind + "\ndata: " + body }

	return vendor{
		kind: Anthropic, path: "/v1/messages", stop: "end_turn", length: "max_tokens", refusal: "refusal", input: 19, output: 10,
		complete: func(text, finish string) string {
			return `{"id":"msg_1","type":"message","role":"assistant","model":"model-x","content":[{"type":"text","text":` + quoted(text) + `}],` +
				`"stop_reason":"` + finish + `","stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,` +
				`"output_tokens":10,"service_tier":"standard"}}`
		},
		events: func(parts []string, finish string) []string {
			list := []string{
				event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"model-x","content":[],`+
					`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":0}}}`),
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
				event("ping", `{"type":"ping"}`),
			}
			for _, part := range parts {
				list = append(list, event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+quoted(part)+`}}`))
			}

			return append(list, event("content_block_stop", `{"type":"content_block_stop","index":0}`),
				event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+finish+`","stop_sequence":null},"usage":{"output_tokens":10}}`),
				event("message_stop", `{"type":"message_stop"}`))
		},
		failure: func(word, message string) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":"%s","message":%s},"request_id":"req_1"}`, word, quoted(message))
		},
	}
}

func TestAnthropicWire(t *testing.T) {
	t.Parallel()

	v := anthropicVendor()
	testWire(t, v)

	t.Run("listener", func(t *testing.T) {
		t.Parallel()
		testListener(t, v)
	})

	t.Run("overloaded in the middle of a stream", func(t *testing.T) {
		t.Parallel()

		overloaded := "event: error\ndata: " + v.failure("overloaded_error", "Overloaded")
		server := script(t,
			streamed([]string{v.events(nil, v.stop)[0], overloaded}, nil),
			streamed(append(v.events([]string{"Three"}, v.stop)[:4], overloaded), nil))
		b := newBench(t, Provider{Kind: Anthropic, URL: server.URL})

		_, err := b.Stream(t.Context(), b.call, b.request(t), func(string) error { return nil })
		require.Equal(t, fault.Unavailable, fault.From(err).Code, "the second attempt had told something")
		require.Equal(t, []row{
			{"unknown", "status_529 overloaded_error", 1, 1, v.input, 0}, {"unknown", "status_529 overloaded_error", 1, 2, v.input, 0},
		}, b.rows(t))
	})

	t.Run("what is sent", func(t *testing.T) {
		t.Parallel()

		server := script(t, jsonAnswer(v.complete(`{"reading":"all","count":-1}`, v.stop)), jsonAnswer(v.complete(`{"reading":"all","count":1}`, v.stop)))
		b := newBench(t, Provider{Kind: Anthropic, URL: server.URL})
		request := b.request(t)
		request.Schema = &Schema{Name: "count", JSON: json.RawMessage(countSchema)}

		got, err := b.Complete(t.Context(), b.call, request)
		require.NoError(t, err)
		require.Equal(t, Response{Text: `{"reading":"all","count":1}`, Finish: Stop, ID: "msg_1", Turns: 2, Usage: Usage{InputTokens: 38, OutputTokens: 20, CachedTokens: 6}}, got)

		asked := server.asked()[0]
		require.Equal(t, key, asked.header.Get("X-Api-Key"))
		require.Equal(t, "2023-06-01", asked.header.Get("Anthropic-Version"))
		require.JSONEq(t, `{"model":"model-x","max_tokens":100,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
			"messages":[{"role":"user","content":[{"type":"text","text":"How many?"}]}],
			"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"reading":{"type":"string"},"count":{"type":"integer"},
				"note":{"type":"string"}},"required":["reading","count"],"additionalProperties":false}}}}`, asked.raw)
		require.Less(t, indexOf(asked.raw, `"reading":{`), indexOf(asked.raw, `"count":{`), "properties stay in order")

		repair := server.asked()[1]
		said, _ := repair.body["messages"].([]any)
		require.Len(t, said, 3)
		require.Contains(t, repair.raw, "at '/count': minimum: got -1, want 0", "the model is told what is wrong")
		require.Equal(t, asked.body["system"], repair.body["system"], "what a request begins with stays the same")
	})

	t.Run("long answers need no stream", func(t *testing.T) {
		t.Parallel()

		server := script(t, jsonAnswer(v.complete("x", v.stop)))
		b := newBench(t, Provider{Kind: Anthropic, URL: server.URL})
		request := b.request(t)
		request.MaxTokens = 64000

		_, err := b.Complete(t.Context(), b.call, request)
		require.NoError(t, err)
	})
}
