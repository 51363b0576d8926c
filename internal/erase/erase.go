package erase

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Kind is what is erased.
type Kind string

const (
	Dataset Kind = "dataset"
	User    Kind = "user"
	History Kind = "history" // of a dataset, which keeps its current rows
)

// State is how far an erasure is.
type State string

const (
	Running State = "running"
	Erased  State = "erased" // by the workers; the last step of the command is missing
	Done    State = "done"
)

// Receipt says what an erasure removes, and what it cannot reach.
type Receipt struct {
	ID          uuid.UUID        `json:"id"`
	Kind        Kind             `json:"kind"`
	Target      string           `json:"target"`
	State       State            `json:"state"`
	RequestedAt time.Time        `json:"requestedAt"`
	FinishedAt  *time.Time       `json:"finishedAt"`
	Erased      map[string]int64 `json:"erased"` // number by kind of thing
	OutOfReach  []string         `json:"outOfReach"`

	account, dataset uuid.UUID
}

// Desk begins and finishes erasures for operators.
type Desk struct {
	DB      *postgres.DB
	Catalog catalog.Catalog
	Jobs    *job.Client
	Now     func() time.Time
}

func (d Desk) now() time.Time { return d.Now().UTC().Truncate(time.Millisecond) }

// BeginDataset begins the erasure of OWNER/NAMESPACE/DATASET or, also for a deleted dataset, OWNER/ID. If it has begun or ended before, its
// receipt is returned.
//
// Faults: NotFound.
func (d Desk) BeginDataset(ctx context.Context, target string) (made Receipt, err error) {
	account, dataset, err := d.findDataset(ctx, target)
	if fault.Is(err, fault.NotFound) {
		return d.earlier(ctx, Dataset, target, err)
	}

	if err != nil {
		return made, err
	}

	made, err = d.begin(ctx, Receipt{Kind: Dataset, Target: target, account: account, dataset: dataset}, func(tx postgres.Tx) error {
		found, err := d.Catalog.EraseTx(ctx, tx, account, dataset)
		if err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, audit.Entry{Account: account, At: d.now(), Actor: audit.Operator, Action: "dataset.erase", Target: found.Audit()})
	})
	if fault.Is(err, fault.NotFound) { // OWNER/ID of a dataset that is erased
		return d.earlier(ctx, Dataset, target, err)
	}

	return made, err
}

// BeginHistory begins the erasure of everything that a dataset had before its current snapshot. If one has begun and not ended, its receipt is returned.
//
// Faults: NotFound, Conflict while files are being loaded.
func (d Desk) BeginHistory(ctx context.Context, target string) (made Receipt, err error) {
	account, dataset, err := d.findDataset(ctx, target)
	if err != nil {
		return made, err
	}

	return d.begin(ctx, Receipt{Kind: History, Target: target, account: account, dataset: dataset}, func(tx postgres.Tx) error {
		found, err := d.Catalog.HoldTx(ctx, tx, account, dataset)
		if err != nil {
			return err
		}

		// Their uploaded files would be erased before they are loaded.
		if open, err := hasOpenLoads(ctx, tx, account, dataset); err != nil || open {
			return cmp.Or(err, error(fault.New(fault.Conflict, "Files are being loaded into the dataset, or wait for an answer. Wait for them or cancel them, then try again.")))
		}

		return audit.WriteTx(ctx, tx, audit.Entry{Account: account, At: d.now(), Actor: audit.Operator, Action: "dataset.eraseHistory", Target: found.Audit()})
	})
}

func (d Desk) findDataset(ctx context.Context, target string) (account, dataset uuid.UUID, err error) {
	parts := strings.Split(target, "/")
	if slices.Contains(parts, "") || len(parts) != 2 && len(parts) != 3 {
		return account, dataset, fault.Invalid("target", "must be OWNER/NAMESPACE/DATASET, or OWNER/ID with the id of a dataset")
	}

	if account, err = d.Catalog.AccountID(ctx, parts[0]); err != nil {
		return account, dataset, err
	}

	if len(parts) == 3 {
		dataset, err = d.Catalog.DatasetID(ctx, catalog.Path{Username: parts[0], Namespace: parts[1], Dataset: parts[2]})

		return account, dataset, err
	}

	if dataset, err = uuid.Parse(parts[1]); err != nil {
		err = fault.Invalid("target", "must be OWNER/NAMESPACE/DATASET, or OWNER/ID with the id of a dataset")
	}

	return account, dataset, err
}

// BeginUser begins the erasure of a user with everything that the account owns. If it has begun or ended before, its receipt is returned.
//
// Faults: NotFound, Conflict if the role of the database cannot change audit entries.
func (d Desk) BeginUser(ctx context.Context, username string) (made Receipt, err error) {
	if err := d.mayFinish(ctx); err != nil {
		return made, err
	}

	username = strings.ToLower(username)

	// The same person may have signed in again before the names in the audit were replaced.
	open, err := d.unfinished(ctx, username)
	if err != nil {
		return made, err
	}

	if open != nil {
		return *open, nil
	}

	account, err := d.Catalog.AccountID(ctx, username)
	if fault.Is(err, fault.NotFound) {
		return d.earlier(ctx, User, username, err)
	}

	if err != nil {
		return made, err
	}

	return d.begin(ctx, Receipt{Kind: User, Target: username, account: account}, func(tx postgres.Tx) error {
		return hideAccount(ctx, tx, account, d.now())
	})
}

// mayFinish refuses a role that cannot change the names in audit entries, before anything is erased. The role that serves cannot.
func (d Desk) mayFinish(ctx context.Context) error {
	may := false

	err := d.DB.Do(ctx, func(q postgres.Querier) (err error) {
		may, err = mayChangeAudit(ctx, q)

		return err
	})
	if err == nil && !may {
		err = fault.New(fault.Conflict, "This command replaces names in audit entries. Set QUERN_DATABASE_URL to the role that runs quernd migrate.")
	}

	return err
}

// unfinished returns the erasure of a user that has not ended; nil if there is none.
func (d Desk) unfinished(ctx context.Context, username string) (found *Receipt, err error) {
	err = d.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = selectByTarget(ctx, q, User, username)

		return err
	})

	if found != nil && found.State == Done {
		found = nil
	}

	return found, err
}

// earlier returns the receipt of the last erasure of a target that no longer exists, or absent if there was none.
func (d Desk) earlier(ctx context.Context, kind Kind, target string, absent error) (found Receipt, err error) {
	err = d.DB.Do(ctx, func(q postgres.Querier) error {
		last, err := selectByTarget(ctx, q, kind, target)
		if err == nil && last == nil {
			return absent
		}

		if last != nil {
			found = *last
		}

		return err
	})

	return found, err
}

// begin records an erasure with what it will remove, hides its target and inserts its job, in one transaction.
func (d Desk) begin(ctx context.Context, made Receipt, hide func(tx postgres.Tx) error) (Receipt, error) {
	err := d.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lockErasures(ctx, tx, made.account); err != nil {
			return err
		}

		open, err := selectOpen(ctx, tx, made.account, made.Kind, made.dataset)
		if err != nil || open != nil {
			if open != nil {
				made = *open
			}

			return err
		}

		if err := hide(tx); err != nil {
			return err
		}

		made.ID, made.State, made.RequestedAt = uuid.Must(uuid.NewV7()), Running, d.now()
		if made.Erased, err = d.countTx(ctx, tx, made); err != nil {
			return err
		}

		if err := insertErasure(ctx, tx, made); err != nil {
			return err
		}

		return d.Jobs.InsertTx(ctx, tx, Args{Account: made.account, Erasure: made.ID}, eraseOpts())
	})

	return made, err
}

// countTx counts what will be erased, and marks the tables of all datasets.
func (d Desk) countTx(ctx context.Context, tx postgres.Tx, of Receipt) (found map[string]int64, err error) {
	datasets := []uuid.UUID{of.dataset}

	if of.Kind == History {
		found = map[string]int64{}

		return found, countHistory(ctx, tx, of.account, of.dataset, found)
	}

	if of.Kind == User {
		if datasets, err = selectDatasets(ctx, tx, of.account); err != nil {
			return nil, err
		}
	}

	if found, err = countDatasets(ctx, tx, of.account, datasets); err != nil {
		return nil, err
	}

	if of.Kind == User {
		if err := countUser(ctx, tx, of.account, found); err != nil {
			return nil, err
		}
	}

	for _, dataset := range datasets {
		if err := lake.EraseTableTx(ctx, tx, lake.Table{Account: of.account, Dataset: dataset}, d.now()); err != nil {
			return nil, err
		}
	}

	return found, nil
}

// Get returns the receipt as it is now.
func (d Desk) Get(ctx context.Context, of Receipt) (found Receipt, err error) {
	err = d.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = selectErasure(ctx, q, of.account, of.ID)

		return err
	})

	return found, err
}

// Finish does what only the owner of the database can do, after the workers are done. It can be repeated.
func (d Desk) Finish(ctx context.Context, of Receipt) (Receipt, error) {
	if of.State != Erased {
		return of, nil
	}

	if err := d.DB.InTx(ctx, func(tx postgres.Tx) error {
		pseudonym := Pseudonym(of.account)
		if err := pseudonymise(ctx, tx, of.account, of.Target, pseudonym); err != nil {
			return err
		}

		if err := audit.WriteTx(ctx, tx, audit.Entry{
			Account: of.account, At: d.now(), Actor: audit.Operator, Action: "account.erase", Target: audit.Target{Kind: "account", ID: of.account.String()}, Detail: pseudonym,
		}); err != nil {
			return err
		}

		return finishErasure(ctx, tx, of.account, of.ID, pseudonym, d.now())
	}); err != nil {
		return of, err
	}

	return d.Get(ctx, of)
}

// Pseudonym is the name of an erased user in what others keep.
func Pseudonym(account uuid.UUID) string { return fmt.Sprintf("erased-%s", account) }
