package a2a

import (
	"encoding/json"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"

	"quern.dev/quern/internal/run"
)

const (
	queryArtifact = "generated-query"
	rowsArtifact  = "result-data"
	noQuery       = "-- no query"
)

// queryOrder is the order of nl2ql. A completed run always has four events: the working status, the query, the rows, the
// final status. A run that waits for a choice has the same four, with the status that input is required, and four more after
// the choice.
type queryOrder struct {
	*telling

	shown bool // query and rows were delivered
}

func (o *queryOrder) next(event run.Event) ([]protocol.Event, error) {
	switch event.Kind {
	case run.EventStarted:
		return nil, nil
	case run.EventCancelled, run.EventFailed, run.EventCompleted:
		return o.end(event, o.complete)
	case run.EventWaiting:
		waits, err := o.waiting(event)
		if err != nil {
			return nil, err
		}

		all, err := o.show(o.begin(event.At), run.Step{})

		return append(all, waits), err
	case run.EventChosen:
		o.shown = false

		return o.choose(event.At), nil
	case run.EventStep:
		var step run.Step
		if err := json.Unmarshal(event.Body, &step); err != nil {
			return nil, err
		}

		return o.show(o.begin(event.At), step)
	default:
		return o.begin(event.At), nil
	}
}

func (o *queryOrder) complete(at time.Time, result run.Result) ([]protocol.Event, error) {
	var step run.Step
	if len(result.Steps) > 0 {
		step = result.Steps[0]
	}

	all, err := o.show(o.begin(at), step)

	return append(all, o.completed(at, result)), err
}

// show appends the query and the rows to the events, once.
func (o *queryOrder) show(before []protocol.Event, step run.Step) ([]protocol.Event, error) {
	if o.shown {
		return before, nil
	}

	o.shown = true
	found, err := data(o.rowsOf(step))

	var known map[string]any
	if step.Query != "" {
		known = stepOf(step)
	}

	return append(before, o.artifact(queryArtifact, known, text(step.Query, noQuery)), o.artifact(rowsArtifact, nil, found)), err
}
