package benchmark

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/run"
	"quern.dev/quern/internal/verified"
)

// Get returns a benchmark of which the caller may read all datasets. Better and Worse compare it with the benchmark other, or with the
// one before it if other is uuid.Nil.
//
// Faults: NotFound; ValidationFailed if there is no benchmark other.
func (b *Benchmarks) Get(ctx context.Context, who auth.Principal, at catalog.Path, id, other uuid.UUID) (Benchmark, error) {
	found, err := b.own(ctx, who, at, id)
	if err != nil {
		return Benchmark{}, err
	}

	if other == uuid.Nil || other == found.Previous {
		return found, nil
	}

	if _, err := b.own(ctx, who, at, other); err != nil {
		return Benchmark{}, orOther(err)
	}

	var before, now map[uuid.UUID]Outcome

	err = b.DB.Do(ctx, func(q postgres.Querier) (err error) {
		if before, err = selectOutcomes(ctx, q, found.Account, other); err == nil {
			now, err = selectOutcomes(ctx, q, found.Account, found.ID)
		}

		return err
	})

	found.Previous, found.Better, found.Worse = other, 0, 0

	for question, outcome := range now {
		switch changeOf(before[question], outcome) {
		case Better:
			found.Better++
		case Worse:
			found.Worse++
		default:
		}
	}

	return found, err
}

// orOther returns the fault for a benchmark to compare with that does not exist.
func orOther(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Invalid("compare", "is not a benchmark of this namespace that you can see")
	}

	return err
}

// own returns a benchmark that the caller may see.
func (b *Benchmarks) own(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (found Benchmark, err error) {
	err = b.DB.Do(ctx, func(q postgres.Querier) error {
		namespace, err := b.Catalog.Visible(ctx, q, who, at)
		if err != nil {
			return err
		}

		one, err := selectBenchmark(ctx, q, namespace.Account, namespace.ID, id)
		if err != nil {
			return err
		}

		if one == nil {
			return fault.Absent()
		}

		seen, err := b.visible(ctx, q, who, namespace, []Benchmark{*one})
		if err == nil && len(seen) == 0 {
			err = fault.Absent()
		}

		if err == nil {
			found, err = b.aged(ctx, q, *one)
		}

		return err
	})
	if err != nil {
		return Benchmark{}, err
	}

	return b.withNewQuestions(ctx, who, at, found)
}

// maxPassed is how many benchmarks a page passes over at most that the caller may not see.
const maxPassed = 500

// List lists the benchmarks of which the caller may read all datasets, newest first. A page can be shorter than the limit although more
// pages follow.
//
// Faults: NotFound.
func (b *Benchmarks) List(ctx context.Context, who auth.Principal, at catalog.Path, after uuid.UUID, limit int) (page []Benchmark, next uuid.UUID, err error) {
	if after == uuid.Nil {
		after = uuid.Max
	}

	for passed := 0; passed < maxPassed && len(page) < limit; {
		var list, seen []Benchmark

		err := b.DB.Do(ctx, func(q postgres.Querier) error {
			namespace, err := b.Catalog.Visible(ctx, q, who, at)
			if err != nil {
				return err
			}

			if list, err = selectBenchmarks(ctx, q, namespace.Account, namespace.ID, after, limit-len(page)+1); err != nil {
				return err
			}

			seen, err = b.visible(ctx, q, who, namespace, list[:min(len(list), limit-len(page))])
			for i := 0; i < len(seen) && err == nil; i++ {
				seen[i], err = b.aged(ctx, q, seen[i])
			}

			return err
		})
		if err != nil {
			return nil, uuid.Nil, err
		}

		looked := min(len(list), limit-len(page))
		page, passed = append(page, seen...), passed+looked-len(seen)

		if len(list) == looked {
			after = uuid.Nil

			break
		}

		after = list[looked-1].ID
	}

	for i := range page {
		if page[i], err = b.withNewQuestions(ctx, who, at, page[i]); err != nil {
			return nil, uuid.Nil, err
		}
	}

	return page, after, nil
}

// visible returns those benchmarks of which the caller may read all datasets. Who may edit the namespace also sees those with datasets of
// the namespace that were deleted.
func (b *Benchmarks) visible(ctx context.Context, q postgres.Querier, who auth.Principal, namespace catalog.Namespace, list []Benchmark) (seen []Benchmark, err error) {
	needed, err := selectDatasets(ctx, q, namespace.Account, list)
	if err != nil {
		return nil, err
	}

	ids := map[uuid.UUID][]uuid.UUID{} // by account

	for _, datasets := range needed {
		for _, d := range datasets {
			if !slices.Contains(ids[d.account], d.id) {
				ids[d.account] = append(ids[d.account], d.id)
			}
		}
	}

	readable := map[uuid.UUID]bool{}

	for account, wanted := range ids {
		items, err := b.Catalog.Seen(ctx, q, who, account, wanted)
		if err != nil {
			return nil, err
		}

		for _, item := range items {
			readable[item.ID] = true
		}
	}

	mayEdit := verified.MayEdit(who, namespace)

	for _, one := range list {
		hidden := slices.ContainsFunc(needed[one.ID], func(d dataset) bool { return !readable[d.id] && (d.namespace != namespace.ID || !mayEdit) })
		if !hidden {
			seen = append(seen, one)
		}
	}

	return seen, nil
}

// isLast reports whether a benchmark is the last completed one of its mode. Only that one can be outdated: the others are history.
func (b *Benchmarks) isLast(ctx context.Context, q postgres.Querier, of Benchmark) (bool, error) {
	if of.Status != Completed {
		return false, nil
	}

	last, err := selectLast(ctx, q, of)

	return last == of.ID, err
}

// aged tells what has changed since a benchmark so that its results may no longer hold. Other rows are not told: they change all the
// time, and a benchmark compares answers on the same rows.
func (b *Benchmarks) aged(ctx context.Context, q postgres.Querier, of Benchmark) (Benchmark, error) {
	isLast, err := b.isLast(ctx, q, of)
	if err != nil || !isLast {
		return of, err
	}

	of.Outdated = []Cause{}

	if asked := (run.Model{Name: of.Model, Provider: of.Provider}); of.Mode == Model && b.usual() != asked {
		of.Outdated = append(of.Outdated, CauseModel)
	}

	if of.Release != b.Release {
		of.Outdated = append(of.Outdated, CauseRelease)
	}

	changed, err := hasOtherRevisions(ctx, q, of)
	if err != nil {
		return of, err
	}

	if changed {
		of.Outdated = append(of.Outdated, CauseQuestion)
	}

	datasets, err := selectDatasets(ctx, q, of.Account, []Benchmark{of})
	if err != nil {
		return of, err
	}

	for _, d := range datasets[of.ID] {
		now, err := revisions(ctx, q, b.Catalog, d)
		if err != nil {
			return of, err
		}

		if now != d {
			of.Outdated = append(of.Outdated, CauseDefinition)

			break
		}
	}

	return of, nil
}

// usual returns the default model.
func (b *Benchmarks) usual() run.Model {
	if len(b.Runs.Models) == 0 {
		return run.Model{}
	}

	return run.Model{Name: b.Runs.Models[0].Name, Provider: b.Runs.Models[0].Provider}
}

// withNewQuestions tells whether the caller sees a verified question that is newer than the last benchmark.
func (b *Benchmarks) withNewQuestions(ctx context.Context, who auth.Principal, at catalog.Path, of Benchmark) (Benchmark, error) {
	if of.Outdated == nil || slices.Contains(of.Outdated, CauseQuestion) {
		return of, nil
	}

	newest, _, err := b.Verified.List(ctx, who, at, verified.Active, uuid.Nil, 1)
	if err == nil && len(newest) > 0 && newest[0].CreatedAt.After(of.CreatedAt) {
		of.Outdated = append(of.Outdated, CauseQuestion)
	}

	return of, err
}

// Results lists the results of a benchmark beside those of the benchmark other, or of the one before it if other is uuid.Nil, the newest
// question first.
//
// Faults: NotFound; ValidationFailed if there is no benchmark other.
func (b *Benchmarks) Results(ctx context.Context, who auth.Principal, at catalog.Path, id, other, after uuid.UUID, limit int) (page []Compared, next uuid.UUID, err error) {
	found, err := b.own(ctx, who, at, id)
	if err != nil {
		return nil, uuid.Nil, err
	}

	var against *Benchmark

	if other != uuid.Nil {
		one, err := b.own(ctx, who, at, other)
		if err != nil {
			return nil, uuid.Nil, orOther(err)
		}

		against = &one
	}

	if after == uuid.Nil {
		after = uuid.Max
	}

	err = b.DB.Do(ctx, func(q postgres.Querier) error {
		if against == nil && found.Previous != uuid.Nil {
			if against, err = selectBenchmark(ctx, q, found.Account, found.Namespace, found.Previous); err != nil {
				return err
			}
		}

		list, err := selectResults(ctx, q, found.Account, found.ID, after, limit+1)
		if err != nil {
			return err
		}

		if len(list) > limit {
			list, next = list[:limit], list[limit-1].Question
		}

		before := map[uuid.UUID]*Result{}
		if against != nil {
			if before, err = selectSame(ctx, q, found.Account, against.ID, list); err != nil {
				return err
			}
		}

		for _, one := range list {
			if who.Account != found.authorID {
				one.Run = uuid.Nil // only who asked sees a run
			}

			page = append(page, compareResults(one, found, before[one.Question], against))
		}

		return nil
	})

	return page, next, err
}
