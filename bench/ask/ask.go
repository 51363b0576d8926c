// Package ask measures questions: from the request to the answer, over streams and over A2A.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
)

const askMore = 40 * time.Millisecond // how much longer ours may take

// Ask measures a question that is one statement over few rows, from the request to its first event and to its last,
// beside the sum of its parts: a transaction with as many rows, a job that River delivers, and the statement through
// the API.
func Ask(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	q, stop, err := query.StartQueries(ctx, b, query.SmallRows, query.Ready, scripted)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, stop, err := rig.StartBareRiver(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	if err := bare.Prepare(ctx); err != nil {
		return nil, err
	}

	var first, brief, planned, written, delivered, queried, sum []time.Duration

	for i := range b.Asks + query.Warm {
		short, err := askOne(ctx, q, api.QuestionAgentNl2Ql)
		if err != nil {
			return nil, err
		}

		long, err := askOne(ctx, q, api.QuestionAgentAssistant)
		if err != nil {
			return nil, err
		}

		parts, err := askParts(ctx, q, bare)
		if err != nil {
			return nil, err
		}

		if i >= query.Warm {
			first, brief, planned = append(first, short.first), append(brief, short.last), append(planned, long.last)
			written, delivered, queried = append(written, parts[0]), append(delivered, parts[1]), append(queried, parts[2])
			sum = append(sum, parts[0]+parts[1]+parts[2])
		}
	}

	middle := func(took []time.Duration) time.Duration { return rig.Sorted(slices.Clone(took)).Quantile(0.5) }
	least := middle(written) + middle(queried) // a worker in the process that receives the question need not wait for its poll

	fmt.Fprintf(os.Stderr, "ask: %d questions; of the parts the transaction took %v, the pick-up %v, the statement %v; without a pick-up nl2ql takes %v more, assistant %v\n",
		b.Asks, middle(written), middle(delivered), middle(queried), middle(brief)-least, middle(planned)-least)

	err = b.ProfileDuring(ctx, "ask", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := askOne(ctx, q, api.QuestionAgentNl2Ql); err != nil {
				return err
			}
		}

		return nil
	})

	return []rig.Result{
		overhead("ask-first", first, written, askMore), overhead("ask-nl2ql", brief, sum, askMore), overhead("ask-assistant", planned, sum, askMore),
	}, err
}

// overhead compares medians: ours may take longer by the duration more, whatever the ratio.
func overhead(name string, ours, bare []time.Duration, more time.Duration) rig.Result {
	oursTimes, bareTimes := rig.Sorted(slices.Clone(ours)), rig.Sorted(slices.Clone(bare))
	oursMedian, bareMedian := oursTimes.Quantile(0.5), bareTimes.Quantile(0.5)

	fmt.Fprintf(os.Stderr, "%s: %v more; p95 ours %v, bare %v\n", name, (oursMedian - bareMedian).Round(10*time.Microsecond),
		oursTimes.Quantile(0.95), bareTimes.Quantile(0.95))

	return rig.Result{
		Name: name, Ours: rig.Milliseconds(float64(oursMedian)), Bare: rig.Milliseconds(float64(bareMedian)), Ratio: float64(bareMedian) / float64(oursMedian),
		Enough: oursMedian-bareMedian <= more,
	}
}

// asking is how long a question took until its first and its last event.
type asking struct{ first, last time.Duration }

func askOne(ctx context.Context, q *query.Queries, agent api.QuestionAgent) (took asking, err error) {
	if err := q.Rest(ctx); err != nil {
		return took, err
	}

	time.Sleep(rand.N(rig.PickupPoll)) // at a random time between two polls

	request, err := question(ctx, q.Service, "ada", agent, askScript())
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

// askParts executes the parts of a question: the transaction, the pick-up, the statement.
func askParts(ctx context.Context, q *query.Queries, bare *rig.BareRiver) (took [3]time.Duration, err error) {
	if err := q.Rest(ctx); err != nil {
		return took, err
	}

	time.Sleep(rand.N(rig.PickupPoll))

	question, err := json.Marshal(askScript())
	if err != nil {
		return took, err
	}

	if took[0], took[1], err = bare.Ask(ctx, question); err != nil {
		return took, err
	}

	got, err := q.Run(ctx, askStatement)
	took[2] = got.Took

	return took, err
}
