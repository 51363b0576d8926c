package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// messages is the wire for Anthropic's messages API.
type messages struct{ service anthropic.MessageService }

func newAnthropic(p Provider) messages {
	options := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithHTTPClient(clientOf(p.Client)), option.WithMaxRetries(0), option.WithoutOpenTelemetry(),
	}

	if p.URL != "" {
		options = append(options, option.WithBaseURL(p.URL))
	}

	if p.Key != "" {
		options = append(options, option.WithAPIKey(p.Key))
	}

	// Use the service and not the client: the client takes addresses, keys and profiles from the environment.
	return messages{anthropic.NewMessageService(options...)}
}

// unbounded is the request timeout for the client. Each attempt has its own timeout; without this option the client
// would refuse long answers that are not streamed.
const unbounded = 24 * time.Hour

func (m messages) send(ctx context.Context, request Request, tell func(string) error) (Response, error) {
	ask, options, err := m.params(request)
	if err != nil {
		return Response{}, err
	}

	if tell != nil {
		return m.stream(ctx, ask, options, tell)
	}

	answer, err := m.service.New(ctx, ask, append(options, option.WithRequestTimeout(unbounded))...)
	if err != nil {
		return Response{}, inAnthropic(err)
	}

	response := responseOf(*answer)
	if answer.StopReason == "" {
		return response, errors.New("the response has no stop reason")
	}

	return response, nil
}

func (m messages) params(request Request) (ask anthropic.MessageNewParams, options []option.RequestOption, err error) {
	ask.Model, ask.MaxTokens = request.Model.Name, int64(request.MaxTokens)

	if request.System != "" {
		// The provider caches what precedes this mark for later requests with the same beginning.
		ask.System = []anthropic.TextBlockParam{{Text: request.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	}

	for _, message := range request.Messages {
		block := anthropic.NewTextBlock(message.Text)
		if message.Role == Assistant {
			ask.Messages = append(ask.Messages, anthropic.NewAssistantMessage(block))
		} else {
			ask.Messages = append(ask.Messages, anthropic.NewUserMessage(block))
		}
	}

	if request.Schema != nil {
		lowered, err := lower(request.Schema.JSON, false)
		if err != nil {
			return ask, nil, err
		}

		// Bypass the client's own type, which is a map and would lose the order of the properties.
		options = append(options, option.WithJSONSet("output_config.format", map[string]json.RawMessage{
			"type": json.RawMessage(`"json_schema"`), "schema": lowered,
		}))
	}

	return ask, options, nil
}

func (m messages) stream(ctx context.Context, ask anthropic.MessageNewParams, options []option.RequestOption, tell func(string) error) (Response, error) {
	stream := m.service.NewStreaming(ctx, ask, options...)
	defer func() { _ = stream.Close() }()

	var (
		sum   anthropic.Message
		ended bool
	)

	for stream.Next() {
		event := stream.Current()
		if err := sum.Accumulate(event); err != nil {
			return responseOf(sum), errors.New("the events of the stream are inconsistent")
		}

		ended = ended || event.Type == "message_stop"

		if event.Type == "content_block_delta" && event.Delta.Type == "text_delta" && event.Delta.Text != "" {
			if err := tell(event.Delta.Text); err != nil {
				return responseOf(sum), told{err}
			}
		}
	}

	if err := stream.Err(); err != nil {
		return responseOf(sum), inAnthropic(err)
	}

	if !ended {
		return responseOf(sum), errCut
	}

	return responseOf(sum), nil
}

func responseOf(message anthropic.Message) Response {
	var text strings.Builder

	for _, block := range message.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}

	u := message.Usage
	response := Response{ID: message.ID, Text: text.String(), Finish: Stop, Usage: Usage{
		InputTokens: u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens, OutputTokens: u.OutputTokens,
		CachedTokens: u.CacheReadInputTokens, Reasoning: u.OutputTokensDetails.ThinkingTokens,
	}.plausible()}

	switch message.StopReason {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		response.Finish = Length
	case anthropic.StopReasonRefusal:
		response.Finish = Refusal
	default:
	}

	return response
}

// inAnthropic converts errors of the client to errors of this package. An error inside a stream has the status 200, so
// its status is derived from its type.
func inAnthropic(err error) error {
	answered, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return err
	}

	status := answered.StatusCode
	if status < http.StatusBadRequest {
		status = map[string]int{
			"overloaded_error": 529, "rate_limit_error": http.StatusTooManyRequests, "api_error": http.StatusInternalServerError,
			"timeout_error": http.StatusGatewayTimeout,
		}[string(answered.Type())]
	}

	if status == 0 {
		status = http.StatusBadRequest
	}

	return said{status: status, word: string(answered.Type())}
}
