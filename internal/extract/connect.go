package extract

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// Target is a database of the other side, and how it is reached.
type Target struct {
	Host     string // a name or an address; never a path
	Port     uint16
	Database string
	User     string
	Password string
	TLS      *tls.Config // nil: without TLS
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Timeout  time.Duration // until the connection is made
	Limits   Limits
}

// Limits protect the other side, and bound what one load takes.
type Limits struct {
	Statement time.Duration // longest duration of one statement, which is one page
	Page      int           // rows of a page
	Wait      time.Duration // between pages
	Rows      int64         // of one load
	Bytes     int64         // of the values of one load
	Duration  time.Duration // of one load
}

// RefusalError is the refusal of the server. Its message is not kept: it could be anything.
type RefusalError struct{ State string }

func (e *RefusalError) Error() string { return "the server refused with " + strconv.Quote(e.State) }

// ErrVersion is the failure of a connection to a server that is too old, or that is not PostgreSQL.
var ErrVersion = errors.New("the server is not PostgreSQL 12 or later")

const (
	oldest     = 120000
	maxMessage = 64 << 20 // one row
	lockWait   = 5 * time.Second
	// nothing names every setting that the driver would otherwise take from the environment or from files. The values are replaced afterwards.
	nothing = "host=127.0.0.1 port=1 dbname=x user=x password=x sslmode=disable sslnegotiation=postgres passfile=/dev/null connect_timeout=10 target_session_attrs=any " +
		"min_protocol_version=3.0 max_protocol_version=3.0 channel_binding=prefer require_auth='' sslrootcert='' sslcert='' sslkey='' sslpassword='' sslsni=''"
)

// parse returns a configuration that has nothing of the environment. The driver accepts only a configuration that it has made itself.
func parse() (*pgx.ConnConfig, error) {
	if os.Getenv("PGSERVICE") == "" {
		return pgx.ParseConfig(nothing)
	}

	// The driver reads the service file before it looks at other settings, so it gets one that is empty.
	file, err := os.CreateTemp("", "service")
	if err != nil {
		return nil, err
	}

	defer func() { _ = os.Remove(file.Name()) }()

	if _, err := file.WriteString("[none]\n"); err != nil {
		return nil, err
	}

	if err := file.Close(); err != nil {
		return nil, err
	}

	return pgx.ParseConfig(nothing + " service=none servicefile='" + file.Name() + "'")
}

func (t Target) config() (*pgx.ConnConfig, error) {
	config, err := parse()
	if err != nil {
		return nil, errors.New("the settings of the driver cannot be made") // err may quote the environment
	}

	config.Host, config.Port, config.Database, config.User, config.Password = t.Host, t.Port, t.Database, t.User, t.Password
	config.Fallbacks, config.TLSConfig, config.ConnectTimeout, config.KerberosSrvName, config.KerberosSpn = nil, t.TLS, t.Timeout, "", ""
	config.SSLNegotiation, config.ValidateConnect, config.MaxProtocolMessageBodyLen = "", nil, maxMessage
	config.DialFunc = t.Dial
	config.LookupFunc = net.DefaultResolver.LookupHost
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: time.Second} // the server stops the statement too
	}
	config.RuntimeParams = map[string]string{
		"application_name": "quern", "client_encoding": "UTF8", "datestyle": "ISO, YMD", "intervalstyle": "iso_8601", "timezone": "UTC", "bytea_output": "hex", "extra_float_digits": "3",
		"default_transaction_read_only": "on",
	}

	return config, nil
}

// session is a connection with an open transaction.
type session struct {
	conn *pgx.Conn
}

// open connects and begins the transaction. The caller must close the session.
func (t Target) open(ctx context.Context) (*session, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}

	connecting, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()

	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return nil, refused(err)
	}

	s := &session{conn}

	for _, statement := range []string{
		"BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ",
		"SET LOCAL statement_timeout = " + milliseconds(t.Limits.Statement),
		"SET LOCAL lock_timeout = " + milliseconds(lockWait),
		"SET LOCAL idle_in_transaction_session_timeout = " + milliseconds(time.Minute+t.Limits.Wait),
	} {
		if _, err := s.texts(ctx, statement); err != nil {
			s.close(ctx)

			return nil, err
		}
	}

	version, err := s.texts(ctx, "SHOW server_version_num")
	if err == nil {
		if n, malformed := strconv.Atoi(single(version)); malformed != nil || n < oldest {
			err = ErrVersion
		}
	}

	if err != nil {
		s.close(ctx)

		return nil, err
	}

	return s, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// single returns the only value of a result, and empty if it is not there.
func single(rows [][]string) string {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return ""
	}

	return rows[0][0]
}

func (s *session) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()

	_ = s.conn.Close(ctx) // the transaction has written nothing
}

// maxTexts is the largest result that texts holds.
const maxTexts = 10_000

// texts runs one statement with values and returns its small result. NULL is empty.
func (s *session) texts(ctx context.Context, statement string, values ...string) (list [][]string, err error) {
	reader := s.conn.PgConn().ExecParams(ctx, statement, wire(values), nil, nil, nil)

	for reader.NextRow() && len(list) < maxTexts {
		row := make([]string, len(reader.Values()))
		for i, value := range reader.Values() {
			row[i] = string(value)
		}

		list = append(list, row)
	}

	if _, err := reader.Close(); err != nil {
		return nil, refused(err)
	}

	return list, nil
}

func wire(values []string) (list [][]byte) {
	for _, value := range values {
		list = append(list, []byte(value))
	}

	return list
}

// refused replaces an error that the other side wrote by its code.
func refused(err error) error {
	if told, ok := errors.AsType[*pgconn.PgError](err); ok {
		return &RefusalError{State: told.Code}
	}

	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("connecting: %w", errors.Unwrap(failed)) // without the name of the user, which it would have
	}

	return err
}

// Try connects, and reports whether rows could be read.
func (t Target) Try(ctx context.Context) error {
	s, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)

	_, err = s.texts(ctx, "SELECT 1")

	return err
}
