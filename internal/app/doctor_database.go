package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

const leastVersion = 150000

// database checks the server, the schema, and the rights of the role.
func (d doctor) database(ctx context.Context) []finding {
	db, err := d.open(ctx, d.config.Database)
	if err != nil {
		return []finding{fail("database", err.Error(), "set QUERN_DATABASE_URL to postgres://user:password@host:port/name")}
	}
	defer db.Close()

	found, err := db.Examine(ctx)
	if err != nil {
		return []finding{databaseFailed(err, "QUERN_DATABASE_URL")}
	}

	findings := []finding{serverFound(found, d.config.Database)}

	schema := d.schema(ctx, db, found)
	findings = append(findings, schema)

	if d.config.Database.DirectURL.Reveal() == "" {
		return append(findings, rightsFound(found, found, schema.Status == statusOK))
	}

	owner := d.config.Database
	owner.URL, owner.Pooler = owner.DirectURL, false

	direct, err := d.open(ctx, owner)
	if err != nil {
		return append(findings, fail("database rights", err.Error(), "set QUERN_DATABASE_DIRECT_URL to postgres://user:password@host:port/name"))
	}
	defer direct.Close()

	migrates, err := direct.Examine(ctx)
	if err != nil {
		return append(findings, databaseFailed(err, "QUERN_DATABASE_DIRECT_URL"))
	}

	return append(findings, rightsFound(found, migrates, schema.Status == statusOK))
}

func (d doctor) open(ctx context.Context, c config.Database) (*postgres.DB, error) {
	c.MaxConns = 2

	return openDatabase(ctx, c)
}

// databaseFailed returns the finding for a database that does not accept the connection.
func databaseFailed(err error, setting string) finding {
	found := causeOf(err)

	switch postgres.RefusalOf(err) {
	case postgres.IsPooler:
		return fail("database", "it is a pooler without session settings: "+found, "set QUERN_DATABASE_POOLER=true, and QUERN_DATABASE_DIRECT_URL to the address without the pooler")
	case postgres.BadPassword:
		return fail("database", "the server refuses the role or its password: "+found, "correct user and password in "+setting)
	case postgres.NoDatabase:
		return fail("database", "the database does not exist: "+found, "create it with CREATE DATABASE (docs/operations.md, PostgreSQL), or correct its name in "+setting)
	default:
		return fail("database", "it cannot be reached: "+found, "check that PostgreSQL is running, and check host, port and sslmode in "+setting)
	}
}

// causeOf returns the cause of a fault, without the message for callers.
func causeOf(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		if cause := errors.Unwrap(e); cause != nil {
			err = cause
		}
	}

	// Leave out the URL: it can contain a secret, and the checks name the setting.
	if wire, ok := errors.AsType[*url.Error](err); ok {
		err = wire.Err
	}

	return err.Error()
}

func serverFound(found postgres.Condition, c config.Database) finding {
	const name = "database"

	text := fmt.Sprintf("PostgreSQL %d.%d, database %s, role %s", found.Version/10000, found.Version%10000, found.Name, found.Role)

	switch {
	case found.Version < leastVersion:
		return fail(name, text, "use PostgreSQL 15 or newer")
	case found.Encoding != "UTF8":
		return fail(name, text+", encoding "+found.Encoding, "create the database again with ENCODING 'UTF8'")
	case found.Standby:
		return fail(name, text+": it is a read-only standby", "set QUERN_DATABASE_URL to the primary")
	case c.Pooler && found.Unlimited:
		return warn(name, text+": behind the pooler, statements have no time limit", "set statement_timeout and the other limits with ALTER ROLE: docs/operations.md, PgBouncer")
	case c.MaxConns >= found.MaxConnections:
		return warn(name, fmt.Sprintf("%s: it allows %d connections, and this process may open %d", text, found.MaxConnections, c.MaxConns),
			"lower QUERN_DATABASE_MAX_CONNS, or raise max_connections")
	default:
		return good(name, text)
	}
}

func (d doctor) schema(ctx context.Context, db *postgres.DB, found postgres.Condition) finding {
	const name = "database schema"

	text := fmt.Sprintf("version %d, this program needs %d", found.Schema, found.Want)

	switch {
	case found.Schema == 0 && len(found.Missing) > 0:
		return fail(name, "the role "+found.Role+" cannot read it", grantFix(found.Role))
	case found.Schema < found.Want:
		return fail(name, text, "run `quernd migrate`")
	case found.CompatibleFrom > found.Want:
		return fail(name, text+": it no longer works with this program", "install a newer release")
	}

	if current, err := job.Migrated(ctx, db); err != nil || !current {
		return fail(name, text+"; the tables of jobs are out of date", "run `quernd migrate`")
	}

	return good(name, fmt.Sprintf("current, version %d", found.Schema))
}

// grantFix returns the command that gives a role the rights to serve.
func grantFix(role string) string { return "as the owner: quernd migrate --grant " + role }

// rightsFound checks the role that serves and the role that migrates, which may be the same.
func rightsFound(serves, migrates postgres.Condition, current bool) finding {
	const name = "database rights"

	switch {
	case !current && !migrates.CanCreate:
		return fail(name, fmt.Sprintf("the role %s cannot create tables, so it cannot migrate", migrates.Role),
			fmt.Sprintf("GRANT CREATE ON SCHEMA public TO %s, or set QUERN_DATABASE_DIRECT_URL to the role that owns the schema", migrates.Role))
	case current && len(serves.Missing) > 0:
		return fail(name, fmt.Sprintf("the role %s lacks %s", serves.Role, postgres.Few(serves.Missing)), grantFix(serves.Role))
	case serves.Role == migrates.Role && (serves.ActsAsOwner || serves.CanCreate):
		return good(name, serves.Role+" serves and migrates, so it can change the audit")
	case serves.ActsAsOwner:
		return fail(name, fmt.Sprintf("the role %s serves and may act as the owner, so it can change the audit", serves.Role),
			fmt.Sprintf("serve with a role that is neither a superuser nor a member of %s: docs/operations.md, PostgreSQL", migrates.Role))
	case current && len(serves.Excess) > 0:
		return fail(name, fmt.Sprintf("the role %s has %s, with which it can change the audit", serves.Role, postgres.Few(serves.Excess)), grantFix(serves.Role))
	case !migrates.CanCreate:
		return good(name, fmt.Sprintf("the service runs as the role %s; migrating requires another role", serves.Role))
	default:
		return good(name, fmt.Sprintf("%s serves, %s migrates", serves.Role, migrates.Role))
	}
}

const slightSkew = 5 * time.Second

var errNoClock = errors.New("no clock to compare with")

// clock compares the clock of this machine with those of the database and the issuer.
func (d doctor) clock(ctx context.Context) []finding {
	const name = "clock"

	worst, with, compared := time.Duration(0), "", []string{}

	note := func(whom string, off time.Duration) {
		compared = append(compared, whom)

		if off.Abs() > worst.Abs() || with == "" {
			worst, with = off, whom
		}
	}

	if off, err := d.databaseClock(ctx); err == nil {
		note("the database", off)
	}

	if off, err := d.issuerClock(ctx); err == nil {
		note("the issuer", off)
	}

	switch {
	case with == "":
		return []finding{warn(name, "not compared: neither the database nor the issuer responds", "fix the other findings first")}
	case worst.Abs() > d.config.OIDC.ClockSkew:
		return []finding{fail(name, fmt.Sprintf("the clock of this machine differs by %s from that of %s", worst.Abs().Round(time.Second), with),
			"synchronise both with NTP (timedatectl); tokens and signatures depend on it")}
	case worst.Abs() > slightSkew:
		return []finding{warn(name, fmt.Sprintf("the clock of this machine differs by %s from that of %s", worst.Abs().Round(time.Second), with), "synchronise both with NTP (timedatectl)")}
	default:
		return []finding{good(name, "agrees with "+strings.Join(compared, " and "))}
	}
}

func (d doctor) databaseClock(ctx context.Context) (time.Duration, error) {
	if d.config.Database.URL.Reveal() == "" {
		return 0, errNoClock
	}

	db, err := d.open(ctx, d.config.Database)
	if err != nil {
		return 0, err
	}
	defer db.Close()

	if err := db.Ping(ctx); err != nil { // so that the time of connecting is not measured
		return 0, err
	}

	began := time.Now()
	now, err := db.Clock(ctx)

	return beyond(now, began, time.Now(), 0), err
}

func (d doctor) issuerClock(ctx context.Context) (time.Duration, error) {
	issuer, err := d.authenticator()
	if err != nil {
		return 0, err
	}

	began := time.Now()
	found, err := issuer.Discover(ctx)

	if found.Date.IsZero() {
		return 0, errors.Join(err, errNoClock)
	}

	return beyond(found.Date, began, time.Now(), time.Second), nil
}

// beyond returns how far the time at, known to precision, is outside the interval in which it was read. It is negative
// if at is earlier.
func beyond(at, began, ended time.Time, precision time.Duration) time.Duration {
	switch {
	case at.After(ended):
		return at.Sub(ended)
	case at.Add(precision).Before(began):
		return at.Add(precision).Sub(began)
	default:
		return 0
	}
}

func (d doctor) authenticator() (*auth.Authenticator, error) {
	c := d.config.OIDC

	client, err := httpClient(c.Connection)
	if err != nil {
		return nil, err
	}

	return auth.New(auth.Config{
		Log: d.log, Now: time.Now, Client: client, Issuer: string(c.Issuer), Audiences: c.Audience, UsernameClaim: c.UsernameClaim,
		GroupsClaim: c.GroupsClaim, GroupsMaxAge: c.GroupsMaxAge, Algorithms: c.Algorithms, ClockSkew: c.ClockSkew, KeysRefresh: c.KeysRefresh,
		KeysMaxAge: c.KeysMaxAge,
	})
}
