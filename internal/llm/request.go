package llm

import (
	"encoding/json"
	"errors"

	"github.com/google/uuid"
)

// Call says for whom and why a model is called.
type Call struct {
	Account uuid.UUID // account of the caller, whose usage is counted
	Run     uuid.UUID
	Purpose string // "query", "plan" or "answer"
}

// Role is the author of a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of the conversation with a model.
type Message struct {
	Role Role
	Text string
}

// Schema is the JSON schema that an answer must follow.
type Schema struct {
	Name string // letters, digits, - and _
	JSON json.RawMessage
}

// Request is the input of a model. Text that stays the same from call to call belongs in System and must be identical
// byte for byte, because providers cache the beginning of requests.
type Request struct {
	Model     Model
	System    string
	Messages  []Message
	Schema    *Schema // nil means free text
	MaxTokens int     // of the answer; 0 means 4096
}

// Finish is the reason why an answer ended.
type Finish string

const (
	Stop    Finish = "stop"
	Length  Finish = "length"
	Refusal Finish = "refusal"
)

// Usage is the number of tokens, over all attempts and turns.
type Usage struct {
	InputTokens  int64 // including cached tokens
	OutputTokens int64 // including reasoning tokens
	CachedTokens int64 // input that the provider had cached
	Reasoning    int64
}

// mostTokens is more than any answer uses.
const mostTokens = 1 << 31

// plausible limits the counts, which the provider reports and which count towards the usage of an account, to plausible
// values.
func (u Usage) plausible() Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CachedTokens, &u.Reasoning} {
		*n = min(max(*n, 0), mostTokens)
	}

	return u
}

func (u Usage) plus(more Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens + more.InputTokens, OutputTokens: u.OutputTokens + more.OutputTokens,
		CachedTokens: u.CachedTokens + more.CachedTokens, Reasoning: u.Reasoning + more.Reasoning,
	}
}

// Response is the answer of a model. It is also returned with ErrRefused, ErrTruncated and ErrSchema.
type Response struct {
	Text   string // JSON if the request had a schema
	Usage  Usage
	Finish Finish
	ID     string // assigned by the provider
	Turns  int    // 2 if the answer was repaired
}

// These errors are wrapped in a fault, so callers that do not handle them can return them.
var (
	ErrRefused   = errors.New("the model refused to answer")
	ErrTruncated = errors.New("the answer of the model was cut off")
	ErrSchema    = errors.New("the answer of the model does not have the required form")
)
