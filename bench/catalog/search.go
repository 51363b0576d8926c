package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

// searchGoal is the limit for the median time of any search.
const searchGoal = 30 * time.Millisecond

// searches use different datasets, so that the caches do not only contain what one search needs.
func searches() []operation {
	found := func(user, words string, share int) operation {
		return operation{user: user, pages: func(c *Catalog) []page {
			return middle(c.size/share, func(i int) page {
				return page{fmt.Sprintf("/schema/datasets/all?limit=%d&q="+words, sizeLimit, i), fmt.Sprintf(`"dataset-%d"`, i)}
			})
		}}
	}

	one, typing, frequent, granted := found("ada", "dataset+%d", 2), found("bob", "dattaset+%d", 4), found("ada", "region+of+order+%d", 2), found("eve", "%d+holds", 40)
	one.name, typing.name, frequent.name, granted.name = "one", "typing", "frequent", "granted"

	return []operation{one, typing, frequent, granted}
}

// Search measures searches beside the first page of the same list without words. Every dataset of the catalog
// contains most of the words; only the number distinguishes them.
func Search(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	c, stop, err := StartSearched(ctx, b, b.Searched)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []rig.Result

	for _, o := range searches() {
		name := "search-" + o.name
		fmt.Fprintln(os.Stderr, name)

		ours, err := o.side(ctx, "with words", c, b.Round/5)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		list := operation{user: o.user, pages: first("/schema/datasets/all?limit=%d")}

		bare, err := list.side(ctx, "without", c, b.Round/5)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		searching, listing, err := rig.Alternate(ctx, sizeRounds, ours, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, rig.Result{
			Name: name, Ours: rig.Milliseconds(searching), Bare: rig.Milliseconds(listing), Ratio: listing / searching, Enough: searching <= float64(searchGoal),
		})
	}

	return results, nil
}

// StartSearched starts a service with a catalog whose search index the service has built.
func StartSearched(ctx context.Context, b *rig.Bench, size int, settings ...string) (*Catalog, func(), error) {
	c, stop, err := startCatalog(ctx, b, size, settings...)
	if err != nil {
		return nil, nil, err
	}

	if err := c.index(ctx); err != nil {
		stop()

		return nil, nil, fmt.Errorf("indexing: %w", err)
	}

	return c, stop, nil
}

// index marks every dataset as stale, and waits until the service has indexed all of them and all grants.
func (c *Catalog) index(ctx context.Context) error {
	for _, statement := range []string{
		`ALTER TABLE directory_grants ENABLE TRIGGER USER`,
		`INSERT INTO dataset_search (account_id, dataset_id) SELECT account_id, id FROM datasets ON CONFLICT DO NOTHING`,
		// The job would begin within a minute.
		`INSERT INTO river_job (kind, queue, max_attempts, args, state) SELECT kind, queue, 3, '{}', 'available'
			FROM river_job WHERE kind = 'catalog.index' LIMIT 1`,
	} {
		if err := stack.Execute(ctx, c.Database, statement); err != nil {
			return err
		}
	}

	connection, err := pgx.Connect(ctx, c.Database)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)

	begin := time.Now()

	for left := 1; left > 0; time.Sleep(time.Second) {
		if err := connection.QueryRow(ctx, `SELECT (SELECT count(*) FROM dataset_search WHERE stale)
			+ (SELECT count(*) FROM directory_grants WHERE indexed IS NULL AND dataset_id <> '00000000-0000-0000-0000-000000000000')`).Scan(&left); err != nil {
			return err
		}

		if time.Since(begin) > rig.Longest/2 {
			return errors.New("it does not end")
		}
	}

	fmt.Fprintf(os.Stderr, "%d datasets can be searched after %v\n", c.size, time.Since(begin).Round(time.Second))

	return stack.Execute(ctx, c.Database, `VACUUM (ANALYZE)`)
}
