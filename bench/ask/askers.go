package ask

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

// invite creates count people who may read ada's namespace, each with a token. The tokens are ada's at first, because
// only the service can create one.
func invite(ctx context.Context, s *rig.Service, count int) (names []string, err error) {
	begin := time.Now()

	conn, err := pgx.Connect(ctx, s.Database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)

	for i := range count {
		var made api.CreatedToken
		if err := s.Ask(ctx, "ada", http.MethodPost, "/user/tokens", api.NewToken{Name: "bench", Role: new(api.NewTokenRoleOwner)}, &made); err != nil {
			return nil, err
		}

		name, account, hash := fmt.Sprintf("asker-%d", i), uuid.Must(uuid.NewV7()), sha256.Sum256([]byte(made.Token))

		for _, statement := range []string{sqlAsker, sqlAskerName, sqlAskerIdentity, sqlAskerGrants, sqlAskerInverse, sqlAskerToken, sqlAskerHash} {
			arguments := pgx.NamedArgs{"account": account, "name": name, "ada": s.Accounts["ada"], "hash": hash[:]}
			if _, err := conn.Exec(ctx, statement, arguments); err != nil {
				return nil, fmt.Errorf("%s: %w", statement, err)
			}
		}

		s.Accounts[name], s.Tokens[name] = account, made.Token
		names = append(names, name)
	}

	fmt.Fprintf(os.Stderr, "%d askers in %v\n", count, time.Since(begin).Round(time.Millisecond))

	return names, nil
}

const (
	sqlAsker = `
		INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
		VALUES (@account, 'person', @name, 'elsewhere', @name, 'Asker', '', '{}', now(), now())`
	sqlAskerName     = `INSERT INTO directory_names (username, account_id) VALUES (@name, @account)`
	sqlAskerIdentity = `INSERT INTO directory_identities (issuer, subject, account_id) VALUES ('elsewhere', @name, @account)`
	sqlAskerGrants   = `
		INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at)
		SELECT account_id, id, 'account', @account::uuid::text, 'viewer', now() FROM namespaces WHERE account_id = @ada AND name_key = 'bench'`
	sqlAskerInverse = `
		INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
		SELECT 'account', @account::uuid::text, account_id, id, '00000000-0000-0000-0000-000000000000'
		FROM namespaces WHERE account_id = @ada AND name_key = 'bench'`
	sqlAskerToken = `UPDATE tokens SET account_id = @account WHERE account_id = @ada AND hash = @hash`
	sqlAskerHash  = `UPDATE directory_tokens SET account_id = @account WHERE hash = @hash`
)
