import type { Schemas } from '~/api/client';

export type RunResult = Schemas['RunResult'];
export type RunStep = Schemas['RunStep'];
export type Turn = Schemas['Turn'];

/** The events after which a run goes no further, and the one after which it waits for the person. */
export const ends = ['runCompleted', 'runCancelled', 'runFailed'] as const;
export const rests = ['runWaiting'] as const;

export type LiveStep = {
  index: number;
  instruction: string;
  state: 'planned' | 'started' | 'querying' | 'done';
  /** Which try of a statement is running. */
  attempt: number;
  rows?: number;
};

/** A run while it is going on, as far as its events tell. */
export type LiveRun = {
  phase: 'queued' | 'planning' | 'working' | 'writing' | 'ended';
  steps: LiveStep[];
  /** The steps that are done, with their rows. */
  done: RunStep[];
  /** The answer in words; it arrives before the end. */
  answer?: Partial<RunResult>;
  interpretation?: string;
  /** What the person chose, if the run had asked. */
  chosen?: string;
  status: Turn['status'];
  result?: RunResult;
  error?: Schemas['Failure'];
};

export const started: LiveRun = { phase: 'queued', steps: [], done: [], status: 'running' };

type Body = Record<string, unknown>;

/** What a run is after one more event. Events with unknown names change nothing. */
export function reduce(run: LiveRun, name: string, data: string): LiveRun {
  const body = parse(data);
  switch (name) {
    case 'planningStarted':
      return { ...run, phase: 'planning' };
    case 'plan': {
      const planned = Array.isArray(body['steps']) ? body['steps'].map(String) : [];
      const steps = planned.map((instruction, index): LiveStep => run.steps.find((step) => step.index === index) ?? { index, instruction, state: 'planned', attempt: 0 });
      return { ...run, phase: 'working', steps, ...text(body, 'interpretation') };
    }
    case 'stepStarted':
      return { ...run, phase: 'working', steps: change(run.steps, body, { state: 'started', ...instruction(body) }) };
    case 'queryExecuting':
      return { ...run, phase: 'working', steps: change(run.steps, body, { state: 'querying', attempt: Number(body['attempt'] ?? 1) }) };
    case 'step': {
      const step = body as unknown as RunStep;
      const done = [...run.done.filter((other) => other.index !== step.index), step].sort((a, b) => a.index - b.index);
      return { ...run, phase: 'working', done, steps: change(run.steps, body, { state: 'done', rows: step.rowCount, ...instruction(body) }) };
    }
    case 'answerStarted':
      return { ...run, phase: 'writing' };
    case 'answer':
      return { ...run, answer: body as Partial<RunResult> };
    case 'optionChosen':
      return { ...started, ...(typeof body['interpretation'] === 'string' && { chosen: body['interpretation'] }) };
    case 'runWaiting':
      return { ...run, phase: 'ended', status: 'waiting', ...resultOf(body) };
    case 'runCompleted':
      return { ...run, phase: 'ended', status: 'completed', ...resultOf(body) };
    case 'runCancelled':
      return { ...run, phase: 'ended', status: 'cancelled' };
    case 'runFailed':
      return { ...run, phase: 'ended', status: body['code'] === 'TIMEOUT' ? 'expired' : 'failed', error: { code: String(body['code'] ?? 'INTERNAL'), message: String(body['message'] ?? '') } as Schemas['Failure'] };
    default:
      return run;
  }
}

/** The result as far as it is known: the end of the run brings the rest. */
export function soFar(run: LiveRun): RunResult | undefined {
  if (run.result) return run.result;
  if (!run.answer?.response || !run.answer.outcome) return undefined;
  return { ...run.answer, response: run.answer.response, outcome: run.answer.outcome, steps: run.done, ...(run.interpretation && { interpretation: run.interpretation }) };
}

function parse(data: string): Body {
  try {
    const body: unknown = JSON.parse(data);
    return typeof body === 'object' && body !== null ? (body as Body) : {};
  } catch {
    return {};
  }
}

function change(steps: LiveStep[], body: Body, to: Partial<LiveStep>): LiveStep[] {
  const index = Number(body['index'] ?? 0);
  if (!steps.some((step) => step.index === index)) {
    return [...steps, { index, instruction: '', state: 'started' as const, attempt: 0, ...to }].sort((a, b) => a.index - b.index);
  }
  return steps.map((step) => (step.index === index ? { ...step, ...to } : step));
}

function instruction(body: Body): { instruction?: string } {
  return typeof body['instruction'] === 'string' && body['instruction'] !== '' ? { instruction: body['instruction'] } : {};
}

function text(body: Body, name: 'interpretation'): { interpretation?: string } {
  const value = body[name];
  return typeof value === 'string' && value !== '' ? { [name]: value } : {};
}

function resultOf(body: Body): { result?: RunResult } {
  return typeof body['result'] === 'object' && body['result'] !== null ? { result: body['result'] as RunResult } : {};
}
