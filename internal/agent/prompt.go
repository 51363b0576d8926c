package agent

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"quern.dev/quern/internal/llm"
)

// maxTokens of a model's answer.
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
)

// prompt puts what stays the same from question to question before what does not. Of a step there is something to say
// before what it asks.
func (q *asking) prompt(question, step string) string {
	var text strings.Builder

	fmt.Fprintf(&text, "Datasets:\n%s\n", q.around.notes)
	q.circumstances(&text)
	text.WriteString(step)
	fmt.Fprintf(&text, "\nQuestion:\n%s", question)

	return text.String()
}

// circumstances are what the asker said before and beside the question, and when.
func (q *asking) circumstances(text *strings.Builder) {
	if q.asked.HelperPrompt != "" {
		fmt.Fprintf(text, "\nWhat the asker wants to be kept in mind:\n%s\n", q.asked.HelperPrompt)
	}

	if len(q.asked.Earlier) > 0 {
		text.WriteString("\nEarlier in this conversation, oldest first:\n")

		for _, turn := range q.asked.Earlier {
			fmt.Fprintf(text, "- %s\n", turn.Question)

			for _, statement := range turn.Queries {
				fmt.Fprintf(text, "  %s\n", q.around.statement(statement, q.asked))
			}
		}
	}

	today, zone := q.asked.today(q.Now())
	fmt.Fprintf(text, "\nToday is %s, in the time zone %s. Timestamps are in UTC.\n", today.Format("Monday, 2006-01-02 15:04:05"), zone)
}

// today is the moment that relative dates are relative to.
func (q Question) today(now time.Time) (moment time.Time, zone string) {
	moment, zone = now.UTC(), "UTC"
	if !q.AsOf.IsZero() {
		moment = q.AsOf.UTC()
	}

	if place, err := time.LoadLocation(q.TimeZone); err == nil && q.TimeZone != "" {
		moment, zone = moment.In(place), q.TimeZone
	}

	return moment, zone
}

// literal is text in a statement.
var literal = regexp.MustCompile(`'(?:[^']|'')*'`)

// statement is an earlier one as the model may see it: another model may have seen values that this one may not.
func (s surroundings) statement(text string, asked Question) string {
	if s.least >= llm.ExposeValues {
		return text
	}

	said := []string{asked.Text}
	for _, turn := range asked.Earlier {
		said = append(said, turn.Question)
	}

	known := strings.ToLower(strings.Join(said, "\n"))

	return literal.ReplaceAllStringFunc(text, func(value string) string {
		if strings.Contains(known, strings.ToLower(strings.Trim(value, "'%"))) {
			return value
		}

		return "'…'"
	})
}
