package llm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// TestSmallModel calls a real model over a real connection. It checks the form of the answers, not their content.
func TestSmallModel(t *testing.T) {
	t.Parallel()

	b := newBench(t, Provider{
		Kind: OpenAI, URL: stack.Env(t, "QUERN_TEST_MODEL_URL"), Models: []string{"smollm2-135m"}, Local: true, Timeout: 5 * time.Minute,
	})
	request := b.request(t)
	request.Messages = []Message{{User, "How many legs does a cat have?"}}

	var told []string

	said, err := b.Stream(t.Context(), b.call, request, func(text string) error {
		told = append(told, text)

		return nil
	})
	if err != nil {
		require.ErrorIs(t, err, ErrTruncated, "it may talk for longer than it is let")
	}

	require.Greater(t, len(told), 1, "it comes in parts")
	require.Equal(t, said.Text, strings.Join(told, ""))
	require.NotEmpty(t, said.ID)
	require.Positive(t, said.Usage.InputTokens)
	require.GreaterOrEqual(t, said.Usage.OutputTokens, int64(len(told)/2))

	request.MaxTokens = 300
	request.Schema = &Schema{Name: "animal", JSON: json.RawMessage(`{"type":"object","properties":{"animal":{"enum":["cat","dog"]},
		"legs":{"type":"integer","enum":[2,4,8]},"wings":{"type":"boolean"}},"required":["animal","legs"],"additionalProperties":false}`)}

	answer, err := b.Complete(t.Context(), b.call, request)
	require.NoError(t, err)
	require.Equal(t, Stop, answer.Finish)

	var animal struct {
		Animal string `json:"animal"`
		Legs   int    `json:"legs"`
	}

	require.NoError(t, json.Unmarshal([]byte(answer.Text), &animal))
	require.Contains(t, []string{"cat", "dog"}, animal.Animal)
	require.Contains(t, []int{2, 4, 8}, animal.Legs)

	counted := said.Usage.plus(answer.Usage)
	require.Equal(t, counted.InputTokens+counted.OutputTokens, b.settled[b.call.Account])

	for _, one := range b.rows(t) {
		require.Equal(t, "done", one.State)
	}
}
