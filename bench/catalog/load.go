package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

const (
	loadRate = 300 // requests per second
	loadGoal = 150 * time.Millisecond
)

// Load measures how long requests of many kinds take at a constant rate in a large catalog: 99 of 100 must be faster
// than the goal. The bare twin of read at the same rate shows what the machine can do.
func Load(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	c, stop, err := startCatalog(ctx, b, b.Large)
	if err != nil {
		return nil, err
	}
	defer stop()

	request, err := c.Request(ctx, "ada", http.MethodGet, "/user/me", nil)
	if err != nil {
		return nil, err
	}

	want, err := rig.Get(request)
	if err != nil {
		return nil, err
	}

	twin, bareRequest, err := startReadTwin(ctx, b, c.Database, want)
	if err != nil {
		return nil, err
	}
	defer twin.Stop()

	bare, err := rig.OpenLoop{PerSecond: loadRate, Next: func(int) (*http.Request, error) { return bareRequest.Clone(ctx), nil }}.Run(ctx, b.Steady)
	if err != nil {
		return nil, fmt.Errorf("bare: %w", err)
	}

	fmt.Fprintln(os.Stderr, "load: bare", bare)

	ours, err := rig.OpenLoop{PerSecond: loadRate, Next: c.traffic(ctx)}.Run(ctx, b.Steady)
	if err != nil {
		return nil, err
	}

	fmt.Fprintln(os.Stderr, "load: ours", ours)

	p99 := ours.Quantile(0.99)

	return []rig.Result{{
		Name: "load", Ours: rig.Milliseconds(float64(p99)), Bare: loadGoal.String(), Ratio: float64(loadGoal) / float64(p99), Enough: p99 < loadGoal,
	}}, nil
}

// traffic returns the requests of people and programs on a catalog: mostly reads that depend on a grant, and in every
// hundred requests one that shares a dataset and one that revokes such a grant.
func (c *Catalog) traffic(ctx context.Context) func(i int) (*http.Request, error) {
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run

	return func(i int) (*http.Request, error) {
		var (
			ofAda   = random.IntN(c.size/2 - sizeLimit)
			ofOther = random.IntN(c.size/4 - sizeLimit)
			turn    = i / 100
		)

		switch kind := i % 100; {
		case kind == 0:
			return c.Request(ctx, "ada", http.MethodPost, sharesPath(turn), api.NewShare{Username: "eve", Role: api.ShareRoleViewer})
		case kind == 50 && turn > 3: // the grant of a second before
			return c.Request(ctx, "ada", http.MethodDelete, sharesPath(turn-3), api.ShareRevocation{Username: "eve"})
		case kind%10 < 3: // by a grant on the namespace
			return c.Request(ctx, "bob", http.MethodGet, fmt.Sprintf("/data/ada/warehouse/dataset-%d/inferDefinition", ofAda), nil)
		case kind%10 < 5: // by a grant on the dataset
			return c.Request(ctx, "bob", http.MethodGet, fmt.Sprintf("/data/other-%d/data/dataset-%d/inferDefinition", ofOther/each, ofOther), nil)
		case kind%10 == 5:
			return c.at(ctx, "bob", "/schema/ada/warehouse/datasets?cursor="+namespaceCursor(seededID("ada", ofAda)))
		case kind%10 == 6:
			return c.at(ctx, "eve", "/schema/bob/reports/datasets?cursor="+namespaceCursor(seededID("bob", ofOther)))
		case kind%10 == 7:
			cursor := allCursor(1, seededID("account", ofOther/each), seededID("namespace", ofOther/each), seededID("other", ofOther))

			return c.at(ctx, "bob", "/schema/datasets/all?cursor="+cursor)
		case kind%10 == 8:
			return c.Request(ctx, "ada", http.MethodGet, sharesPath(ofAda), nil)
		default:
			return c.Request(ctx, "eve", http.MethodGet, "/user/me", nil)
		}
	}
}

func sharesPath(dataset int) string {
	return fmt.Sprintf("/permissions/datasets/ada/warehouse/dataset-%d/shares", dataset)
}
