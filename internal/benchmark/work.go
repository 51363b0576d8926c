package benchmark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
)

const (
	atOnce     = 2           // questions of a benchmark in progress, so that others are not held back
	checkEvery = time.Second // whether the benchmark is still wanted
	pageSize   = 100

	agentName = "nl2ql" // one statement, whose rows can be compared
)

// session is a benchmark that this worker continues.
type session struct {
	*Benchmarks

	lease job.Lease
	is    Benchmark
	at    catalog.Path
}

// work asks the questions that have no outcome yet.
func (b *Benchmarks) work(ctx context.Context, args Args, lease job.Lease) error {
	var found *Benchmark

	err := b.DB.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = selectBenchmark(ctx, q, args.Account, args.Namespace, args.Benchmark)

		return err
	})

	switch {
	case err != nil:
		return err
	case found == nil || found.Status != Running:
		return job.ErrStopped
	}

	s := &session{Benchmarks: b, lease: lease, is: *found}

	if err := s.check(ctx); err != nil {
		return err
	}

	if s.is.Questions == nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}

	if err := s.askAll(ctx); err != nil {
		return err
	}

	return lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return endBenchmark(ctx, tx, args, Completed, nil, b.now()) })
}

// check returns an error if the benchmark must not go on: it was cancelled, or its caller may no longer.
func (s *session) check(ctx context.Context) error {
	if err := s.Credentials.Check(ctx, s.is.caller); fault.Is(err, fault.Unauthorized) {
		return fault.New(fault.Unauthorized, "Stopped because the token or account that started it is no longer valid. Start it again with a valid token.")
	} else if err != nil {
		return err
	}

	if err := s.locate(ctx); fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return fault.New(fault.Forbidden, "Stopped because "+s.is.Author+" may no longer edit the namespace.")
	} else if err != nil {
		return err
	}

	return s.DB.Do(ctx, func(q postgres.Querier) error {
		now, err := selectBenchmark(ctx, q, s.is.Account, s.is.Namespace, s.is.ID)
		if err == nil && (now == nil || now.Status != Running) {
			err = job.ErrStopped
		}

		return err
	})
}

// locate finds the namespace, which may have been renamed, and checks that the caller may still edit it.
func (s *session) locate(ctx context.Context) error {
	paths, err := s.Catalog.Paths(ctx, s.is.caller, []auth.Target{{Kind: "namespace", Account: s.is.Account, ID: s.is.Namespace}})
	if err == nil && len(paths) == 0 {
		err = fault.Absent()
	}

	if err != nil {
		return err
	}

	s.at = paths[0]
	_, err = s.Verified.Editable(ctx, s.is.caller, s.at)

	return err
}

// prepare lists the questions, so that the benchmark has a total and asks nothing that is verified while it runs.
func (s *session) prepare(ctx context.Context) error {
	count := 0

	for after := uuid.Nil; ; {
		page, next, err := s.Verified.List(ctx, s.is.caller, s.at, verified.Active, after, pageSize)
		if err != nil {
			return err
		}

		var datasets []dataset

		for _, q := range page {
			_, _, found, err := s.state(ctx, q.Needs)
			if err != nil {
				return err
			}

			datasets = append(datasets, found...)
		}

		err = s.record(ctx, func(tx postgres.Tx) error {
			if err := insertResults(ctx, tx, s.is, page); err != nil {
				return err
			}

			return insertDatasets(ctx, tx, s.is, datasets)
		})
		if err != nil {
			return err
		}

		count += len(page)

		if after = next; after == uuid.Nil {
			break
		}
	}

	return s.lease.Record(ctx, func(tx postgres.Tx) (bool, error) { return setQuestions(ctx, tx, s.is, count) })
}

// record writes if the benchmark is still wanted.
func (s *session) record(ctx context.Context, do func(tx postgres.Tx) error) error {
	return s.lease.Record(ctx, func(tx postgres.Tx) (bool, error) {
		wanted, err := holdRunning(ctx, tx, s.is)
		if err != nil || !wanted {
			return wanted, err
		}

		return true, do(tx)
	})
}

// askAll asks the questions, a few at a time.
func (s *session) askAll(ctx context.Context) error {
	for after := uuid.Max; ; {
		var open []Result

		err := s.DB.Do(ctx, func(q postgres.Querier) (err error) {
			open, err = selectOpen(ctx, q, s.is, after, atOnce)

			return err
		})
		if err != nil || len(open) == 0 {
			return err
		}

		after = open[len(open)-1].Question

		if err := s.askSome(ctx, open); err != nil {
			return err
		}
	}
}

// askSome asks some questions and waits for their answers.
func (s *session) askSome(ctx context.Context, open []Result) (err error) {
	defer func() {
		if errors.Is(err, job.ErrStopped) || fault.Is(err, fault.Forbidden) { // nobody waits for the answers
			for _, one := range open {
				if one.Run != uuid.Nil {
					_, _ = s.Runs.Cancel(ctx, s.is.caller, one.Run) // it may have ended
				}
			}
		}
	}()

	questions := make([]*verified.Question, len(open))

	for i := range open {
		if err := s.check(ctx); err != nil {
			return err
		}

		if questions[i], err = s.ask(ctx, &open[i]); err != nil {
			return err
		}
	}

	for i := range open {
		if err := s.finish(ctx, open[i], questions[i]); err != nil {
			return err
		}
	}

	return nil
}

// ask asks one question, unless it was asked before. It returns nil for a question that can no longer be asked.
func (s *session) ask(ctx context.Context, open *Result) (*verified.Question, error) {
	found, err := s.Verified.Get(ctx, s.is.caller, s.at, open.Question)

	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil //nolint:nilnil // it can no longer be asked
	case err != nil:
		return nil, err
	case found.Status != verified.Active, open.Run != uuid.Nil && found.Revision != open.Revision:
		return nil, nil //nolint:nilnil // likewise
	case open.Run != uuid.Nil:
		return &found, nil
	}

	open.Revision, open.Text = found.Revision, found.Asked()
	if open.data, open.meaning, _, err = s.state(ctx, found.Needs); err != nil {
		return nil, err
	}

	made, err := s.askWhenRoom(ctx, *open)
	if err != nil {
		return nil, err
	}

	open.Run = made.ID

	return &found, s.record(ctx, func(tx postgres.Tx) error {
		if made.Conversation != s.is.conversation {
			s.is.conversation = made.Conversation
			if err := setConversation(ctx, tx, s.is); err != nil {
				return err
			}
		}

		return beginResult(ctx, tx, s.is, *open)
	})
}

// longestWait tells a limit on what runs at once from a limit of the day, for which a benchmark does not wait.
const longestWait = time.Minute

// askWhenRoom asks a question. If the caller has too many runs in progress, it waits for one of them to end.
func (s *session) askWhenRoom(ctx context.Context, open Result) (run.Run, error) {
	want := run.Ask{
		Agent: agentName, Conversation: s.is.conversation, Title: "Benchmark of " + s.at.Username + "/" + s.at.Namespace,
		Question: agent.Question{
			Username: s.at.Username, Namespace: s.at.Namespace, Text: open.Text, By: s.is.Mode, Model: s.is.Model, Provider: s.is.Provider,
		},
		// A worker that dies after asking leaves the run under this key for the next one.
		Once: auth.Once{Key: s.is.ID.String() + "/" + open.Question.String(), Operation: "benchmark"},
	}

	for {
		made, err := s.Runs.Ask(ctx, s.is.caller, want)

		switch {
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound) && want.Conversation != uuid.Nil:
			if want.Conversation == uuid.Nil {
				return made, err
			}

			want.Conversation = uuid.Nil // the conversation is full, or was deleted

			continue
		case !fault.Is(err, fault.RateLimited) || fault.From(err).RetryAfter > longestWait:
			return made, err
		}

		select {
		case <-ctx.Done():
			return made, ctx.Err()
		case <-time.After(checkEvery):
		}

		if err := s.check(ctx); err != nil {
			return made, err
		}
	}
}

// finish waits for the answer to a question and records what became of it.
func (s *session) finish(ctx context.Context, open Result, of *verified.Question) error {
	if of == nil {
		open.Outcome, open.Detail = FailedToTell, "The verified question was changed, suspended or retired while the benchmark was running."
	} else {
		if err := s.await(ctx, open.Run); err != nil {
			return err
		}

		if err := s.judge(ctx, &open, *of); err != nil {
			return err
		}
	}

	return s.record(ctx, func(tx postgres.Tx) error {
		before, err := selectOutcome(ctx, tx, s.is.Account, s.is.Previous, open.Question)
		if err != nil {
			return err
		}

		return finishResult(ctx, tx, s.is, open, changeOf(before, open.Outcome))
	})
}

// await waits until the run ends, and checks meanwhile whether the benchmark is still wanted.
func (s *session) await(ctx context.Context, id uuid.UUID) error {
	for {
		within, stop := context.WithTimeout(ctx, checkEvery)
		err := s.Runs.Await(within, s.is.caller, id)
		late := within.Err() != nil

		stop()

		switch {
		case err == nil, fault.Is(err, fault.NotFound): // the caller deleted the run; judge tells it
			return nil
		case ctx.Err() != nil || !late && !fault.Is(err, fault.Unauthorized):
			return err
		}

		if err := s.check(ctx); err != nil {
			return err
		}
	}
}

// dataset is a dataset that a question needs, with the revisions of what people said about it.
type dataset struct {
	account, namespace, id uuid.UUID
	definition, semantics  int64
}

// state returns hashes of the snapshots of datasets and of what people said about them.
func (s *session) state(ctx context.Context, needs []query.Need) (data, meaning string, list []dataset, err error) {
	snapshots := map[uuid.UUID]uuid.UUID{}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		for _, need := range needs {
			ids := []uuid.UUID{need.ID}

			seen, err := s.Catalog.Seen(ctx, q, s.is.caller, need.Account, ids)
			if err != nil {
				return err
			}

			for _, item := range seen {
				snapshots[item.ID] = item.SnapshotID
			}

			one, err := revisions(ctx, q, s.Catalog, dataset{account: need.Account, namespace: need.Namespace, id: need.ID})
			if err != nil {
				return err
			}

			list = append(list, one)
		}

		return nil
	})

	lines := make([]string, len(list))
	for i, d := range list {
		lines[i] = fmt.Sprint(d.id, d.definition, d.semantics)
	}

	return dataOf(snapshots), digest(lines), list, err
}

// revisions returns the dataset with the current revisions.
func revisions(ctx context.Context, q postgres.Querier, of catalog.Catalog, d dataset) (dataset, error) {
	definitions, err := of.Definitions(ctx, q, d.account, []uuid.UUID{d.id})
	if err != nil {
		return d, err
	}

	semantics, err := of.Semantics(ctx, q, d.account, []uuid.UUID{d.id})
	d.definition, d.semantics = definitions[d.id].Revision, semantics[d.id].Revision

	return d, err
}

func dataOf(snapshots map[uuid.UUID]uuid.UUID) string {
	lines := make([]string, 0, len(snapshots))
	for id, snapshot := range snapshots {
		lines = append(lines, fmt.Sprint(id, snapshot))
	}

	return digest(lines)
}

const digestBytes = 16

func digest(lines []string) string {
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))

	return hex.EncodeToString(sum[:digestBytes])
}
