package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"quern.dev/quern/internal/fault"
)

// Probe calls a model once for an answer with a small schema. The operator calls it, so it writes no row and counts no
// tokens. It returns the beginning of the answer, also with an error.
func Probe(ctx context.Context, given Provider, model string) (answer string, err error) {
	given.Models, given.Exposure = []string{model}, ExposeSchema

	models, err := New(Config{Providers: []Provider{given}})
	if err != nil {
		return "", err
	}

	schema := Schema{Name: "probe", JSON: json.RawMessage(
		`{"type": "object", "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}}, "required": ["answer"], "additionalProperties": false}`)}

	form, err := compile(schema)
	if err != nil {
		return "", err
	}

	p := models.providers[0]
	ctx, noted := withTrip(ctx)

	response, err := p.wire.send(ctx, Request{
		Model: p.model(model), Schema: &schema, MaxTokens: usualTokens,
		System:   "You answer with JSON of the form that you are given, and nothing else.",
		Messages: []Message{{Role: User, Text: `Is two more than one? Answer with {"answer": "yes"} or {"answer": "no"}.`}},
	}, nil)
	answer = excerpt(response.Text)

	if err != nil {
		return answer, judge(ctx, err, noted)
	}

	problem, err := judgeAnswer(&response, form)
	if problem != nil {
		return answer, fault.Wrap(fmt.Errorf("%w: %w", ErrSchema, problem), fault.UpstreamUnavailable, "The answer does not have the required form.")
	}

	return answer, err
}

// StatusOf returns the HTTP status with which the provider refused the request, or 0 if there is none.
func StatusOf(err error) int {
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		return 0
	}

	status := 0
	_, _ = fmt.Sscanf(failed.class, "status_%d", &status)

	return status
}

const longestExcerpt = 60

// excerpt returns the beginning of an answer on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(text, ""))), " ")

	if runes := []rune(text); len(runes) > longestExcerpt {
		return string(runes[:longestExcerpt]) + "…"
	}

	return text
}
