package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// The databases of the tests belong to ownerRole, which migrates them. The tests themselves connect as this role. Services
// connect as servingRole, which has the rights that `quernd migrate --grant` grants. Both have the password of the server's
// superuser.
const ownerRole, servingRole = "quern_e2e_owner", "quern_e2e"

// sharedRoles creates the roles on the stack's server once.
type sharedRoles struct {
	once sync.Once
	err  error
}

func (r *sharedRoles) make(t *testing.T) {
	t.Helper()
	r.once.Do(func() {
		r.err = makeRoles(context.WithoutCancel(t.Context()), stack.Env(t, "QUERN_TEST_DATABASE_URL"))
	})
	require.NoError(t, r.err, "is the stack running? make stack")
}

// makeRoles creates the roles on a server if they do not exist. Other test processes may create them at the same time. The owner may read
// pg_stat_activity of other roles, which tests need. The serving role has the timeouts that a service cannot set through a pooler.
func makeRoles(ctx context.Context, address string, more ...string) error {
	server, err := url.Parse(address)
	if err != nil {
		return err
	}

	secret, _ := server.User.Password()

	connection, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()

	var all []string

	for _, statements := range [][]string{
		{fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", ownerRole, secret), "GRANT pg_read_all_stats, pg_signal_backend TO " + ownerRole},
		{
			fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", servingRole, secret),
			"ALTER ROLE " + servingRole + " SET statement_timeout = '15s'", "ALTER ROLE " + servingRole + " SET lock_timeout = '5s'",
			"ALTER ROLE " + servingRole + " SET idle_in_transaction_session_timeout = '30s'",
			"ALTER ROLE " + servingRole + " SET plan_cache_mode = force_generic_plan", "ALTER ROLE " + servingRole + " SET jit = off",
		},
	} {
		all = append(all, "DO $$ BEGIN "+strings.Join(statements, "; ")+"; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")
	}

	for _, statement := range append(all, more...) {
		if _, err := connection.Exec(ctx, statement); err != nil {
			return err
		}
	}

	return nil
}

// asRole returns the address of a database for another role of the tests.
func asRole(t *testing.T, address, role string) string {
	t.Helper()

	u, err := url.Parse(address)
	require.NoError(t, err)

	u.User = url.UserPassword(role, password(t, address))

	return u.String()
}

// asServing replaces the owner's address in the settings with that of the serving role, in some tests through PgBouncer.
func (s *service) asServing(settings []string) []string {
	s.t.Helper()

	served := slices.Clone(settings)

	for i, one := range served {
		address, found := strings.CutPrefix(one, "QUERN_DATABASE_URL=")
		if !found || !strings.Contains(address, "//"+ownerRole+":") {
			continue
		}

		served[i] = "QUERN_DATABASE_URL=" + asRole(s.t, address, servingRole)
		if pooled, is := throughPgBouncer(s.t, served[i]); is {
			served[i] = pooled
			served = append(served, "QUERN_DATABASE_POOLER=true")
		}
	}

	return served
}

// documented runs the blocks of operations.md that are marked with a name, in order in one shell with this environment. It
// returns the QUERN_ variables that the blocks set.
func documented(t *testing.T, mark string, env []string) (made []string) {
	t.Helper()

	content, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)

	var script strings.Builder

	for _, block := range docBlocks(t, string(content)) {
		if block.info == "sh run="+mark {
			script.WriteString(block.text)
		}
	}

	require.NotEmpty(t, script.String())
	script.WriteString("\nenv | grep ^QUERN_ >made\n")

	path := "PATH=" + filepath.Dir(binary()) + ":" + os.Getenv("PATH")
	command := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", script.String())
	command.Dir, command.Env = t.TempDir(), slices.Concat(env, []string{path})
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)

	settings, err := os.ReadFile(filepath.Join(command.Dir, "made"))
	require.NoError(t, err)

	return strings.Split(strings.TrimSpace(string(settings)), "\n")
}

// TestDocumentedRoles follows operations.md exactly, on a server without Quern's roles and databases. The service must work as
// the serving role, and this role must not be able to change audit entries in any partition.
func TestDocumentedRoles(t *testing.T) {
	t.Parallel()

	server := newPostgres(t)
	admin, err := url.Parse(asRole(t, server.url, "postgres"))
	require.NoError(t, err)

	made := documented(t, "roles", []string{
		"PGHOST=" + admin.Hostname(), "PGPORT=" + admin.Port(), "PGUSER=postgres", "PGPASSWORD=" + password(t, admin.String()), "PGDATABASE=postgres",
		"PGSSLMODE=disable",
	})

	serving := setting(made, "QUERN_DATABASE_URL")
	s := start(t, scripted, "QUERN_DATABASE_URL="+serving)
	s.databaseURL = setting(made, "QUERN_DATABASE_DIRECT_URL") // the test itself connects as the owner

	// Post rows, load an upload by a job, run a statement, and run a question.
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"n": 1}]}`).status)
	d.loaded(`"mode": "append"`, "n\n2\n")
	require.Len(t, d.table().rows, 2)

	run := d.accept("assistant", `{"response": "Done.", "steps": [{"instruction": "count", "queries": ["SELECT count(*) AS n FROM orders"]}]}`)
	await(t, "the run ends", func() bool {
		var now asked

		call(t, http.MethodGet, s.url+"/query/runs/"+run.RunID, d.bearer, "").json(t, &now)
		require.NotEqual(t, "failed", now.Status, "%+v", now.Error)

		return now.Status == "completed"
	})

	s.requireRights(t, "ok", "the service runs as the role quern; migrating requires another role")
	require.NotContains(t, s.log(), "42501", "something is not allowed that the service needs")

	// Partitions of the past, of the present and of future years, all created by the service.
	withDatabase(t, serving, func(ctx context.Context, connection *pgx.Conn) {
		for _, month := range []string{"2020-01-01", "2033-03-01"} {
			_, err := connection.Exec(ctx, `SELECT audit_partition($1::text::date)`, month)
			require.NoError(t, err)
		}
	})

	partitions := s.texts(`SELECT relid::text FROM pg_partition_tree('audit')`)
	require.Greater(t, len(partitions), 6, "%v", partitions)

	before := s.count(`SELECT count(*) FROM audit`)
	require.Positive(t, before)

	withDatabase(t, serving, func(ctx context.Context, connection *pgx.Conn) {
		for _, table := range partitions {
			for _, statement := range []string{
				"UPDATE %s SET actor = 'nobody'", "DELETE FROM %s", "TRUNCATE %s", "DROP TABLE %s", "ALTER TABLE %s RENAME TO gone", "ALTER TABLE %s ADD more text",
				"CREATE RULE quiet AS ON INSERT TO %s DO INSTEAD NOTHING", "ALTER TABLE audit DETACH PARTITION %s", "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE",
				"CREATE TRIGGER quiet BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
			} {
				_, err := connection.Exec(ctx, fmt.Sprintf(statement, table))
				require.Error(t, err, statement, table)
			}
		}
	})

	require.GreaterOrEqual(t, s.count(`SELECT count(*) FROM audit`), before)

	// The doctor reports missing and excessive rights, and its command corrects both.
	for _, broken := range []struct{ statement, found string }{
		{"REVOKE USAGE ON SEQUENCE river_job_id_seq FROM quern", "lacks USAGE on river_job_id_seq"},
		{"GRANT DELETE ON audit_2033_03 TO quern", "has DELETE on audit_2033_03"},
		{"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO quern; GRANT UPDATE (actor) ON audit TO PUBLIC", "has UPDATE on audit"},
	} {
		withDatabase(t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
			_, err := connection.Exec(ctx, broken.statement)
			require.NoError(t, err)
		})
		require.Equal(t, "as the owner: quernd migrate --grant quern", s.requireRights(t, "fail", broken.found).Fix)
		s.quernd("migrate", "--grant", "quern")
		s.requireRights(t, "ok", "runs as the role quern;")
	}

	_, err = s.command("migrate", "--grant", "postgres")
	require.ErrorContains(t, err, "cannot be limited by grants")
	_, err = s.command("migrate", "--grant", "nobody-"+uuid.NewString())
	require.ErrorContains(t, err, "CREATE ROLE")
}

// requireRights checks the doctor's finding about the rights of the database role, with the settings of the service.
func (s *service) requireRights(t *testing.T, status, found string) finding {
	t.Helper()

	examined := (&patient{t: t, settings: append(slices.Clone(s.settings), "QUERN_SANDBOX_DIR="+t.TempDir())}).examine(t)
	i := slices.IndexFunc(examined, func(f finding) bool { return f.Check == "database rights" })
	require.NotEqual(t, -1, i, "%+v", examined)
	require.Equal(t, status, examined[i].Status, "%+v", examined[i])
	require.Contains(t, examined[i].Found, found)

	return examined[i]
}

// texts returns the only column of a statement's result.
func (s *service) texts(statement string) (list []string) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		rows, err := connection.Query(ctx, statement)
		require.NoError(s.t, err)

		list, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(s.t, err)
	})

	return list
}
