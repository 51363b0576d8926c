package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

const (
	looked     = 20     // rows of a result that are checked
	mostLooked = 10_000 // if the result may have too many rows
	exploded   = 10     // times the rows of the largest dataset
	suggestion = 10     // values in one message
)

// suspect checks whether a result is probably not what was meant, and returns the complaint for the model, or "".
func (w *writer) suspect(ctx context.Context, statement string, result *query.Result) (string, error) {
	limit, many := looked, int64(math.MaxInt64)
	if len(result.Reads) > 1 {
		many = exploded * w.largest(result.Reads)
		limit = int(min(many+1, mostLooked))
	}

	rows, all, err := result.Look(limit)
	if err != nil {
		return "", err
	}

	switch {
	case len(rows) == 0:
		return w.suspectEmpty(ctx, statement)
	case all && areNull(rows):
		return "The statement ran, and every value of its result is NULL. Look whether a condition matches nothing, whether text must be converted with TRY_CAST, or whether rows with NULL must be left out. If NULL is right give the same statement again.", nil
	case int64(len(rows)) > many:
		return "The statement ran, and its result has many times more rows than any dataset that it reads: a join probably lacks a condition, or joins columns that repeat. If that is right give the same statement again.", nil
	default:
		return "", nil
	}
}

// suspectEmpty handles a result without rows: it looks up the texts of the statement in the value index, because the
// values may exist in another spelling.
func (w *writer) suspectEmpty(ctx context.Context, statement string) (string, error) {
	var (
		texts  []string
		valued []string
	)

	for _, found := range literal.FindAllString(statement, -1) {
		texts = append(texts, strings.Trim(strings.ReplaceAll(found[1:len(found)-1], "''", "'"), "% "))
	}

	for _, d := range w.dialogue.around.datasets {
		if inNamespace(w.dialogue.inquiry.question, d.Item) {
			valued = append(valued, d.Name)
		}
	}

	if len(texts) == 0 {
		return "", nil
	}

	found, err := w.dialogue.inquiry.values(ctx, valued, strings.Join(texts, "\n"))
	if err != nil {
		return "", err
	}

	var meant []string

	for _, v := range found {
		if isUsed := strings.Contains(statement, strings.ReplaceAll(v.Value, "'", "''")); !isUsed && len(meant) < suggestion {
			meant = append(meant, fmt.Sprintf("%q in %q of %q", v.Value, v.Column, v.Dataset))
		}
	}

	switch {
	case len(meant) == 0:
		return "", nil
	case w.dialogue.around.least < llm.ExposeValues:
		return "The statement ran and gave no rows. There are values like those that it compares with, written otherwise: compare without regard to case, or with a part (ILIKE).", nil
	default:
		return "The statement ran and gave no rows. These values are there, written otherwise than in the statement: " + strings.Join(meant, ", ") + ". If no rows is right give the same statement again.", nil
	}
}

// largest returns the number of rows of the largest dataset that was read.
func (w *writer) largest(reads []query.Read) (rows int64) {
	for _, read := range reads {
		for _, d := range w.dialogue.around.datasets {
			if d.ID == read.ID {
				rows = max(rows, d.RowCount)
			}
		}
	}

	return max(rows, 1)
}

// areNull reports whether every value of every row is NULL.
func areNull(rows []json.RawMessage) bool {
	for _, row := range rows {
		var cells map[string]json.RawMessage
		if json.Unmarshal(row, &cells) != nil {
			return false
		}

		for name, cell := range cells {
			if name != "__metadata" && !bytes.Equal(cell, []byte("null")) {
				return false
			}
		}
	}

	return true
}

var (
	quotedPart = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	numberPart = regexp.MustCompile(`\b\d[\d.,eE+-]*`)
)

// tellable returns the reason why a statement failed as the model may see it. The error message may quote a cell, so
// unknown texts and numbers are hidden from a model that may not see rows.
func (w *writer) tellable(err error, statement string) string {
	failure := fault.From(err)
	text := failure.Message

	if w.dialogue.around.least < llm.ExposeRows {
		known := statement + w.names()
		hide := func(part string) string {
			if strings.Contains(known, strings.Trim(part, `'"`)) {
				return part
			}

			return "…"
		}
		text = numberPart.ReplaceAllStringFunc(quotedPart.ReplaceAllStringFunc(text, hide), hide)
	}

	var meant []string

	for _, sub := range failure.Subs {
		if sub.Code == "candidate" {
			meant = append(meant, strconv.Quote(sub.Message))
		}
	}

	if len(meant) > 0 {
		text += " Perhaps " + strings.Join(meant, " or ") + " was meant."
	}

	return "The statement failed: " + text + correctIt
}

const correctIt = " Correct it."

// names returns the names that every model may see: datasets, columns and types.
func (w *writer) names() string {
	var text strings.Builder

	for _, d := range w.dialogue.around.datasets {
		text.WriteString(" " + d.Name)

		for _, c := range d.Columns {
			text.WriteString(" " + c.Name + " " + c.Type)
		}
	}

	return text.String()
}
