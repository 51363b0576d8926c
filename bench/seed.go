package main

import (
	"bytes"
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

	"quern.dev/quern/api"
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
	*quernd

	database string // its address
	size     int
	accounts map[string]uuid.UUID
	tokens   map[string]string
	since    time.Time     // the first audit entry
	every    time.Duration // the next one
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

// startCatalog starts a service on a database of its own; stop ends and removes both.
func (b *bench) startCatalog(ctx context.Context, size int) (c *catalog, stop func(), err error) {
	databaseURL, drop, err := createDatabase(ctx)
	if err != nil {
		return nil, nil, err
	}

	service, err := b.startQuernd(ctx, databaseURL)
	if err != nil {
		drop()

		return nil, nil, err
	}

	stop = func() {
		service.stop()
		drop()
	}

	year := 360 * 24 * time.Hour
	c = &catalog{
		quernd: service, database: databaseURL, size: size, accounts: map[string]uuid.UUID{}, tokens: map[string]string{},
		since: time.Now().UTC().Add(-year).Truncate(time.Second), every: (year / time.Duration(size)).Truncate(time.Microsecond),
	}

	for _, user := range []string{"ada", "bob", "eve"} {
		if err := c.signIn(ctx, user); err != nil {
			stop()

			return nil, nil, fmt.Errorf("signing %s in: %w", user, err)
		}
	}

	begin := time.Now()
	if err := c.seed(ctx); err != nil {
		stop()

		return nil, nil, fmt.Errorf("seeding: %w", err)
	}

	fmt.Fprintf(os.Stderr, "%d datasets, grants and audit entries in %v\n", size, time.Since(begin).Round(time.Millisecond))

	return c, stop, nil
}

// signIn makes the user's account and an API token for it, which outlives any measure.
func (c *catalog) signIn(ctx context.Context, user string) error {
	token, err := accessToken(ctx, user)
	if err != nil {
		return err
	}

	c.tokens[user] = token

	var me api.Me
	if err := c.ask(ctx, user, http.MethodGet, "/user/me", nil, &me); err != nil {
		return err
	}

	var made api.CreatedToken
	if err := c.ask(ctx, user, http.MethodPost, "/user/token", api.NewToken{Name: "bench", Role: new(api.NewTokenRoleOwner)}, &made); err != nil {
		return err
	}

	c.accounts[user], c.tokens[user] = me.ID, made.Token

	return nil
}

func (c *catalog) ask(ctx context.Context, user, method, path string, body, answer any) error {
	request, err := c.request(ctx, user, method, path, body)
	if err != nil {
		return err
	}

	text, err := get(request)
	if err != nil {
		return err
	}

	return json.Unmarshal(text, answer)
}

// request is one to the API by a user. A nil body is none.
func (c *catalog) request(ctx context.Context, user, method, path string, body any) (*http.Request, error) {
	var text []byte

	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}

	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.api+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+c.tokens[user])

	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}

	return request, nil
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

	if err := execute(ctx, c.database, sqlSeeded); err != nil {
		return err
	}

	group, parallel := errgroup.WithContext(ctx)
	for part := range strings.SplitSeq(script, "\n--------\n") {
		group.Go(func() error { return execute(parallel, c.database, part) })
	}

	if err := group.Wait(); err != nil {
		return err
	}

	// What the database would do by and by must not happen while we measure.
	for _, statement := range []string{`VACUUM (ANALYZE)`, `CHECKPOINT`} {
		if err := execute(ctx, c.database, statement); err != nil {
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
