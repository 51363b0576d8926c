package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Once is a caller's Idempotency-Key. The method that creates something claims the key in the same transaction, so
// that the effect and the record of the key are committed together. The zero Once claims nothing.
type Once struct {
	Key         string
	Operation   string
	RequestHash [sha256.Size]byte
}

const onceKept = 24 * time.Hour

// Given reports whether the caller sent a key.
func (o Once) Given() bool { return o.Key != "" }

// ClaimTx records that the caller creates the object with the id made in the account. If the key was used before, it
// returns the id of what was created then and repeated = true; the calling method returns that object and creates
// nothing. Of two concurrent requests, the second waits until the first commits or rolls back.
//
// Faults: ValidationFailed if the key was used with another request, InProgress if the first request is still running
// when the lock timeout ends.
func (o Once) ClaimTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, who Principal, made uuid.UUID, now time.Time) (_ uuid.UUID, repeated bool, _ error) {
	if !o.Given() {
		return made, false, nil
	}

	caller := who.Credential()

	if _, err := tx.Exec(ctx, sqlOnceForget, account, now.Add(-onceKept)); err != nil {
		return uuid.Nil, false, err
	}

	tag, err := tx.Exec(ctx, sqlOnceClaim,
		account, caller, o.Operation, o.Key, o.RequestHash[:], made, now, now.Add(-onceKept))

	switch {
	case postgres.LockTimedOut(err):
		return uuid.Nil, false, InProgress()
	case err != nil || tag.RowsAffected() == 1:
		return made, false, err
	}

	var (
		hash  []byte
		first uuid.UUID
	)
	if err := tx.QueryRow(ctx, sqlOnceRead, account, caller, o.Operation, o.Key).Scan(&hash, &first); err != nil {
		return uuid.Nil, false, err
	}

	return first, true, o.same(hash)
}

// Find returns the id of what was created with the key, or uuid.Nil if the key is unused. It is for work that must be
// done before the transaction that claims the key.
//
// Faults: ValidationFailed if the key was used with another request.
func (o Once) Find(ctx context.Context, q postgres.Querier, account uuid.UUID, who Principal, now time.Time) (uuid.UUID, error) {
	var (
		hash []byte
		made uuid.UUID
	)

	err := q.QueryRow(ctx, sqlOnceFind, account, who.Credential(), o.Operation, o.Key, now.Add(-onceKept)).Scan(&hash, &made)

	switch {
	case postgres.NoRows(err):
		return uuid.Nil, nil
	case err != nil:
		return uuid.Nil, err
	}

	return made, o.same(hash)
}

// same fails if the key was used with another request.
func (o Once) same(hash []byte) error {
	if subtle.ConstantTimeCompare(hash, o.RequestHash[:]) != 1 {
		return fault.Invalid("Idempotency-Key", "was used with another request; use a new key")
	}

	return nil
}

// InProgress returns the fault for a repeated request whose first request has not ended.
func InProgress() *fault.Error {
	e := fault.New(fault.InProgress, "The first request with this Idempotency-Key is still in progress. Repeat the request after the time in Retry-After.")
	e.RetryAfter = time.Second

	return e
}

// ForgetTx frees a key whose effect was undone. A repeated request is then a first request again.
func (o Once) ForgetTx(ctx context.Context, tx postgres.Tx, account uuid.UUID, who Principal) error {
	if !o.Given() {
		return nil
	}

	_, err := tx.Exec(ctx, sqlOnceGiveBack, account, who.Credential(), o.Operation, o.Key)

	return err
}
