package connection

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/extract"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/guard"
	"quern.dev/quern/internal/postgres"
)

// Config configures Connections.
type Config struct {
	DB      *postgres.DB
	Catalog catalog.Catalog
	Now     func() time.Time

	Keys      Keys
	Hosts     []string       // that may be reached; none if empty
	Allowed   []netip.Prefix // networks that may be reached although they are not public
	Transport *http.Transport
	Timeout   time.Duration // of one request
	Extract   extract.Limits
}

// Connections keeps connections.
type Connections struct {
	Config

	hosts  hosts
	policy guard.Policy
	opened opened
}

// New returns Connections.
func New(c Config) *Connections {
	return &Connections{Config: c, hosts: c.Hosts, policy: guard.New(c.Allowed)}
}

// The kinds of other systems.
const (
	KindS3       = "s3"
	KindPostgres = "postgresql"
	KindHTTPS    = "https"
)

// Connection is another system, with what is needed to read from it.
type Connection struct {
	Account   uuid.UUID
	Owner     string // username; only of a connection that is shared with the caller
	ID        uuid.UUID
	Name      string
	Kind      string
	S3        S3
	Postgres  Postgres
	HTTPS     HTTPS
	Iceberg   Iceberg
	Problem   string // of the last test; empty if it worked
	TestedAt  time.Time
	CreatedAt time.Time

	secret envelope
}

// S3 is a bucket, or a prefix of it.
type S3 struct {
	Endpoint    string `json:"endpoint"`
	Region      string `json:"region"`
	Bucket      string `json:"bucket"`
	Prefix      string `json:"prefix"`
	PathStyle   bool   `json:"pathStyle"`
	AccessKeyID string `json:"accessKeyId"`
}

// maxConnections is the largest number of connections of an account.
const maxConnections = 100

// Want is a request for a connection.
type Want struct {
	Name     string
	Kind     string
	S3       S3
	Postgres Postgres
	HTTPS    HTTPS
	Iceberg  Iceberg
	Secret   string // empty if there is none
	Once     auth.Once
}

// mayRead refuses restricted tokens: a connection belongs to the whole account.
func mayRead(who auth.Principal) error {
	if who.Token != nil && who.Token.Restricted {
		return fault.New(fault.Forbidden, "A restricted token cannot use connections. Use a token without restrictions.")
	}

	return nil
}

// mayChange also refuses tokens that only read.
func mayChange(who auth.Principal) error { return cmp.Or(mayRead(who), who.RequireEditor()) }

// enabled returns Forbidden unless the operator has turned connections on.
func (c *Connections) enabled() error {
	if c.Keys.Current == "" || len(c.Hosts) == 0 {
		return fault.New(fault.Forbidden, "The operator of the service has not turned connections on (QUERN_SOURCE_KEY and QUERN_SOURCE_HOSTS).")
	}

	return nil
}

// buckets matches the names that S3 permits. They become part of a host name or a path.
var buckets = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (c *Connections) check(want Want) error {
	switch want.Kind {
	case KindPostgres:
		return c.checkPostgres(want.Postgres)
	case KindHTTPS:
		return c.checkHTTPS(want.HTTPS, want.Secret)
	case KindIceberg:
		return c.checkIceberg(want.Iceberg, want.Secret)
	}

	if !buckets.MatchString(want.S3.Bucket) {
		return fault.Invalid("s3.bucket", "is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens")
	}

	return c.checkEndpoint("s3.endpoint", want.S3.Endpoint)
}

// Create makes a connection after a real call to the other side has worked.
//
// Faults: Forbidden, ValidationFailed with the problem of the call, Conflict for a name that is in use, LimitExceeded.
func (c *Connections) Create(ctx context.Context, who auth.Principal, want Want) (made Connection, err error) {
	if err := mayChange(who); err != nil {
		return Connection{}, err
	}

	if err := c.enabled(); err != nil {
		return Connection{}, err
	}

	if err := c.check(want); err != nil {
		return Connection{}, err
	}

	now := c.now()
	draft := Connection{Account: who.Account, ID: uuid.Must(uuid.NewV7()), Name: want.Name, Kind: want.Kind, S3: want.S3, Postgres: want.Postgres, HTTPS: want.HTTPS.normal(), Iceberg: want.Iceberg.normal(), TestedAt: now, CreatedAt: now}

	if draft.secret, err = c.Keys.seal(draft.Account, draft.ID, []byte(want.Secret)); err != nil {
		return Connection{}, err
	}

	// No transaction waits for the other side.
	if problem := c.try(ctx, draft, want.Secret); problem != "" {
		draft.Problem = problem

		return Connection{}, fault.Invalid(draft.Kind, draft.Told())
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, draft.ID, draft.CreatedAt)
		if err != nil {
			return err
		}

		if !repeated {
			if err := c.createTx(ctx, tx, who, draft); err != nil {
				return err
			}
		}

		made, err = c.get(ctx, tx, who, first)

		return err
	})

	return made, taken(err)
}

func (c *Connections) createTx(ctx context.Context, tx postgres.Tx, who auth.Principal, draft Connection) error {
	if n, err := count(ctx, tx, who.Account); err != nil || n >= maxConnections {
		if err == nil {
			err = fault.New(fault.LimitExceeded, fmt.Sprintf("You have %d connections, which is the maximum. Delete one first.", n))
		}

		return err
	}

	if err := insert(ctx, tx, draft); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, draft.CreatedAt, "connection.create", draft.audit()))
}

// taken returns Conflict for a name that is in use.
func taken(err error) error {
	if _, isTaken := postgres.ViolatesUnique(err); isTaken {
		return fault.New(fault.Conflict, "You have a connection with this name already. Names are compared without case.")
	}

	return err
}

// compare orders connections by their age.
func (c Connection) compare(other Connection) int { return bytes.Compare(c.ID[:], other.ID[:]) }

func (c Connection) audit() audit.Target {
	return audit.Target{Kind: "connection", ID: c.ID.String()}
}

func (c *Connections) now() time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

func (c *Connections) get(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Connection, error) {
	return present(selectOne(ctx, q, who.Account, id))
}

func present(found *Connection, err error) (Connection, error) {
	if err == nil && found == nil {
		err = fault.Absent()
	}

	if err != nil {
		return Connection{}, err
	}

	return *found, nil
}

// Get returns a connection of the caller, or one that is shared with the caller.
//
// Faults: NotFound, Forbidden.
func (c *Connections) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (found Connection, err error) {
	if err := mayRead(who); err != nil {
		return Connection{}, err
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = c.usable(ctx, q, who, id)

		return err
	})

	return found, err
}

// List returns the connections of the caller and those that are shared with the caller, oldest first.
//
// Faults: Forbidden.
func (c *Connections) List(ctx context.Context, who auth.Principal, after uuid.UUID, limit int) (list []Connection, next uuid.UUID, err error) {
	if err := mayRead(who); err != nil {
		return nil, uuid.Nil, err
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		if list, err = selectPage(ctx, q, who.Account, after, limit+1); err != nil {
			return err
		}

		shared, err := c.shared(ctx, q, who, after, limit+1)
		list = append(list, shared...)

		return err
	})

	slices.SortFunc(list, Connection.compare)

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}

	return list, next, err
}

// Update changes a connection. New credentials are tested first.
//
// Faults: NotFound, Forbidden, ValidationFailed with the problem of the call, Conflict.
func (c *Connections) Update(ctx context.Context, who auth.Principal, id uuid.UUID, change Change) (Connection, error) {
	found, err := c.changeable(ctx, who, id)
	if err != nil {
		return Connection{}, err
	}

	secret, err := c.changed(&found, change)
	if err != nil {
		return Connection{}, err
	}

	var sealed envelope

	if secret != nil {
		if err := c.enabled(); err != nil {
			return Connection{}, err
		}

		if found.Problem = c.try(ctx, found, *secret); found.Problem != "" {
			return Connection{}, fault.Invalid(change.field(), found.Told())
		}

		if sealed, err = c.Keys.seal(found.Account, found.ID, []byte(*secret)); err != nil {
			return Connection{}, err
		}
	}

	return c.change(ctx, who, id, "connection.update", func(tx postgres.Tx, now *Connection) error {
		if change.Name != nil {
			now.Name = *change.Name
		}

		if secret != nil {
			now.S3.AccessKeyID, now.Iceberg.Store.AccessKeyID = found.S3.AccessKeyID, found.Iceberg.Store.AccessKeyID
			now.secret, now.TestedAt, now.Problem = sealed, c.now(), ""
		}

		return taken(update(ctx, tx, *now))
	})
}

// changeable returns a connection that the caller may change.
func (c *Connections) changeable(ctx context.Context, who auth.Principal, id uuid.UUID) (found Connection, err error) {
	if err := mayChange(who); err != nil {
		return Connection{}, err
	}

	err = c.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = owned(ctx, q, who, id, selectOne)

		return err
	})

	return found, err
}

// change changes a connection of the caller in a transaction, with an audit entry.
func (c *Connections) change(ctx context.Context, who auth.Principal, id uuid.UUID, action string, do func(tx postgres.Tx, now *Connection) error) (changed Connection, err error) {
	if err := mayChange(who); err != nil {
		return Connection{}, err
	}

	err = c.DB.InTx(ctx, func(tx postgres.Tx) error {
		if changed, err = owned(ctx, tx, who, id, lock); err != nil {
			return err
		}

		if err := do(tx, &changed); err != nil {
			return err
		}

		return audit.WriteTx(ctx, tx, who.Audit(who.Account, c.now(), action, changed.audit()))
	})
	if err != nil {
		return Connection{}, err
	}

	return changed, nil
}

// Test makes a real call to the other side, and records how it went.
//
// Faults: NotFound, Forbidden.
func (c *Connections) Test(ctx context.Context, who auth.Principal, id uuid.UUID) (Connection, error) {
	found, err := c.changeable(ctx, who, id)
	if err != nil {
		return Connection{}, err
	}

	problem := ProblemKey

	secret, err := c.Keys.open(found.secret, found.Account, found.ID)
	if err == nil {
		problem = c.try(ctx, found, string(secret))
	}

	return c.change(ctx, who, id, "connection.test", func(tx postgres.Tx, now *Connection) error {
		now.Problem, now.TestedAt = problem, c.now()

		return update(ctx, tx, *now)
	})
}

// Delete deletes a connection with its secret. Sources that use it fail from then on.
//
// Faults: NotFound, Forbidden.
func (c *Connections) Delete(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	_, err := c.change(ctx, who, id, "connection.delete", func(tx postgres.Tx, now *Connection) error { return remove(ctx, tx, *now) })

	return err
}

// Open returns a client that reads from a connection that the caller may use. The caller of Open must call done at the end.
//
// Faults: NotFound, Forbidden, ValidationFailed for another kind, UpstreamUnavailable.
func (c *Connections) Open(ctx context.Context, who auth.Principal, id uuid.UUID) (store *blob.Store, done func(), err error) {
	found, err := c.Get(ctx, who, id)
	if err != nil {
		return nil, nil, err
	}

	if found.Kind != KindS3 {
		return nil, nil, fault.New(fault.ValidationFailed, "The connection is not to an S3 store: it has no list of files.")
	}

	secret, err := c.Keys.open(found.secret, found.Account, found.ID)
	if err != nil {
		return nil, nil, Failed(ProblemKey)
	}

	if store, done, err = c.store(found, string(secret)); err != nil {
		return nil, nil, Failed(Problem(err))
	}

	return store, done, nil
}

// File is a file of the other system.
type File struct {
	Path     string // below the prefix of the connection
	Size     int64
	Modified time.Time
}

// Files returns the files whose paths begin with prefix and are greater than after, in the order of their paths. next is the last path if there may be more.
//
// Faults: NotFound, Forbidden, ValidationFailed for another kind, UpstreamUnavailable with the problem.
func (c *Connections) Files(ctx context.Context, who auth.Principal, id uuid.UUID, prefix, after string, limit int) (list []File, next string, err error) {
	store, done, err := c.Open(ctx, who, id)
	if err != nil {
		return nil, "", err
	}
	defer done()

	for object, err := range store.ListAfter(ctx, prefix, after) {
		if err != nil {
			return nil, "", Failed(Problem(err))
		}

		// A lying store may repeat itself. A key that is not UTF-8 has no form in JSON.
		if !strings.HasPrefix(object.Key, prefix) || object.Key <= after || !utf8.ValidString(object.Key) {
			continue
		}

		if len(list) == limit {
			return list, list[limit-1].Path, nil
		}

		list = append(list, File{Path: object.Key, Size: object.Size, Modified: object.Modified})
		after = object.Key
	}

	return list, "", nil
}
