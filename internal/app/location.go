package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

const (
	// markEvery is the interval at which one of the replicas writes a sign of life.
	markEvery = 30 * time.Second
	// markDelay is how long a new process writes no sign of life. The original of a database that was just copied
	// writes its next sign of life before markDelay is over, so the copy is refused and not the original.
	markDelay = 2 * markEvery
	// markSettles is how long the store must show no new sign of life before a database without the latest one
	// continues.
	markSettles = 3 * markEvery
	// marksLost is how far the last sign of life of a database may be behind that of the store: a standby that takes over
	// may have lost the latest ones.
	marksLost = 5 * time.Minute
	// lookAgain is the pause before a refusal is final: `quernd store claim` writes to the database first and to the
	// store second.
	lookAgain = time.Second
)

const decide = "To continue with this database and this bucket, run `quernd store claim`: any other quernd that uses the bucket then stops. " +
	"For a second installation, use a copy of the bucket. See docs/operations.md, Restore."

// refusedError reports that the location in the store does not belong to this database. Only the operator can resolve
// it.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

func refuse(format string, args ...any) error {
	return &refusedError{"The bucket " + fmt.Sprintf(format, args...)}
}

func refused(err error) bool {
	_, is := errors.AsType[*refusedError](err)

	return is
}

// errBehind reports that the store has a newer heartbeat than the database, so the database is probably a restored copy.
var errBehind = errors.New("the last sign of life in the bucket is missing in the database; checking whether another copy of the database uses the bucket")

// compare returns nil if the database may use the location in the store. The epoch of the store must have been read
// first, because signs of life are written to the database before they are written to the store.
func compare(held blob.Epoch, mine postgres.Epoch) error {
	switch {
	case held.Deployment != mine.Deployment:
		return refuse("and prefix belong to the deployment %q and not to %q. Use another prefix, or the database that belongs to it.", held.Deployment, mine.Deployment)
	case held.Database != mine.Database:
		return refuse("belongs to another copy of this database: this one was restored from a dump, moved or cloned. %s", decide)
	case held.Number != mine.Number:
		return refuse("is in epoch %d and this database in epoch %d: another copy of the database or of the bucket is in use. %s", held.Number, mine.Number, decide)
	case held.Mark.After(mine.Mark.Add(marksLost)):
		return refuse("was in use at %s, and the data of this database ends at %s: the database was restored to an earlier time. %s",
			held.Mark.UTC().Format(time.RFC3339), mine.Mark.UTC().Format(time.RFC3339), decide)
	case held.Mark.After(mine.Mark):
		return errBehind
	default:
		return nil
	}
}

// location is the bucket and prefix, together with the database that uses them.
type location struct {
	db      *postgres.DB
	store   *blob.Store
	started time.Time
	recent  look

	mu      sync.Mutex
	problem error     // error of the store alone at the last check
	unknown time.Time // sign of life that the database lacks
	since   time.Time // when unknown was first seen
}

// check claims the location if it has no epoch, compares the epochs, and writes a sign of life when one is due. A
// refusedError is final. Any other error means that the comparison was not possible now.
func (p *location) check(ctx context.Context) error {
	err := p.look(ctx)
	if !refused(err) {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookAgain):
		return p.look(ctx)
	}
}

func (p *location) look(ctx context.Context) error {
	held, mine, err := p.read(ctx)
	if err != nil {
		return err
	}

	if err := p.settle(compare(held, mine), held.Mark); err != nil {
		return err
	}

	if err := checkAddress(ctx, p.db, p.store); err != nil {
		return err
	}

	if !mine.Bound {
		return p.db.BindEpoch(ctx)
	}

	return p.mark(ctx, held)
}

// checkAddress refuses a store whose bucket or prefix differs from that in the addresses of the tables. It reads one
// table, because all tables are in the same location.
func checkAddress(ctx context.Context, db *postgres.DB, store *blob.Store) error {
	var address string

	if err := db.Do(ctx, func(q postgres.Querier) (err error) {
		address, err = lake.AnyAddress(ctx, q)

		return err
	}); err != nil {
		return err
	}

	if address == "" || strings.HasPrefix(address, store.URI("")) {
		return nil
	}

	return refuse("and prefix are %s, but the tables of this database have addresses such as %s. A copy of a bucket needs the same name and "+
		"prefix, at another endpoint. Correct QUERN_S3_BUCKET and QUERN_S3_PREFIX. See docs/operations.md, Restore.", store.URI(""), address)
}

// read reads the epoch of the store, then that of the database.
func (p *location) read(ctx context.Context) (held blob.Epoch, mine postgres.Epoch, err error) {
	held, err = p.store.Epoch(ctx)
	empty := fault.Is(err, fault.NotFound)
	p.note(err, empty)

	if err != nil && !empty {
		return held, mine, err
	}

	if mine, err = p.db.Epoch(ctx); err != nil || !empty {
		return held, mine, err
	}

	if mine.Bound {
		return held, mine, refuse("has no epoch, but this database was used with a bucket that has one: this is another bucket or prefix, or the bucket was emptied. %s", decide)
	}

	err = p.store.ClaimEpoch(ctx, blob.Epoch{Deployment: mine.Deployment, Database: mine.Database, Number: mine.Number})
	if fault.Is(err, fault.Conflict) {
		return held, mine, &refusedError{fault.From(err).Message}
	}

	if err == nil {
		held, err = p.store.Epoch(ctx)
	}

	p.note(err, false)

	return held, mine, err
}

// note keeps the last error of the store, for readiness.
func (p *location) note(err error, fine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.problem = err
	if fine {
		p.problem = nil
	}
}

// storeProblem returns the error of the store at the last check.
func (p *location) storeProblem() error {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.problem
}

// settle decides about a database that lacks only the latest signs of life. If no new one appears, the database is a
// standby that took over and lost them, and it continues. If new ones appear, another copy of the database uses the
// location.
func (p *location) settle(err error, sign time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	switch {
	case !errors.Is(err, errBehind):
		p.unknown = time.Time{}

		return err
	case p.unknown.IsZero():
		p.unknown, p.since = sign, time.Now()
	case !p.unknown.Equal(sign):
		return refuse("is used by another copy of this database, whose last sign of life is from %s. %s", sign.UTC().Format(time.RFC3339), decide)
	}

	if time.Since(p.since) < markSettles {
		return errBehind
	}

	return nil
}

// mark writes a sign of life, to the database first and then to the store.
func (p *location) mark(ctx context.Context, held blob.Epoch) error {
	if time.Since(p.started) < markDelay {
		return nil
	}

	marked, err := p.db.MarkEpoch(ctx, held.Number, held.Mark, markEvery)
	if err != nil || !marked {
		return err
	}

	mine, err := p.db.Epoch(ctx)
	if err != nil {
		return err
	}

	held.Mark = mine.Mark

	return p.store.MarkEpoch(ctx, held)
}

// mayRemove returns an error unless the location belongs to this database. The store calls it before each removal.
func (p *location) mayRemove(ctx context.Context) error {
	err := p.recent.recent(func() error { return p.look(context.WithoutCancel(ctx)) })
	if err == nil {
		return nil
	}

	e := fault.Wrap(err, fault.Unavailable, "Nothing can be removed from the object store now. Try again shortly.")
	e.RetryAfter = storeEvery

	return e
}

// claim binds the location to this database, as the operator decided.
func (p *location) claim(ctx context.Context) (blob.Epoch, error) {
	held, err := p.store.Epoch(ctx)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return held, err
	}

	mine, err := p.db.Epoch(ctx)
	if err != nil {
		return held, err
	}

	if held.Deployment != "" && held.Deployment != mine.Deployment {
		return held, compare(held, mine)
	}

	if err := checkAddress(ctx, p.db, p.store); err != nil {
		return held, err
	}

	if err := p.db.RaiseEpoch(ctx, held.Number); err != nil {
		return held, err
	}

	if mine, err = p.db.Epoch(ctx); err != nil {
		return held, err
	}

	taken := blob.Epoch{Deployment: mine.Deployment, Database: mine.Database, Number: mine.Number, Mark: mine.Mark}

	return taken, p.store.TakeEpoch(ctx, taken)
}
