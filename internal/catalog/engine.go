package catalog

import (
	"context"
	"fmt"
	"strings"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
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

		if attached, err := lake.IsAttached(ctx, tx, found.table()); err != nil || attached && engine != DuckDB {
			if err == nil {
				err = fault.New(fault.Conflict, fmt.Sprintf("The dataset %s is attached: Trino does not have the files of the other catalog.", at))
			}

			return err
		}

		return c.setEngineTx(ctx, tx, *found, engine, string(engine))
	})
}

func (c Catalog) setEngineTx(ctx context.Context, tx postgres.Tx, d Dataset, engine Engine, detail string) error {
	isChanged, err := updateEngine(ctx, tx, d, engine)
	if err != nil || !isChanged {
		return err
	}

	entry := c.byOperator(d, "dataset.engine")
	entry.Detail = detail

	return audit.WriteTx(ctx, tx, entry)
}

// crossTx makes Trino read a dataset whose data files have grown beyond the threshold. Only the snapshot that crosses it does so: an operator
// who then chooses DuckDB is not overruled by the next one.
func (c Catalog) crossTx(ctx context.Context, tx postgres.Tx, d Dataset, content Content) error {
	if c.TrinoThreshold == 0 || content.IsAttached || content.Bytes <= c.TrinoThreshold || content.BytesBefore > c.TrinoThreshold {
		return nil
	}

	return c.setEngineTx(ctx, tx, d, Trino, fmt.Sprintf("%s: its data files have %d bytes, more than QUERN_TRINO_THRESHOLD", Trino, content.Bytes))
}

// OnTrino returns the addresses of the datasets whose engine is Trino.
func (c Catalog) OnTrino(ctx context.Context) (paths []Path, err error) {
	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		paths, err = selectOnTrino(ctx, q)

		return err
	})

	return paths, err
}
