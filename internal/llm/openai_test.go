package llm

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func quoted(text string) string {
	out, _ := json.Marshal(text)

	return string(out)
}

func openAIVendor() vendor {
	const usage = `{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},` +
		`"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`

	chunk := func(choices, usage string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1741569952,"model":"model-x","service_tier":"default",` +
			`"system_fingerprint":"fp_1","choices":` + choices + `,"usage":` + usage + `}`
	}

	return vendor{
		kind: OpenAI, path: "/v1/chat/completions", stop: "stop", length: "length", refusal: "refusal", input: 19, output: 10,
		complete: func(text, finish string) string {
			content, refusal := quoted(text), "null"
			if finish == "refusal" { // OpenAI has no finish reason for a refusal
				content, refusal, finish = "null", `"I cannot help with that."`, "stop"
			}

			return `{"id":"chatcmpl-1","object":"chat.completion","created":1741569952,"model":"model-x","choices":[{"index":0,"message":{"role":"assistant",` +
				`"content":` + content + `,"refusal":` + refusal + `,"annotations":[]},"logprobs":null,"finish_reason":"` + finish + `"}],"usage":` + usage +
				`,"service_tier":"default","system_fingerprint":"fp_1"}`
		},
		events: func(parts []string, finish string) []string {
			list := []string{chunk(`[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]`, "null")}
			for _, part := range parts {
				list = append(list, chunk(`[{"index":0,"delta":{"content":`+quoted(part)+`},"logprobs":null,"finish_reason":null}]`, "null"))
			}

			if finish == "refusal" {
				list = append(list, chunk(`[{"index":0,"delta":{"refusal":"I cannot."},"logprobs":null,"finish_reason":null}]`, "null"))
				finish = "stop"
			}

			return append(list, chunk(`[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`+finish+`"}]`, "null"), chunk("[]", usage), "data: [DONE]")
		},
		failure: func(word, message string) string {
			return fmt.Sprintf(`{"error":{"message":%s,"type":"requests","param":null,"code":"%s"}}`, quoted(message), word)
		},
	}
}

func TestOpenAIWire(t *testing.T) {
	t.Parallel()

	v := openAIVendor()
	testWire(t, v)

	t.Run("listener", func(t *testing.T) {
		t.Parallel()
		testListener(t, v)
	})

	t.Run("what is sent", func(t *testing.T) {
		t.Parallel()

		server := script(t, jsonAnswer(v.complete(`{"reading":"all","count":3,"note":null}`, v.stop)), streamed(v.events([]string{"x"}, v.stop), nil))
		b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + "/v1"})
		request := b.request(t)
		request.Schema = &Schema{Name: "count", JSON: json.RawMessage(countSchema)}

		got, err := b.Complete(t.Context(), b.call, request)
		require.NoError(t, err)
		require.JSONEq(t, `{"reading":"all","count":3}`, got.Text, "null is how an optional property is left out")
		require.Equal(t, Response{Text: got.Text, Finish: Stop, ID: "chatcmpl-1", Turns: 1, Usage: Usage{InputTokens: 19, OutputTokens: 10, CachedTokens: 3, Reasoning: 2}}, got)

		asked := server.asked()[0]
		require.Equal(t, "Bearer "+key, asked.header.Get("Authorization"))
		require.JSONEq(t, `{"model":"model-x","max_tokens":100,"temperature":0,"seed":0,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"How many?"}],
			"response_format":{"type":"json_schema","json_schema":{"name":"count","strict":true,"schema":{"type":"object","properties":{
				"reading":{"type":"string"},"count":{"type":"integer"},"note":{"anyOf":[{"type":"string"},{"type":"null"}]}},
				"required":["reading","count","note"],"additionalProperties":false}}}}`, asked.raw)
		require.Less(t, indexOf(asked.raw, `"reading":{`), indexOf(asked.raw, `"count":{`), "properties stay in order")

		request.Schema = nil
		_, err = b.Stream(t.Context(), b.call, request, func(string) error { return nil })
		require.NoError(t, err)
		require.Equal(t, map[string]any{"include_usage": true}, server.asked()[1].body["stream_options"])
		require.Equal(t, true, server.asked()[1].body["stream"])
	})
}

func TestOpenAIItselfWantsTheNewerName(t *testing.T) {
	t.Parallel()

	for address, own := range map[string]bool{
		openAIURL: true, "https://eu.api.openai.com/v1": true, "https://x.openai.azure.com/openai/v1": true,
		"http://127.0.0.1:8000/v1": false, "https://api.openai.com.evil.test/v1": false,
	} {
		require.Equal(t, own, isOpenAI(address), address)
	}

	ask, err := openAI{own: true}.params(Request{MaxTokens: 7})
	require.NoError(t, err)

	sent, err := json.Marshal(ask)
	require.NoError(t, err)
	require.Contains(t, string(sent), `"max_completion_tokens":7`)
	require.NotContains(t, string(sent), `"max_tokens"`)
	require.NotContains(t, string(sent), "temperature")
	require.NotContains(t, string(sent), "seed")
}
