package llm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"
)

// openAI is the wire for the chat/completions API, which all compatible servers implement.
type openAI struct {
	chat openai.ChatCompletionService
	own  bool // OpenAI or Azure OpenAI, not a compatible server
}

const openAIURL = "https://api.openai.com/v1/"

func newOpenAI(p Provider) openAI {
	address := p.URL
	if address == "" {
		address = openAIURL
	}

	options := []option.RequestOption{option.WithBaseURL(address), option.WithHTTPClient(clientOf(p.Client)), option.WithMaxRetries(0)}
	if p.Key != "" {
		options = append(options, option.WithAPIKey(p.Key))
	}

	// Use the service and not the client: the client takes addresses, keys and headers from the environment.
	return openAI{chat: openai.NewChatCompletionService(options...), own: isOpenAI(address)}
}

func isOpenAI(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}

	host := u.Hostname()

	return host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") || strings.HasSuffix(host, ".openai.azure.com")
}

func (o openAI) send(ctx context.Context, request Request, tell func(string) error) (Response, error) {
	ask, err := o.params(request)
	if err != nil {
		return Response{}, err
	}

	if tell != nil {
		ask.StreamOptions.IncludeUsage = param.NewOpt(true)

		return o.stream(ctx, ask, tell)
	}

	answer, err := o.chat.New(ctx, ask)
	if err != nil {
		return Response{}, inOpenAI(err)
	}

	response := Response{ID: answer.ID, Usage: usageOf(answer.Usage)}
	if len(answer.Choices) == 0 {
		return response, errors.New("the response has no choices")
	}

	choice := answer.Choices[0]
	response.Text, response.Finish = choice.Message.Content, finishOf(choice.FinishReason, choice.Message.Refusal)

	return response, nil
}

func (o openAI) params(request Request) (ask openai.ChatCompletionNewParams, err error) {
	ask.Model = request.Model.Name

	if request.System != "" {
		ask.Messages = append(ask.Messages, openai.SystemMessage(request.System))
	}

	for _, message := range request.Messages {
		if message.Role == Assistant {
			ask.Messages = append(ask.Messages, openai.AssistantMessage(message.Text))
		} else {
			ask.Messages = append(ask.Messages, openai.UserMessage(message.Text))
		}
	}

	// Newer models of OpenAI refuse the older name. Not every compatible server supports the newer name.
	if limit := param.NewOpt(int64(request.MaxTokens)); o.own {
		ask.MaxCompletionTokens = limit
	} else {
		ask.MaxTokens = limit
	}

	// The same question should get the same answer. Newer models of OpenAI refuse a temperature.
	if !o.own {
		ask.Temperature, ask.Seed = param.NewOpt(0.0), param.NewOpt(int64(0))
	}

	if request.Schema != nil {
		lowered, err := lower(request.Schema.JSON, true)
		if err != nil {
			return ask, err
		}

		ask.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: request.Schema.Name, Strict: param.NewOpt(true), Schema: lowered,
		}}
	}

	return ask, nil
}

func (o openAI) stream(ctx context.Context, ask openai.ChatCompletionNewParams, tell func(string) error) (response Response, err error) {
	stream := o.chat.NewStreaming(ctx, ask)
	defer func() { _ = stream.Close() }()

	var (
		text, refusal strings.Builder
		ended         bool
	)

	for stream.Next() {
		chunk := stream.Current()
		if chunk.ID != "" {
			response.ID = chunk.ID
		}

		if chunk.Usage.TotalTokens > 0 {
			response.Usage = usageOf(chunk.Usage)
		}

		if len(chunk.Choices) == 0 {
			continue
		}

		choice := chunk.Choices[0]
		refusal.WriteString(choice.Delta.Refusal)

		if choice.FinishReason != "" {
			ended, response.Finish = true, finishOf(choice.FinishReason, refusal.String())
		}

		if choice.Delta.Content == "" {
			continue
		}

		text.WriteString(choice.Delta.Content)

		if err := tell(choice.Delta.Content); err != nil {
			response.Text = text.String()

			return response, told{err}
		}
	}

	response.Text = text.String()

	if err := stream.Err(); err != nil {
		return response, inOpenAI(err)
	}

	if !ended {
		return response, errCut
	}

	return response, nil
}

// inOpenAI converts errors of the client to errors of this package.
func inOpenAI(err error) error {
	var (
		answered *openai.Error
		inStream *ssestream.StreamError
	)

	switch {
	case errors.As(err, &answered):
		word := answered.Code
		if oneWord(word) == "" {
			word = answered.Type
		}

		return said{status: answered.StatusCode, word: word}
	case errors.As(err, &inStream):
		return said{status: http.StatusInternalServerError}
	default:
		return err
	}
}

func finishOf(reason, refusal string) Finish {
	switch {
	case refusal != "" || reason == "content_filter":
		return Refusal
	case reason == "length":
		return Length
	default:
		return Stop
	}
}

func usageOf(u openai.CompletionUsage) Usage {
	return Usage{
		InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens, CachedTokens: u.PromptTokensDetails.CachedTokens,
		Reasoning: u.CompletionTokensDetails.ReasoningTokens,
	}.plausible()
}
