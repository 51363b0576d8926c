package ask

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
)

const (
	verifiedKept  = 10_000
	verifiedTable = "verisales"
	verifiedMore  = 10 * time.Millisecond // how much longer a question may take because of verified questions
)

// Verified measures a question in a namespace with many verified questions that do not answer it, from the request to its last event, beside
// the same question with a helperPrompt, for which no verified question is looked up.
func Verified(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, "QUERN_MAINTENANCE_WORKERS=1", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", query.Ready))
	if err != nil {
		return nil, err
	}
	defer stop()

	l := &query.Indexed{Service: s}

	if err := errors.Join(b.FillTable(ctx, s, verifiedTable, plannerRows(), 1), l.Await(ctx)); err != nil {
		return nil, err
	}

	if err := keep(ctx, s); err != nil {
		return nil, err
	}

	var asked, alone []time.Duration

	for i := range b.Asks + query.Warm {
		// The order changes, so that neither profits from the other.
		for _, isAlone := range []bool{i%2 == 0, i%2 != 0} {
			took, err := askedFor(ctx, l, isAlone)
			if err != nil {
				return nil, err
			}

			switch {
			case i < query.Warm:
			case isAlone:
				alone = append(alone, took)
			default:
				asked = append(asked, took)
			}
		}
	}

	return []rig.Result{overhead("verified", asked, alone, verifiedMore)}, nil
}

// keep stores verified questions of every kind by REST, and copies them with other keys until there are enough.
func keep(ctx context.Context, s *rig.Service) error {
	region := api.VerifiedParameter{Name: "region", Type: "varchar", Column: new(verifiedTable + ".region"), Default: "region 1"}
	other := api.VerifiedParameter{Name: "other", Type: "varchar", Column: new(verifiedTable + ".region"), Default: "region 2"}
	year := api.VerifiedParameter{Name: "year", Type: "bigint", Period: new(api.VerifiedPeriodYear), Default: "2026"}
	least := api.VerifiedParameter{Name: "least", Type: "bigint", Default: "100"}

	for _, one := range []struct {
		question, where string
		parameters      []api.VerifiedParameter
	}{
		{"How many sales are large?", "amount > 900", nil},
		{"How many sales of $region are there?", "region = $region", []api.VerifiedParameter{region}},
		{"How many sales of $region since $year are there?", "region = $region AND year(sold) >= $year", []api.VerifiedParameter{region, year}},
		{"How many sales over $least exist?", "amount > $least", []api.VerifiedParameter{least}},
		{"How many sales of $region or of $other are there?", "region IN ($region, $other)", []api.VerifiedParameter{region, other}},
	} {
		body := api.NewVerifiedQuestion{Question: &one.question, Query: new(fmt.Sprintf("SELECT count(*) AS n FROM %s WHERE %s", verifiedTable, one.where)), Parameters: &one.parameters}

		var made api.VerifiedQuestion
		if err := s.Ask(ctx, "ada", http.MethodPost, "/verified/ada/bench", body, &made); err != nil {
			return err
		}
	}

	conn, err := pgx.Connect(ctx, s.Database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	for _, statement := range []string{sqlCopyQuestions, sqlCopyWordings, `ANALYZE verified_questions`, `ANALYZE verified_wordings`} {
		var arguments []any
		if statement == sqlCopyQuestions {
			arguments = []any{verifiedKept}
		}

		if _, err := conn.Exec(ctx, statement, arguments...); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}

	var count int
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM verified_questions`).Scan(&count); err != nil || count < verifiedKept {
		return errors.Join(err, fmt.Errorf("%d verified questions", count))
	}

	return nil
}

const (
	// A copy has the id of its original in reason, for the copies of its wordings.
	sqlCopyQuestions = `
		INSERT INTO verified_questions (account_id, namespace_id, id, revision, status, reason, content, needs, author_id, author, verified_at, created_at)
		SELECT account_id, namespace_id, gen_random_uuid(), revision, status, id::text, content, needs, author_id, author, verified_at, created_at
		FROM verified_questions, generate_series(1, $1::int / (SELECT count(*)::int FROM verified_questions)) WHERE reason = ''`
	sqlCopyWordings = `
		INSERT INTO verified_wordings (account_id, namespace_id, shape, key, form, id, wording)
		SELECT w.account_id, w.namespace_id, w.shape, (random() * 9e18)::bigint, (random() * 9e18)::bigint, v.id, w.wording
		FROM verified_questions v JOIN verified_wordings w ON w.account_id = v.account_id AND w.namespace_id = v.namespace_id AND w.id::text = v.reason`
)

// askedFor asks a question that no verified question answers. It takes part in the lookup unless it is asked alone.
func askedFor(ctx context.Context, l *query.Indexed, isAlone bool) (time.Duration, error) {
	question := api.Question{Query: "What is the total amount of " + verifiedTable + " by region since 2026?"}
	if isAlone {
		question.HelperPrompt = new("Be brief.")
	}

	return askedIn(ctx, l, question)
}
