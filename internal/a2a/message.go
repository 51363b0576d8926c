package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// The limits of a message, in characters or items; the same as in the contract of the REST API.
const (
	maxQuestion = 10_000
	maxID       = 128
	maxDatasets = 20
	maxPath     = 386
	maxName     = 128
	maxZone     = 64
)

// talk defines how an agent handles messages.
type talk interface {
	// take starts a run for a message, or returns a message as the answer without a run.
	take(ctx context.Context, h handler, message *protocol.Message) (run.Run, *protocol.Message, error)
	// wait waits until the agent needs input from the caller or the run has ended.
	wait(ctx context.Context, h handler, made run.Run) error
}

// accept checks a request and passes its message to the agent.
func (h handler) accept(ctx context.Context, request *protocol.SendMessageRequest) (run.Run, *protocol.Message, error) {
	if err := h.check(request); err != nil {
		return run.Run{}, nil, err
	}

	made, said, err := h.agent.talk.take(ctx, h, request.Message)
	if err == nil && said == nil {
		err = h.setPush(ctx, request.Config, made.ID)
	}

	return made, said, err
}

// oneQuestion is the talk of the agents of Quern: a task is one question. The agent may ask which of some options is meant.
type oneQuestion struct{}

func (oneQuestion) wait(ctx context.Context, h handler, made run.Run) error {
	return h.Runs.Await(ctx, h.who, made.ID)
}

// take starts a run for a message, or continues the task of the message with the option that it names. A repeated message
// returns the same run.
func (oneQuestion) take(ctx context.Context, h handler, message *protocol.Message) (run.Run, *protocol.Message, error) {
	if err := checkKeys(message.Metadata); err != nil {
		return run.Run{}, nil, err
	}

	if message.TaskID != "" {
		made, err := h.reply(ctx, message)

		return made, nil, err
	}

	made, err := h.ask(ctx, message)

	return made, nil, err
}

func (h handler) ask(ctx context.Context, message *protocol.Message) (run.Run, error) {
	words, err := questionOf(message)
	if err != nil {
		return run.Run{}, err
	}

	want := run.Ask{Agent: h.agent.name, Question: run.Question{Text: words, MessageID: message.ID}}
	if err := h.fill(ctx, message.Metadata, &want.Question); err != nil {
		return run.Run{}, err
	}

	if message.ContextID != "" {
		var isID bool
		if want.Conversation, isID = parseID(message.ContextID); !isID {
			return run.Run{}, noContext()
		}
	}

	if want.Once, err = h.once(message); err != nil {
		return run.Run{}, err
	}

	made, err := h.Runs.Ask(ctx, h.who, want)

	return made, h.blame(ctx, err, want)
}

// once makes a repeated message return the same run.
func (h handler) once(message *protocol.Message) (auth.Once, error) {
	content, err := json.Marshal(message)
	// The content includes the message id. A message with the same id and other content is a different message.
	hash := sha256.Sum256(content)

	return auth.Once{Key: hex.EncodeToString(hash[:]), Operation: "a2a." + h.agent.name, RequestHash: hash}, err
}

func noContext() error {
	return invalidField("message.contextId", "is not one of your contexts; omit it to start a new one")
}

// check checks the parts of a request that can be checked without the database.
func (h handler) check(request *protocol.SendMessageRequest) error {
	message := request.Message

	switch {
	case message == nil:
		return invalidField("message", "is required")
	case message.ID == "":
		return invalidField("message.messageId", "is required")
	case utf8.RuneCountInString(message.ID) > maxID:
		return invalidField("message.messageId", "may have at most 128 characters")
	case message.Role != protocol.MessageRoleUser:
		return invalidField("message.role", "must be ROLE_USER")
	case len(message.Parts) == 0:
		return invalidField("message.parts", "must have at least one part")
	case request.Config == nil:
		return nil
	}

	if err := h.checkPush(request.Config); err != nil {
		return err
	}

	if err := checkHistory("configuration.historyLength", request.Config.HistoryLength); err != nil {
		return err
	}

	accepted := request.Config.AcceptedOutputModes
	if len(accepted) > 0 && !slices.ContainsFunc(h.agent.output, func(mode string) bool { return accepts(accepted, mode) }) {
		return protocol.NewError(protocol.ErrUnsupportedContentType, "This agent answers in "+strings.Join(h.agent.output, ", ")+".")
	}

	return nil
}

func accepts(accepted []string, mode string) bool {
	kind, _, _ := strings.Cut(mode, "/")

	return slices.ContainsFunc(accepted, func(one string) bool {
		media, _, err := mime.ParseMediaType(one)

		return err == nil && (media == mode || media == "*/*" || media == kind+"/*")
	})
}

// questionOf returns the text of a message.
func questionOf(message *protocol.Message) (string, error) {
	var (
		texts         []string
		files, values bool
	)

	for _, part := range message.Parts {
		content, isText := part.Content.(protocol.Text)
		_, isData := part.Content.(protocol.Data)
		values, files = values || isData, files || !isText && !isData || isText && !isPlain(part.MediaType)

		if isText {
			texts = append(texts, string(content))
		}
	}

	words := strings.Join(texts, "\n")
	foreign := protocol.NewError(protocol.ErrUnsupportedContentType, "This agent accepts only text.")

	switch {
	case files:
		return "", foreign
	case strings.TrimSpace(words) == "":
		return "", invalidField("message.parts", "must have a part with text: the question")
	case utf8.RuneCountInString(words) > maxQuestion:
		return "", invalidField("message.parts", "may have at most 10000 characters of text")
	case values:
		return "", foreign
	}

	return words, nil
}

// isPlain reports whether text of this media type can be used as a question.
func isPlain(mediaType string) bool {
	media, _, err := mime.ParseMediaType(mediaType)

	return mediaType == "" || err == nil && strings.HasPrefix(media, "text/")
}

// blame rewrites a fault of Ask so that it names the part of the message that is invalid.
func (h handler) blame(ctx context.Context, err error, want run.Ask) error {
	known := fault.From(err)

	switch {
	case err == nil:
		return nil
	case known.Code == fault.NotFound:
		return h.missing(ctx, want)
	case known.Code != fault.ValidationFailed:
		return err
	}

	for i, sub := range known.Subs {
		if sub.Code == "conversationId" {
			known.Subs[i].Code = "message.contextId"
		} else {
			known.Subs[i].Code = "message.metadata." + sub.Code
		}
	}

	return known
}

// missing returns the error for the part of a question that the caller cannot see: namespace, conversation or dataset.
func (h handler) missing(ctx context.Context, want run.Ask) error {
	at := catalog.Path{Username: want.Question.Username, Namespace: want.Question.Namespace}
	if _, _, err := h.Catalog.Datasets(ctx, h.who, at, uuid.Nil, 1); err != nil {
		return orElse(err, noNamespace())
	}

	if want.Conversation != uuid.Nil {
		if _, err := h.Runs.Conversation(ctx, h.who, want.Conversation); err != nil {
			return orElse(err, noContext())
		}
	}

	return invalidField("message.metadata.datasets", "names a dataset that you cannot see")
}

// orElse returns absent if err is NotFound, and err otherwise.
func orElse(err, absent error) error {
	if fault.Is(err, fault.NotFound) {
		return absent
	}

	return err
}
