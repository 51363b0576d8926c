package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quern.dev/quern/internal/fault"
)

const (
	codeUniqueViolation = "23505"
	codeLockNotHad      = "55P03"
	codeQueryCanceled   = "57014"
	codeCheckViolation  = "23514"
)

// Translate turns an error of the driver into a fault. Faults and context.Canceled pass unchanged, and an exceeded
// deadline becomes Timeout. Any other error is a defect of Quern: it passes unchanged, so that it becomes Internal in
// the response.
func Translate(err error) error {
	var (
		known   *fault.Error
		server  *pgconn.PgError
		connect *pgconn.ConnectError
		network net.Error
	)

	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &server):
		return translateServer(err, server)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "The request took too long.")
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, net.ErrClosed), strings.Contains(err.Error(), "conn closed"):
		return unavailable(err)
	default:
		return err
	}
}

func translateServer(err error, server *pgconn.PgError) error {
	class := server.Code[:min(2, len(server.Code))]

	switch {
	case server.Code == codeQueryCanceled:
		return fault.Wrap(err, fault.Timeout, "The request took too long.")
	case server.Code == codeLockNotHad:
		return fault.Wrap(err, fault.Conflict, "Another request is changing the same data. Try again.")
	// 08 connection, 53 out of resources, 57 shutdown by an operator, 40 deadlock or serialization failure, 25006
	// write on a server that has become a standby.
	case class == "08", class == "53", class == "57", class == "40", server.Code == "25006":
		return unavailable(err)
	case server.Code == codeCheckViolation && server.ConstraintName == "":
		// The row belongs to a partition that was created while the row was written to the default partition.
		return unavailable(err)
	default:
		return err
	}
}

func unavailable(err error) error {
	e := fault.Wrap(err, fault.Unavailable, "The database cannot be reached. Try again shortly.")
	e.RetryAfter = time.Second

	return e
}

// ViolatesUnique returns the unique constraint that a write violated.
func ViolatesUnique(err error) (constraint string, ok bool) {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == codeUniqueViolation {
		return server.ConstraintName, true
	}

	return "", false
}

// LockTimedOut reports whether a statement waited too long for a lock that another transaction holds.
func LockTimedOut(err error) bool {
	var server *pgconn.PgError

	return errors.As(err, &server) && server.Code == codeLockNotHad
}

// NoRows reports whether a statement that should return one row returned none.
func NoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
