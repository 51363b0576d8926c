package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// What a second opinion may take.
const (
	opinionTime  = 10 * time.Second
	opinionGrace = time.Second // that an answer waits for it when the model is done
	opinionRows  = 1_000_000   // of the dataset
	comparedRows = 200         // of a result
	doubtedRows  = 5           // that a model is shown
)

// opinion is what the rules make of a question that a model answers. Whatever is said of it is said after the model's
// statement has read the same snapshot, so that nothing else is read than is noted.
type opinion struct {
	planner.Candidate

	result table
	read   query.Read
}

// verdict is what a second opinion comes to.
type verdict string

const (
	agreed   verdict = "agrees"
	differed verdict = "differs"
)

// consult lets the rules read the question while the model thinks. Nobody waits long for what they say: hear gives nil if
// they are not sure, if it would take long, or if more was said than they understand.
func (w *writing) consult(ctx context.Context) (hear func() *opinion, stop func()) {
	if !w.whole || !w.Opinion || w.asked.HelperPrompt != "" || len(w.asked.Earlier) > 0 {
		return func() *opinion { return nil }, func() {}
	}

	ctx, stop = context.WithTimeout(ctx, opinionTime)
	said := make(chan *opinion, 1)

	go func() {
		var one *opinion

		err := fault.Try(func() error {
			one = w.readByRules(ctx)

			return nil
		})
		if err != nil { // the model answers without it
			w.Query.Log.ErrorContext(ctx, "the second opinion failed", "run", w.asked.Run, "error", err)
		}

		said <- one
	}()

	return func() *opinion {
		select {
		case one := <-said:
			return one
		case <-time.After(opinionGrace):
			stop()
		case <-ctx.Done():
		}

		return nil
	}, stop
}

// readByRules is nil whenever anything is in the way.
func (w *writing) readByRules(ctx context.Context) *opinion {
	p := Planner{NL2QL: w.NL2QL}.planning(w.who, w.asked, w.teller)

	plan, err := p.plan(ctx)
	if err != nil || plan.Outcome() != planner.Answer || planner.Changes(w.asked.Text) {
		return nil
	}

	one := &opinion{Candidate: plan.Candidates[0]}

	if !slices.ContainsFunc(p.datasets, func(d query.About) bool {
		return nameOf(w.asked, d.Item) == one.Form.Dataset && d.RowCount <= opinionRows
	}) {
		return nil
	}

	result, err := w.Query.Run(ctx, w.who, query.Statement{
		Username: w.asked.Username, Namespace: w.asked.Namespace, Text: one.SQL, Form: query.Rows, Pinned: w.teller.log.Pinned(),
	})
	if err != nil {
		return nil
	}
	defer result.Close()

	rows, all, err := result.Look(comparedRows)
	if err != nil || !all || len(result.Reads) != 1 {
		return nil
	}

	one.result, one.read = table{result.Columns, rows}, result.Reads[0]

	return one
}

// judge compares a result with that of the rules; "" if there is none, or it is of something else.
func (w *writing) judge(result *query.Result) verdict {
	if w.second == nil || len(result.Reads) != 1 || result.Reads[0].ID != w.second.read.ID || result.Reads[0].Snapshot != w.second.read.Snapshot {
		return ""
	}

	rows, _, err := result.Look(comparedRows + 1)
	if err != nil {
		return ""
	}

	same, ok := sameTable(table{result.Columns, rows}, w.second.result, w.second.Form.Kind == planner.Share)

	switch {
	case !ok:
		return ""
	case same:
		return agreed
	default:
		return differed
	}
}

// doubt is what the model is told of another reading, as far as it may see what that rests on; "" if there is nothing to
// doubt.
func (w *writing) doubt(result *query.Result) string {
	if w.judge(result) != differed || !w.mayHear() {
		return ""
	}

	rows, _, err := result.Look(comparedRows + 1)
	if err != nil {
		return ""
	}

	mine := table{result.Columns, rows}

	return fmt.Sprintf("The statement ran. Simple rules, which know less than you do, read the question as\n%s\nTheir result has %s. Yours has %s.\n"+
		"Think again about what was asked. If your statement is right give the same statement again. Otherwise correct it.",
		w.second.SQL, w.shape(w.second.result), w.shape(mine))
}

// moment is a date in a statement: the question said it.
var moment = regexp.MustCompile(`'\d{4}-\d{2}-\d{2}[^']*'`)

// mayHear tells whether the model may know how the rules read the question. That a value is in a column is known to the
// value index, and so only to models that may see values.
func (w *writing) mayHear() bool {
	return w.exposed() >= llm.ExposeValues || !literal.MatchString(moment.ReplaceAllString(w.second.SQL, ""))
}

// exposed is how much the model may see of what the rules read: they look at more datasets than it is told of.
func (w *writing) exposed() llm.Exposure {
	exposure, isTold := w.around.exposure[w.second.read.ID]
	if !isTold {
		exposure = w.around.others
	}

	return min(exposure, w.around.least)
}

// shape says what a result looks like, with rows only for models that may see them.
func (w *writing) shape(of table) string {
	var text strings.Builder

	switch count := len(of.rows); {
	case count == 0:
		text.WriteString("no rows")
	case count == 1:
		text.WriteString("1 row")
	case w.exposed() < llm.ExposeValues:
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

	if w.around.allows(w.teller.log.Pinned()) {
		shown := showStep(Step{Data: of.rows[:min(len(of.rows), doubtedRows)]})
		for _, row := range shown.Rows {
			fmt.Fprintf(&text, "\n%s", row)
		}
	}

	return text.String()
}

// weigh adds to a draft's reasons what the rules say of its result.
func (w *writing) weigh(d draft, result *query.Result) draft {
	switch w.verdict = w.judge(result); w.verdict {
	case agreed:
		d.Reasoning = strings.TrimSpace(d.Reasoning + " The rules that answer without a model give the same result.")
	case differed:
		d.Reasoning = strings.TrimSpace(d.Reasoning + " The rules that answer without a model read it otherwise: " + prose(w.second.Reading) + ".")
	}

	return d
}
