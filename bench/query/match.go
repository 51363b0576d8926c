package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

const (
	matchTables = 50
	matchLimit  = 20 * time.Millisecond // for one question
	indexWait   = 10 * time.Minute      // until all tables have a value index
)

// Match measures how long it takes to find the words of a question in 50 tables, one of them with a million names,
// through the API, beside DuckDB, which searches the same names for exact matches.
func Match(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	l, stop, err := startIndexed(ctx, b, b.Rows/10)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, err := openBare(b.Dir, runtime.NumCPU(), l.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	var ours, alone []time.Duration

	for i := range b.Smalls + Warm {
		name := matchName(i * 997 % l.names)

		got, err := l.match(ctx, name)
		if err != nil {
			return nil, err
		}

		begin := time.Now()

		_, count, err := bare.rows(l.statement(name))
		if err == nil && count == 0 {
			err = fmt.Errorf("DuckDB does not find %q", name)
		}

		if err != nil {
			return nil, err
		}

		if i >= Warm {
			ours, alone = append(ours, got), append(alone, time.Since(begin))
		}
	}

	oursTimes, bareTimes := rig.Sorted(ours), rig.Sorted(alone)
	median, bareMedian := oursTimes.Quantile(0.5), bareTimes.Quantile(0.5)
	fmt.Fprintf(os.Stderr, "link: %d names and %d tables, p95 ours %v, bare %v\n", l.names, matchTables, oursTimes.Quantile(0.95), bareTimes.Quantile(0.95))

	return []rig.Result{{
		Name: "link", Ours: rig.Milliseconds(float64(median)), Bare: rig.Milliseconds(float64(bareMedian)), Ratio: float64(bareMedian) / float64(median),
		Enough: median <= matchLimit,
	}}, nil
}

// Indexed is a service with tables of names, all of which have a value index.
type Indexed struct {
	*rig.Service

	names int // number of names in the largest table
	views []bareView
}

func startIndexed(ctx context.Context, b *rig.Bench, names int) (l *Indexed, stop func(), err error) {
	s, stop, err := b.StartService(ctx, "QUERN_MAINTENANCE_WORKERS=1", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")
	if err != nil {
		return nil, nil, err
	}

	l = &Indexed{Service: s, names: names}

	for i := range matchTables {
		rows := matchRows(names/matchTables, i)
		if i == 0 {
			rows = matchRows(names, 0)
		}

		table := fmt.Sprintf("t%d", i)
		path := filepath.Join(b.Dir, table+".parquet")

		err := b.FillTable(ctx, s, table, rows, 1)
		if err == nil {
			err = rig.BareDuckDB(fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet)`, rows, path))
		}

		if err != nil {
			stop()

			return nil, nil, err
		}

		l.views = append(l.views, bareView{table, []string{path}})
	}

	if err := l.Await(ctx); err != nil {
		stop()

		return nil, nil, err
	}

	return l, stop, nil
}

// Await waits until all tables have a value index.
func (l *Indexed) Await(ctx context.Context) error {
	begin := time.Now()

	for time.Since(begin) < indexWait {
		var found api.LinkResult
		if err := l.Ask(ctx, "ada", http.MethodPost, "/query/link", matchRequest("anything"), &found); err != nil {
			return err
		}

		if len(found.Incomplete) == 0 {
			fmt.Fprintf(os.Stderr, "link: everything has an index after %v\n", time.Since(begin).Round(time.Second))

			return nil
		}

		time.Sleep(time.Second)
	}

	return errors.New("there are still tables without an index")
}

const Syllables = "ba ber bo cor da del du fa fen gar gi hal har ho jan ka kel lan len lo mar mi nor os pa ren ros sal ta tin vel wen"

// matchName returns the name with a given number.
func matchName(number int) string {
	parts := strings.Fields(Syllables)
	at := func(n int) string { return parts[n%len(parts)] }
	first, last := at(number)+at(number/32)+at(number/1024), at(number/32768)+at(number)+"son"

	return strings.ToUpper(first[:1]) + first[1:] + " " + strings.ToUpper(last[:1]) + last[1:]
}

// matchRows returns the SQL of a table with count names. Different tables share few names.
func matchRows(count, table int) string {
	part := func(n string) string {
		return fmt.Sprintf(`['%s'][CAST(%s %% 32 AS INTEGER) + 1]`, strings.ReplaceAll(Syllables, " ", "', '"), n)
	}

	return fmt.Sprintf(`SELECT i AS id, upper(f[1]) || f[2:] || ' ' || upper(l[1]) || l[2:] AS name, ['north', 'south'][i %% 2 + 1] AS region
		FROM (SELECT i, %s || %s || %s AS f, %s || %s || 'son' AS l FROM (SELECT range + %d AS i FROM range(%d)))`,
		part("i"), part("i // 32"), part("i // 1024"), part("i // 32768"), part("i"), table*count, count)
}

func matchRequest(question string) api.LinkRequest {
	return api.LinkRequest{Username: "ada", Namespace: "bench", Question: question}
}

// matchQuestion returns a question of ten words, two of which are a name.
func matchQuestion(name string) string {
	return "average revenue of " + name + " in Hamburg during the summer"
}

// match sends a question with a name, which must be found.
func (l *Indexed) match(ctx context.Context, name string) (time.Duration, error) {
	request, err := l.Request(ctx, "ada", http.MethodPost, "/query/link", matchRequest(matchQuestion(name)))
	if err != nil {
		return 0, err
	}

	begin := time.Now()

	body, err := rig.Get(request)
	took := time.Since(begin)

	if err == nil && !strings.Contains(string(body), name) {
		err = fmt.Errorf("%q is not found: %s", name, body)
	}

	return took, err
}

// statement returns the SQL that searches all sequences of up to five words of the question.
func (l *Indexed) statement(name string) string {
	var (
		words = strings.Fields(strings.ToLower(matchQuestion(name)))
		runs  []string
		parts []string
	)

	for i := range words {
		for j := i + 1; j <= min(len(words), i+5); j++ {
			runs = append(runs, "'"+strings.Join(words[i:j], " ")+"'")
		}
	}

	for _, view := range l.views {
		parts = append(parts, fmt.Sprintf(`SELECT DISTINCT '%[1]s' AS dataset, name AS value FROM %[1]s WHERE lower(strip_accents(name)) IN (%[2]s)`, view.name, strings.Join(runs, ", ")))
	}

	return strings.Join(parts, " UNION ALL ")
}
