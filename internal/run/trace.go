package run

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/tracing"
)

// traced is a run as its trace has it.
func traced(run Run) tracing.Run {
	return tracing.Run{
		TraceID: run.TraceID, ID: run.ID.String(), Conversation: run.Conversation.String(), User: run.Account.String(), Agent: run.Agent,
		Question: run.Question.Text, Began: run.CreatedAt,
	}
}

// answer lets the agent answer, and traces what it does. done tells the trace how the run ended; it is not called by
// whoever leaves the run to another.
func (r *Runs) answer(ctx context.Context, run Run, log agent.Log) (result agent.Result, done func(error), err error) {
	ctx, span := r.Tracing.Agent(ctx, traced(run))
	watched := &tracedLog{Log: log, trace: r.Tracing, queries: map[int]*tracing.Span{}}

	err = fault.Try(func() (err error) {
		result, err = r.Agents[run.Agent].Answer(ctx, run.caller, run.Question, watched)

		return err
	})
	watched.giveUp(err)

	return result, func(reason error) {
		if reason != nil {
			span.Failed(codeOf(reason))
		} else {
			span.Answered(string(result.Outcome), result.Model, result.Opinion, result.Response)
		}
	}, err
}

// tracedLog sees from the log which statements run: one begins when it is said, and ends with its rows, with the next
// attempt, or with the agent.
type tracedLog struct {
	agent.Log

	trace   *tracing.Tracing
	mutex   sync.Mutex
	queries map[int]*tracing.Span // by step
}

// Write implements agent.Log.
func (l *tracedLog) Write(ctx context.Context, event agent.Event) error {
	err := l.Log.Write(ctx, event)
	if err != nil || event.Kind != agent.QueryExecuting {
		return err
	}

	var said struct {
		Query   string `json:"query"`
		Attempt int    `json:"attempt"`
	}

	if err := json.Unmarshal(event.Body, &said); err != nil {
		return err
	}

	l.mutex.Lock()
	defer l.mutex.Unlock()

	if earlier := l.queries[event.Index]; earlier != nil {
		earlier.Failed(fault.QueryInvalid)
	}

	l.queries[event.Index] = l.trace.Query(ctx, event.Index, said.Attempt, said.Query)

	return nil
}

// Step implements agent.Log.
func (l *tracedLog) Step(ctx context.Context, step agent.Step, result *query.Result) (agent.Step, error) {
	step, err := l.Log.Step(ctx, step, result)

	l.mutex.Lock()
	defer l.mutex.Unlock()

	if span := l.queries[step.Index]; span != nil && err == nil {
		span.Read(step.RowCount)
		delete(l.queries, step.Index)
	}

	return step, err
}

// giveUp ends what did not end.
func (l *tracedLog) giveUp(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	for _, span := range l.queries {
		span.Failed(codeOf(err))
	}
}

// codeOf says in one word why something did not work.
func codeOf(err error) fault.Code {
	if err == nil || errors.Is(err, errEnded) || errors.Is(err, context.Canceled) {
		return "ended"
	}

	return fault.From(err).Code
}
