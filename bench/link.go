package main

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
)

const (
	linkTables = 50
	linkLimit  = 20 * time.Millisecond // for one question
	linkWait   = 10 * time.Minute      // until everything has an index
)

// runLink measures how long it takes to find the words of a question in 50 tables, one of them with a million names,
// through the API, beside DuckDB that looks through the same names for the same words as they are written.
func runLink(ctx context.Context, b *bench) ([]result, error) {
	l, stop, err := b.startLinks(ctx, b.rows/10)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, err := openBare(b.dir, runtime.NumCPU(), l.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	var ours, alone []time.Duration

	for i := range b.smalls + queryWarm {
		name := linkName(i * 997 % l.names)

		got, err := l.link(ctx, name)
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

		if i >= queryWarm {
			ours, alone = append(ours, got), append(alone, time.Since(begin))
		}
	}

	oursTimes, bareTimes := sorted(ours), sorted(alone)
	median, bareMedian := oursTimes.quantile(0.5), bareTimes.quantile(0.5)
	fmt.Fprintf(os.Stderr, "link: %d names and %d tables, p95 ours %v, bare %v\n", l.names, linkTables, oursTimes.quantile(0.95), bareTimes.quantile(0.95))

	return []result{{
		name: "link", ours: milliseconds(float64(median)), bare: milliseconds(float64(bareMedian)), ratio: float64(bareMedian) / float64(median),
		enough: median <= linkLimit,
	}}, nil
}

// links is a service with tables of names, all of which have an index.
type links struct {
	*service

	names int // in the largest table
	views []bareView
}

func (b *bench) startLinks(ctx context.Context, names int) (l *links, stop func(), err error) {
	s, stop, err := b.startService(ctx, "QUERN_UPKEEP_WORKERS=1", "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s")
	if err != nil {
		return nil, nil, err
	}

	l = &links{service: s, names: names}

	for i := range linkTables {
		rows := linkRows(names/linkTables, i)
		if i == 0 {
			rows = linkRows(names, 0)
		}

		table := fmt.Sprintf("t%d", i)
		path := filepath.Join(b.dir, table+".parquet")

		err := b.fillTable(ctx, s, table, rows, 1)
		if err == nil {
			err = bareDuckDB(fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet)`, rows, path))
		}

		if err != nil {
			stop()

			return nil, nil, err
		}

		l.views = append(l.views, bareView{table, []string{path}})
	}

	if err := l.await(ctx); err != nil {
		stop()

		return nil, nil, err
	}

	return l, stop, nil
}

// await waits until all tables have an index.
func (l *links) await(ctx context.Context) error {
	begin := time.Now()

	for time.Since(begin) < linkWait {
		var found api.LinkResult
		if err := l.ask(ctx, "ada", http.MethodPost, "/query/link", linkRequest("anything"), &found); err != nil {
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

const syllables = "ba ber bo cor da del du fa fen gar gi hal har ho jan ka kel lan len lo mar mi nor os pa ren ros sal ta tin vel wen"

// linkName is the name of a number.
func linkName(number int) string {
	parts := strings.Fields(syllables)
	at := func(n int) string { return parts[n%len(parts)] }
	first, last := at(number)+at(number/32)+at(number/1024), at(number/32768)+at(number)+"son"

	return strings.ToUpper(first[:1]) + first[1:] + " " + strings.ToUpper(last[:1]) + last[1:]
}

// linkRows is SQL for a table of so many of them. Tables share few.
func linkRows(count, table int) string {
	part := func(n string) string {
		return fmt.Sprintf(`['%s'][CAST(%s %% 32 AS INTEGER) + 1]`, strings.ReplaceAll(syllables, " ", "', '"), n)
	}

	return fmt.Sprintf(`SELECT i AS id, upper(f[1]) || f[2:] || ' ' || upper(l[1]) || l[2:] AS name, ['north', 'south'][i %% 2 + 1] AS region
		FROM (SELECT i, %s || %s || %s AS f, %s || %s || 'son' AS l FROM (SELECT range + %d AS i FROM range(%d)))`,
		part("i"), part("i // 32"), part("i // 1024"), part("i // 32768"), part("i"), table*count, count)
}

func linkRequest(question string) api.LinkRequest {
	return api.LinkRequest{Username: "ada", Namespace: "bench", Question: question}
}

// linkQuestion has ten words, two of which are a name.
func linkQuestion(name string) string {
	return "average revenue of " + name + " in Hamburg during the summer"
}

// link asks about a name, which must be found.
func (l *links) link(ctx context.Context, name string) (time.Duration, error) {
	request, err := l.request(ctx, "ada", http.MethodPost, "/query/link", linkRequest(linkQuestion(name)))
	if err != nil {
		return 0, err
	}

	begin := time.Now()

	body, err := get(request)
	took := time.Since(begin)

	if err == nil && !strings.Contains(string(body), name) {
		err = fmt.Errorf("%q is not found: %s", name, body)
	}

	return took, err
}

// statement asks DuckDB for all runs of up to five words of the question.
func (l *links) statement(name string) string {
	var (
		words = strings.Fields(strings.ToLower(linkQuestion(name)))
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
