// Package catalog measures requests about what exists: accounts, datasets, grants, search and audit entries, also in very
// large catalogs.
package catalog

import (
	"context"
	"crypto/md5"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

// Catalog is a running service with a given number of datasets, as many grants and as many audit entries.
//
//   - ada owns half of the datasets, in a namespace that is shared as a whole with the group analysts.
//     All audit entries concern her data, over a year.
//   - bob, one of the analysts, owns a quarter, each shared with the group finance, whose only member is eve.
//   - Other people own a quarter, 50 each, each shared with the analysts.
//
// So bob sees everything: his own datasets, then those with a grant on the dataset, then those with a grant on the
// namespace. The rest of the grants are on ada's datasets, to the other people.
type Catalog struct {
	*rig.Service

	size  int
	since time.Time         // time of the first audit entry
	every time.Duration     // time between two audit entries
	tags  map[string][]byte // ends of the cursors of lists, by user and path
}

// each is the number of datasets of each of the other people.
const each = 50

// seededID returns the ID of the i-th object of a kind, as sqlSeeded computes it. The IDs are in the order of i, and
// older than any that the service creates.
func seededID(kind string, i int) uuid.UUID {
	sum := md5.Sum([]byte(kind))

	return uuid.MustParse(fmt.Sprintf("0100%s-0000-7000-8000-%012x", hex.EncodeToString(sum[:2]), i+1))
}

const SQLSeeded = `
	CREATE FUNCTION seeded(kind text, i bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
		SELECT ('0100' || left(md5(kind), 4) || '-0000-7000-8000-' || lpad(to_hex(i + 1), 12, '0'))::uuid
	$$`

// startCatalog starts a service and fills its database; stop ends and removes both.
func startCatalog(ctx context.Context, b *rig.Bench, size int, settings ...string) (c *Catalog, stop func(), err error) {
	started, stop, err := b.StartService(ctx, settings...)
	if err != nil {
		return nil, nil, err
	}

	year := 360 * 24 * time.Hour
	c = &Catalog{
		Service: started, size: size,
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
func (c *Catalog) seed(ctx context.Context) error {
	half, quarter := c.size/2, c.size/4
	script := strings.NewReplacer(
		":ada", "'"+c.Accounts["ada"].String()+"'::uuid",
		":bob", "'"+c.Accounts["bob"].String()+"'::uuid",
		":all", strconv.Itoa(c.size), ":half", strconv.Itoa(half), ":quarter", strconv.Itoa(quarter),
		":others", strconv.Itoa(quarter/each), ":each", strconv.Itoa(each),
		":since", "'"+c.since.Format(time.RFC3339)+"'::timestamptz", ":every", fmt.Sprintf("interval '%d microseconds'", c.every.Microseconds()),
	).Replace(seedSQL)

	// The search index is expensive, and only one measure needs it.
	for _, statement := range []string{SQLSeeded, `ALTER TABLE datasets DISABLE TRIGGER USER`, `ALTER TABLE directory_grants DISABLE TRIGGER USER`} {
		if err := stack.Execute(ctx, c.Database, statement); err != nil {
			return err
		}
	}

	group, parallel := errgroup.WithContext(ctx)
	for part := range strings.SplitSeq(script, "\n--------\n") {
		group.Go(func() error { return stack.Execute(parallel, c.Database, part) })
	}

	if err := group.Wait(); err != nil {
		return err
	}

	// Background work of the database must not happen during the measurement.
	for _, statement := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if err := stack.Execute(ctx, c.Database, statement); err != nil {
			return err
		}
	}

	return nil
}

// The positions of cursors are computed here, because it would take long to page to the middle of a million entries.

// at returns a request for a page of a list. The path ends with a position. A cursor is a position and the tag of its list, so at appends
// the tag.
func (c *Catalog) at(ctx context.Context, user, path string) (*http.Request, error) {
	before, position, isPaged := strings.Cut(path, "cursor=")
	if !isPaged {
		return c.Request(ctx, user, http.MethodGet, path, nil)
	}

	list, _, _ := strings.Cut(before, "?")

	tag, err := c.listTag(ctx, user, list)
	if err != nil {
		return nil, err
	}

	place, err := base64.RawURLEncoding.DecodeString(position)
	if err != nil {
		return nil, err
	}

	return c.Request(ctx, user, http.MethodGet, before+"cursor="+base64.RawURLEncoding.EncodeToString(append(place, tag...)), nil)
}

// listTag reads the first page of a list and returns the end of its cursor. All cursors of the list have the same end.
func (c *Catalog) listTag(ctx context.Context, user, list string) ([]byte, error) {
	const length = 8

	if tag := c.tags[user+list]; tag != nil {
		return tag, nil
	}

	request, err := c.Request(ctx, user, http.MethodGet, list+"?limit=1", nil)
	if err != nil {
		return nil, err
	}

	body, err := rig.Get(request)
	if err != nil {
		return nil, err
	}

	var page struct{ NextCursor string }
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}

	cursor, err := base64.RawURLEncoding.DecodeString(page.NextCursor)
	if err != nil || len(cursor) < length {
		return nil, fmt.Errorf("%s has no second page: %s", list, body)
	}

	if c.tags == nil {
		c.tags = map[string][]byte{}
	}

	c.tags[user+list] = cursor[len(cursor)-length:]

	return c.tags[user+list], nil
}

func namespaceCursor(dataset uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString(dataset[:])
}

func allCursor(shared byte, account, namespace, dataset uuid.UUID) string {
	place := append([]byte{shared}, account[:]...)
	place = append(place, namespace[:]...)

	return base64.RawURLEncoding.EncodeToString(append(place, dataset[:]...))
}

func (c *Catalog) auditCursor(i int) string {
	id := seededID("audit", i)
	at := c.since.Add(time.Duration(i) * c.every)

	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())), id[:]...))
}
