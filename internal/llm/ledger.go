package llm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// entry is a row of the ledger: one attempt.
type entry struct {
	Account     uuid.UUID
	Run         uuid.UUID
	ID          uuid.UUID
	Purpose     string
	Provider    string
	Model       string
	Turn        int
	Attempt     int
	RequestHash []byte
	StartedAt   time.Time
	ExpiresAt   time.Time
}

type state string

const (
	callDone    state = "done"
	callFailed  state = "failed"
	callUnknown state = "unknown" // the request was sent and may have been billed
)

const (
	lateAfter  = time.Minute // after the timeout of the attempt; its process has ended by then
	ledgerTime = 10 * time.Second
	watchEvery = 30 * time.Second
	watchBatch = 200
)

// begin writes the row of an attempt that is about to be made.
func (m *Models) begin(ctx context.Context, t *turn) (entry, error) {
	now := m.config.Now()
	e := entry{
		Account: t.Account, Run: t.Run, ID: uuid.Must(uuid.NewV7()), Purpose: t.Purpose, Provider: t.provider.Name, Model: t.request.Model.Name,
		Turn: t.number, Attempt: t.attempt, RequestHash: t.request.hash(), StartedAt: now, ExpiresAt: now.Add(t.provider.Timeout + lateAfter),
	}

	return e, m.config.DB.InTx(ctx, func(tx postgres.Tx) error {
		if m.config.Admit != nil {
			if err := m.config.Admit(ctx, tx, e.Account); err != nil {
				return err
			}
		}

		return insertCall(ctx, tx, e)
	})
}

// hash returns a hash of the request. Equal requests have equal hashes.
func (r Request) hash() []byte {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q %q %d ", r.Model.Name, r.System, r.Messages, r.MaxTokens)

	if r.Schema != nil {
		_, _ = hash.Write(r.Schema.JSON)
	}

	return hash.Sum(nil)
}

// end records the result of an attempt and counts its tokens, even if the caller has canceled.
func (m *Models) end(ctx context.Context, e entry, answer Response, why *failure) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTime)
	defer cancel()

	came, word := callDone, ""

	if why != nil {
		came, word = callFailed, why.class
		if why.billed {
			came = callUnknown
		}

		if why.word != "" {
			word += " " + why.word
		}
	}

	return m.config.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := endCall(ctx, tx, e, came, word, answer, m.config.Now()); err != nil {
			return err
		}

		tokens := answer.Usage.InputTokens + answer.Usage.OutputTokens
		if tokens == 0 {
			return nil
		}

		return m.config.Settle(ctx, tx, e.Account, tokens)
	})
}

// Used returns the tokens that all calls for a run have used so far.
func (m *Models) Used(ctx context.Context, account, run uuid.UUID) (used Usage, err error) {
	err = m.config.DB.Do(ctx, func(q postgres.Querier) (err error) {
		used, err = selectUsed(ctx, q, account, run)

		return err
	})

	return used, err
}

// Watch marks attempts whose process has ended as unknown, until ctx ends.
func (m *Models) Watch(ctx context.Context) {
	for {
		if err := m.giveUp(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.WarnContext(ctx, "interrupted calls of models could not be marked", "error", err)
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
	}
}

// giveUp marks expired attempts, one row at a time. Several processes can run it concurrently.
func (m *Models) giveUp(ctx context.Context) error {
	for {
		var late []entry

		err := m.config.DB.Do(ctx, func(q postgres.Querier) (err error) {
			late, err = selectLate(ctx, q, m.config.Now(), watchBatch)

			return err
		})
		if err != nil || len(late) == 0 {
			return err
		}

		for _, one := range late {
			if err := m.config.DB.Do(ctx, func(q postgres.Querier) error { return loseCall(ctx, q, one, m.config.Now()) }); err != nil {
				return err
			}
		}
	}
}
