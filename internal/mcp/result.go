package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxResult is the largest size of a result in bytes of JSON. Hosts refuse results of more than 25,000 tokens.
	maxResult = 40_000
	// frame is the part of maxResult for names of fields, ids and the hint.
	frame = 3_000

	maxCell    = 1_000 // characters
	maxColumns = 100
)

// result returns a value as structured content and as text.
func result(value any) (*sdk.CallToolResult, error) {
	text, err := encode(value)
	if err != nil {
		return nil, err
	}

	if len(text) > maxResult {
		return nil, fmt.Errorf("a result has %d bytes", len(text))
	}

	return &sdk.CallToolResult{StructuredContent: json.RawMessage(text), Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
}

// encode returns a value as JSON without the escapes for HTML, which cost models tokens and are copied into statements.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(value); err != nil {
		return nil, err
	}

	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// size returns the number of bytes of a value as JSON.
func size(value any) int {
	text, err := encode(value)
	if err != nil {
		panic(err) // only our own types are encoded, which cannot fail
	}

	return len(text)
}

const ellipsis = "…"

// clip returns the beginning of a text that has at most the given number of bytes as JSON.
func clip(text string, bytes int) string {
	const quotes = 2

	if len(text) <= bytes && size(text) <= bytes+quotes {
		return text
	}

	used := len(ellipsis)

	for i, r := range text {
		if used += encodedLen(r); used > bytes {
			return text[:i] + ellipsis
		}
	}

	return text
}

// encodedLen returns an upper bound of the bytes of a character in JSON.
func encodedLen(r rune) int {
	const short, long = 2, 6

	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
		return short
	case r < ' ' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
		return long
	default:
		return utf8.RuneLen(r)
	}
}

// shorten returns the first characters of a text.
func shorten(text string, characters int) (short string, cut bool) {
	if len(text) <= characters {
		return text, false
	}

	n := 0

	for i := range text {
		if n++; n > characters {
			return text[:i] + ellipsis, true
		}
	}

	return text, false
}

// budget is what is left of the size of a result.
type budget struct{ left int }

func newBudget() *budget { return &budget{left: maxResult - frame} }

// text takes a text of at most the given size out of the budget.
func (b *budget) text(text string, most int) string {
	text = clip(text, max(0, min(most, b.left)))
	b.left -= size(text)

	return text
}

// take takes a value out of the budget if it fits.
func (b *budget) take(value any) bool {
	const comma = 1

	n := size(value) + comma
	if n > b.left {
		return false
	}

	b.left -= n

	return true
}
