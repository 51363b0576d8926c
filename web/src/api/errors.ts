import type { components } from './schema.gen';

export type ErrorCode = components['schemas']['ErrorCode'];
export type SubError = components['schemas']['SubError'];

/** An error that the service answered with, or NETWORK if there was no answer. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ErrorCode | 'NETWORK' | 'UNKNOWN';
  readonly status: number;
  readonly detail: string;
  readonly subErrors: SubError[];
  readonly requestId: string;
  /** Seconds. */
  readonly retryAfter: number | undefined;

  constructor(fields: {
    code: ApiError['code'];
    message: string;
    status?: number;
    detail?: string;
    subErrors?: SubError[];
    requestId?: string;
    retryAfter?: number | undefined;
  }) {
    super(fields.message);
    this.code = fields.code;
    this.status = fields.status ?? 0;
    this.detail = fields.detail ?? '';
    this.subErrors = fields.subErrors ?? [];
    this.requestId = fields.requestId ?? '';
    this.retryAfter = fields.retryAfter;
  }

  /** The message of the fault of a field, such as `name` or `filesToUpload[0].size`. */
  field(name: string): string | undefined {
    return this.subErrors.find((sub) => sub.code === name)?.message;
  }

  /** Whether the same request may succeed later. */
  get temporary(): boolean {
    return ['NETWORK', 'RATE_LIMITED', 'UNAVAILABLE', 'TIMEOUT', 'UPSTREAM_UNAVAILABLE', 'IN_PROGRESS'].includes(this.code);
  }
}

export function networkError(cause: unknown): ApiError {
  if (cause instanceof ApiError) return cause;
  if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
  return new ApiError({ code: 'NETWORK', message: 'The service could not be reached.' });
}

/** Makes an error of an answer whose body is an ErrorResponse, or anything else that stands between us and the service. */
export function errorOf(response: Response, body: unknown): ApiError {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Partial<components['schemas']['ErrorResponse']>;
  const wait = Number(response.headers.get('Retry-After') ?? Number.NaN);
  return new ApiError({
    code: given.error_code ?? 'UNKNOWN',
    message: given.message ?? `The service answered with status ${response.status}.`,
    status: response.status,
    detail: given.error_message ?? '',
    subErrors: given.sub_errors ?? [],
    requestId: response.headers.get('X-Request-Id') ?? '',
    retryAfter: Number.isFinite(wait) ? wait : undefined,
  });
}
