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
	maxLinked = 50  // datasets that a question is linked with
	maxLinks  = 100 // of all of them together
	linkers   = 8   // datasets at once
	fewNamed  = 2   // datasets that are asked for one by one

	maxSampled = 100 // columns that are named
)

// LinkRequest asks which values the words of a question may mean.
type LinkRequest struct {
	Username  string
	Namespace string
	Datasets  []string          // of the namespace; all if empty
	Seen      []catalog.Dataset // instead of names: those of it that the caller was just shown
	Question  string
}

// Link is a value of a dataset that words of the question may mean.
type Link struct {
	Dataset string
	values.Match
}

// Sampled is a column of a dataset that has more values than its index.
type Sampled struct{ Dataset, Column string }

// Linked is what was found, the best first.
type Linked struct {
	Links      []Link
	Incomplete []string  // datasets that have no index yet
	Sampled    []Sampled // columns that have more values than their index
	Truncated  bool      // the namespace has more datasets than were looked at
}

// Link finds the words of a question among the values of the datasets of a namespace, by their indexes. Rows that were
// added since an index was made are not in it; values that may be gone are not shown.
//
// Faults: NotFound if the caller may see nothing of the namespace, or not one of the datasets.
func (q *Query) Link(ctx context.Context, who auth.Principal, want LinkRequest) (Linked, error) {
	datasets, truncated, err := q.linkable(ctx, who, want)
	if err != nil || len(datasets) == 0 {
		return Linked{Truncated: truncated}, err
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
		return Linked{}, err
	}

	written := make(chan error, 1)

	go func() { written <- fault.Try(func() error { return q.auditLink(ctx, who, datasets[0]) }) }()

	linked := q.link(ctx, datasets, indexes, values.Ask(want.Question))
	linked.Truncated = truncated

	return linked, <-written
}

// linkable are the datasets that the question is linked with, all of one account.
func (q *Query) linkable(ctx context.Context, who auth.Principal, want LinkRequest) (datasets []catalog.Dataset, truncated bool, err error) {
	if len(want.Seen) > 0 {
		return want.Seen[:min(len(want.Seen), maxLinked)], len(want.Seen) > maxLinked, nil
	}

	at := catalog.Path{Username: want.Username, Namespace: want.Namespace}

	var first []catalog.Dataset

	if len(want.Datasets) == 0 || len(want.Datasets) > fewNamed {
		page, next, err := q.Catalog.Datasets(ctx, who, at, uuid.Nil, maxLinked)
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
		datasets, err = q.named(ctx, db, who, at, want.Datasets[:min(len(want.Datasets), maxLinked)], first)

		return err
	})

	return datasets, len(want.Datasets) > maxLinked, err
}

// named are the datasets of these names. Those that are known to be seen are not asked for one by one.
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

// link asks the indexes, several at once.
func (q *Query) link(ctx context.Context, datasets []catalog.Dataset, indexes map[uuid.UUID]lake.Object, question *values.Question) (linked Linked) {
	var (
		found   = make([][]values.Match, len(datasets))
		sampled = make([][]string, len(datasets))
		none    = make([]bool, len(datasets))
		next    atomic.Int64
		group   sync.WaitGroup
	)

	for range min(linkers, len(datasets)) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(datasets)); i = next.Add(1) - 1 {
				object, ok := indexes[datasets[i].ID]
				if ok {
					err := fault.Try(func() (err error) {
						found[i], sampled[i], err = q.linkOne(ctx, object, question)

						return err
					})
					if ok = err == nil; !ok { // the question is answered from the others
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
			linked.Incomplete = append(linked.Incomplete, d.Name)
		}

		for _, m := range found[i] {
			linked.Links = append(linked.Links, Link{d.Name, m})
		}

		for _, column := range sampled[i] {
			linked.Sampled = append(linked.Sampled, Sampled{d.Name, column})
		}
	}

	linked.Links = likely(linked.Links)
	linked.Sampled = linked.Sampled[:min(len(linked.Sampled), maxSampled)]

	return linked
}

func (q *Query) linkOne(ctx context.Context, object lake.Object, question *values.Question) (found []values.Match, sampled []string, err error) {
	index, release, err := q.indexes.take(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	defer release()

	return index.Link(question), index.Sampled(), nil
}

// likely leaves out guesses about words that are a value somewhere else: they were meant as they are written.
func likely(links []Link) []Link {
	all := make([]values.Match, len(links))
	for i, l := range links {
		all[i] = l.Match
	}

	links = slices.DeleteFunc(links, func(l Link) bool { return values.Overshadowed(l.Match, all) })
	slices.SortStableFunc(links, func(a, b Link) int {
		if order := values.Compare(a.Match, b.Match); order != 0 {
			return order
		}

		return strings.Compare(a.Dataset, b.Dataset)
	})

	return links[:min(len(links), maxLinks)]
}

// auditLink writes that values of the namespace were read, once for all its datasets.
func (q *Query) auditLink(ctx context.Context, who auth.Principal, one catalog.Dataset) error {
	return q.DB.InTx(ctx, func(tx postgres.Tx) error {
		return audit.WriteTx(ctx, tx, who.Audit(one.Account, q.Now(), "query.link", one.AuditNamespace()))
	})
}
