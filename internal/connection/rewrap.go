package connection

import (
	"context"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const rewrapTogether = 100

// Rewrap seals the secrets of all accounts that are sealed with Keys.Other with Keys.Current, and returns their number. It can be repeated, and the service may
// run meanwhile.
func Rewrap(ctx context.Context, db *postgres.DB, keys Keys) (n int, err error) {
	if keys.Current == "" {
		return 0, fault.New(fault.Conflict, "QUERN_SOURCE_KEY is missing: it seals the secrets from now on.")
	}

	current, err := keyID(keys.Current)
	if err != nil {
		return 0, err
	}

	var (
		last    Connection
		unknown error
	)

	for more := true; more; {
		err := db.InTx(ctx, func(tx postgres.Tx) error {
			found, err := lockOtherKeys(ctx, tx, last, current, rewrapTogether)
			if err != nil {
				return err
			}

			more = len(found) == rewrapTogether

			for _, one := range found {
				last = one

				if one.secret, err = keys.rewrap(one.secret, one.Account, one.ID); err != nil {
					unknown = err

					continue
				}

				if err := update(ctx, tx, one); err != nil {
					return err
				}

				n++
			}

			return nil
		})
		if err != nil {
			return n, err
		}
	}

	return n, unknown
}
