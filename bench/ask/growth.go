package ask

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/catalog"
	"quern.dev/quern/bench/ingest"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const (
	growthSmallest = 1000
	growthEvents   = 10 // events for each dataset
	growthGoal     = 30 * time.Millisecond
	growthMore     = 10 * time.Millisecond // how much longer a path without a goal of its own may take because the catalog is large
)

// grown is a service with a catalog of some size, a log of events, and one dataset that has rows.
type grown struct {
	*catalog.Catalog

	size  int
	rows  rig.Dataset
	event int64 // the number of an event in the middle of ada's log
}

// path is something that a request needs. It returns how long the i-th time takes.
type path struct {
	name string
	goal time.Duration // of the median, in a catalog of any size; 0 for none
	once func(ctx context.Context, g *grown, i int) (time.Duration, error)
}

// growthPaths uses other datasets each time, so that the caches do not only contain what one request needs.
func growthPaths() []path {
	get := func(user, format string, share int) func(context.Context, *grown, int) (time.Duration, error) {
		return func(ctx context.Context, g *grown, i int) (time.Duration, error) {
			return g.get(ctx, user, fmt.Sprintf(format, g.size/share/5+i*7%(g.size/share/5)), nil)
		}
	}

	return []path{
		{"check", growthGoal, get("bob", "/data/ada/warehouse/dataset-%d/inferDefinition", 2)},
		{"check-granted", growthGoal, get("eve", "/data/bob/reports/dataset-%d/inferDefinition", 4)}, // by a grant on the dataset
		{"list", growthGoal, func(ctx context.Context, g *grown, _ int) (time.Duration, error) {
			return g.get(ctx, "bob", "/schema/datasets/all?limit=25", nil)
		}},
		{"search", growthGoal, get("ada", "/schema/datasets/all?limit=25&q=dataset+%d", 2)},
		{"search-typing", growthGoal, get("bob", "/schema/datasets/all?limit=25&q=dattaset+%d", 4)},
		{"search-granted", growthGoal, get("eve", "/schema/datasets/all?limit=25&q=%d+holds", 4)}, // among what others shared one by one
		{"events", growthGoal, func(ctx context.Context, g *grown, _ int) (time.Duration, error) {
			return g.get(ctx, "ada", "/events?limit=25", http.Header{"Last-Event-Id": {strconv.FormatInt(g.event, 10)}})
		}},
		{"prepare", growthGoal, func(ctx context.Context, g *grown, _ int) (time.Duration, error) {
			begin := time.Now()
			prepared, err := g.Prepare(ctx, rig.UploadPart)
			took := time.Since(begin)

			if err != nil {
				return 0, err
			}

			request, err := g.Request(ctx, "ada", http.MethodPost, fmt.Sprintf("/file-upload/%s/abort", prepared.SessionID), nil) // few sessions can be open
			if err == nil {
				_, err = rig.Get(request)
			}

			return took, err
		}},
		{"commit", 0, func(ctx context.Context, g *grown, _ int) (time.Duration, error) {
			begin := time.Now()
			err := ingest.Fill(ctx, g.rows, 1)

			return time.Since(begin), err
		}},
		{"statement", 0, func(ctx context.Context, g *grown, _ int) (time.Duration, error) {
			var rows api.QueryResult

			begin := time.Now()
			err := g.Ask(ctx, "ada", http.MethodPost, "/query", api.QueryRequest{Username: new("ada"), Namespace: new("bench"), Query: `SELECT count(*) AS n FROM grown`}, &rows)

			return time.Since(begin), err
		}},
		{"question", 0, func(ctx context.Context, g *grown, i int) (time.Duration, error) {
			return answerIn(ctx, g.Catalog, "warehouse", contextQuestion(g.size/10+i))
		}},
	}
}

// Growth measures what requests need in catalogs of growing size, beside the same in a catalog of a thousand datasets. docs/scale.md has
// its table.
func Growth(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	small, stop, err := startGrown(ctx, b, growthSmallest)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []rig.Result

	for _, size := range b.Sizes {
		ofSize, err := growth(ctx, b, size, small)
		if err != nil {
			return nil, fmt.Errorf("%d datasets: %w", size, err)
		}

		results = append(results, ofSize...)
	}

	return results, nil
}

func growth(ctx context.Context, b *rig.Bench, size int, small *grown) (results []rig.Result, err error) {
	large, stop, err := startGrown(ctx, b, size)
	if err != nil {
		return nil, err
	}
	defer stop()

	for _, p := range growthPaths() {
		var ours, bare []time.Duration

		for i := range b.Asks/2 + query.Warm {
			inLarge, err := p.once(ctx, large, i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}

			inSmall, err := p.once(ctx, small, i)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}

			if i >= query.Warm {
				ours, bare = append(ours, inLarge), append(bare, inSmall)
			}
		}

		result := overhead(fmt.Sprintf("growth-%s-%d", p.name, size), ours, bare, growthMore)
		if p.goal > 0 {
			result.Enough = rig.Sorted(ours).Quantile(0.5) <= p.goal
		}

		results = append(results, result)
	}

	return results, nil
}

// startGrown starts a service with a searchable catalog of some size, ten events for each dataset, and a dataset with rows.
func startGrown(ctx context.Context, b *rig.Bench, size int) (*grown, func(), error) {
	model := noDataModel()

	c, stopCatalog, err := catalog.StartSearched(ctx, b, size, append(modelSettings(model), fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", query.Ready))...)
	if err != nil {
		model.Close()

		return nil, nil, err
	}

	stop := func() {
		stopCatalog()
		model.Close()
	}

	g := &grown{Catalog: c, size: size}
	if err := g.fill(ctx); err != nil {
		stop()

		return nil, nil, err
	}

	return g, stop, nil
}

func (g *grown) fill(ctx context.Context) (err error) {
	if g.rows, err = g.NamedDataset(ctx, "grown"); err != nil {
		return err
	}

	if err := ingest.Fill(ctx, g.rows, 1); err != nil {
		return err
	}

	begin, since := time.Now(), time.Now().Add(-6*24*time.Hour).UnixMicro()
	count := g.size * growthEvents
	every := (5 * 24 * time.Hour).Microseconds() / int64(count)
	g.event = since + int64(count/2)*every

	for _, statement := range []string{
		`SELECT events_partition(current_date - 7)`,
		fmt.Sprintf(`INSERT INTO events (account_id, seq, event_id, type, kind, subject_account, subject_id, namespace_id, token_id, data, at)
			SELECT '%[1]s', %[2]d + i * %[3]d, gen_random_uuid(), 'dataset.loaded', 'dataset', '%[1]s', seeded('ada', i / %[4]d / 2), seeded('ada', -1),
				'00000000-0000-0000-0000-000000000000', '{"username": "ada", "namespace": "warehouse", "dataset": "dataset-' || i / %[4]d / 2 || '"}', now()
			FROM generate_series(0, %[5]d::bigint - 1) i`, g.Accounts["ada"], since, every, growthEvents, count),
		`VACUUM (ANALYZE) events`,
	} {
		if err := stack.Execute(ctx, g.Database, statement); err != nil {
			return err
		}
	}

	fmt.Fprintf(os.Stderr, "%d events in %v\n", count, time.Since(begin).Round(time.Second))

	return nil
}

// get returns how long a request takes whose response is not empty.
func (g *grown) get(ctx context.Context, user, path string, header http.Header) (time.Duration, error) {
	request, err := g.Request(ctx, user, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}

	maps.Copy(request.Header, header)

	begin := time.Now()
	body, err := rig.Get(request)
	took := time.Since(begin)

	const leastBytes = 60 // an empty list is shorter
	if err == nil && len(body) < leastBytes {
		err = fmt.Errorf("%s: nothing was found: %s", path, body)
	}

	return took, err
}
