package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
)

const askMore = 40 * time.Millisecond // how much longer ours may take

// runAsk measures a question that is one statement over few rows, from the request to its first event and to its
// last, beside the sum of what it is made of: a transaction with as many rows, a job that River delivers, and the
// statement through the API.
func runAsk(ctx context.Context, b *bench) ([]result, error) {
	q, stop, err := b.startQueries(ctx, querySmallRows, queryReady, scripted)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, stop, err := startBareRiver(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	if err := bare.prepare(ctx); err != nil {
		return nil, err
	}

	var first, brief, planned, written, delivered, queried, sum []time.Duration

	for i := range b.asks + queryWarm {
		short, err := q.ask(ctx, api.QuestionAgentNl2Ql)
		if err != nil {
			return nil, err
		}

		long, err := q.ask(ctx, api.QuestionAgentAssistant)
		if err != nil {
			return nil, err
		}

		parts, err := q.askParts(ctx, bare)
		if err != nil {
			return nil, err
		}

		if i >= queryWarm {
			first, brief, planned = append(first, short.first), append(brief, short.last), append(planned, long.last)
			written, delivered, queried = append(written, parts[0]), append(delivered, parts[1]), append(queried, parts[2])
			sum = append(sum, parts[0]+parts[1]+parts[2])
		}
	}

	middle := func(took []time.Duration) time.Duration { return sorted(slices.Clone(took)).quantile(0.5) }
	least := middle(written) + middle(queried) // a worker in the process that is asked need not wait for its poll

	fmt.Fprintf(os.Stderr, "ask: %d questions; of the parts the transaction took %v, the pick-up %v, the statement %v; without a pick-up nl2ql takes %v more, assistant %v\n",
		b.asks, middle(written), middle(delivered), middle(queried), middle(brief)-least, middle(planned)-least)

	err = b.profileDuring(ctx, "ask", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.ask(ctx, api.QuestionAgentNl2Ql); err != nil {
				return err
			}
		}

		return nil
	})

	return []result{
		overhead("ask-first", first, written, askMore), overhead("ask-nl2ql", brief, sum, askMore), overhead("ask-assistant", planned, sum, askMore),
	}, err
}

// overhead compares medians: ours may take longer by so much, whatever the ratio.
func overhead(name string, ours, bare []time.Duration, more time.Duration) result {
	oursTimes, bareTimes := sorted(slices.Clone(ours)), sorted(slices.Clone(bare))
	oursMedian, bareMedian := oursTimes.quantile(0.5), bareTimes.quantile(0.5)

	fmt.Fprintf(os.Stderr, "%s: %v more; p95 ours %v, bare %v\n", name, (oursMedian - bareMedian).Round(10*time.Microsecond),
		oursTimes.quantile(0.95), bareTimes.quantile(0.95))

	return result{
		name: name, ours: milliseconds(float64(oursMedian)), bare: milliseconds(float64(bareMedian)), ratio: float64(bareMedian) / float64(oursMedian),
		enough: oursMedian-bareMedian <= more,
	}
}

// asking is how long a question took.
type asking struct{ first, last time.Duration }

func (q *queries) ask(ctx context.Context, agent api.QuestionAgent) (took asking, err error) {
	if err := q.rest(ctx); err != nil {
		return took, err
	}

	time.Sleep(rand.N(pickupPoll)) // anywhere between two polls

	request, err := q.question(ctx, "ada", agent, askScript())
	if err != nil {
		return took, err
	}

	begin := time.Now()

	err = follow(http.DefaultClient, request, func(seq int64) {
		took.last = time.Since(begin)
		if seq == 1 {
			took.first = took.last
		}
	})

	return took, err
}

// askParts does what a question is made of: the transaction, the pick-up, the statement.
func (q *queries) askParts(ctx context.Context, bare *bareRiver) (took [3]time.Duration, err error) {
	if err := q.rest(ctx); err != nil {
		return took, err
	}

	time.Sleep(rand.N(pickupPoll))

	if took[0], took[1], err = bare.ask(ctx); err != nil {
		return took, err
	}

	got, err := q.run(ctx, askStatement)
	took[2] = got.took

	return took, err
}

// prepare makes a table for what a question writes.
func (r *bareRiver) prepare(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, `CREATE TABLE asked (account_id uuid, id uuid, body jsonb NOT NULL, at timestamptz NOT NULL, PRIMARY KEY (account_id, id))`)

	return err
}

// ask writes a question, which is a conversation, a run, an event, an entry of the audit and a job, and waits for the job.
func (r *bareRiver) ask(ctx context.Context) (written, delivered time.Duration, err error) {
	text, err := json.Marshal(askScript())
	if err != nil {
		return 0, 0, err
	}

	begin := time.Now()

	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		for range 4 {
			_, err := tx.Exec(ctx, `INSERT INTO asked (account_id, id, body, at) VALUES ($1, $2, $3, now())`, uuid.Nil, uuid.Must(uuid.NewV7()), string(text))
			if err != nil {
				return err
			}
		}

		_, err := r.client.InsertTx(ctx, tx, bareArgs{}, nil)

		return err
	})
	if err != nil {
		return 0, 0, err
	}

	written = time.Since(begin)

	select {
	case begun := <-r.begun:
		return written, begun.Sub(begin) - written, nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}
