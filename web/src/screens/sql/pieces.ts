import type { Schemas } from '~/api/client';
import { ApiError } from '~/api/errors';

/** Larger results are fetched piece by piece: a browser keeps a file in its own storage until it is whole. */
export const mostJoined = 2_000_000_000;

export const bytesOf = ({ data, end }: Schemas['PieceList']) => data.reduce((sum, piece) => sum + piece.bytes, 0) + (end?.bytes ?? 0);

/**
 * The pieces of a result as one file. They are fetched one after another, each with an address of its own, and put together without what
 * makes each of them a file.
 */
export async function join(list: Schemas['PieceList'], get: (number: number) => Promise<Blob>, onPiece: (done: number) => void): Promise<Blob> {
  const parts: Blob[] = [];
  for (const { number, bytes, headBytes, tailBytes } of list.data) {
    const piece = whole(await patiently(() => get(number)), bytes);
    parts.push(piece.slice(headBytes, piece.size - tailBytes));
    onPiece(parts.length);
  }
  const { end } = list;
  if (end) parts.push(whole(await patiently(() => get(end.number)), end.bytes));
  return new Blob(parts, { type: 'application/octet-stream' });
}

function whole(piece: Blob, bytes: number): Blob {
  if (piece.size !== bytes) throw new ApiError({ code: 'NETWORK', message: 'A piece of the file broke off before its end.' });
  return piece;
}

/** A connection that breaks off is tried three times. What the service says is final. */
async function patiently<T>(get: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await get();
    } catch (cause) {
      const broken = cause instanceof ApiError ? cause.temporary : cause instanceof TypeError;
      if (!broken || tries === 3) throw cause;
    }
  }
}
