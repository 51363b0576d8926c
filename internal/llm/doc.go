// Package llm asks language models: complete, stream, and an answer of a given JSON schema, through the clients of
// OpenAI, which any compatible server understands, and of Anthropic.
//
//	row before the call             the answer                 tokens on the asker's usage
//	sending ─────────────▶ provider ──────────▶ done or failed ───────────────────────────
//	   └── the process died, or the deadline passed long ago ──▶ unknown: it may have been billed
//
// Invariants:
//   - Every attempt is a row of model_calls, written before it is made; its tokens are settled in the transaction that
//     ends the row.
//   - An answer that was to have a schema has it, whatever the provider promises; one repair turn, then ErrSchema.
//   - What was streamed on is never said twice: after the first text nothing is tried again.
//   - A key is in no log, error, span or row.
//   - What a model may see is the operator's word: Model.Exposure. Whoever builds a request keeps to it.
//
// Faults: Unavailable (down, overloaded, too many calls), Timeout, UpstreamUnavailable (the provider refuses us, or one
// of ErrRefused, ErrTruncated, ErrSchema), ValidationFailed (no such model).
package llm
