package catalog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"quern.dev/quern/bench/rig"
)

const (
	smallCatalog = 1000
	sizeRounds   = 9
	sizeLimit    = 25 // entries per page

	// sizeTolerated is the additional time that a large catalog may cost, whatever the ratio: for such short times the
	// ratio says little.
	sizeTolerated = 300 * time.Microsecond
)

// page is a request and a text that its response must contain, to verify that it is the intended page.
type page struct{ path, contains string }

type operation struct {
	name  string
	user  string
	pages func(c *Catalog) []page
}

// operations are the same in catalogs of all sizes. In the middle of a list they use different positions, so that the
// caches do not only contain what one page needs.
func operations() []operation {
	return []operation{
		{"definition", "bob", func(c *Catalog) []page {
			return middle(c.size/2, func(i int) page {
				return page{fmt.Sprintf("/data/ada/warehouse/dataset-%d/inferDefinition", i), fmt.Sprintf("What dataset %d holds", i)}
			})
		}},

		{"own-first", "ada", first("/schema/ada/warehouse/datasets?limit=%d")},
		{"own-middle", "ada", inNamespace("ada", "warehouse", 2)},
		{"shared-first", "bob", first("/schema/ada/warehouse/datasets?limit=%d")},
		{"shared-middle", "bob", inNamespace("ada", "warehouse", 2)},
		{"granted-first", "eve", first("/schema/bob/reports/datasets?limit=%d")}, // by a grant on each dataset
		{"granted-middle", "eve", inNamespace("bob", "reports", 4)},

		{"all-first", "bob", first("/schema/datasets/all?limit=%d")},
		{"all-own", "bob", inAll(func(c *Catalog, i int) string {
			return allCursor(0, c.Accounts["bob"], seededID("bob", -1), seededID("bob", i))
		}, 4)},
		{"all-granted", "bob", inAll(func(_ *Catalog, i int) string {
			return allCursor(1, seededID("account", i/each), seededID("namespace", i/each), seededID("other", i))
		}, 4)},
		{"all-shared", "bob", inAll(func(c *Catalog, i int) string {
			return allCursor(1, c.Accounts["ada"], seededID("ada", -1), seededID("ada", i))
		}, 2)},

		{"audit-first", "ada", func(c *Catalog) []page {
			return []page{{fmt.Sprintf("/audit?limit=%d", sizeLimit), fmt.Sprintf(`"entry-%d"`, c.size-1)}}
		}},
		{"audit-middle", "ada", func(c *Catalog) []page {
			return middle(c.size, func(i int) page {
				return page{fmt.Sprintf("/audit?limit=%d&cursor=%s", sizeLimit, c.auditCursor(i)), fmt.Sprintf(`"entry-%d"`, i-1)}
			})
		}},
	}
}

func first(path string) func(*Catalog) []page {
	return func(*Catalog) []page { return []page{{fmt.Sprintf(path, sizeLimit), `"dataset-0"`}} }
}

// inNamespace returns pages of a namespace that contains 1/share of all datasets.
func inNamespace(user, namespace string, share int) func(*Catalog) []page {
	return func(c *Catalog) []page {
		return middle(c.size/share, func(i int) page {
			return page{
				fmt.Sprintf("/schema/%s/%s/datasets?limit=%d&cursor=%s", user, namespace, sizeLimit, namespaceCursor(seededID(user, i))),
				fmt.Sprintf(`"dataset-%d"`, i+1),
			}
		})
	}
}

// inAll returns pages of a part of the list of all datasets that contains 1/share of them.
func inAll(cursor func(c *Catalog, i int) string, share int) func(*Catalog) []page {
	return func(c *Catalog) []page {
		return middle(c.size/share, func(i int) page {
			return page{fmt.Sprintf("/schema/datasets/all?limit=%d&cursor=%s", sizeLimit, cursor(c, i)), fmt.Sprintf(`"dataset-%d"`, i+1)}
		})
	}
}

// middle returns pages at positions in the middle fifth of a list.
func middle(length int, at func(i int) page) []page {
	const places = 32

	pages := make([]page, places)
	for i := range pages {
		pages[i] = at(length*2/5 + i*length/(5*places))
	}

	return pages
}

// Size measures how long single requests take in a large catalog, beside a small one: no request may depend on the
// size of the catalog.
func Size(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	small, stop, err := startCatalog(ctx, b, smallCatalog)
	if err != nil {
		return nil, err
	}
	defer stop()

	large, stop, err := startCatalog(ctx, b, b.Large)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []rig.Result

	for _, o := range operations() {
		name := "size-" + o.name
		fmt.Fprintln(os.Stderr, name)

		ours, err := o.side(ctx, "large", large, b.Round/10)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		bare, err := o.side(ctx, "small", small, b.Round/10)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		largeTook, smallTook, err := rig.Alternate(ctx, sizeRounds, ours, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, rig.Result{
			Name: name, Ours: rig.Milliseconds(largeTook), Bare: rig.Milliseconds(smallTook), Ratio: smallTook / largeTook,
			Enough: largeTook-smallTook <= float64(sizeTolerated),
		})
	}

	return results, nil
}

// side requests the pages one after the other. Its figure is the median of the times, in nanoseconds.
func (o operation) side(ctx context.Context, name string, c *Catalog, lasting time.Duration) (rig.Side, error) {
	loop := rig.ClosedLoop{Connections: 1}

	for _, p := range o.pages(c) {
		request, err := c.at(ctx, o.user, p.path)
		if err != nil {
			return rig.Side{}, err
		}

		want, err := rig.Get(request)
		if err != nil {
			return rig.Side{}, err
		}

		if !bytes.Contains(want, []byte(p.contains)) {
			return rig.Side{}, fmt.Errorf("%s has no %s: %s", p.path, p.contains, want)
		}

		loop.Exchanges = append(loop.Exchanges, rig.Exchange{Request: request, Want: want})
	}

	return rig.Side{Name: name, Round: func(ctx context.Context) (float64, string, error) {
		done, err := loop.Run(ctx, lasting)
		if err != nil {
			return 0, "", err
		}

		return float64(done.Quantile(0.5)), done.String(), nil
	}}, nil
}
