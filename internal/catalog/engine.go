package catalog

import (
	"context"
	"fmt"
	"strings"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Engine is what reads the rows of a dataset for statements.
type Engine string

// The engines.
const (
	DuckDB Engine = "duckdb"
	Trino  Engine = "trino"
)

// ParseEngine returns the engine with a name.
//
// Faults: ValidationFailed.
func ParseEngine(name string) (Engine, error) {
	if e := Engine(name); e == DuckDB || e == Trino {
		return e, nil
	}

	return "", fault.Invalid("engine", "must be duckdb or trino")
}

// SetEngine sets the engine of a dataset. Statements that are running continue on the earlier one.
//
// Faults: NotFound.
func (c Catalog) SetEngine(ctx context.Context, at Path, engine Engine) error {
	return c.DB.InTx(ctx, func(tx postgres.Tx) error {
		account, err := selectAccountID(ctx, tx, strings.ToLower(at.Username))
		if err != nil {
			return err
		}

		found, err := selectDataset(ctx, tx, account, nameKey(at.Namespace), nameKey(at.Dataset), auth.Principal{Account: account})
		if err == nil && found == nil {
			err = fault.New(fault.NotFound, fmt.Sprintf("There is no dataset %s.", at))
		}

		if err != nil {
			return err
		}

		changed, err := updateEngine(ctx, tx, *found, engine)
		if err != nil || !changed {
			return err
		}

		entry := c.byOperator(*found, "dataset.engine")
		entry.Detail = string(engine)

		return audit.WriteTx(ctx, tx, entry)
	})
}

// OnTrino returns the addresses of the datasets whose engine is Trino.
func (c Catalog) OnTrino(ctx context.Context) (paths []Path, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		paths, err = selectOnTrino(ctx, q)

		return err
	})

	return paths, err
}
