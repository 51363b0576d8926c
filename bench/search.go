package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/stack"
)

// searchGoal is for the median of any search.
const searchGoal = 30 * time.Millisecond

// searches go from dataset to dataset, so that not only what one of them needs is in the caches.
func searches() []operation {
	found := func(user, words string, share int) operation {
		return operation{user: user, pages: func(c *catalog) []page {
			return middle(c.size/share, func(i int) page {
				return page{fmt.Sprintf("/schema/datasets/all?limit=%d&q="+words, sizeLimit, i), fmt.Sprintf(`"dataset-%d"`, i)}
			})
		}}
	}

	one, typing, frequent, granted := found("ada", "dataset+%d", 2), found("bob", "dattaset+%d", 4), found("ada", "region+of+order+%d", 2), found("eve", "%d+holds", 40)
	one.name, typing.name, frequent.name, granted.name = "one", "typing", "frequent", "granted"

	return []operation{one, typing, frequent, granted}
}

// runSearch measures searches beside the first page of the same list without words. Every dataset of the catalog has
// most of the words: the number alone tells them apart.
func runSearch(ctx context.Context, b *bench) ([]result, error) {
	c, stop, err := b.startSearched(ctx, b.searched)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []result

	for _, o := range searches() {
		name := "search-" + o.name
		fmt.Fprintln(os.Stderr, name)

		ours, err := o.side(ctx, "with words", c, b.round/5)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		list := operation{user: o.user, pages: first("/schema/datasets/all?limit=%d")}

		bare, err := list.side(ctx, "without", c, b.round/5)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		searching, listing, err := alternate(ctx, sizeRounds, ours, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, result{
			name: name, ours: milliseconds(searching), bare: milliseconds(listing), ratio: listing / searching, enough: searching <= float64(searchGoal),
		})
	}

	return results, nil
}

// startSearched starts a service with a catalog in which the service has made all that is searched.
func (b *bench) startSearched(ctx context.Context, size int, settings ...string) (*catalog, func(), error) {
	c, stop, err := b.startCatalog(ctx, size, settings...)
	if err != nil {
		return nil, nil, err
	}

	if err := c.index(ctx); err != nil {
		stop()

		return nil, nil, fmt.Errorf("indexing: %w", err)
	}

	return c, stop, nil
}

// index marks every dataset, and waits until the service has seen to it.
func (c *catalog) index(ctx context.Context) error {
	if err := stack.Execute(ctx, c.database, `INSERT INTO dataset_search (account_id, dataset_id) SELECT account_id, id FROM datasets ON CONFLICT DO NOTHING`); err != nil {
		return err
	}

	connection, err := pgx.Connect(ctx, c.database)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)

	begin := time.Now()

	for left := 1; left > 0; time.Sleep(time.Second) {
		if err := connection.QueryRow(ctx, `SELECT count(*) FROM dataset_search WHERE stale`).Scan(&left); err != nil {
			return err
		}

		if time.Since(begin) > longest/2 {
			return errors.New("it does not end")
		}
	}

	fmt.Fprintf(os.Stderr, "%d datasets can be searched after %v\n", c.size, time.Since(begin).Round(time.Second))

	return stack.Execute(ctx, c.database, `VACUUM (ANALYZE)`)
}
