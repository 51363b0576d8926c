import { describe, expect, it } from 'vitest';
import { type LiveRun, reduce, soFar, started } from './run';

const play = (events: [string, unknown][], from: LiveRun = started) => events.reduce((run, [name, data]) => reduce(run, name, JSON.stringify(data)), from);
const step = { index: 0, instruction: 'count', query: 'SELECT 1', reasoning: '', columns: [{ name: 'n', type: 'bigint' }], data: [{ n: 1 }], rowCount: 1, truncated: false };

describe('reduce', () => {
  it('follows plan, steps and answer', () => {
    let run = play([
      ['runStarted', { runId: 'a', conversationId: 'b' }],
      ['planningStarted', {}],
    ]);
    expect(run.phase).toBe('planning');
    run = play([['plan', { steps: ['count', 'compare'] }], ['stepStarted', { index: 0, instruction: 'count' }], ['queryExecuting', { index: 0, query: 'x', attempt: 2 }]], run);
    expect(run.steps.map((one) => [one.state, one.attempt])).toEqual([['querying', 2], ['planned', 0]]);
    run = play([['step', step], ['answerStarted', {}]], run);
    expect(run.steps[0]).toMatchObject({ state: 'done', rows: 1 });
    expect(soFar(run)).toBeUndefined();
    run = play([['answer', { response: 'One.', outcome: 'answer' }]], run);
    expect(soFar(run)).toMatchObject({ response: 'One.', steps: [{ index: 0 }] });
    run = play([['runCompleted', { result: { response: 'One!', outcome: 'answer', steps: [step] } }]], run);
    expect(run.status).toBe('completed');
    expect(soFar(run)?.response).toBe('One!');
  });

  it('gives the same for events that are repeated', () => {
    const events: [string, unknown][] = [['plan', { steps: ['count'] }], ['stepStarted', { index: 0 }], ['step', step]];
    expect(play([...events, ...events])).toEqual(play(events));
  });

  it('starts again after a choice', () => {
    const waiting = play([['plan', { steps: ['count'] }], ['runWaiting', { result: { response: 'Which?', outcome: 'clarification', steps: [] } }]]);
    expect(waiting.status).toBe('waiting');
    const going = play([['optionChosen', { number: 2, interpretation: 'number of *orders*' }]], waiting);
    expect(going).toMatchObject({ status: 'running', steps: [], chosen: 'number of *orders*' });
    expect(going.result).toBeUndefined();
  });

  it('tells a failure, a deadline and a cancellation apart', () => {
    expect(play([['runFailed', { code: 'UNAVAILABLE', message: 'No model.' }]])).toMatchObject({ status: 'failed', error: { code: 'UNAVAILABLE', message: 'No model.' } });
    expect(play([['runFailed', { code: 'TIMEOUT', message: 'Too long.' }]]).status).toBe('expired');
    expect(play([['runCancelled', {}]]).status).toBe('cancelled');
  });

  it('ignores what it does not know', () => {
    expect(reduce(started, 'sparkles', '{}')).toBe(started);
    expect(reduce(started, 'plan', 'not json').steps).toEqual([]);
    expect(play([['stepStarted', { index: 3, instruction: 'late' }]]).steps).toMatchObject([{ index: 3, instruction: 'late' }]);
  });
});
