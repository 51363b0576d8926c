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

// traced returns the data of a run for its trace.
func traced(run Run) tracing.Run {
	return tracing.Run{
		TraceID: run.TraceID, ID: run.ID.String(), Conversation: run.Conversation.String(), User: run.Account.String(), Agent: run.Agent,
		Question: run.Question.Text, Began: run.CreatedAt,
	}
}

// answer calls the agent and traces its work. done records in the trace how the run ended; it must not be called if another
// worker will continue the run.
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

// tracedLog is a log that also traces statements. The span of a statement starts with its event, and ends with its rows,
// with the next attempt, or with the agent.
type tracedLog struct {
	agent.Log

	trace   *tracing.Tracing
	mutex   sync.Mutex
	queries map[int]*tracing.Span // by step
}

// Write implements agent.Log.
func (l *tracedLog) Write(ctx context.Context, events ...agent.Event) error {
	if err := l.Log.Write(ctx, events...); err != nil {
		return err
	}

	for _, e := range events {
		if e.Kind != agent.EventQueryExecuting {
			continue
		}

		if err := l.begin(ctx, e); err != nil {
			return err
		}
	}

	return nil
}

// begin starts the span of a statement.
func (l *tracedLog) begin(ctx context.Context, event agent.Event) error {
	var executing agent.QueryExecuting
	if err := json.Unmarshal(event.Body, &executing); err != nil {
		return err
	}

	l.mutex.Lock()
	defer l.mutex.Unlock()

	if earlier := l.queries[event.Index]; earlier != nil {
		earlier.Failed(fault.QueryInvalid)
	}

	l.queries[event.Index] = l.trace.Query(ctx, event.Index, executing.Attempt, executing.Query)

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

// giveUp ends the spans that are still open.
func (l *tracedLog) giveUp(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	for _, span := range l.queries {
		span.Failed(codeOf(err))
	}
}

// codeOf returns the fault code of an error, or "ended" if the run was ended from outside.
func codeOf(err error) fault.Code {
	if err == nil || errors.Is(err, errEnded) || errors.Is(err, context.Canceled) {
		return "ended"
	}

	return fault.From(err).Code
}
