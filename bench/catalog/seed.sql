-- The data that the comment of catalog in seed.go describes. The program replaces the words with a colon by values;
-- the parts between the lines of dashes run concurrently.

INSERT INTO namespaces (account_id, id, name, name_key, created_at)
VALUES (:ada, seeded('ada', -1), 'warehouse', 'warehouse', now()), (:bob, seeded('bob', -1), 'reports', 'reports', now());

INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
SELECT seeded('account', i), 'person', 'other-' || i, 'elsewhere', i, 'Other', '', '{}', now(), now()
FROM generate_series(0, :others - 1) i;

INSERT INTO directory_names (username, account_id)
SELECT username, id FROM accounts WHERE issuer = 'elsewhere';

INSERT INTO directory_identities (issuer, subject, account_id)
SELECT issuer, subject, id FROM accounts WHERE issuer = 'elsewhere';

INSERT INTO namespaces (account_id, id, name, name_key, created_at)
SELECT seeded('account', i), seeded('namespace', i), 'data', 'data', now()
FROM generate_series(0, :others - 1) i;

INSERT INTO datasets (account_id, id, namespace_id, name, name_key, definition_revision, data_description, schema_definition, columns,
    row_count, created_at, updated_at)
SELECT account_id, id, namespace_id, 'dataset-' || i, 'dataset-' || i, 1, 'What dataset ' || i || ' holds, and what to know before using it.',
    '{"order_id": "Number of the order", "region": "Where it was shipped to", "amount": "In cents, before tax"}',
    '[{"name": "order_id", "type": "BIGINT"}, {"name": "region", "type": "VARCHAR"}, {"name": "amount", "type": "BIGINT"}]',
    1000, now(), now()
FROM (
    SELECT i, :ada AS account_id, seeded('ada', -1) AS namespace_id, seeded('ada', i) AS id FROM generate_series(0, :half - 1) i
    UNION ALL
    SELECT i, :bob, seeded('bob', -1), seeded('bob', i) FROM generate_series(0, :quarter - 1) i
    UNION ALL
    SELECT i, seeded('account', i / :each), seeded('namespace', i / :each), seeded('other', i) FROM generate_series(0, :quarter - 1) i
) made;

--------

INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
SELECT 'group', 'analysts', :ada, seeded('ada', -1), '00000000-0000-0000-0000-000000000000'::uuid
UNION ALL
SELECT 'account', seeded('account', i % :others)::text, :ada, seeded('ada', -1), seeded('ada', i) FROM generate_series(0, :half - 1) i
UNION ALL
SELECT 'group', 'finance', :bob, seeded('bob', -1), seeded('bob', i) FROM generate_series(0, :quarter - 1) i
UNION ALL
SELECT 'group', 'analysts', seeded('account', i / :each), seeded('namespace', i / :each), seeded('other', i) FROM generate_series(0, :quarter - 1) i;

INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at)
SELECT account_id, coalesce(nullif(dataset_id, '00000000-0000-0000-0000-000000000000'), namespace_id), subject_kind, subject_id, 'viewer', now()
FROM directory_grants;

--------

SELECT audit_partition(month::date) FROM generate_series(date_trunc('month', :since), now(), interval '1 month') month;

INSERT INTO audit (account_id, at, id, actor_id, actor, address, request_id, action, kind, target, namespace, dataset, detail, outcome)
SELECT :ada, :since + i * :every, seeded('audit', i), :ada, 'ada', '127.0.0.1', 'request-' || i,
    'share.grant', 'dataset', seeded('ada', i / 2)::text, 'warehouse', 'dataset-' || i / 2, 'entry-' || i, 'done'
FROM generate_series(0, :all - 1) i;
