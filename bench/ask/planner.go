package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
)

const (
	plannerTables  = 50
	plannerColumns = 40
	plannerMore    = 50 * time.Millisecond // how much longer a question may take than its statement
)

// Planner measures a question without a model in a namespace of many wide tables, from the request to its last
// event, beside the statement that the planner writes for it.
func Planner(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	l, stop, err := startPlanned(ctx, b)
	if err != nil {
		return nil, err
	}
	defer stop()

	var asked, alone []time.Duration

	for i := range b.Asks + query.Warm {
		table := plannerTable(i * 7 % plannerTables)

		took, err := planned(ctx, l, table)
		if err != nil {
			return nil, err
		}

		begin := time.Now()

		var rows api.QueryResult
		if err := l.Ask(ctx, "ada", http.MethodPost, "/query", api.QueryRequest{
			Username: new("ada"), Namespace: new("bench"), Query: fmt.Sprintf(`SELECT "region" AS "region", sum("amount") AS "total amount" FROM %q GROUP BY "region" ORDER BY "region"`, table),
		}, &rows); err != nil {
			return nil, err
		}

		if i >= query.Warm {
			asked, alone = append(asked, took), append(alone, time.Since(begin))
		}
	}

	return []rig.Result{overhead("planner", asked, alone, plannerMore)}, nil
}

// startPlanned starts a service without a model, all of whose tables have a profile and a value index.
func startPlanned(ctx context.Context, b *rig.Bench) (l *query.Indexed, stop func(), err error) {
	s, stop, err := b.StartService(ctx, "QUERN_MAINTENANCE_WORKERS=1", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", query.Ready))
	if err != nil {
		return nil, nil, err
	}

	l = &query.Indexed{Service: s}

	for i := range plannerTables {
		if err = b.FillTable(ctx, s, plannerTable(i), plannerRows(), 1); err != nil {
			break
		}
	}

	if err == nil {
		err = l.Await(ctx)
	}

	if err != nil {
		stop()

		return nil, nil, err
	}

	return l, stop, nil
}

// plannerTable returns a table name that a question can contain.
func plannerTable(i int) string {
	parts := strings.Fields(query.Syllables)

	return parts[i%len(parts)] + parts[(i/len(parts)+7)%len(parts)] + "sales"
}

// plannerRows returns the SQL of few rows with many columns: names, amounts, times.
func plannerRows() string {
	columns := []string{"i AS id", "'region ' || i % 5 AS region", "i * 1.5 AS amount", "DATE '2026-01-01' + CAST(i % 300 AS INTEGER) AS sold"}

	for c := len(columns); c < plannerColumns; c++ {
		columns = append(columns, []string{
			fmt.Sprintf("'label ' || i %% %d AS %s_label", c, columnWord(c)), fmt.Sprintf("i %% %d AS %s_value", c, columnWord(c)),
		}[c%2])
	}

	return "SELECT " + strings.Join(columns, ", ") + " FROM range(1000) r(i)"
}

func columnWord(c int) string {
	parts := strings.Fields(query.Syllables)

	return parts[c%len(parts)] + parts[(c+3)%len(parts)]
}

// planned asks for totals of a table.
func planned(ctx context.Context, l *query.Indexed, table string) (time.Duration, error) {
	return askedIn(ctx, l, api.Question{Query: "What is the total amount of " + table + " by region?"})
}

// askedIn asks a question without a model, and returns the time until its last event.
func askedIn(ctx context.Context, l *query.Indexed, question api.Question) (took time.Duration, err error) {
	question.Username, question.Namespace, question.Agent = "ada", "bench", new(api.QuestionAgentNl2Ql)

	request, err := l.Request(ctx, "ada", http.MethodPost, "/query/ask", question)
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
