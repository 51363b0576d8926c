package postgres

import (
	"context"
	"fmt"

	"quern.dev/quern/internal/fault"
)

// CheckRole returns a fault for a role that grants cannot limit to what the service needs: a role that does not
// exist, or one that can do everything that the current role can.
func (db *DB) CheckRole(ctx context.Context, role string) error {
	return db.Do(ctx, func(q Querier) error {
		var (
			exists, isMember bool
			current          string
		)

		if err := q.QueryRow(ctx, sqlRole, role).Scan(&exists, &isMember, &current); err != nil {
			return err
		}

		switch {
		case !exists:
			return fault.New(fault.NotFound, fmt.Sprintf("There is no role %q. Create it first: CREATE ROLE %s LOGIN PASSWORD '…'.", role, role))
		case isMember:
			return fault.New(fault.Conflict, fmt.Sprintf(
				"The role %q cannot be limited by grants: it is the role that migrates (%q), a member of that role or a superuser. Use another role to serve.", role, current))
		default:
			return nil
		}
	})
}

// Grant grants a role the rights that the service needs in the schema and revokes those that it must not have, in one
// transaction. It needs the owner's connection, and may be repeated.
func (db *DB) Grant(ctx context.Context, role string) error {
	return db.InTx(ctx, func(tx Tx) error {
		if _, err := tx.Exec(ctx, sqlLockGrants); err != nil {
			return err
		}

		statements, err := selectGrants(ctx, tx, role)
		if err != nil {
			return err
		}

		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}

		missing, excess, err := selectRights(ctx, tx, role)

		switch {
		case err != nil:
			return err
		case len(missing) > 0:
			return fault.New(fault.Conflict, fmt.Sprintf("The role %q could not be granted %s. Run this command as the owner of the schema.", role, Few(missing)))
		case len(excess) > 0:
			return fault.New(fault.Conflict, fmt.Sprintf(
				"The role %q has %s from another role or grantor. Revoke that as a superuser, and repeat this command.", role, Few(excess)))
		default:
			return nil
		}
	})
}

// CheckRights fails if the role lacks rights that the service needs. It returns the rights that the role should not
// have. For a role that may act as the owner it returns none, because such a role was chosen to serve and to migrate.
func (db *DB) CheckRights(ctx context.Context) (excess []string, err error) {
	var found Condition

	if found, err = db.Examine(ctx); err != nil {
		return nil, err
	}

	if len(found.Missing) > 0 {
		return nil, fault.New(fault.Unavailable, fmt.Sprintf("The database role %q lacks %s: run `quernd migrate --grant %s` as the owner.",
			found.Role, Few(found.Missing), found.Role))
	}

	if found.ActsAsOwner {
		return nil, nil
	}

	return found.Excess, nil
}

// Few returns the first right and the number of the others, for a message.
func Few(rights []string) string {
	switch len(rights) {
	case 0:
		return "nothing"
	case 1:
		return rights[0]
	default:
		return fmt.Sprintf("%s and %d more", rights[0], len(rights)-1)
	}
}
