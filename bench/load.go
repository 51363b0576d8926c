package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"quern.dev/quern/api"
)

const (
	loadRate = 300 // requests a second
	loadGoal = 150 * time.Millisecond
)

// runLoad measures how long requests of many kinds take at a constant rate in a large catalog: 99 of 100
// must take less than the goal. The bare twin of read at the same rate shows what the machine gives.
func runLoad(ctx context.Context, b *bench) ([]result, error) {
	c, stop, err := b.startCatalog(ctx, b.large)
	if err != nil {
		return nil, err
	}
	defer stop()

	request, err := c.request(ctx, "ada", http.MethodGet, "/user/me", nil)
	if err != nil {
		return nil, err
	}

	want, err := get(request)
	if err != nil {
		return nil, err
	}

	twin, bareRequest, err := b.startReadTwin(ctx, c.database, want)
	if err != nil {
		return nil, err
	}
	defer twin.stop()

	bare, err := openLoop{loadRate, func(int) (*http.Request, error) { return bareRequest.Clone(ctx), nil }}.run(ctx, b.steady)
	if err != nil {
		return nil, fmt.Errorf("bare: %w", err)
	}

	fmt.Fprintln(os.Stderr, "load: bare", bare)

	ours, err := openLoop{loadRate, c.traffic(ctx)}.run(ctx, b.steady)
	if err != nil {
		return nil, err
	}

	fmt.Fprintln(os.Stderr, "load: ours", ours)

	p99 := ours.quantile(0.99)

	return []result{{
		name: "load", ours: milliseconds(float64(p99)), bare: loadGoal.String(), ratio: float64(loadGoal) / float64(p99), enough: p99 < loadGoal,
	}}, nil
}

// traffic is what people and their programs do with a catalog: mostly reads that rest on a grant, and of
// each hundred requests one that shares a dataset and one that takes such a grant back.
func (c *catalog) traffic(ctx context.Context) func(i int) (*http.Request, error) {
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run

	return func(i int) (*http.Request, error) {
		var (
			ofAda   = random.IntN(c.size/2 - sizeLimit)
			ofOther = random.IntN(c.size/4 - sizeLimit)
			turn    = i / 100
		)

		switch kind := i % 100; {
		case kind == 0:
			return c.request(ctx, "ada", http.MethodPost, sharesPath(turn), api.NewShare{Username: "eve", Role: api.ShareRoleViewer})
		case kind == 50 && turn > 3: // the grant of a second before
			return c.request(ctx, "ada", http.MethodDelete, sharesPath(turn-3), api.ShareRevocation{Username: "eve"})
		case kind%10 < 3: // through the namespace
			return c.request(ctx, "bob", http.MethodGet, fmt.Sprintf("/data/ada/warehouse/dataset-%d/inferDefinition", ofAda), nil)
		case kind%10 < 5: // through the dataset
			return c.request(ctx, "bob", http.MethodGet, fmt.Sprintf("/data/other-%d/data/dataset-%d/inferDefinition", ofOther/each, ofOther), nil)
		case kind%10 == 5:
			return c.request(ctx, "bob", http.MethodGet, "/schema/ada/warehouse/datasets?cursor="+namespaceCursor(seededID("ada", ofAda)), nil)
		case kind%10 == 6:
			return c.request(ctx, "eve", http.MethodGet, "/schema/bob/reports/datasets?cursor="+namespaceCursor(seededID("bob", ofOther)), nil)
		case kind%10 == 7:
			cursor := allCursor(1, seededID("account", ofOther/each), seededID("namespace", ofOther/each), seededID("other", ofOther))

			return c.request(ctx, "bob", http.MethodGet, "/schema/datasets/all?cursor="+cursor, nil)
		case kind%10 == 8:
			return c.request(ctx, "ada", http.MethodGet, sharesPath(ofAda), nil)
		default:
			return c.request(ctx, "eve", http.MethodGet, "/user/me", nil)
		}
	}
}

func sharesPath(dataset int) string {
	return fmt.Sprintf("/permissions/datasets/ada/warehouse/dataset-%d/shares", dataset)
}
