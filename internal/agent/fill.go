package agent

import (
	"context"
	"errors"
	"strings"
	"sync"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
)

// filled is a form that a model filled, compiled.
type filled struct {
	form      form.Form
	statement form.Statement
	explained []Explained
}

// compile compiles the form of a draft and puts the statement into the draft. It returns a complaint for the model if
// the form does not compile. A draft without a form is as the model wrote it.
func (w *writer) compile(ctx context.Context, d *draft) (complaint string, err error) {
	d.basis = BasisSQL

	if d.Outcome != Answer || d.Form == "" {
		return "", nil
	}

	schema, err := w.dialogue.schema(ctx)
	if err != nil {
		return "", err
	}

	made, err := fill(schema, d.Form)
	if err != nil {
		return complainOf(err), nil
	}

	d.filled, d.basis = made, BasisForm
	d.Query, d.Interpretation = made.statement.SQL, prose(made.statement.Interpretation)
	d.Reasoning = strings.TrimSpace(d.Reasoning + " " + prose(strings.Join(made.statement.Notes, " ")))

	return "", nil
}

func fill(schema *form.Schema, text string) (*filled, error) {
	parsed, err := form.Parse(text)
	if err != nil {
		return nil, err
	}

	statement, err := schema.Compile(parsed)
	if err != nil {
		return nil, err
	}

	made := &filled{form: parsed, statement: statement}
	for _, e := range schema.Elements(parsed) {
		made.explained = append(made.explained, Explained{Words: prose(e.Words), As: e.As, Dataset: e.Dataset, Column: e.Column})
	}

	return made, nil
}

// complainOf returns the message to the model about a form that does not compile. The errors contain names and no
// values.
func complainOf(err error) string {
	advice := "Correct the form, or leave it empty and write SQL if no form can say it."

	if _, several := errors.AsType[*form.PathsError](err); several {
		advice = "Name the one that the question means in via. If the question does not say which, the outcome is clarification."
	}

	return "The form cannot be used: " + err.Error() + ". " + advice
}

// explained returns what the statement of a draft says, element by element; nil if the model wrote SQL.
func (d draft) explained() []Explained {
	if d.filled == nil {
		return d.recorded
	}

	return d.filled.explained
}

// known is what the compiler knows about the datasets of a dialogue, read when the first form is compiled.
type known struct {
	mu     sync.Mutex
	schema *form.Schema
}

// schema returns what the compiler knows about the datasets that the model sees. It uses the profiles of all of them,
// whatever the model may see of them: what comes of it is shown to the caller, and errors contain names only.
func (d *dialogue) schema(ctx context.Context) (*form.Schema, error) {
	d.known.mu.Lock()
	defer d.known.mu.Unlock()

	if d.known.schema != nil {
		return d.known.schema, nil
	}

	q, items := d.inquiry, make([]catalog.Item, len(d.around.datasets))
	for i, one := range d.around.datasets {
		items[i] = one.Item
	}

	// The values that mark rows as sums of others become part of statements, which later steps of the model may see.
	schema, err := (&interpreter{inquiry: q}).schema(ctx, items, d.around.least >= llm.ExposeValues)
	d.known.schema = schema

	return schema, err
}

// schema returns what the compiler knows about datasets. Values that mark rows as sums of others are looked up only if they may
// become part of statements.
func (p *interpreter) schema(ctx context.Context, items []catalog.Item, withTotals bool) (*form.Schema, error) {
	q := p.inquiry

	about, err := q.tools.Query.About(ctx, q.who, items, func(catalog.Item) bool { return true })
	if err != nil {
		return nil, err
	}

	if withTotals {
		if err := p.match(ctx, items, &planner.Request{}); err != nil {
			return nil, err
		}

		if _, err := p.findTotals(ctx, about, func(string) bool { return true }); err != nil {
			return nil, err
		}
	}

	return planner.Schema(planDatasets(q.question, about, p.totals)), nil
}
