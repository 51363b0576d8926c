package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/doubt"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// Limits of a second opinion.
const (
	opinionTime  = 10 * time.Second
	opinionGrace = time.Second // how long the answer waits for the opinion after the model has finished
	opinionRows  = 1_000_000   // most rows of the dataset
	comparedRows = 200         // most rows of a result
	doubtedRows  = 5           // rows that a model sees
)

// opinion is the planner's result for a question that a model answers. It is used only after the model's statement has
// read the same snapshot, so that the run does not use data that it has not recorded as read.
type opinion struct {
	dialogue  *dialogue // with the model that the opinion is for
	candidate planner.Candidate
	result    table
	read      query.Read // zero if the result cannot be compared
}

// verdict is the result of comparing a result with the second opinion.
type verdict string

const (
	agreed   verdict = "agrees"
	differed verdict = "differs"
)

// consult starts the planner on the question while the model works. hear returns the opinion and waits at most
// opinionGrace for it. It returns nil if the planner is not sure, if it takes too long, or if the question has a helper
// prompt, earlier turns or answers to a model, which the planner does not understand. stop cancels the planner.
func (w *writer) consult(ctx context.Context) (hear func() *opinion, stop func()) {
	q := w.dialogue.inquiry
	if !w.consults || !q.question.isPlain() {
		return func() *opinion { return nil }, func() {}
	}

	ctx, stop = context.WithTimeout(ctx, opinionTime)
	given := make(chan *opinion, 1)

	go func() {
		var one *opinion

		err := fault.Try(func() error {
			one = opinionOf(ctx, w.dialogue, w.asked())

			return nil
		})
		if err != nil { // the model answers without a second opinion
			q.tools.Query.Log.ErrorContext(ctx, "the second opinion failed", "run", q.question.Run, "error", err)
		}

		given <- one
	}()

	return func() *opinion {
		select {
		case one := <-given:
			return one
		case <-time.After(opinionGrace):
			stop()
		case <-ctx.Done():
		}

		return nil
	}, stop
}

// opinionOf returns the planner's form for the text of a question or step and, if it can be compared, its result. It returns nil if the planner is not sure.
func opinionOf(ctx context.Context, d *dialogue, text string) *opinion {
	q := new(*d.inquiry)
	q.question.Text = text
	rules := &interpreter{inquiry: q}

	plan, err := rules.candidates(ctx)
	if err != nil || plan.Outcome != planner.Answer || planner.Changes(text) {
		return nil
	}

	one := &opinion{dialogue: d, candidate: plan.Candidates[0]}

	if !slices.ContainsFunc(rules.datasets, func(d query.About) bool {
		return nameOf(q.question, d.Item) == one.candidate.Form.Dataset && d.RowCount <= opinionRows
	}) {
		return one
	}

	result, err := q.execute(ctx, statement{text: one.candidate.SQL, isAside: true})
	if err != nil {
		return one
	}
	defer result.Close()

	rows, all, err := result.Look(comparedRows)
	if err != nil || !all || len(result.Reads) != 1 {
		return one
	}

	one.result, one.read = table{result.Columns, rows}, result.Reads[0]

	return one
}

// isShare reports whether a form asks for percentages, which may also be given as fractions.
func isShare(f form.Form) bool {
	return slices.ContainsFunc(f.Measures, func(m form.Measure) bool { return m.Share })
}

// judge compares a draft and its result with the second opinion: form with form, and the results if the forms differ or
// the model wrote SQL. It returns "" if there is no opinion, if the two read different snapshots, or if the comparison
// would take too long.
func (o *opinion) judge(d draft, result *query.Result) verdict {
	if o != nil && d.filled != nil && d.filled.form.Same(o.candidate.Form) {
		return agreed
	}

	if o == nil || o.read.ID == uuid.Nil || len(result.Reads) != 1 || result.Reads[0].ID != o.read.ID || result.Reads[0].Snapshot != o.read.Snapshot {
		return ""
	}

	rows, _, err := result.Look(comparedRows + 1)
	if err != nil {
		return ""
	}

	same, ok := sameTable(table{result.Columns, rows}, o.result, isShare(o.candidate.Form))

	switch {
	case !ok:
		return ""
	case same:
		return agreed
	default:
		return differed
	}
}

// doubt returns the message to the model about a second opinion that differs, as far as the model may see what the
// opinion is based on. It returns "" if there is nothing to doubt.
func (o *opinion) doubt(d draft, result *query.Result) string {
	if o.judge(d, result) != differed || !o.mayBeShown() {
		return ""
	}

	rows, _, err := result.Look(comparedRows + 1)
	if err != nil {
		return ""
	}

	mine := table{result.Columns, rows}

	return fmt.Sprintf("The statement ran. Simple rules, which know less than you do, read the question as\n%s\nTheir result has %s. Yours has %s.\n"+
		"Think again about what was asked. If yours is right give the same again. Otherwise correct it.",
		o.written(d), o.shape(o.result), o.shape(mine))
}

// written returns the planner's interpretation as the model wrote its own: as a form, or as a statement.
func (o *opinion) written(d draft) string {
	if d.filled == nil {
		return o.candidate.SQL
	}

	return plainJSON(o.candidate.Form)
}

// moment matches a date in a statement. The planner takes dates from the question, so they do not disclose values.
var moment = regexp.MustCompile(`'\d{4}-\d{2}-\d{2}[^']*'`)

// mayBeShown reports whether the model may see the planner's statement. A text in the statement comes from the value index
// and shows that a column has this value, so only models that may see values may see it.
func (o *opinion) mayBeShown() bool {
	return o.exposed() >= llm.ExposeValues || !literal.MatchString(moment.ReplaceAllString(o.candidate.SQL, ""))
}

// exposed returns how much the model may see of the dataset that the planner read. The planner considers more datasets
// than the model sees.
func (o *opinion) exposed() llm.Exposure {
	around := o.dialogue.around

	exposure, isKnown := around.exposure[o.read.ID]
	if !isKnown {
		exposure = around.others
	}

	return min(exposure, around.least)
}

// shape describes a result, with rows only for models that may see them.
func (o *opinion) shape(of table) string {
	var text strings.Builder

	switch count := len(of.rows); {
	case count == 0:
		text.WriteString("no rows")
	case count == 1:
		text.WriteString("1 row")
	case o.exposed() < llm.ExposeValues:
		text.WriteString("several rows")
	case count > comparedRows:
		fmt.Fprintf(&text, "more than %d rows", comparedRows)
	default:
		fmt.Fprintf(&text, "%d rows", count)
	}

	names := make([]string, len(of.columns))
	for i, c := range of.columns {
		names[i] = fmt.Sprintf("%q %s", c.Name, c.Type)
	}

	fmt.Fprintf(&text, " of %s", strings.Join(names, ", "))

	if o.dialogue.around.allows(o.dialogue.inquiry.recorder.log.Pinned()) {
		shown := showStep(Step{Data: of.rows[:min(len(of.rows), doubtedRows)]})
		for _, row := range shown.Rows {
			fmt.Fprintf(&text, "\n%s", row)
		}
	}

	return text.String()
}

// weigh returns the verdict on a result, and the reasoning of the model with the verdict added.
func (o *opinion) weigh(d draft, result *query.Result) (string, verdict) {
	reasoning, found := d.Reasoning, o.judge(d, result)

	switch {
	case found == agreed && d.filled != nil && d.filled.form.Same(o.candidate.Form):
		reasoning = strings.TrimSpace(reasoning + " The planner fills the same form.")
	case found == agreed:
		reasoning = strings.TrimSpace(reasoning + " The planner gives the same result.")
	case found == differed:
		reasoning = strings.TrimSpace(reasoning + " The planner interprets the question differently: " + prose(o.candidate.Interpretation) + ".")
	}

	return reasoning, found
}

// doubts returns the doubt of a second opinion that differs.
func (o *opinion) doubts(found verdict) []Doubt {
	if found != differed {
		return nil
	}

	return []Doubt{{Kind: doubt.Opinion, Text: "The planner interprets the question differently: " + prose(o.candidate.Interpretation) + "."}}
}

// contradiction returns the message to a model that finds nothing about the question, although the planner is sure; "" if
// the model may not see it.
func (o *opinion) contradiction() string {
	if o == nil || !o.mayBeShown() {
		return ""
	}

	return "Simple rules, which know less than you do, read the question as\n" + o.written(draft{filled: &filled{}}) +
		"\nThink again. If that is what was asked, answer it. If nothing in the datasets is about the question give the same again."
}

// unanswered returns the doubt about the outcome that nothing in the datasets is about a question. It names no value,
// because nothing was read.
func (o *opinion) unanswered() []Doubt {
	if o == nil {
		return nil
	}

	return []Doubt{{Kind: doubt.Opinion, Text: "The planner can answer the question from the dataset " + prose(o.candidate.Form.Dataset) + "."}}
}
