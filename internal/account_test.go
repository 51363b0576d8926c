package internal_test

import (
	"encoding/json"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres/pgtest"
)

// directories are the small tables that say in which account something is. They are read before the account is known.
func directories() []string {
	return []string{"directory_connections", "directory_grants", "directory_identities", "directory_limits", "directory_names", "directory_tokens", "directory_webhooks"}
}

// withoutAccounts are tables that have no rows of accounts: the state of the deployment, River's tables, and the order of events.
func withoutAccounts() []string {
	return []string{"event_head", "goose_db_version", "river_job", "schema_state", "store_epoch"}
}

// why is the reason why a statement may read rows of several accounts.
type why string

const (
	isDue    why = "finds due work of all accounts by time or key; a database that is split does it on each part"
	isFsck   why = "compares the bucket with the rows of all accounts; likewise"
	isListed why = "gets a list of accounts, or of things in accounts, and finds each by its key; each part can be asked for its own"
	isShared why = "follows a directory from the caller to the accounts that shared something; each part can be asked for its own"
	isUsed   why = "finds what other accounts have of a dataset that is erased, moved or loaded again; each part can be asked"
	isBound  why = "finds the files that others uploaded for datasets of the account; each part can be asked"
	isKeys   why = "seals the secrets of all accounts with another key of the operator; each part can be asked"
	isMoved  why = "restores the whole deployment; each part can be restored for its own"
	inOrder  why = "gives the events of the whole deployment their order"
	isPart   why = "is the beginning of other statements"
)

// acrossAccounts returns the statements that may read rows of several accounts, each with the reason. It does not list statements that
// read several accounts in directories only.
func acrossAccounts() map[string]why {
	return map[string]why{
		"auth.sqlSelectAccounts":      isListed,
		"auth.sqlSelectLapsed":        isListed,
		"catalog.sqlFindAmong":        isListed,
		"catalog.sqlFindApart":        isShared,
		"catalog.sqlFindShared":       isShared,
		"catalog.sqlFindWithin":       isShared,
		"catalog.sqlLockStale":        isDue,
		"catalog.sqlRank":             isListed,
		"catalog.sqlSampleShared":     isShared,
		"catalog.sqlSelectDays":       isListed,
		"catalog.sqlSelectErasable":   isDue,
		"catalog.sqlSelectLimits":     isListed,
		"catalog.sqlSelectNamed":      isShared,
		"catalog.sqlSelectOnTrino":    isListed,
		"catalog.sqlSelectRoom":       isBound,
		"catalog.sqlSelectStored":     isBound,
		"catalog.sqlSelectRanked":     isListed,
		"catalog.sqlStaleDrafts":      isDue,
		"erase.sqlAuditActor":         isUsed,
		"erase.sqlAuditDetail":        isUsed,
		"erase.sqlBenchmarks":         isUsed,
		"erase.sqlByTarget":           isUsed,
		"erase.sqlCountDatasets":      isUsed,
		"erase.sqlCountHistory":       isUsed,
		"erase.sqlEvents":             isUsed,
		"erase.sqlEventsAbout":        isUsed,
		"erase.sqlGrantsTo":           isUsed,
		"erase.sqlNamedBenchmarks":    isUsed,
		"erase.sqlNamedConversations": isUsed,
		"erase.sqlNamedDefinitions":   isUsed,
		"erase.sqlNamedDrafts":        isUsed,
		"erase.sqlNamedIngestions":    isUsed,
		"erase.sqlNamedSemantics":     isUsed,
		"erase.sqlNamedVerified":      isUsed,
		"erase.sqlNewEvents":          isUsed,
		"erase.sqlNewEventsAbout":     isUsed,
		"erase.sqlOthersOnce":         isUsed,
		"erase.sqlOthersRemembered":   isUsed,
		"erase.sqlOwnIceberg":         isUsed,
		"erase.sqlSelectLast":         isDue,
		"erase.sqlSources":            isUsed,
		"erase.sqlSourcesInto":        isUsed,
		"erase.sqlTargets":            isUsed,
		"erase.sqlVerified":           isUsed,
		"event.sqlNumber":             inOrder,
		"event.sqlSelect":             isListed,
		"event.sqlSelectHead":         inOrder,
		"icebergrest.sqlDropStale":    isDue,
		"ingest.sqlSelectForgotten":   isDue,
		"connection.sqlLockOtherKeys": isKeys,
		"ingest.sqlSelectStranded":    isDue,
		"job.sqlRescue":               isDue,
		"job.sqlTakeExpired":          isDue,
		"lake.sqlAnyAddress":          isFsck,
		"lake.sqlClaimRemovable":      isDue,
		"lake.sqlMovePointers":        isMoved,
		"lake.sqlSelectCommitted":     isFsck,
		"lake.sqlSelectDue":           isDue,
		"lake.sqlSelectEntries":       isMoved,
		"lake.sqlSelectKnown":         isFsck,
		"lake.sqlSelectMoved":         isMoved,
		"lake.sqlSelectRemoved":       isDue,
		"lake.sqlSelectSuperseded":    isDue,
		"llm.sqlSelectLate":           isDue,
		"query.sqlClaimExpired":       isDue,
		"query.sqlDeletePiece":        isDue,
		"query.sqlExpiredLongs":       isDue,
		"query.sqlKeptPieces":         isFsck,
		"query.sqlKnownExports":       isFsck,
		"query.sqlKnownPieces":        isFsck,
		"query.sqlLongColumns":        isPart,
		"query.sqlReadyExports":       isFsck,
		"query.sqlRemovable":          isDue,
		"query.sqlSelectReaders":      isUsed,
		"run.sqlClaimObjects":         isDue,
		"run.sqlKeptObjects":          isFsck,
		"run.sqlKnownObjects":         isFsck,
		"run.sqlSelectLate":           isDue,
		"run.sqlSelectNews":           isListed,
		"run.sqlSelectOld":            isDue,
		"run.sqlSelectReaders":        isUsed,
		"run.sqlSelectUnsure":         isDue,
		"source.sqlSelectDue":         isDue,
		"upload.sqlClaimRemovable":    isDue,
		"upload.sqlDueBound":          isUsed,
		"upload.sqlEndBegun":          isMoved,
		"upload.sqlForgetBound":       isUsed,
		"upload.sqlForsakeFiles":      isUsed,
		"upload.sqlMoveBound":         isUsed,
		"upload.sqlSelectCompleted":   isFsck,
		"upload.sqlSelectExpired":     isDue,
		"upload.sqlSelectKept":        isUsed,
		"upload.sqlSelectKnown":       isFsck,
		"upload.sqlSelectReserved":    isDue,
		"webhook.sqlClaimLanes":       isDue,
		"webhook.sqlCleanDeliveries":  isDue,
		"webhook.sqlOldPushes":        isDue,
		"webhook.sqlSelectListeners":  isShared,
	}
}

// TestOneAccount checks with the plans of PostgreSQL that every statement reads the rows of one account, so that the database can be split by
// account without changing a statement.
func TestOneAccount(t *testing.T) {
	t.Parallel()

	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	require.NoError(t, err)

	defer func() { _ = conn.Close(t.Context()) }()

	// Plans that do not depend on values, and in which a condition between two tables stands at the inner one.
	for _, setting := range []string{"plan_cache_mode = force_generic_plan", "enable_hashjoin = off", "enable_mergejoin = off", "enable_seqscan = off"} {
		_, err := conn.Exec(t.Context(), "SET "+setting)
		require.NoError(t, err)
	}

	for control, found := range map[string][]string{
		`SELECT name FROM datasets WHERE account_id = $1 AND id = $2`:                                                                      nil,
		`SELECT d.name FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id WHERE d.account_id = $1`: nil,
		`SELECT d.name FROM directory_grants g JOIN datasets d ON d.account_id = g.account_id WHERE g.subject_id = $1`:                     {"datasets"},
		`SELECT name FROM datasets WHERE id = $1`:                                                                                          {"datasets"},
		`SELECT name FROM datasets WHERE account_id = ANY ($1)`:                                                                            {"datasets"},
		`SELECT name FROM datasets WHERE account_id = $1 OR id = $2`:                                                                       {"datasets"},
		`SELECT name FROM datasets WHERE account_id > $1 ORDER BY account_id LIMIT 1`:                                                      {"datasets"},
		`DELETE FROM grants WHERE target_id = $1`:                                                                                          {"grants"},
		`UPDATE datasets SET name = $2 FROM accounts a WHERE a.username = $1`:                                                              {"accounts", "datasets"},
	} {
		require.ElementsMatch(t, found, unbound(t, conn, control), control)
	}

	files, constants := sources(t), map[string]map[string]ast.Expr{}

	for _, file := range files {
		if constants[file.pkg] == nil {
			constants[file.pkg] = map[string]ast.Expr{}
		}

		maps.Copy(constants[file.pkg], constantsOf(file))
	}

	allowed := acrossAccounts()

	for _, file := range files {
		for name, statement := range sqlConstants(t, file, constants[file.pkg]) {
			key := strings.TrimPrefix(file.pkg, "internal/") + "." + name
			found := unbound(t, conn, statement)

			if _, ok := allowed[key]; ok {
				require.NotEmpty(t, found, "%s reads the rows of one account: remove it from the list", key)
				delete(allowed, key)
			} else if len(found) > 0 {
				t.Errorf("%s: %s reads rows of more than one account in %v. Add a condition for the account.", file.path, key, found)
			}
		}
	}

	require.Empty(t, allowed, "these statements do not exist")
}

// planned is a step of a plan.
type planned struct {
	Type   string    `json:"Node Type"`
	Table  string    `json:"Relation Name"`
	Alias  string    `json:"Alias"`
	CTE    string    `json:"CTE Name"`
	Part   string    `json:"Subplan Name"`
	Index  string    `json:"Index Cond"`
	Again  string    `json:"Recheck Cond"`
	Filter string    `json:"Filter"`
	Join   string    `json:"Join Filter"`
	Plans  []planned `json:"Plans"`

	conditions []string // its own, and those of the joins above it
}

// unbound returns the tables from which a statement may read rows of more than one account.
func unbound(t *testing.T, conn *pgx.Conn, statement string) []string {
	t.Helper()

	described, err := conn.Prepare(t.Context(), "", statement)
	require.NoError(t, err, statement)
	_, err = conn.Exec(t.Context(), "PREPARE one AS "+statement)
	require.NoError(t, err, statement)

	values := ""
	if n := len(described.ParamOIDs); n > 0 {
		values = "(NULL" + strings.Repeat(", NULL", n-1) + ")"
	}

	var (
		text  []byte
		plans []struct{ Plan planned }
	)

	require.NoError(t, conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE one"+values).Scan(&text), statement)
	_, err = conn.Exec(t.Context(), "DEALLOCATE one")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &plans))

	steps := plan{}
	for _, p := range plans {
		steps.add(&p.Plan, nil)
	}

	var found []string

	for _, step := range steps {
		if step.Table != "" && step.Type != "ModifyTable" && step.hasAccounts() && !steps.isBound(step.Alias, nil) {
			found = append(found, step.Table)
		}
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// plan contains the steps of a plan that have rows with an alias, by alias, and common table expressions, by name.
type plan map[string]*planned

func (p plan) add(step *planned, joins []string) {
	if step.Alias != "" && step.Type != "ModifyTable" {
		step.conditions = append([]string{step.Index, step.Again, step.Filter}, joins...)
		p[step.Alias] = step
	}

	if name, ok := strings.CutPrefix(step.Part, "CTE "); ok {
		p["CTE "+name] = step
	}

	if step.Join != "" {
		joins = append(slices.Clone(joins), step.Join)
	}

	for i := range step.Plans {
		p.add(&step.Plans[i], joins)
	}
}

// hasAccounts reports whether the step reads a table with rows of accounts that is not a directory.
func (s *planned) hasAccounts() bool {
	return !strings.HasPrefix(s.Table, "pg_") && !slices.Contains(directories(), s.Table) && !slices.Contains(withoutAccounts(), s.Table)
}

// isBound reports whether a step reads the rows of one account: the account is a parameter, or that of another step that is bound.
func (p plan) isBound(alias string, before []string) bool {
	step, ok := p[alias]
	if !ok || slices.Contains(before, alias) {
		return false
	}

	before = append(slices.Clone(before), alias)

	switch step.Type {
	case "CTE Scan":
		return p["CTE "+step.CTE].isWholly(p, before)
	case "Subquery Scan":
		return step.isWholly(p, before)
	}

	column := "account_id"

	switch step.Table {
	case "accounts":
		column = "id"
	case "iceberg_tables": // its layout is Iceberg's
		column = "table_namespace"
	}

	// A column has its alias in the conditions of joins only.
	own := regexp.MustCompile(`(?:^|[( ])(?:` + alias + `\.)?` + column + ` = \(?([$][0-9]+|'[0-9a-f]|"?[A-Za-z_0-9]+"?\.[a-z_]+)`)
	other := regexp.MustCompile(`("?[A-Za-z_0-9]+"?\.[a-z_]+)\)?(?:::text\)?)? = ` + alias + `\.` + column + `\b`)

	for _, condition := range step.conditions {
		if strings.Contains(condition, " OR ") {
			continue
		}

		for _, found := range append(own.FindAllStringSubmatch(condition, -1), other.FindAllStringSubmatch(condition, -1)...) {
			from, _, isColumn := strings.Cut(found[1], ".")
			if !isColumn || p.isBound(strings.Trim(from, `"`), before) {
				return true
			}
		}
	}

	return false
}

// isWholly reports whether all tables below a step are bound. A step without any has a list of accounts, for example in a parameter.
func (s *planned) isWholly(p plan, before []string) bool {
	tables := s.tables()

	return len(tables) > 0 && !slices.ContainsFunc(tables, func(alias string) bool { return !p.isBound(alias, before) })
}

func (s *planned) tables() (aliases []string) {
	if s.Table != "" && s.Type != "ModifyTable" {
		aliases = append(aliases, s.Alias)
	}

	for i := range s.Plans {
		aliases = append(aliases, s.Plans[i].tables()...)
	}

	return aliases
}
