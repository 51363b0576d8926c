package agent

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"quern.dev/quern/internal/llm"
)

// maxTokens is the maximum length of a completion.
const maxTokens = 4096

var (
	//go:embed prompts/nl2ql.md
	nl2qlPrompt string
	//go:embed prompts/nl2ql.schema.json
	nl2qlSchema json.RawMessage
	//go:embed prompts/plan.md
	planPrompt string
	//go:embed prompts/plan.schema.json
	planSchema json.RawMessage
	//go:embed prompts/answer.md
	answerPrompt string
	//go:embed prompts/trino.md
	trinoPrompt string
)

// prompt returns the prompt for a question or a step. The parts that stay the same for all questions come first. step
// describes the plan that a step belongs to, and is empty for a whole question.
func (d *dialogue) prompt(question, step string) string {
	var text strings.Builder

	fmt.Fprintf(&text, "Datasets:\n%s\n", d.around.text)
	text.WriteString(d.around.dialect)
	text.WriteString(d.lent.examples)
	d.circumstances(&text)
	text.WriteString(step)
	fmt.Fprintf(&text, "\nQuestion:\n%s", question)

	return text.String()
}

// circumstances writes what else the caller provided, the earlier turns and the current time.
func (d *dialogue) circumstances(text *strings.Builder) {
	asked := d.inquiry.question

	if asked.HelperPrompt != "" {
		fmt.Fprintf(text, "\nWhat the asker wants to be kept in mind:\n%s\n", asked.HelperPrompt)
	}

	if len(asked.Earlier) > 0 {
		text.WriteString("\nEarlier in this conversation, oldest first:\n")

		for _, turn := range asked.Earlier {
			fmt.Fprintf(text, "- %s\n", turn.Question)

			for _, statement := range turn.Queries {
				fmt.Fprintf(text, "  %s\n", d.around.redacted(statement, asked))
			}
		}

		text.WriteString(d.lent.rows)
	}

	today, zone := asked.today(d.inquiry.tools.Now())
	fmt.Fprintf(text, "\nToday is %s, in the time zone %s. Timestamps are in UTC.\n", today.Format("Monday, 2006-01-02 15:04:05"), zone)
}

// plainJSON returns a value of this package as JSON for a prompt. It does not escape <, > and &: a model copies values as it
// sees them.
func plainJSON(value any) string {
	var text strings.Builder

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) //nolint:errchkjson // it was made from JSON

	return strings.TrimSpace(text.String())
}

// literal matches a text in a statement.
var literal = regexp.MustCompile(`'(?:[^']|'')*'`)

// redacted returns an earlier statement as this model may see it. An earlier model may have seen values that this one
// may not; such values are replaced by an ellipsis.
func (s surroundings) redacted(text string, asked Question) string {
	if s.least >= llm.ExposeValues {
		return text
	}

	questions := []string{asked.Text}
	for _, turn := range asked.Earlier {
		questions = append(questions, turn.Question)
	}

	known := strings.ToLower(strings.Join(questions, "\n"))

	return literal.ReplaceAllStringFunc(text, func(value string) string {
		if strings.Contains(known, strings.ToLower(strings.Trim(value, "'%"))) {
			return value
		}

		return "'…'"
	})
}
