package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

const (
	smallCatalog = 1000
	sizeRounds   = 9
	sizeLimit    = 25 // of a page

	// sizeTolerated is what a large catalog may cost more, whatever the ratio: beneath it the ratio of two
	// short times says little.
	sizeTolerated = 300 * time.Microsecond
)

// page is a request and something that its answer must contain, so that it is the page that we mean.
type page struct{ path, contains string }

type operation struct {
	name  string
	user  string
	pages func(c *catalog) []page
}

// operations do the same in catalogs of all sizes. In the middle they go from place to place, so that not
// only what one page needs is in the caches.
func operations() []operation {
	return []operation{
		{"definition", "bob", func(c *catalog) []page {
			return middle(c.size/2, func(i int) page {
				return page{fmt.Sprintf("/data/ada/warehouse/dataset-%d/inferDefinition", i), fmt.Sprintf("What dataset %d holds", i)}
			})
		}},

		{"own-first", "ada", first("/schema/ada/warehouse/datasets?limit=%d")},
		{"own-middle", "ada", inNamespace("ada", "warehouse", 2)},
		{"shared-first", "bob", first("/schema/ada/warehouse/datasets?limit=%d")},
		{"shared-middle", "bob", inNamespace("ada", "warehouse", 2)},
		{"granted-first", "eve", first("/schema/bob/reports/datasets?limit=%d")}, // by grants on each dataset
		{"granted-middle", "eve", inNamespace("bob", "reports", 4)},

		{"all-first", "bob", first("/schema/datasets/all?limit=%d")},
		{"all-own", "bob", inAll(func(c *catalog, i int) string {
			return allCursor(0, c.accounts["bob"], seededID("bob", -1), seededID("bob", i))
		}, 4)},
		{"all-granted", "bob", inAll(func(_ *catalog, i int) string {
			return allCursor(1, seededID("account", i/each), seededID("namespace", i/each), seededID("other", i))
		}, 4)},
		{"all-shared", "bob", inAll(func(c *catalog, i int) string {
			return allCursor(1, c.accounts["ada"], seededID("ada", -1), seededID("ada", i))
		}, 2)},

		{"audit-first", "ada", func(c *catalog) []page {
			return []page{{fmt.Sprintf("/audit?limit=%d", sizeLimit), fmt.Sprintf(`"entry-%d"`, c.size-1)}}
		}},
		{"audit-middle", "ada", func(c *catalog) []page {
			return middle(c.size, func(i int) page {
				return page{fmt.Sprintf("/audit?limit=%d&cursor=%s", sizeLimit, c.auditCursor(i)), fmt.Sprintf(`"entry-%d"`, i-1)}
			})
		}},
	}
}

func first(path string) func(*catalog) []page {
	return func(*catalog) []page { return []page{{fmt.Sprintf(path, sizeLimit), `"dataset-0"`}} }
}

// inNamespace is pages of a namespace that has one share of all datasets.
func inNamespace(user, namespace string, share int) func(*catalog) []page {
	return func(c *catalog) []page {
		return middle(c.size/share, func(i int) page {
			return page{
				fmt.Sprintf("/schema/%s/%s/datasets?limit=%d&cursor=%s", user, namespace, sizeLimit, namespaceCursor(seededID(user, i))),
				fmt.Sprintf(`"dataset-%d"`, i+1),
			}
		})
	}
}

// inAll is pages of a stretch of everything that has one share of all datasets.
func inAll(cursor func(c *catalog, i int) string, share int) func(*catalog) []page {
	return func(c *catalog) []page {
		return middle(c.size/share, func(i int) page {
			return page{fmt.Sprintf("/schema/datasets/all?limit=%d&cursor=%s", sizeLimit, cursor(c, i)), fmt.Sprintf(`"dataset-%d"`, i+1)}
		})
	}
}

// middle is places in the middle fifth of a list.
func middle(length int, at func(i int) page) []page {
	const places = 32

	pages := make([]page, places)
	for i := range pages {
		pages[i] = at(length*2/5 + i*length/(5*places))
	}

	return pages
}

// runSize measures how long single requests take in a large catalog, beside a small one: nothing may
// depend on how much there is.
func runSize(ctx context.Context, b *bench) ([]result, error) {
	small, stop, err := b.startCatalog(ctx, smallCatalog)
	if err != nil {
		return nil, err
	}
	defer stop()

	large, stop, err := b.startCatalog(ctx, b.large)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []result

	for _, o := range operations() {
		name := "size-" + o.name
		fmt.Fprintln(os.Stderr, name)

		ours, err := o.side(ctx, "large", large, b.round/10)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		bare, err := o.side(ctx, "small", small, b.round/10)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		largeTook, smallTook, err := alternate(ctx, sizeRounds, ours, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, result{
			name: name, ours: milliseconds(largeTook), bare: milliseconds(smallTook), ratio: smallTook / largeTook,
			enough: largeTook-smallTook <= float64(sizeTolerated),
		})
	}

	return results, nil
}

// side asks for the pages one after the other. Its figure is the median of the times in nanoseconds.
func (o operation) side(ctx context.Context, name string, c *catalog, lasting time.Duration) (side, error) {
	loop := closedLoop{connections: 1}

	for _, p := range o.pages(c) {
		request, err := c.request(ctx, o.user, http.MethodGet, p.path, nil)
		if err != nil {
			return side{}, err
		}

		want, err := get(request)
		if err != nil {
			return side{}, err
		}

		if !bytes.Contains(want, []byte(p.contains)) {
			return side{}, fmt.Errorf("%s has no %s: %s", p.path, p.contains, want)
		}

		loop.exchanges = append(loop.exchanges, exchange{request, want})
	}

	return side{name, func(ctx context.Context) (float64, string, error) {
		done, err := loop.run(ctx, lasting)
		if err != nil {
			return 0, "", err
		}

		return float64(done.quantile(0.5)), done.String(), nil
	}}, nil
}

func milliseconds(nanoseconds float64) string {
	return fmt.Sprintf("%.2fms", nanoseconds/float64(time.Millisecond))
}
