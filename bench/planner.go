package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"quern.dev/quern/api"
)

const (
	plannerTables  = 50
	plannerColumns = 40
	plannerMore    = 50 * time.Millisecond // how much longer a question may take than its statement
)

// runPlanner measures a question without a model in a namespace of many wide tables, from the request to its last event,
// beside the statement that it becomes, alone.
func runPlanner(ctx context.Context, b *bench) ([]result, error) {
	l, stop, err := b.startPlanned(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	var asked, alone []time.Duration

	for i := range b.asks + queryWarm {
		table := plannerTable(i * 7 % plannerTables)

		took, err := l.planned(ctx, table)
		if err != nil {
			return nil, err
		}

		begin := time.Now()

		var rows api.QueryResult
		if err := l.ask(ctx, "ada", http.MethodPost, "/query", api.QueryRequest{
			Username: "ada", Namespace: "bench", Query: fmt.Sprintf(`SELECT "region" AS "region", sum("amount") AS "total amount" FROM %q GROUP BY "region" ORDER BY "region"`, table),
		}, &rows); err != nil {
			return nil, err
		}

		if i >= queryWarm {
			asked, alone = append(asked, took), append(alone, time.Since(begin))
		}
	}

	return []result{overhead("planner", asked, alone, plannerMore)}, nil
}

// startPlanned starts a service without a model, all of whose tables have a profile and an index.
func (b *bench) startPlanned(ctx context.Context) (l *links, stop func(), err error) {
	s, stop, err := b.startService(ctx, "QUERN_UPKEEP_WORKERS=1", "QUERN_UPKEEP_QUIET=1s", "QUERN_UPKEEP_EVERY=1s", fmt.Sprintf("QUERN_SANDBOX_READY=%d", queryReady))
	if err != nil {
		return nil, nil, err
	}

	l = &links{service: s}

	for i := range plannerTables {
		if err = b.fillTable(ctx, s, plannerTable(i), plannerRows(), 1); err != nil {
			break
		}
	}

	if err == nil {
		err = l.await(ctx)
	}

	if err != nil {
		stop()

		return nil, nil, err
	}

	return l, stop, nil
}

// plannerTable is a name that a question can say.
func plannerTable(i int) string {
	parts := strings.Fields(syllables)

	return parts[i%len(parts)] + parts[(i/len(parts)+7)%len(parts)] + "sales"
}

// plannerRows are few rows of many columns: names, amounts, times.
func plannerRows() string {
	columns := []string{"i AS id", "'region ' || i % 5 AS region", "i * 1.5 AS amount", "DATE '2026-01-01' + CAST(i % 300 AS INTEGER) AS sold"}

	for c := len(columns); c < plannerColumns; c++ {
		columns = append(columns, []string{
			fmt.Sprintf("'label ' || i %% %d AS %s_label", c, linkWord(c)), fmt.Sprintf("i %% %d AS %s_value", c, linkWord(c)),
		}[c%2])
	}

	return "SELECT " + strings.Join(columns, ", ") + " FROM range(1000) r(i)"
}

func linkWord(c int) string {
	parts := strings.Fields(syllables)

	return parts[c%len(parts)] + parts[(c+3)%len(parts)]
}

// planned asks for totals of a table.
func (l *links) planned(ctx context.Context, table string) (took time.Duration, err error) {
	agent := api.QuestionAgentNl2Ql

	request, err := l.request(ctx, "ada", http.MethodPost, "/query/ask", api.Question{
		Username: "ada", Namespace: "bench", Agent: &agent, Query: "What is the total amount of " + table + " by region?",
	})
	if err != nil {
		return 0, err
	}

	begin, events := time.Now(), 0

	err = follow(http.DefaultClient, request, func(int64) {
		took = time.Since(begin)
		events++
	})

	if err == nil && events < 4 {
		err = errors.New("the question was not answered")
	}

	return took, err
}
