package erase

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// What is left of a dataset after its objects, ingestions, exports and runs are gone. $1 is the account and $2 the dataset.
const (
	sqlVerified = `
		WITH gone AS (
			DELETE FROM verified_questions WHERE needs @> jsonb_build_array(jsonb_build_object('account', $1::uuid, 'id', $2::uuid))
			RETURNING account_id, namespace_id, id),
		results AS (DELETE FROM benchmark_results r USING gone WHERE r.account_id = gone.account_id AND r.question_id = gone.id)
		DELETE FROM verified_wordings w USING gone WHERE w.account_id = gone.account_id AND w.namespace_id = gone.namespace_id AND w.id = gone.id`
	sqlBenchmarks = `
		WITH gone AS (SELECT DISTINCT account_id, benchmark_id FROM benchmark_datasets WHERE dataset_account = $1 AND dataset_id = $2),
		results AS (DELETE FROM benchmark_results r USING gone WHERE r.account_id = gone.account_id AND r.benchmark_id = gone.benchmark_id),
		named AS (DELETE FROM benchmark_datasets d USING gone WHERE d.account_id = gone.account_id AND d.benchmark_id = gone.benchmark_id)
		DELETE FROM benchmarks b USING gone WHERE b.account_id = gone.account_id AND b.id = gone.benchmark_id`
	// A source without its dataset has nothing to do. Its runs name files.
	sqlSources = `
		WITH gone AS (DELETE FROM sources WHERE dataset_id = (SELECT id FROM datasets WHERE account_id = $1 AND id = $2) RETURNING account_id, id),
		files AS (DELETE FROM source_files f USING gone WHERE f.account_id = gone.account_id AND f.source_id = gone.id)
		DELETE FROM source_runs r USING gone WHERE r.account_id = gone.account_id AND r.source_id = gone.id`
	sqlEvents        = `DELETE FROM events WHERE subject_account = $1 AND subject_id = $2`
	sqlNewEvents     = `DELETE FROM new_events WHERE subject_account = $1 AND subject_id = $2`
	sqlTargets       = `DELETE FROM token_targets WHERE target_account_id = $1 AND target_id = $2`
	sqlGrants        = `DELETE FROM grants WHERE account_id = $1 AND target_id = $2`
	sqlInverse       = `DELETE FROM directory_grants WHERE account_id = $1 AND dataset_id = $2`
	sqlRemembered    = `DELETE FROM remembered WHERE account_id = $1 AND dataset_id = $2`
	sqlSemantics     = `DELETE FROM semantics WHERE account_id = $1 AND dataset_id = $2`
	sqlDefinitions   = `DELETE FROM definitions WHERE account_id = $1 AND dataset_id = $2`
	sqlDraft         = `DELETE FROM dataset_drafts WHERE account_id = $1 AND id = $2`
	sqlJobs          = `DELETE FROM river_job WHERE finalized_at IS NOT NULL AND args ->> 'account' = $1::uuid::text AND args ->> 'dataset' = $2::uuid::text`
	sqlDatasetItself = `DELETE FROM datasets WHERE account_id = $1 AND id = $2` // a trigger deletes its document of the search
)

func deleteDataset(ctx context.Context, tx pgx.Tx, t lake.Table) error {
	return inOrder(ctx, tx, []string{
		sqlVerified, sqlBenchmarks, sqlSources, sqlEvents, sqlNewEvents, sqlTargets, sqlGrants, sqlInverse, sqlRemembered, sqlSemantics, sqlDefinitions, sqlDraft, sqlJobs,
		sqlDatasetItself,
	}, t.Account, t.Dataset)
}

func inOrder(ctx context.Context, tx pgx.Tx, statements []string, args ...any) error {
	batch := &pgx.Batch{}
	for _, statement := range statements {
		batch.Queue(statement, args...)
	}

	return tx.SendBatch(ctx, batch).Close()
}

// What is left of an account. $1 is the account.
const (
	sqlOwnBenchmarkDatasets = `DELETE FROM benchmark_datasets WHERE account_id = $1`
	sqlOwnBenchmarkResults  = `DELETE FROM benchmark_results WHERE account_id = $1`
	sqlOwnBenchmarks        = `DELETE FROM benchmarks WHERE account_id = $1`
	sqlOwnConnections       = `DELETE FROM connections WHERE account_id = $1`
	sqlOwnConversations     = `DELETE FROM conversations WHERE account_id = $1`
	sqlOwnDrafts            = `DELETE FROM dataset_drafts WHERE account_id = $1`
	sqlOwnSchemas           = `DELETE FROM engine_schemas WHERE account_id = $1`
	sqlOwnSources           = `DELETE FROM sources WHERE account_id = $1`
	sqlOwnSourceFiles       = `DELETE FROM source_files WHERE account_id = $1`
	sqlOwnSourceRuns        = `DELETE FROM source_runs WHERE account_id = $1`
	sqlOwnEvents            = `DELETE FROM events WHERE account_id = $1`
	sqlOwnNewEvents         = `DELETE FROM new_events WHERE account_id = $1`
	sqlOwnFeedback          = `DELETE FROM run_feedback WHERE account_id = $1` // the ratings in the tracing store went with the traces
	sqlOwnGrants            = `DELETE FROM grants WHERE account_id = $1`
	sqlOwnInverse           = `DELETE FROM directory_grants WHERE account_id = $1`
	sqlOwnOnce              = `DELETE FROM idempotency WHERE account_id = $1`
	sqlOwnLimits            = `DELETE FROM limits WHERE account_id = $1`
	sqlOwnCalls             = `DELETE FROM model_calls WHERE account_id = $1`
	sqlOwnNamespaces        = `DELETE FROM namespaces WHERE account_id = $1`
	sqlOwnIceberg           = `DELETE FROM iceberg_namespace_properties WHERE namespace = $1::uuid::text`
	sqlOwnTargets           = `DELETE FROM token_targets WHERE account_id = $1`
	sqlOwnTokens            = `DELETE FROM tokens WHERE account_id = $1`
	sqlOwnTokenKeys         = `DELETE FROM directory_tokens WHERE account_id = $1`
	sqlOwnUsage             = `DELETE FROM usage WHERE account_id = $1`
	sqlOwnVerified          = `DELETE FROM verified_questions WHERE account_id = $1`
	sqlOwnWordings          = `DELETE FROM verified_wordings WHERE account_id = $1`
	sqlOwnDeliveries        = `DELETE FROM webhook_deliveries WHERE account_id = $1`
	sqlOwnLanes             = `DELETE FROM webhook_lanes WHERE account_id = $1`
	sqlOwnListeners         = `DELETE FROM directory_webhooks WHERE account_id = $1 OR log_id = $1`
	sqlOwnWebhooks          = `DELETE FROM webhooks WHERE account_id = $1`
	sqlOwnJobs              = `DELETE FROM river_job WHERE finalized_at IS NOT NULL AND args ->> 'account' = $1::uuid::text`
	sqlOwnIdentities        = `DELETE FROM directory_identities WHERE account_id = $1`
	sqlOwnName              = `DELETE FROM directory_names WHERE account_id = $1`
	sqlOwnAccount           = `DELETE FROM accounts WHERE id = $1`
	sqlOthersRemembered     = `DELETE FROM remembered WHERE person_id = $1`
	sqlOthersOnce           = `DELETE FROM idempotency WHERE caller_id = $1`
)

// What other accounts have of an account. $1 is the account, and $2 its username or its pseudonym.
const (
	sqlGrantsTo = `
		WITH gone AS (
			DELETE FROM directory_grants WHERE subject_kind = 'account' AND subject_id = $1::uuid::text OR subject_kind = 'name' AND subject_id = $2
			RETURNING account_id, namespace_id, dataset_id, subject_kind, subject_id)
		DELETE FROM grants g USING gone
		WHERE g.account_id = gone.account_id AND g.subject_kind = gone.subject_kind AND g.subject_id = gone.subject_id
			AND g.target_id = CASE gone.dataset_id WHEN '00000000-0000-0000-0000-000000000000' THEN gone.namespace_id ELSE gone.dataset_id END`
	sqlConnectionShares = `
		DELETE FROM directory_connections
		WHERE account_id = $1 OR subject_kind = 'account' AND subject_id = $1::uuid::text OR subject_kind = 'name' AND subject_id = $2`
	sqlSourcesInto = `
		WITH gone AS (DELETE FROM sources WHERE account_id <> $1 AND username = $2 RETURNING account_id, id)
		DELETE FROM source_runs r USING gone WHERE r.account_id = gone.account_id AND r.source_id = gone.id` // without a load there are no files
	sqlEventsAbout = `
		DELETE FROM events WHERE subject_account = $1 OR data::json ->> 'grantee' = $2 OR data::json ->> 'username' = $2`
	sqlNewEventsAbout = `
		DELETE FROM new_events WHERE subject_account = $1 OR data::json ->> 'grantee' = $2 OR data::json ->> 'username' = $2`

	sqlNamedDefinitions   = `UPDATE definitions SET actor = $2 WHERE actor_id = $1`
	sqlNamedSemantics     = `UPDATE semantics SET actor = $2 WHERE actor_id = $1`
	sqlNamedVerified      = `UPDATE verified_questions SET author = $2 WHERE author_id = $1`
	sqlNamedBenchmarks    = `UPDATE benchmarks SET author = $2, caller = '{}' WHERE author_id = $1`
	sqlNamedConversations = `UPDATE conversations SET username = $2 WHERE namespace_account = $1`
	sqlNamedIngestions    = `UPDATE ingestions SET audit = audit || jsonb_build_object('Actor', $2::text, 'Address', '') WHERE caller_id = $1 AND audit IS NOT NULL`
	sqlNamedDrafts        = `
		UPDATE dataset_drafts SET entry = entry || jsonb_build_object('Actor', $2::text, 'Address', '') WHERE entry ->> 'ActorID' = $1::uuid::text`
)

// deleteUser deletes what is left of an account after its datasets, runs, statements and uploads are gone.
func deleteUser(ctx context.Context, tx pgx.Tx, account uuid.UUID, username, pseudonym string) error {
	if err := inOrder(ctx, tx, []string{sqlGrantsTo, sqlConnectionShares, sqlSourcesInto, sqlEventsAbout, sqlNewEventsAbout}, account, username); err != nil {
		return err
	}

	if err := inOrder(ctx, tx, []string{
		sqlNamedDefinitions, sqlNamedSemantics, sqlNamedVerified, sqlNamedBenchmarks, sqlNamedConversations, sqlNamedIngestions, sqlNamedDrafts,
	}, account, pseudonym); err != nil {
		return err
	}

	return inOrder(ctx, tx, []string{
		sqlOwnBenchmarkDatasets, sqlOwnBenchmarkResults, sqlOwnBenchmarks, sqlOwnConnections, sqlOwnSources, sqlOwnSourceFiles, sqlOwnSourceRuns, sqlOwnConversations, sqlOwnDrafts, sqlOwnSchemas, sqlOwnEvents,
		sqlOwnNewEvents, sqlOwnFeedback, sqlOwnGrants, sqlOwnInverse, sqlOwnOnce, sqlOwnLimits, sqlOwnCalls, sqlOwnNamespaces, sqlOwnIceberg, sqlOwnTargets, sqlOwnTokens,
		sqlOwnTokenKeys, sqlOwnUsage, sqlOwnVerified, sqlOwnWordings, sqlOwnDeliveries, sqlOwnLanes, sqlOwnListeners, sqlOwnWebhooks, sqlOwnJobs,
		sqlOwnIdentities, sqlOwnName, sqlOwnAccount, sqlOthersRemembered, sqlOthersOnce,
	}, account)
}

// Names in the audit log, which only the owner of the database can change. What happened to an erased account is deleted with it; what it did
// to others stays, under a pseudonym.
const (
	sqlMayChangeAudit = `SELECT has_table_privilege('audit', 'UPDATE') AND has_table_privilege('audit', 'DELETE')`
	sqlAuditOwn       = `DELETE FROM audit WHERE account_id = $1`
	sqlAuditActor     = `UPDATE audit SET actor = $2, address = '', token_id = NULL WHERE actor_id = $1`
	sqlAuditDetail    = `
		UPDATE audit SET detail = $2 || substr(detail, length($1::text) + 1)
		WHERE (detail = $1 OR starts_with(detail, $1 || ' ')) AND action IN ('share.grant', 'share.revoke', 'dataset.transfer')`
	sqlTargetNames = `
		UPDATE erasures SET target = $3 || substr(target, length($2::text) + 1) WHERE account_id = $1 AND starts_with(target, $2 || '/')`
)

func mayChangeAudit(ctx context.Context, q postgres.Querier) (may bool, err error) {
	err = q.QueryRow(ctx, sqlMayChangeAudit).Scan(&may)

	return may, err
}

func pseudonymise(ctx context.Context, tx pgx.Tx, account uuid.UUID, username, pseudonym string) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlAuditOwn, account)
	batch.Queue(sqlAuditActor, account, pseudonym)
	batch.Queue(sqlAuditDetail, username, pseudonym)
	batch.Queue(sqlTargetNames, account, username, pseudonym)

	return tx.SendBatch(ctx, batch).Close()
}
