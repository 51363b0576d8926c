package llm

import (
	"encoding/json"
	"errors"

	"github.com/google/uuid"
)

// Call says for whom a model is asked.
type Call struct {
	Account uuid.UUID // who asks, and pays
	Run     uuid.UUID
	Purpose string // "query", "plan" or "answer"
}

// Role is who said something.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is something that was said.
type Message struct {
	Role Role
	Text string
}

// Schema is what an answer must look like.
type Schema struct {
	Name string // letters, digits, - and _
	JSON json.RawMessage
}

// Request is what a model is asked. What stays the same from call to call stands in System, byte by byte, because
// providers keep what a request begins with.
type Request struct {
	Model     Model
	System    string
	Messages  []Message
	Schema    *Schema // nil: free text
	MaxTokens int     // of the answer; 0: 4096
}

// Finish is why an answer ended.
type Finish string

const (
	Stop    Finish = "stop"
	Length  Finish = "length"
	Refusal Finish = "refusal"
)

// Usage is what was counted, over all attempts and turns.
type Usage struct {
	InputTokens  int64 // cached ones included
	OutputTokens int64 // those of reasoning included
	CachedTokens int64 // input that the provider had kept
	Reasoning    int64
}

// mostTokens is more than any answer takes.
const mostTokens = 1 << 31

// plausible is because the numbers are whatever the provider says, and people pay for them.
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

// Response is what a model said. It comes with ErrRefused, ErrTruncated and ErrSchema too.
type Response struct {
	Text   string // JSON if there was a schema
	Usage  Usage
	Finish Finish
	ID     string // the provider's
	Turns  int    // 2 if the answer had to be repaired
}

// These come wrapped in a fault, so whoever does not know them can give them on.
var (
	ErrRefused   = errors.New("the model refused to answer")
	ErrTruncated = errors.New("the answer of the model was cut off")
	ErrSchema    = errors.New("the answer of the model does not have the form that was asked for")
)
