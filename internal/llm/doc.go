// Package llm calls language models: a whole answer, a streamed answer, or an answer that follows a JSON schema. It
// uses the clients of OpenAI, whose API compatible servers implement, and of Anthropic.
//
//	row before the call             the answer                 tokens on the caller's usage
//	sending ─────────────▶ provider ──────────▶ done or failed ───────────────────────────
//	   └── the process died, or the deadline passed long ago ──▶ unknown: it may have been billed
//
// Invariants:
//   - Every attempt is a row of model_calls that is written before the attempt is made. Its tokens are settled in the
//     transaction that ends the row.
//   - An answer to a request with a schema follows the schema, whatever the provider guarantees. The model gets one
//     repair turn; then the call fails with ErrSchema.
//   - Streamed text is never repeated: after the first part no attempt is repeated.
//   - A key is never in a log, error, span or row.
//   - The operator decides what a model may see: Model.Exposure. Code that builds a request must respect it.
//
// Faults: Unavailable if the provider is down or overloaded, or has too many calls; Timeout; UpstreamUnavailable if the
// provider refuses the request, or with ErrRefused, ErrTruncated or ErrSchema; ValidationFailed if the model does not
// exist.
package llm
