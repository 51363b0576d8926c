package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/extract"
	"quern.dev/quern/internal/fault"
)

// Postgres is a database of a PostgreSQL server.
type Postgres struct {
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
	Database string `json:"database"`
	User     string `json:"user"`
	SSLMode  string `json:"sslMode"`
}

// Modes of TLS. There is none in between: an encrypted connection to a host that nobody has checked protects the password from nobody.
const (
	VerifyFull = "verify-full"
	NoTLS      = "disable"
)

// PostgresPort is the port of a server that has no other.
const PostgresPort = 5432

// ProblemVersion is the problem of a server that is too old.
const ProblemVersion = "version"

// Told returns the sentence for the problem of a connection.
func (c Connection) Told() string {
	switch c.Kind {
	case KindPostgres:
		return toldPostgres(c.Problem)
	case KindHTTPS:
		return toldHTTPS(c.Problem)
	case KindIceberg:
		return toldIceberg(c.Problem)
	default:
		return Told(c.Problem)
	}
}

func toldPostgres(problem string) string {
	switch problem {
	case ProblemRefused:
		return "The server refused the user or the password, or the user lacks a right. It must be allowed to connect (pg_hba.conf, CONNECT) and to read what is loaded (USAGE, SELECT)."
	case ProblemMissing:
		return "The server has no such database."
	case ProblemTLS:
		return "The TLS connection failed, or the server offers no TLS. Check the certificate of the host; the operator of the service can add an authority (QUERN_SOURCE_CA_FILE). " +
			"A server without TLS needs sslMode disable and a network that the operator allows."
	case ProblemVersion:
		return "The server is not PostgreSQL 12 or later."
	case ProblemAnswer:
		return "The host did not answer as a PostgreSQL server does. Check the host and the port."
	default:
		return Told(problem)
	}
}

// names matches the names of hosts: no path of a socket, no list, nothing that has a meaning elsewhere.
var names = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

// checkPostgres returns ValidationFailed for settings that are not used.
func (c *Connections) checkPostgres(want Postgres) error {
	literal, err := netip.ParseAddr(want.Host)

	switch isAddress := err == nil && literal.Zone() == ""; {
	case !isAddress && !names.MatchString(want.Host):
		return fault.Invalid("postgresql.host", "is not the name or the address of one host")
	case want.SSLMode == NoTLS && len(c.Allowed) == 0:
		return fault.Invalid("postgresql.sslMode", "must be verify-full: only networks that the operator names (QUERN_SOURCE_ALLOWED_NETWORKS) are reached without TLS")
	case !c.hosts.allow(want.address()):
		return fault.Invalid("postgresql.host", Told(ProblemHost))
	case isAddress && !c.policy.Permits(literal):
		return fault.Invalid("postgresql.host", Told(ProblemAddress))
	default:
		return nil
	}
}

// address is the address for the list of hosts, where an entry without a port means that of https: a database is allowed only with its port.
func (p Postgres) address() *url.URL {
	return &url.URL{Scheme: KindPostgres, Host: net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port)))}
}

// target returns the database of a connection.
func (c *Connections) target(p Postgres, password string) (extract.Target, error) {
	// The operator may have changed the list since the connection was made.
	if !c.hosts.allow(p.address()) {
		return extract.Target{}, errHost
	}

	var secure *tls.Config

	if p.SSLMode != NoTLS {
		secure = &tls.Config{}
		if c.Transport.TLSClientConfig != nil {
			secure = c.Transport.TLSClientConfig.Clone()
		}

		secure.ServerName, secure.MinVersion, secure.NextProtos = p.Host, tls.VersionTLS12, nil
	}

	dialer := &net.Dialer{Timeout: c.Timeout, Control: c.policy.Control(secure == nil)}
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		// The driver resolves names itself: only the port can be compared, and the address is checked by Control.
		if _, port, err := net.SplitHostPort(to); err != nil || port != strconv.Itoa(int(p.Port)) || !strings.HasPrefix(network, "tcp") {
			return nil, errHost
		}

		return dialer.DialContext(ctx, network, to)
	}

	return extract.Target{
		Host: p.Host, Port: p.Port, Database: p.Database, User: p.User, Password: password, TLS: secure, Dial: dial, Timeout: c.Timeout, Limits: c.Extract,
	}, nil
}

func (c *Connections) tryPostgres(ctx context.Context, p Postgres, password string) string {
	target, err := c.target(p, password)
	if err != nil {
		return ProblemPostgres(err)
	}

	ctx, cancel := context.WithTimeout(ctx, 2*c.Timeout)
	defer cancel()

	if err := target.Try(ctx); err != nil {
		return ProblemPostgres(err)
	}

	return ""
}

// OpenPostgres returns the database of a connection of the caller.
//
// Faults: NotFound, Forbidden, ValidationFailed for another kind, UpstreamUnavailable.
func (c *Connections) OpenPostgres(ctx context.Context, who auth.Principal, id uuid.UUID) (extract.Target, error) {
	found, err := c.Get(ctx, who, id)
	if err != nil {
		return extract.Target{}, err
	}

	if found.Kind != KindPostgres {
		return extract.Target{}, fault.New(fault.ValidationFailed, "The connection is not to a PostgreSQL database: it has no tables.")
	}

	secret, err := c.Keys.open(found.secret, found.Account, found.ID)
	if err != nil {
		return extract.Target{}, FailedPostgres(err)
	}

	target, err := c.target(found.Postgres, string(secret))
	if err != nil {
		return extract.Target{}, FailedPostgres(err)
	}

	return target, nil
}

// ProblemPostgres returns what went wrong with a PostgreSQL server.
func ProblemPostgres(err error) string {
	var refusal *extract.RefusalError

	switch {
	case errors.Is(err, extract.ErrVersion):
		return ProblemVersion
	case errors.As(err, &refusal):
		return problemOf(refusal.State)
	}

	if strings.Contains(err.Error(), "server refused TLS") {
		return ProblemTLS
	}

	problem := Problem(err)
	if _, isNetwork := errors.AsType[net.Error](err); problem == ProblemAnswer && isNetwork {
		problem = ProblemConnect
	}

	return problem
}

// problemOf returns the problem that an SQLSTATE means.
func problemOf(state string) string {
	switch {
	case state == "3D000": // no such database
		return ProblemMissing
	case strings.HasPrefix(state, "28"), state == "42501": // authorization, privileges
		return ProblemRefused
	case strings.HasPrefix(state, "53"), strings.HasPrefix(state, "57P"): // too many connections, starting, stopping
		return ProblemConnect
	case state == "57014", state == "55P03": // a timeout of a statement or of a lock
		return ProblemTimeout
	default:
		return ProblemAnswer
	}
}

// FailedPostgres returns the fault for a problem with a PostgreSQL server.
func FailedPostgres(err error) *fault.Error {
	return fault.New(fault.UpstreamUnavailable, toldPostgres(ProblemPostgres(err)))
}
