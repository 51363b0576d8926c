package query

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/values"
)

const (
	maxMatchedDatasets = 50  // datasets that are searched for one question
	maxMatches         = 100 // matches of all datasets together
	matchers           = 8   // datasets that are searched at the same time
	fewNamed           = 2   // up to this number, named datasets are looked up one by one

	maxSampled = 100 // columns in MatchResult.Sampled
)

// MatchRequest is a search for the values that the words of a question may mean.
type MatchRequest struct {
	Username  string
	Namespace string
	Datasets  []string          // of the namespace; all if empty
	Seen      []catalog.Dataset // instead of names: datasets of the namespace that the caller is known to see
	Question  string
}

// Match is a value of a dataset that words of the question may mean.
type Match struct {
	Dataset string
	values.Match
}

// Sampled is a column that has more values than its value index contains.
type Sampled struct{ Dataset, Column string }

// MatchResult is the result of a search, the best match first.
type MatchResult struct {
	Matches    []Match
	Incomplete []string  // datasets with rows whose value index does not exist yet or cannot be read
	Sampled    []Sampled // columns that have more values than their index contains
	Truncated  bool      // not all datasets were searched, because there are too many
}

// Match searches the value indexes of the datasets of a namespace for the words of a question. Rows that were added after
// an index was made are not in the index. An index that may contain values of removed rows is not used.
//
// Faults: NotFound if the caller may not see anything of the namespace, or may not see one of the named datasets.
func (q *Query) Match(ctx context.Context, who auth.Principal, want MatchRequest) (MatchResult, error) {
	datasets, truncated, err := q.matchable(ctx, who, want)
	if err != nil || len(datasets) == 0 {
		return MatchResult{Truncated: truncated}, err
	}

	var indexes map[uuid.UUID]lake.Object

	if err := q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		ids := make([]uuid.UUID, len(datasets))
		for i, d := range datasets {
			ids[i] = d.ID
		}

		indexes, err = q.Lake.Indexes(ctx, db, datasets[0].Account, ids)

		return err
	}); err != nil {
		return MatchResult{}, err
	}

	written := make(chan error, 1)

	go func() { written <- fault.Try(func() error { return q.auditMatch(ctx, who, datasets[0]) }) }()

	result := q.match(ctx, datasets, indexes, values.Ask(want.Question))
	result.Truncated = truncated

	return result, <-written
}

// matchable returns the datasets to search, all of one account.
func (q *Query) matchable(ctx context.Context, who auth.Principal, want MatchRequest) (datasets []catalog.Dataset, truncated bool, err error) {
	if len(want.Seen) > 0 {
		return want.Seen[:min(len(want.Seen), maxMatchedDatasets)], len(want.Seen) > maxMatchedDatasets, nil
	}

	at := catalog.Path{Username: want.Username, Namespace: want.Namespace}

	var first []catalog.Dataset

	if len(want.Datasets) == 0 || len(want.Datasets) > fewNamed {
		page, next, err := q.Catalog.Datasets(ctx, who, at, uuid.Nil, maxMatchedDatasets)
		if err != nil {
			return nil, false, err
		}

		for _, item := range page {
			first = append(first, item.Dataset)
		}

		if len(want.Datasets) == 0 {
			return first, next != uuid.Nil, nil
		}
	}

	err = q.DB.Do(ctx, func(db postgres.Querier) (err error) {
		datasets, err = q.named(ctx, db, who, at, want.Datasets[:min(len(want.Datasets), maxMatchedDatasets)], first)

		return err
	})

	return datasets, len(want.Datasets) > maxMatchedDatasets, err
}

// named returns the datasets with these names, without duplicates. Datasets in known need no access check of their own.
func (q *Query) named(ctx context.Context, db postgres.Querier, who auth.Principal, at catalog.Path, names []string, known []catalog.Dataset) (datasets []catalog.Dataset, err error) {
	for _, at.Dataset = range names {
		var one catalog.Dataset

		if i := slices.IndexFunc(known, func(d catalog.Dataset) bool { return d.Name == at.Dataset }); i >= 0 {
			one = known[i]
		} else if one, err = q.Catalog.Allow(ctx, db, who, auth.Viewer, at); err != nil {
			return nil, err
		}

		if !slices.ContainsFunc(datasets, func(other catalog.Dataset) bool { return other.ID == one.ID }) {
			datasets = append(datasets, one)
		}
	}

	return datasets, nil
}

// match searches the indexes, several at the same time.
func (q *Query) match(ctx context.Context, datasets []catalog.Dataset, indexes map[uuid.UUID]lake.Object, question *values.Question) (result MatchResult) {
	var (
		found   = make([][]values.Match, len(datasets))
		sampled = make([][]string, len(datasets))
		none    = make([]bool, len(datasets))
		next    atomic.Int64
		group   sync.WaitGroup
	)

	for range min(matchers, len(datasets)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(datasets)); i = next.Add(1) - 1 {
				object, ok := indexes[datasets[i].ID]
				if ok {
					err := fault.Try(func() (err error) {
						found[i], sampled[i], err = q.matchOne(ctx, object, question)

						return err
					})
					if ok = err == nil; !ok { // the other indexes are still useful
						q.Log.WarnContext(ctx, "a value index cannot be read", "object", object.Key, "error", err)
					}
				}

				none[i] = !ok && datasets[i].RowCount > 0
			}
		})
	}

	group.Wait()

	for i, d := range datasets {
		if none[i] {
			result.Incomplete = append(result.Incomplete, d.Name)
		}

		for _, m := range found[i] {
			result.Matches = append(result.Matches, Match{d.Name, m})
		}

		for _, column := range sampled[i] {
			result.Sampled = append(result.Sampled, Sampled{d.Name, column})
		}
	}

	result.Matches = likely(result.Matches)
	result.Sampled = result.Sampled[:min(len(result.Sampled), maxSampled)]

	return result
}

func (q *Query) matchOne(ctx context.Context, object lake.Object, question *values.Question) (found []values.Match, sampled []string, err error) {
	index, release, err := q.indexes.take(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	defer release()

	return index.Match(question), index.Sampled(), nil
}

// likely drops approximate matches for words that match a value exactly elsewhere, sorts the others, the best first, and
// keeps at most maxMatches.
func likely(matches []Match) []Match {
	all := make([]values.Match, len(matches))
	for i, m := range matches {
		all[i] = m.Match
	}

	matches = slices.DeleteFunc(matches, func(m Match) bool { return values.Overshadowed(m.Match, all) })
	slices.SortStableFunc(matches, func(a, b Match) int {
		if order := values.Compare(a.Match, b.Match); order != 0 {
			return order
		}

		return strings.Compare(a.Dataset, b.Dataset)
	})

	return matches[:min(len(matches), maxMatches)]
}

// auditMatch records in the audit that values of the namespace were read: one entry for all its datasets.
func (q *Query) auditMatch(ctx context.Context, who auth.Principal, one catalog.Dataset) error {
	return q.DB.InTx(ctx, func(tx postgres.Tx) error {
		return audit.WriteTx(ctx, tx, who.Audit(one.Account, q.Now(), "query.link", one.AuditNamespace()))
	})
}
