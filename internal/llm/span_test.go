package llm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestSpans(t *testing.T) {
	t.Parallel()

	for _, capture := range []bool{false, true} {
		v := openAIVendor()
		server := script(t, refuse(529, v.failure("overloaded_error", "x")), streamed(v.events([]string{"Three."}, v.stop), nil))
		b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + v.base()})
		b.config.Capture = capture

		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		ctx, root := provider.Tracer("").Start(t.Context(), "invoke_agent")

		_, err := b.Stream(ctx, b.call, b.request(t), func(string) error { return nil })
		require.NoError(t, err)

		spans := recorder.Ended()
		require.Len(t, spans, 2)

		var values [2]map[attribute.Key]attribute.Value

		for i, one := range spans {
			require.Equal(t, "chat model-x", one.Name())
			require.Equal(t, root.SpanContext().SpanID(), one.Parent().SpanID())

			values[i] = map[attribute.Key]attribute.Value{}
			for _, a := range one.Attributes() {
				values[i][a.Key] = a.Value
			}

			require.EqualValues(t, i+1, values[i]["quern.attempt"].AsInt64())
			require.Equal(t, "chat", values[i]["gen_ai.operation.name"].AsString())
			require.Equal(t, "test", values[i]["gen_ai.provider.name"].AsString())
			require.Regexp(t, `^[0-9a-f]{12}$`, values[i]["quern.prompt"].AsString())
		}

		require.Equal(t, "status_529", values[0]["error.type"].AsString())
		require.EqualValues(t, 19, values[1]["gen_ai.usage.input_tokens"].AsInt64())
		require.EqualValues(t, 10, values[1]["gen_ai.usage.output_tokens"].AsInt64())
		require.Positive(t, values[1]["gen_ai.response.time_to_first_chunk"].AsFloat64())

		all := fmt.Sprint(values)
		for _, text := range []string{"How many?", "Be brief.", "Three."} {
			require.Equal(t, capture, containsText(all, text), "texts go out only if the operator wants it so")
		}

		require.NotContains(t, all, key)
	}
}
