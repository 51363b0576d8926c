package main

import (
	"context"
	"crypto/md5"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/stack"
)

// catalog is a running service with a given number of datasets, as many grants and as many audit entries.
//
//   - ada owns half of the datasets, in a namespace that is shared as a whole with the group analysts.
//     Everything in the audit happened to her, over a year.
//   - bob, one of the analysts, owns a quarter, each shared with the group finance, which is eve.
//   - Other people own a quarter, 50 each, each shared with the analysts.
//
// So bob sees everything: his own, then by grants on datasets, then by the grant on a namespace. The rest
// of the grants are on ada's datasets, to the other people.
type catalog struct {
	*service

	size  int
	since time.Time     // the first audit entry
	every time.Duration // the next one
}

// each is how many datasets every one of the other people owns.
const each = 50

// seededID is the id of the i-th thing of a kind, as sqlSeeded makes it. They are in the order of i, and
// older than any that the service makes.
func seededID(kind string, i int) uuid.UUID {
	sum := md5.Sum([]byte(kind))

	return uuid.MustParse(fmt.Sprintf("0100%s-0000-7000-8000-%012x", hex.EncodeToString(sum[:2]), i+1))
}

const sqlSeeded = `
	CREATE FUNCTION seeded(kind text, i bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
		SELECT ('0100' || left(md5(kind), 4) || '-0000-7000-8000-' || lpad(to_hex(i + 1), 12, '0'))::uuid
	$$`

// startCatalog starts a service and fills its database; stop ends and removes both.
func (b *bench) startCatalog(ctx context.Context, size int, settings ...string) (c *catalog, stop func(), err error) {
	started, stop, err := b.startService(ctx, settings...)
	if err != nil {
		return nil, nil, err
	}

	year := 360 * 24 * time.Hour
	c = &catalog{
		service: started, size: size,
		since: time.Now().UTC().Add(-year).Truncate(time.Second), every: (year / time.Duration(size)).Truncate(time.Microsecond),
	}

	begin := time.Now()
	if err := c.seed(ctx); err != nil {
		stop()

		return nil, nil, fmt.Errorf("seeding: %w", err)
	}

	fmt.Fprintf(os.Stderr, "%d datasets, grants and audit entries in %v\n", size, time.Since(begin).Round(time.Millisecond))

	return c, stop, nil
}

//go:embed seed.sql
var seedSQL string

// seed writes into the tables what the API would write one by one.
func (c *catalog) seed(ctx context.Context) error {
	half, quarter := c.size/2, c.size/4
	script := strings.NewReplacer(
		":ada", "'"+c.accounts["ada"].String()+"'::uuid",
		":bob", "'"+c.accounts["bob"].String()+"'::uuid",
		":all", strconv.Itoa(c.size), ":half", strconv.Itoa(half), ":quarter", strconv.Itoa(quarter),
		":others", strconv.Itoa(quarter/each), ":each", strconv.Itoa(each),
		":since", "'"+c.since.Format(time.RFC3339)+"'::timestamptz", ":every", fmt.Sprintf("interval '%d microseconds'", c.every.Microseconds()),
	).Replace(seedSQL)

	// What is searched costs much, and only one measure needs it.
	for _, statement := range []string{sqlSeeded, `ALTER TABLE datasets DISABLE TRIGGER USER`} {
		if err := stack.Execute(ctx, c.database, statement); err != nil {
			return err
		}
	}

	group, parallel := errgroup.WithContext(ctx)
	for part := range strings.SplitSeq(script, "\n--------\n") {
		group.Go(func() error { return stack.Execute(parallel, c.database, part) })
	}

	if err := group.Wait(); err != nil {
		return err
	}

	// What the database would do by and by must not happen while we measure.
	for _, statement := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if err := stack.Execute(ctx, c.database, statement); err != nil {
			return err
		}
	}

	return nil
}

// The cursors of the service, because the way to the middle of a million is long.

func namespaceCursor(dataset uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(dataset[:])
}

func allCursor(shared byte, account, namespace, dataset uuid.UUID) string {
	place := append([]byte{shared}, account[:]...)
	place = append(place, namespace[:]...)

	return base64.RawURLEncoding.EncodeToString(append(place, dataset[:]...))
}

func (c *catalog) auditCursor(i int) string {
	id := seededID("audit", i)
	at := c.since.Add(time.Duration(i) * c.every)

	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())), id[:]...))
}
